"""Assertions of AgentV → evaluators."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import cast

from agentv_ci.base.mappings import known, only
from agentv_ci.base.patterns import InvalidPattern, compiled
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.other_tools.imports.agentv_checks import (
    OF_CALLS,
    CaseContext,
    field_accuracy,
    skill,
    tool_calls,
    trajectory,
)
from agentv_ci.other_tools.imports.agentv_judges import judge_prompt, llm, rubric
from agentv_ci.other_tools.imports.agentv_templates import document
from agentv_ci.other_tools.imports.draft import Draft, Fields, Names, Place, items_of
from agentv_ci.other_tools.imports.yaml_text import Node

Evaluator = dict[str, Node]

TEXT_KINDS = {
    "contains": "contains",
    "contains-any": "contains_any",
    "contains-all": "contains_all",
    "equals": "equals",
    "starts-with": "starts_with",
    "ends-with": "ends_with",
}


def evaluators(draft: Draft, places: Sequence[Place], context: CaseContext) -> list[Node]:
    """Return the evaluators of a list; texts in it are the criteria of one rubric."""
    made: list[Evaluator] = []
    criteria: list[Node] = []
    for place in places:
        value = place.value
        if isinstance(value, str):
            if not criteria:
                made.append({"rubric": criteria})
                draft.has_judges = True
            draft.note("kept", place, "assertions (text)")
            criteria.append(value.strip())
        elif isinstance(value, dict):
            made += _one(draft, place, context)
        else:
            draft.note("dropped", place, "assertions", "neither a text nor a mapping")
            context.lost.append("an assertion")
    if len(criteria) > 1:
        next(each for each in made if each.get("rubric") is criteria)["weight"] = len(criteria)
    names = Names()
    for evaluator in made:
        if isinstance(name := evaluator.get("name"), str):
            evaluator["name"] = names.unique(name)
    return list(made)


def _one(draft: Draft, place: Place, context: CaseContext) -> list[Evaluator]:
    value = cast("JsonObject", place.value)
    kind = str(
        value.get("type") or ("rubrics" if "criteria" in value or "rubrics" in value else "untyped")
    )
    fields = draft.fields(place, kind)
    fields.ignore("type", "description")
    if (included := fields.text("include")) is not None:
        return _included(draft, place, included, context)
    common = _common(fields)
    kind = kind.replace("_", "-")
    if (plain := kind.removeprefix("not-")) in OF_CALLS:
        negated = common.pop("negate", False) is True or plain != kind
        found = tool_calls(draft, plain, fields.take("value"), negated=negated)
        made = None if found is None else [found]
    elif fields.take("transform") is None:
        made = _of_kind(draft, fields, plain, context)
        if plain != kind:
            common["negate"] = common.get("negate") is not True
    else:
        made = None
    if made is None:
        draft.note("dropped", place, kind, "no evaluator does this")
        context.lost.append(kind)
        return []
    draft.note("kept", place, kind)
    fields.end()
    return [{**evaluator, **common} for evaluator in made]


def _common(fields: Fields) -> Evaluator:
    common: Evaluator = {}
    if name := fields.text("name", "metric"):
        common["name"] = name
    required = fields.take("required")
    if required is not None and required is not False:
        common["required"] = True
        if required is not True:
            common["min_score"] = cast("float", required)
    for key in ("weight", "min_score", "negate"):
        if (value := fields.take(key)) is not None and value is not False:
            common[key] = value
    return common


def _included(draft: Draft, place: Place, path: str, context: CaseContext) -> list[Evaluator]:
    file = place.source.resolve(path)
    source = document(draft, file) if file.suffix else None
    candidates = (file, place.source.path.parent / ".agentv" / "templates" / f"{path}.yaml")
    source = source or next(
        (found for candidate in candidates if (found := document(draft, candidate))), None
    )
    items = Place(source) if source else None
    if items is None:
        draft.note("dropped", place, "include", f"'{path}' was not found")
        context.lost.append(f"the included {path}")
        return []
    draft.note("kept", place, "include", "its assertions are copied")
    keys = ("assertions", "assert")
    lists = [items / key for key in keys] if isinstance(items.value, dict) else [items]
    listed = list(chain.from_iterable(place.items for place in lists))
    return cast("list[Evaluator]", evaluators(draft, listed, context))


def _of_kind(
    draft: Draft, fields: Fields, kind: str, context: CaseContext
) -> list[Evaluator] | None:
    """Return the evaluators of a kind; None if there is none."""
    insensitive = kind.startswith("i") and kind[1:] in TEXT_KINDS
    if insensitive or kind in TEXT_KINDS:
        return _text(fields, TEXT_KINDS[kind[1:] if insensitive else kind], insensitive=insensitive)
    if kind == "execution-metrics":
        return _metrics(fields)
    if kind in _WITH_CONTEXT:
        made = _WITH_CONTEXT[kind](draft, fields, context)
    elif kind in _KINDS:
        made = _KINDS[kind](draft, fields)
    else:
        made = _custom(draft, fields, kind)
    if made is None:
        return None
    return [made]


def _similar(draft: Draft, fields: Fields) -> Evaluator:
    draft.note("approximated", fields.place, "similar", "one criterion, which a judge checks")
    draft.has_judges = True
    fields.drop({"threshold", "provider", "config"}, "a criterion is met or not")
    return {"rubric": [f"Means the same as: {fields.take('value')}"]}


def _is_json(_: Draft, __: Fields) -> Evaluator:
    return {"type": "is_json"}


def _latency(_: Draft, fields: Fields) -> Evaluator:
    return {"latency": fields.take("threshold", "max_ms", "max_duration_ms")}


def _cost(_: Draft, fields: Fields) -> Evaluator:
    return {"cost": fields.take("budget", "max_usd", "max_cost_usd", "threshold")}


def _tokens(_: Draft, fields: Fields) -> Evaluator:
    total = {"max_total": ("max_total", "max_total_tokens", "threshold")}
    return {
        "type": "token_usage",
        **_given(fields, total | {"max_input": ("max_input",), "max_output": ("max_output",)}),
    }


def _given(fields: Fields, names: dict[str, tuple[str, ...]]) -> Evaluator:
    taken = {ours: fields.take(*theirs) for ours, theirs in names.items()}
    return known(taken)


def _text(fields: Fields, kind: str, *, insensitive: bool) -> list[Evaluator] | None:
    value = fields.take("value", "values", "text")
    if kind in {"contains_any", "contains_all"}:
        value = value if isinstance(value, list) else [value]
    elif isinstance(value, list):
        return None
    if value is None or value in ("", []):
        return None
    made: Evaluator = {kind: list(map(str, value)) if isinstance(value, list) else str(value)}
    if insensitive or fields.take("case_sensitive") is False:
        made["case_sensitive"] = False
    return [made]


def _regex(_: Draft, fields: Fields) -> Evaluator | None:
    pattern, flags = fields.text("value", "pattern"), fields.text("flags") or ""
    if pattern is None:
        return None
    return python_pattern(pattern, flags)


def python_pattern(pattern: str, flags: str = "") -> Evaluator | None:
    """Return the evaluator of a pattern in JavaScript's syntax; None if Python cannot read it."""
    pattern = re.sub(r"\(\?<([A-Za-z_]\w*)>", r"(?P<\1>", pattern).replace(r"\/", "/")
    letters = "".join(flag for flag in flags if flag in "ims")
    written = f"(?{letters}){pattern}" if letters else pattern
    try:
        compiled(written)
    except InvalidPattern:
        return None
    return {"regex": written}


