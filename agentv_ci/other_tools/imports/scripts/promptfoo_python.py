"""Do a check of promptfoo in Python: `python`, and JSON with a schema.

Settings: check {type, value or file, function, threshold, config}, vars, transforms, graded,
negated. `promptfoo_check.mjs` transforms the answer.
"""

import importlib.util
import json
import subprocess
import sys
import textwrap
from pathlib import Path

given = json.load(sys.stdin)
settings = given["config"]
check = settings["check"]
negated = settings.get("negated", False)
context = {
    "prompt": given["question"],
    "vars": settings.get("vars", {}),
    "test": {"vars": settings.get("vars", {})},
    "config": check.get("config"),
    "provider": settings.get("provider"),
}


def transformed():
    """Return the answer after the transformations: an object if the provider gave one."""
    said = [turn["content"] for turn in given["output_messages"]]
    if settings.get("transforms") or settings.get("parsed"):
        script = Path(__file__).with_name("promptfoo_check.mjs")
        done = subprocess.run(
            ["node", script, "--output"],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(done.stderr)
        return json.loads(done.stdout)
    objects = [content for content in said if isinstance(content, (dict, list))]
    return objects[0] if objects else given["candidate_answer"]


def result_of_code(code, output):
    """Return the value of an expression, or what the body of a function returns."""
    names = {"json": json}
    if "\n" in code or code.startswith("return "):
        exec(
            "def judged(output, context):\n" + textwrap.indent(textwrap.dedent(code), "    "), names
        )
        return names["judged"](output, context)
    return eval(code, {**names, "output": output, "context": context})


def function_of_file(file, name):
    """Return a function of a module."""
    path = Path(file).resolve()
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def verdict(result):
    """Return whether it passed, its score, and why.

    Raises ValueError and TypeError for another value.
    """
    threshold = check.get("threshold")
    if isinstance(result, str) and result.startswith("{"):
        result = json.loads(result)
    if isinstance(result, dict):
        passed = result.get("pass", result.get("pass_"))
        score, reason = result.get("score"), result.get("reason")
        if not (isinstance(passed, bool) and is_number(score) and isinstance(reason, str)):
            raise TypeError("it must return a boolean, a number or {pass, score, reason}")
        return passed and (threshold is None or score >= threshold), score, reason
    if isinstance(result, str) and result.lower() in ("true", "false"):
        result = result.lower() == "true"
    if isinstance(result, bool):
        return result, None, json.dumps(result)
    number = float(result)
    return number > 0 if threshold is None else number >= threshold, number, json.dumps(result)


def is_number(value):
    """Whether a value is a number, and no boolean."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def objects_in(text):
    """Yield the objects in a text, which may be written as YAML; one at the end may be cut off."""
    start = text.find("{")
    while start != -1:
        depth, end, value = 0, start, None
        while end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
            if depth == 0 or end == len(text):
                value = loaded(text[start:end] + "}" * depth)
                break
        if isinstance(value, dict):
            yield value
            start = text.find("{", end)
        else:
            start = text.find("{", start + 1)


def loaded(text):
    """Return JSON, or YAML that is like it; None for anything else."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, TypeError):
        return None


def fits(value):
    """Whether a value fits the schema; a schema without version is of draft 7, as in Ajv."""
    from jsonschema import Draft7Validator, validators

    schema = check.get("value")
    if isinstance(schema, str):
        schema = loaded(schema) if schema else None
    if not schema:
        return True
    kind = validators.validator_for(schema, default=Draft7Validator)
    kind.check_schema(schema)
    return kind(schema).is_valid(value)


def json_verdict(output):
    """Return whether JSON, or a text with JSON in it, fits the schema."""
    text = output if isinstance(output, str) else json.dumps(output)
    if check["type"] == "is-json":
        try:
            value = json.loads(text)
        except ValueError:
            return negated
        return fits(value) != negated
    found = list(objects_in(text))
    if not found or not check.get("value"):
        return bool(found) != negated
    fitting = [fits(value) for value in found]
    return any(fitting) if not negated else not any(fitting)


output = transformed()
judge = None
if "file" in check and check["type"] == "python":
    judge = function_of_file(check["file"], check.get("function") or "get_assert")
try:
    if check["type"] == "python":
        passed, score, reasoning = verdict(
            judge(output, context) if judge else result_of_code(check["value"].strip(), output)
        )
        passed = bool(passed) != negated
        if score is None:
            score = int(passed)
    else:
        passed = json_verdict(output)
        score, reasoning = int(passed), f"{check['type']}: {passed}"
except Exception as error:  # noqa: BLE001  # of the author's code
    passed, score = False, 0
    reasoning = f"the function raised {type(error).__name__}: {error}"
print(
    json.dumps({"score": score if settings.get("graded") else int(passed), "reasoning": reasoning})
)
