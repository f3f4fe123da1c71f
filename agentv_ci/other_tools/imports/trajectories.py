"""Checks of tool calls and skills, of promptfoo and of AgentV 5 → evaluators."""

from __future__ import annotations

import json

from agentv_ci.contracts.base import JsonValue
from agentv_ci.other_tools.imports.draft import Draft
from agentv_ci.other_tools.imports.yaml_text import Node

KINDS = (
    "trajectory:tool-used",
    "trajectory:tool-args-match",
    "trajectory:tool-sequence",
    "trajectory:step-count",
    "skill-used",
)
_PARTS = frozenset({"name", "pattern", "args", "arguments", "mode", "min"})
"""Parts of a value that `tool_trajectory` can compare."""
_SHELLS = frozenset({"exec_command", "local_shell", "shell"})
"""Tools whose calls are not those of tools, but commands, there."""


def trajectory(
    draft: Draft, kind: str, value: JsonValue, *, negated: bool
) -> dict[str, Node] | None:
    """Return the evaluator of one of `KINDS`, which scores 0 or 1; None if its value has no meaning.

    It already is negated.
    """
    bounds = value if isinstance(value, dict) and kind == "skill-used" else {}
    if not _is_whole(kind, value) or (negated and ("min" in bounds or bounds.get("max"))):
        return None
    direct = _direct(kind, value)
    if direct is None:
        settings: dict[str, Node] = {"kind": kind.removeprefix("trajectory:"), "value": value}
        if negated:
            settings["negated"] = True
        return {"code": draft.script("trajectory.py"), "config": settings}
    if negated:
        direct["negate"] = True
    return direct


def _is_whole(kind: str, value: JsonValue) -> bool:
    """Whether a value has what its check needs, and asks only for calls of tools."""
    parts = value if isinstance(value, dict) else {}
    if parts.get("type", "tool") != "tool":
        return False
    match kind:
        case "trajectory:step-count":
            return parts.get("type") == "tool" and bool(parts.keys() & {"min", "max"})
        case "trajectory:tool-args-match":
            return bool(parts.keys() & {"args", "arguments"} and parts.keys() & {"name", "pattern"})
        case "trajectory:tool-sequence":
            steps = parts.get("steps", value)
            return bool(steps) and isinstance(steps, list)
        case _:
            names = parts.keys() & {"name", "pattern"} if parts else value
            return bool(names) and not isinstance(value, (int, float))


def _direct(kind: str, value: JsonValue) -> dict[str, Node] | None:
    """Return the evaluator of the calls of one tool; None if only a script can do the check."""
    parts = value if isinstance(value, dict) else {"name": value}
    tool = parts.get("pattern") or parts.get("name")
    if not isinstance(tool, str) or set("*?") & set(tool) or parts.keys() - _PARTS:
        return None
    if tool.lower() in _SHELLS:
        return None
    made: dict[str, Node] = {"type": "tool_trajectory", "mode": "superset"}
    if kind == "trajectory:tool-used":
        least = parts.get("min", 1)
        if least != 1:
            return {**made, "mode": "any_order", "minimums": {tool: least}}
        return {**made, "expected": [{"tool": tool}]}
    arguments = parts.get("args", parts.get("arguments"))
    if kind != "trajectory:tool-args-match" or "[" in json.dumps(arguments):
        return None
    made["expected"] = [{"tool": tool, "input": arguments}]
    if parts.get("mode") != "exact":
        made["args_match"] = "subset"
    return made