def _code(draft: Draft, fields: Fields) -> Evaluator | None:
    command = fields.take("command", "script")
    if command is None:
        return None
    words: list[Node] = ["sh", "-c", str(command)]
    if isinstance(command, list):
        words = list(map(str, command))
    folder = fields.place.source.resolve(fields.text("cwd") or ".")
    fields.drop(
        {"target", "provider", "preprocessors", "model"}, "a script asks no model through agentv-ci"
    )
    return grader(draft, words, folder, {**_object(fields.take("config")), **fields.rest()})


def grader(draft: Draft, command: list[Node], folder: Path, config: JsonObject) -> Evaluator:
    """Return the evaluator that runs a grader of AgentV."""
    settings: dict[str, Node] = {"command": command, "cwd": draft.reference(folder)}
    if config:
        settings["config"] = config
    return {"code": draft.script("agentv_grader.py"), "config": settings}


def _custom(draft: Draft, fields: Fields, kind: str) -> Evaluator | None:
    """Return the evaluator of a file in `.agentv/assertions/`."""
    for folder in fields.place.source.path.parents:
        for file in draft.reads.matching(folder / ".agentv" / "assertions" / f"{kind}.*"):
            runner: list[Node] = ["python3"]
            if file.suffix in {".ts", ".js", ".mjs"}:
                runner = ["bun", "run"]
            return grader(draft, [*runner, str(file.name)], file.parent, fields.rest())
        if folder == fields.place.source.root:
            break
    return None


