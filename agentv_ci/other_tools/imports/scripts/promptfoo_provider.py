"""Ask a provider of promptfoo that is a Python file.

Promptfoo_provider.py PROVIDER[:FUNCTION] PROMPT_FILE [CONFIG]. An answer that is an object or a
list stays one, for checks that read its fields.
"""

import asyncio
import contextlib
import importlib.util
import inspect
import json
import sys
from pathlib import Path

file, _, function = sys.argv[1].partition(":")
prompt = Path(sys.argv[2]).read_text("utf-8")
config = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
path = Path(file).resolve()
sys.path.insert(0, str(path.parent))
spec = importlib.util.spec_from_file_location(path.stem, path)
module = importlib.util.module_from_spec(spec)
with contextlib.redirect_stdout(sys.stderr):
    spec.loader.exec_module(module)
    answer = getattr(module, function or "call_api")(prompt, {"config": config}, {"vars": {}})
    if inspect.isawaitable(answer):
        answer = asyncio.run(answer)
if isinstance(answer, dict) and answer.get("error"):
    sys.exit(str(answer["error"]))
output = answer.get("output") if isinstance(answer, dict) else answer
if output is None:
    sys.exit("the provider has no output")
if isinstance(output, (dict, list)):
    contents = [output, json.dumps(output, ensure_ascii=False, separators=(",", ":"))]
    printed = {"output_messages": [{"role": "assistant", "content": each} for each in contents]}
else:
    printed = {"text": output if isinstance(output, str) else json.dumps(output)}
sys.stdout.write(json.dumps(printed))
