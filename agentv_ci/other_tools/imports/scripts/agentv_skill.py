"""Score 1 when the agent used a skill, as AgentV's skill-trigger finds it. Settings: `skill`."""

import json
import sys

given = json.load(sys.stdin)
if not given["has_trace"]:
    sys.exit("the target does not report tool calls")
skill = given["config"]["skill"]
folder = f"skills/{skill}/"
found = ""
for message in given["output_messages"]:
    for call in message.get("tool_calls") or []:
        name, arguments, output = (
            str(call["tool"]).lower(),
            call.get("input") or {},
            call.get("output"),
        )
        if not isinstance(arguments, dict):
            arguments = {}
        path = str(arguments.get("file_path") or arguments.get("path") or "")
        output = output if isinstance(output, str) else json.dumps(output)
        is_used = name == "skill" and skill in str(arguments.get("skill", ""))
        if is_used or (name == "read" and folder in path) or folder in output:
            found = found or call["tool"]
print(
    json.dumps(
        {
            "score": int(bool(found)),
            "reasoning": f"by {found}" if found else f"'{skill}' was not used",
        }
    )
)
