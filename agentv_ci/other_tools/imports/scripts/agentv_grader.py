"""Run a grader written for AgentV: give it what it reads there, and return its score.

Settings: `command` (a list), and optionally `cwd` and `config`.
"""

import json
import subprocess
import sys


def text_of(content):
    """Return the text of a message's content."""
    if isinstance(content, list):
        return "\n".join(
            part.get("text") or part.get("value") or ""
            for part in content
            if isinstance(part, dict)
        )
    return content


def plain(messages):
    """Return messages whose content is a text."""
    return [{**message, "content": text_of(message.get("content"))} for message in messages or []]


given = json.load(sys.stdin)
settings = given["config"]
summary = given.get("candidate_trace_summary")
payload = {
    "criteria": given["expected_outcome"],
    "question": given["question"],
    "input": plain(given["input_messages"]),
    "expected_output": plain(given["expected_messages"]),
    "reference_answer": given.get("reference_answer"),
    "output": given["candidate_answer"],
    "answer": given["candidate_answer"],
    "messages": given["output_messages"],
    "output_messages": given["output_messages"],
    "trace_summary": summary,
    "input_files": given.get("input_files", []),
    "config": settings.get("config"),
}
ended = subprocess.run(
    settings["command"],
    cwd=settings.get("cwd"),
    input=json.dumps(payload),
    capture_output=True,
    text=True,
    check=False,
)
sys.stderr.write(ended.stderr)
if ended.returncode:
    sys.exit(ended.returncode)
reply = json.loads(ended.stdout)
checks = reply.get("assertions") or []
score = reply.get("score", reply.get("pass"))
print(
    json.dumps(
        {
            "score": float(score),
            "hits": reply.get("hits") or [each["text"] for each in checks if each.get("passed")],
            "misses": reply.get("misses")
            or [each["text"] for each in checks if not each.get("passed")],
            "reasoning": reply.get("reasoning") or "",
        }
    )
)
