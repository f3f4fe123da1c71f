"""1 when the calls with their inputs and the answer are those of the config."""

import json
import sys

case = json.load(sys.stdin)
calls = []
for message in case["output_messages"] or []:
    for call in message.get("tool_calls") or []:
        calls.append({"tool": call["tool"], "input": call.get("input") or {}})
misses = []
if calls != case["config"]["calls"]:
    misses.append("other calls")
if case["candidate_answer"].strip() != case["config"]["answer"]:
    misses.append("another answer")
print(json.dumps({"score": 0 if misses else 1, "misses": misses}))
