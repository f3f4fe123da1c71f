"""Ask a provider of promptfoo that is a Python file.

Usage: promptfoo_provider.py PROVIDER[:FUNCTION] PROMPT_FILE [CONFIG]
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
sys.stdout.write(output if isinstance(output, str) else json.dumps(output))
