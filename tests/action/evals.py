"""Minimal documents of a user."""

from __future__ import annotations

import json
from collections.abc import Mapping

HEAD = 2
"""Lines before the first case."""
CASE = 5
"""Lines of a case; the evaluator is on the last one."""


def suite(*ids: str, question: str = "Well?") -> str:
    """Return an eval file whose cases pass if the answer contains "yes"."""
    cases = (
        f"  - id: {json.dumps(each, ensure_ascii=False)}\n"
        "    expected_outcome: Says yes\n"
        f"    input_messages: [{{role: user, content: {json.dumps(question, ensure_ascii=False)}}}]\n"
        "    expected_messages: []\n"
        '    evaluators: [{name: says-yes, type: contains, value: "yes"}]\n'
        for each in ids
    )
    return "".join(["$schema: agentv-eval-v2\nevalcases:\n", *cases])


def evaluator_line(place: int) -> int:
    """Return the line of the evaluator of a case; cases count from 0."""
    return HEAD + CASE * (place + 1)


def mock(response: str = "yes", **responses: str) -> str:
    """Return a targets file with a mock; `responses` are by case id."""
    target = {"name": "default", "provider": "mock", "response": response, "responses": responses}
    return json.dumps({"$schema": "agentv-targets-v2.2", "targets": [target]})


def agent(command: str, env: Mapping[str, str] | None = None) -> str:
    """Return a targets file with a command that answers."""
    target = {"name": "default", "provider": "cli", "command_template": command, "env": dict(env or {}), "cwd": "."}
    return json.dumps({"$schema": "agentv-targets-v2.2", "targets": [{**target, "prompt": "none"}]})
