"""Do a python check of promptfoo.

Settings: check {code or file, function, threshold}, vars, graded, negated (the evaluator negates
the score, but a function that raises an exception has failed).
"""

import importlib.util
import json
import sys
import textwrap
from pathlib import Path

given = json.load(sys.stdin)
settings = given["config"]
check = settings["check"]
context = {
    "prompt": given["question"],
    "vars": settings.get("vars", {}),
    "test": {"vars": settings.get("vars", {})},
    "config": check.get("config"),
}
output = given["candidate_answer"]


def result_of_code(code):
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
    if isinstance(result, dict):
        passed = result.get("pass", result.get("pass_", result.get("score", 0)))
        return passed, result.get("score"), result.get("reason") or json.dumps(result, default=str)
    if isinstance(result, str) and result.lower() in ("true", "false"):
        result = result.lower() == "true"
    if isinstance(result, bool):
        return result, None, json.dumps(result)
    number = float(result)
    return number > 0 if threshold is None else number >= threshold, number, json.dumps(result)


judge = (
    function_of_file(check["file"], check.get("function") or "get_assert")
    if "file" in check
    else None
)
try:
    passed, score, reasoning = verdict(
        judge(output, context) if judge else result_of_code(check["value"].strip())
    )
except Exception as error:  # noqa: BLE001  # of the author's code
    passed, score = settings.get("negated", False), None
    reasoning = f"the function raised {type(error).__name__}: {error}"
is_number = isinstance(score, (int, float)) and not isinstance(score, bool)
print(
    json.dumps(
        {
            "score": score if settings.get("graded") and is_number else int(bool(passed)),
            "reasoning": reasoning,
        }
    )
)