def _composite(draft: Draft, fields: Fields, context: CaseContext) -> Evaluator | None:
    listed = fields.at("assertions", "evaluators", "assert", "graders")
    members = evaluators(draft, items_of(listed), context)
    if not members:
        return None
    made: Evaluator = {"type": "composite", "evaluators": members}
    place = fields.at("aggregator")
    aggregator = _aggregator(place)
    threshold = fields.take("threshold")
    kind = str(aggregator.get("type") or "weighted_average").replace("-", "_")
    if kind == "weighted_average" and aggregator.get("weights"):
        made["aggregator"] = {"type": kind, "weights": _weights(aggregator["weights"], members)}
    elif place is not None and kind in {
        "minimum",
        "all_or_nothing",
        "safety_gate",
        "min",
        "all_pass",
    }:
        draft.note(
            "approximated",
            place,
            f"composite.{kind}",
            "a weighted average in which members are required",
        )
        gate = None
        if kind == "safety_gate":
            gate = str(aggregator.get("gate") or aggregator.get("gate_grader"))
        made["evaluators"] = [_required(cast("Evaluator", member), gate) for member in members]
    elif place is not None and kind in {"code_judge", "code_grader", "code"}:
        draft.note(
            "approximated", place, f"composite.{kind}", "a weighted average instead of the script"
        )
    elif place is not None and kind in {"llm_judge", "llm_grader"}:
        made["aggregator"] = _judge(draft, place / "prompt", aggregator.get("prompt"))
    elif place is not None and kind != "weighted_average":
        if kind == "threshold":
            threshold = aggregator.get("threshold", threshold)
        draft.note("approximated", place, f"composite.{kind}", "a weighted average of the scores")
    if threshold is not None:
        made["min_score"] = threshold
    return made


def _aggregator(place: Place | None) -> JsonObject:
    """Return the aggregator that a composite names or describes; empty without one."""
    if place is None:
        return {}
    if isinstance(place.value, str):
        return {"type": place.value}
    return _object(place.value)


def _required(member: Evaluator, gate: str | None) -> Evaluator:
    """Return a member of a composite as required, if it is the gate or if all members are."""
    if gate is None or member.get("name") == gate:
        return {**member, "required": True}
    return member


def _judge(draft: Draft, place: Place, prompt: JsonValue) -> Evaluator:
    """Return the aggregator of a composite whose members a judge weighs."""
    written = judge_prompt(draft, place, prompt) if isinstance(prompt, str) else None
    if written:
        return {"type": "llm_judge", "prompt": written}
    return {"type": "llm_judge"}


def _weights(weights: JsonValue, members: list[Node]) -> dict[str, Node]:
    names = {cast("Evaluator", member).get("name") for member in members}
    return only(_object(weights), names)


_KINDS: Mapping[str, Callable[[Draft, Fields], Evaluator | None]] = {
    "regex": _regex,
    "is-json": _is_json,
    **dict.fromkeys(("code-grader", "code-judge", "script", "script-grader", "code"), _code),
    **dict.fromkeys(("llm-grader", "llm-judge", "agent-judge", "agent-grader"), llm),
    **dict.fromkeys(("llm-rubric", "agent-rubric", "g-eval", "trajectory:goal-success"), llm),
    "similar": _similar,
    **dict.fromkeys(("rubrics", "rubric"), rubric),
    "skill-trigger": skill,
    "latency": _latency,
    "cost": _cost,
    "token-usage": _tokens,
}
_WITH_CONTEXT: Mapping[str, Callable[[Draft, Fields, CaseContext], Evaluator | None]] = {
    **dict.fromkeys(("composite", "assert-set"), _composite),
    "tool-trajectory": trajectory,
    "field-accuracy": field_accuracy,
}


def _metrics(fields: Fields) -> list[Evaluator] | None:
    made: list[Node] = []
    for key, short in (
        ("max_tool_calls", "tool_calls"),
        ("max_tokens", "token_usage"),
        ("max_cost_usd", "cost"),
        ("max_duration_ms", "latency"),
    ):
        if (value := fields.take(key)) is not None:
            made.append({short: value})
    fields.drop({"max_llm_calls"}, "calls of the model are not counted")
    fields.drop(
        {"target_exploration_ratio", "exploration_tolerance"},
        "calls that read and calls that write are not distinguished",
    )
    if not made:
        return None
    if len(made) == 1:
        return [cast("Evaluator", made[0])]
    return [{"type": "composite", "evaluators": made}]


def _object(value: JsonValue) -> JsonObject:
    if isinstance(value, dict):
        return value
    return {}
