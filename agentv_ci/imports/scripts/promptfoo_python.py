"""Do a python check of promptfoo. Settings: check {code or file, function, threshold}, vars, graded."""

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
if "file" in check:
    path = Path(check["file"]).resolve()
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    result = getattr(module, check.get("function") or "get_assert")(output, context)
else:
    code = check["value"].strip()
    names = {"json": json}
    if "\n" in code or code.startswith("return "):
        exec("def judged(output, context):\n" + textwrap.indent(textwrap.dedent(code), "    "), names)
        result = names["judged"](output, context)
    else:
        result = eval(code, {**names, "output": output, "context": context})
reasoning = json.dumps(result, default=str)
threshold = check.get("threshold")
if isinstance(result, dict):
    reasoning = result.get("reason") or reasoning
    passed = result.get("pass", result.get("pass_", result.get("score", 0)))
elif isinstance(result, bool):
    passed = result
else:
    passed = float(result) > 0 if threshold is None else float(result) >= threshold
score = result.get("score") if isinstance(result, dict) else result
is_number = isinstance(score, (int, float)) and not isinstance(score, bool)
print(
    json.dumps({"score": score if settings.get("graded") and is_number else int(bool(passed)), "reasoning": reasoning})
)
