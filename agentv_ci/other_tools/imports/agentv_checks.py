"""Checks of AgentV that depend on the case: tool calls, skills and fields → evaluators."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date
from typing import cast

from agentv_ci.base.json_access import found_at
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.other_tools.imports.draft import Draft, Fields, Place, items_of
from agentv_ci.other_tools.imports.yaml_text import Node

Evaluator = dict[str, Node]

_STEP = re.compile(r"[^.\[\]]+")
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")


OF_CALLS = frozenset({"trajectory:tool-used", "trajectory:tool-args-match"}) | {
    *("trajectory:tool-sequence", "trajectory:step-count", "skill-used"),
}
"""Checks of tool calls that AgentV 5 has of promptfoo."""


@dataclass(slots=True)
class CaseContext:
    """What the evaluators of a case depend on."""

    reference: JsonValue = None
    """The reference answer, if it is data."""
    calls: list[JsonObject] = field(default_factory=list)
    """The tool calls of the expected messages."""
    lost: list[str] = field(default_factory=list)
    """What could not be imported, for a case that has nothing else."""


def trajectory(draft: Draft, fields: Fields, context: CaseContext) -> Evaluator | None:
    """Return the evaluator of tool calls; None without any."""
    mode = fields.text("mode") or "in_order"
    made: Evaluator = {"type": "tool_trajectory", "mode": mode}
    listed = fields.at("expected")
    match = _args_match(draft, fields, "args_match", "argsMatch")
    if mode == "any_order" and (minimums := fields.take("minimums")):
        return made | {"minimums": minimums}
    items = items_of(listed)
    calls: list[Node] = [_call(draft, item, match) for item in items]
    if match is None and any(_compares_partly(item.value) for item in items):
        match = "subset"
    if not calls:
        calls = [
            {key: call[key] for key in ("tool", "input") if key in call} for call in context.calls
        ]
    if not calls:
        return None
    if mode == "any_order":
        draft.note(
            "approximated",
            fields.place,
            "tool-trajectory.any_order",
            "superset: the calls in any order",
        )
        made["mode"] = "superset"
    elif mode == "subset":
        how = "each expected call may be made once"
        draft.note("approximated", fields.place, "tool-trajectory.subset", how)
    if isinstance(match, list):
        match = "subset"
    made["expected"] = calls
    if match not in {None, "exact"}:
        made["args_match"] = match
    return made


def _compares_partly(call: JsonValue) -> bool:
    match = None
    if isinstance(call, dict):
        match = call.get("args_match", call.get("argsMatch"))
    return match == "superset" or isinstance(match, list)


def _args_match(draft: Draft, fields: Fields, *keys: str) -> str | list[str] | None:
    place = fields.at(*keys)
    match place.value if place else None:
        case "superset":
            return "subset"
        case "subset":
            draft.note(
                "approximated", cast("Place", place), "args_match: subset", "exact arguments"
            )
            return "exact"
        case list(names):
            draft.note(
                "approximated",
                cast("Place", place),
                "args_match: fields",
                "only these arguments are compared",
            )
            return list(map(str, names))
        case str(name):
            return name
        case _:
            return None


def _call(draft: Draft, place: Place, match: str | list[str] | None) -> Node:
    if isinstance(place.value, str):
        return {"tool": place.value}
    fields = draft.fields(place, "tool-trajectory.expected")
    made: dict[str, Node] = {"tool": fields.text("tool", "name") or "tool"}
    arguments = fields.take("args", "input", "arguments")
    own = _args_match(draft, fields, "args_match", "argsMatch") or match
    if isinstance(arguments, dict) and own != "ignore":
        chosen = {
            key: value
            for key, value in arguments.items()
            if not isinstance(own, list) or key in own
        }
        made["input"] = chosen
    fields.drop({"max_duration_ms", "maxDurationMs"}, "the time of single calls is not measured")
    fields.end()
    return made


def tool_calls(draft: Draft, kind: str, value: JsonValue, *, negated: bool) -> Evaluator | None:
    """Return the evaluator of one of `OF_CALLS`, which scores 0 or 1, and already is negated.

    None for one of other steps than calls of tools.
    """
    parts = value if isinstance(value, dict) else {"name": value}
    if kind == "trajectory:step-count" and parts.get("type") != "tool":
        return None
    tool, arguments = parts.get("name"), parts.get("args")
    made: Evaluator = {"type": "tool_trajectory", "mode": "superset"}
    keys = parts.keys() if isinstance(tool, str) and not set("*?") & set(tool) else set[str]()
    if keys == {"name"} and kind == "trajectory:tool-used":
        made["expected"] = [{"tool": tool}]
    elif (
        {"args"} <= keys <= {"name", "args", "mode"}
        and kind == "trajectory:tool-args-match"
        and "[" not in str(arguments)
    ):
        made["expected"] = [{"tool": tool, "input": arguments}]
        if parts.get("mode") != "exact":
            made["args_match"] = "subset"
    else:
        settings: Evaluator = {"check": {"type": kind, "value": value}}
        if negated:
            settings["negated"] = True
        return {"code": draft.script("promptfoo_check.mjs"), "config": settings}
    return {**made, "negate": True} if negated else made


def skill(draft: Draft, fields: Fields) -> Evaluator | None:
    """Return the evaluator that looks for a skill in the tool calls."""
    name = fields.text("skill", "skill_name")
    if name is None:
        return None
    made: Evaluator = {"code": draft.script("agentv_skill.py"), "config": {"skill": name}}
    return made | ({"negate": True} if fields.take("should_trigger") is False else {})


def field_accuracy(draft: Draft, fields: Fields, context: CaseContext) -> Evaluator | None:
    """Return the evaluator of fields, of those that the reference answer has."""
    listed = fields.at("fields")
    if listed is None:
        return None
    if not isinstance(context.reference, dict):
        draft.note(
            "dropped", listed, "field-accuracy", "the case has no reference answer that is data"
        )
        return None
    compared = [
        found
        for item in listed.items
        if (found := _field(draft, item, context.reference)) is not None
    ]
    fields.approximate("match_type", "each field has its own")
    if not compared:
        return None
    made: Evaluator = {"type": "field_accuracy", "fields": compared}
    if fields.take("aggregation") == "all_or_nothing":
        made["min_score"] = 1
    return made


def _field(draft: Draft, place: Place, reference: JsonValue) -> Node | None:
    if isinstance(place.value, str):
        if _found(reference, place.value):
            return {"path": place.value}
        return None
    fields = draft.fields(place, "field-accuracy.fields")
    path = fields.text("path", "field", "name") or ""
    made: dict[str, Node] = {"path": path}
    found = _found(reference, path)
    fields.ignore("required")
    match = fields.text("match", "match_type") or "exact"
    tolerance = fields.take("tolerance", "numeric_tolerance")
    if weight := fields.take("weight"):
        made["weight"] = weight
    fields.drop({"formats"}, "dates are compared as ISO 8601, others as texts")
    fields.drop({"relative"}, "tolerances are absolute")
    fields.end()
    if not found:
        draft.note(
            "dropped", place, f"field-accuracy: {path}", "the reference answer does not have it"
        )
        return None
    value = found[0]
    if match == "date" and isinstance(value, str) and _is_date(value):
        made["match"] = match
    elif match == "numeric_tolerance" and isinstance(value, (int, float)):
        made |= {
            "match": match,
            "tolerance": tolerance if isinstance(tolerance, (int, float)) else 0,
        }
    elif match != "exact":
        draft.note(
            "approximated",
            place,
            f"match: {match}",
            "compared exactly, as its reference is another type",
        )
    return made


def _found(reference: JsonValue, path: str) -> tuple[JsonValue, ...]:
    steps = [int(step) if step.isdigit() else step for step in _STEP.findall(path)]
    if steps:
        return found_at(reference, *steps)
    return ()


def _is_date(text: str) -> bool:
    try:
        return _ISO_DATE.match(text) is not None and bool(date.fromisoformat(text[:10]))
    except ValueError:
        return False
