"""1 when every tool of `config.tools` was called, whenever that was."""

import json
import sys

case = json.load(sys.stdin)
called = set()
for message in case["output_messages"] or []:
    for call in message.get("tool_calls") or []:
        called.add(call["tool"])
missing = [tool for tool in case["config"]["tools"] if tool not in called]
print(json.dumps({"score": 0 if missing else 1, "misses": missing}))
