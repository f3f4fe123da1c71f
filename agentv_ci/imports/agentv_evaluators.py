"""Assertions of AgentV → evaluators."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import cast

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.source import Source, normal
from agentv_ci.imports.draft import Draft, Fields, Names, Place
from agentv_ci.imports.yaml_text import Node
from agentv_ci.json_access import found_at
from agentv_ci.patterns import InvalidPattern, compiled

Evaluator = dict[str, Node]

TEXT_KINDS = {
    "contains": "contains",
    "contains-any": "contains_any",
    "contains-all": "contains_all",
    "equals": "equals",
    "starts-with": "starts_with",
    "ends-with": "ends_with",
}
PROMPT_VARIABLES = {
    "criteria": "expected_outcome",
    "expected_outcome": "expected_outcome",
    "input": "question",
    "input_text": "question",
    "question": "question",
    "output": "candidate_answer",
    "output_text": "candidate_answer",
    "answer": "candidate_answer",
    "candidate_answer": "candidate_answer",
    "expected_output": "reference_answer",
    "expected_output_text": "reference_answer",
    "reference_answer": "reference_answer",
    "input_messages": "input_messages",
    "expected_messages": "expected_messages",
    "output_messages": "output_messages",
}
"""Variable of AgentV's prompts → of ours."""
_VARIABLE = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")
_STEP = re.compile(r"[^.\[\]]+")
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")
DETACHED = "agentv-ci asks judges through their target"


@dataclass(slots=True)
class CaseContext:
    """What the evaluators of a case depend on."""

    reference: JsonValue = None
    """The reference answer, if it is data."""
    calls: list[JsonObject] = field(default_factory=list)
    """The tool calls of the expected messages."""
    lost: list[str] = field(default_factory=list)
    """What could not be imported, for a case that has nothing else."""


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
            criteria.append(value)
        elif isinstance(value, dict):
            made += _one(draft, place, context)
        else:
            draft.note("dropped", place, "assertions", "neither a text nor a mapping")
            context.lost.append("an assertion")
    names = Names()
    for each in made:
        if isinstance(name := each.get("name"), str):
            each["name"] = names.unique(name)
    return list(made)


def _one(draft: Draft, place: Place, context: CaseContext) -> list[Evaluator]:
    value = cast("JsonObject", place.value)
    kind = str(value.get("type") or ("rubrics" if "criteria" in value or "rubrics" in value else "untyped"))
    fields = draft.fields(place, kind)
    fields.ignore("type")
    if (included := fields.text("include")) is not None:
        return _included(draft, place, included, context)
    common = _common(fields)
    made = _of_kind(draft, fields, kind.replace("_", "-"), context)
    if made is None:
        draft.note("dropped", place, kind, "no evaluator does this")
        context.lost.append(kind)
        return []
    draft.note("kept", place, kind)
    fields.end()
    return [{**each, **common} for each in made]


def _common(fields: Fields) -> Evaluator:
    common: Evaluator = {}
    if name := fields.text("name"):
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
    file = resolved(place.source, path)
    source = draft.reads.document(file) if file.suffix else None
    candidates = (file, place.source.path.parent / ".agentv" / "templates" / f"{path}.yaml")
    source = source or next((found for each in candidates if (found := draft.reads.document(each))), None)
    items = Place(source) if source else None
    if items is None:
        draft.note("dropped", place, "include", f"'{path}' was not found")
        context.lost.append(f"the included {path}")
        return []
    draft.note("kept", place, "include", "its assertions are copied")
    listed = items / "assertions" if isinstance(items.value, dict) else items
    return cast("list[Evaluator]", evaluators(draft, listed.items, context))


def _of_kind(draft: Draft, fields: Fields, kind: str, context: CaseContext) -> list[Evaluator] | None:
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
    return None if made is None else [made]


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
    return {key: value for key, value in taken.items() if value is not None}


def _text(fields: Fields, kind: str, *, insensitive: bool) -> list[Evaluator] | None:
    value = fields.take("value", "values", "text")
    if kind in {"contains_any", "contains_all"}:
        value = value if isinstance(value, list) else [value]
    elif isinstance(value, list):
        return None
    if value is None or value in ("", []):
        return None
    made: Evaluator = {kind: str(value) if not isinstance(value, list) else [str(each) for each in value]}
    if insensitive or fields.take("case_sensitive") is False:
        made["case_sensitive"] = False
    return [made]


def _regex(_: Draft, fields: Fields) -> Evaluator | None:
    pattern, flags = fields.text("value", "pattern"), fields.text("flags") or ""
    return None if pattern is None else python_pattern(pattern, flags)


def python_pattern(pattern: str, flags: str = "") -> Evaluator | None:
    """Return the evaluator of a pattern in JavaScript's syntax; None if Python cannot read it."""
    pattern = re.sub(r"\(\?<([A-Za-z_]\w*)>", r"(?P<\1>", pattern).replace(r"\/", "/")
    letters = "".join(each for each in flags if each in "ims")
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
    words: list[Node] = [str(each) for each in command] if isinstance(command, list) else ["sh", "-c", str(command)]
    folder = resolved(fields.place.source, fields.text("cwd") or ".")
    fields.drop({"target", "preprocessors", "model"}, "a script asks no model through agentv-ci")
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
            runner: list[Node] = ["bun", "run"] if file.suffix in {".ts", ".js", ".mjs"} else ["python3"]
            return grader(draft, [*runner, str(file.name)], file.parent, fields.rest())
        if folder == fields.place.source.root:
            break
    return None


def _llm(draft: Draft, fields: Fields) -> Evaluator:
    made: Evaluator = {"type": "llm_judge"}
    place = fields.place / "prompt"
    prompt = fields.take("prompt", "value")
    rubrics = fields.at("rubrics", "criteria")
    if isinstance(prompt, str):
        written = _prompt(draft, place, prompt)
        if written is not None:
            made = {"type": "llm_judge", "prompt": written}
    elif prompt is not None:
        draft.note("approximated", place, "llm-grader.prompt", "a program makes the prompt; the built-in one is used")
    if rubrics is not None and isinstance(rubrics.value, list):
        made = {"rubric": _criteria(draft, rubrics)}
    return made | _judge(draft, fields)


def _judge(draft: Draft, fields: Fields) -> Evaluator:
    made: Evaluator = {}
    draft.has_judges = True
    target = fields.at("target", "judge_target", "grader_target")
    if target is not None and isinstance(target.value, str):
        made["judge_target"] = draft.target(target.value, target)
    if (temperature := fields.take("temperature")) is not None:
        made["temperature"] = temperature
    fields.drop({"model", "config", "max_steps", "preprocessors"}, DETACHED)
    return made


def _prompt(draft: Draft, place: Place, prompt: str) -> str | None:
    """Return the prompt of a judge with our variables; None for one that is a program."""
    path = resolved(place.source, prompt.removeprefix("file://")) if "\n" not in prompt and len(prompt) < 300 else None
    is_path = path is not None and (prompt.startswith(("./", "../", "file://", "/")) or path.suffix in {".md", ".txt"})
    if path is not None and path.suffix in {".ts", ".js", ".mjs", ".py"}:
        draft.note("approximated", place, "llm-grader.prompt", "a program makes the prompt; the built-in one is used")
        return None
    if path is None or not is_path:
        return _with_our_variables(draft, place, prompt)
    text = draft.reads.text(path)
    if text is None:
        draft.note("approximated", place, "llm-grader.prompt", f"'{prompt}' was not found; the built-in one is used")
        return None
    name = f"prompts/{path.stem}{path.suffix or '.md'}"
    draft.texts[name] = _with_our_variables(draft, place, text)
    return name


def _with_our_variables(draft: Draft, place: Place, text: str) -> str:
    unknown: set[str] = set()

    def ours(match: re.Match[str]) -> str:
        if match[1] in PROMPT_VARIABLES:
            return f"{{{{ {PROMPT_VARIABLES[match[1]]} }}}}"
        unknown.add(match[1])
        return f"({match[1]} is not available)"

    written = _VARIABLE.sub(ours, text)
    for name in sorted(unknown):
        draft.note("dropped", place, f"{{{{{name}}}}}", "judges do not get this")
    if "{{" in written and "{{ candidate_answer }}" not in written:
        written = f"{written.rstrip()}\n\nAnswer:\n{{{{ candidate_answer }}}}\n"
    return written


def _rubric(draft: Draft, fields: Fields) -> Evaluator | None:
    place = fields.at("criteria", "rubrics", "value")
    if place is None or not place.items:
        return None
    criteria = _criteria(draft, place)
    return {"rubric": criteria, **{k: v for k, v in _judge(draft, fields).items() if k == "judge_target"}}


def _criteria(draft: Draft, place: Place) -> list[Node]:
    return [_criterion(draft, each, Names()) for each in place.items]


def _criterion(draft: Draft, place: Place, names: Names) -> Node:
    if not isinstance(place.value, dict):
        return str(place.value)
    fields = draft.fields(place, "rubrics.criteria")
    text = fields.text("outcome", "description", "criterion", "text") or ""
    ranges = fields.approximate("score_ranges", "one criterion, met or not; its ranges are in its description")
    lines = [text, *_range_lines(ranges)]
    if fields.approximate("operator", "part of the description") == "contradiction":
        lines[0] = f"Nothing contradicts this: {text}"
    made: dict[str, Node] = {}
    if identity := fields.text("id"):
        made["id"] = names.unique(identity)
    made["description"] = "\n".join(line for line in lines if line) or "The answer is good"
    for key in ("weight", "required"):
        if (value := fields.take(key)) is not None:
            made[key] = value
    gates = [key for key in ("min_score", "required_min_score") if key in fields]
    for key in gates:
        fields.approximate(key, "the criterion is required")
    if ranges is not None and not gates:
        made.setdefault("required", False)
    fields.end()
    return made if len(made) > 1 else made["description"]


def _range_lines(ranges: JsonValue) -> Iterator[str]:
    if isinstance(ranges, dict):
        *_, best = ranges.items() if ranges else (("", ""),)
        yield f"It is met when the answer is at least here: {best[1]}"
        yield from (f"{low} of 10: {meaning}" for low, meaning in ranges.items())
    for each in ranges if isinstance(ranges, list) else ():
        if isinstance(each, dict):
            yield f"{json.dumps(each.get('score_range'))} of 10: {each.get('outcome') or each.get('description')}"


def _composite(draft: Draft, fields: Fields, context: CaseContext) -> Evaluator | None:
    listed = fields.at("assertions", "evaluators", "assert", "graders")
    members = evaluators(draft, listed.items if listed else [], context)
    if not members:
        return None
    made: Evaluator = {"type": "composite", "evaluators": members}
    place = fields.at("aggregator")
    aggregator = _object(place.value if place else None)
    if isinstance(place.value if place else None, str):
        aggregator = {"type": cast("Place", place).value}
    threshold = fields.take("threshold")
    kind = str(aggregator.get("type") or "weighted_average").replace("-", "_")
    if kind == "weighted_average" and aggregator.get("weights"):
        made["aggregator"] = {"type": kind, "weights": _weights(aggregator["weights"], members)}
    elif place is not None and kind in {"minimum", "all_or_nothing", "safety_gate", "min", "all_pass"}:
        draft.note("approximated", place, f"composite.{kind}", "a weighted average in which members are required")
        gates = {str(aggregator.get("gate") or aggregator.get("gate_grader"))} if kind == "safety_gate" else None
        made["evaluators"] = [
            {**cast("Evaluator", each), "required": True}
            if gates is None or cast("Evaluator", each).get("name") in gates
            else each
            for each in members
        ]
    elif place is not None and kind in {"code_judge", "code_grader", "code"}:
        draft.note("approximated", place, f"composite.{kind}", "a weighted average instead of the script")
    elif place is not None and kind in {"llm_judge", "llm_grader"}:
        prompt = aggregator.get("prompt")
        written = _prompt(draft, place / "prompt", prompt) if isinstance(prompt, str) else None
        made["aggregator"] = {"type": "llm_judge"} | ({"prompt": written} if written else {})
    elif place is not None and kind != "weighted_average":
        if kind == "threshold":
            threshold = aggregator.get("threshold", threshold)
        draft.note("approximated", place, f"composite.{kind}", "a weighted average of the scores")
    if threshold is not None:
        made["min_score"] = threshold
    return made


def _weights(weights: JsonValue, members: list[Node]) -> dict[str, Node]:
    names = {cast("Evaluator", each).get("name") for each in members}
    return {key: value for key, value in _object(weights).items() if key in names}


def _trajectory(draft: Draft, fields: Fields, context: CaseContext) -> Evaluator | None:
    mode = fields.text("mode") or "in_order"
    made: Evaluator = {"type": "tool_trajectory", "mode": mode}
    listed = fields.at("expected")
    match = _args_match(draft, fields, "args_match", "argsMatch")
    if mode == "any_order" and (minimums := fields.take("minimums")):
        return made | {"minimums": minimums}
    calls: list[Node] = [_call(draft, each, match) for each in listed.items] if listed else []
    if match is None and listed is not None and any(_compares_partly(each.value) for each in listed.items):
        match = "subset"
    if not calls:
        calls = [{key: call[key] for key in ("tool", "input") if key in call} for call in context.calls]
    if not calls:
        return None
    if mode == "any_order":
        draft.note("approximated", fields.place, "tool-trajectory.any_order", "superset: the calls in any order")
        made["mode"] = "superset"
    if isinstance(match, list):
        match = "subset"
    return {**made, "expected": calls} | ({"args_match": match} if match not in {None, "exact"} else {})


def _compares_partly(call: JsonValue) -> bool:
    match = call.get("args_match", call.get("argsMatch")) if isinstance(call, dict) else None
    return match == "superset" or isinstance(match, list)


def _args_match(draft: Draft, fields: Fields, *keys: str) -> str | list[str] | None:
    place = fields.at(*keys)
    match place.value if place else None:
        case "superset":
            return "subset"
        case "subset":
            draft.note("approximated", cast("Place", place), "args_match: subset", "exact arguments")
            return "exact"
        case list(names):
            draft.note("approximated", cast("Place", place), "args_match: fields", "only these arguments are compared")
            return [str(name) for name in names]
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
        chosen = {key: value for key, value in arguments.items() if not isinstance(own, list) or key in own}
        made["input"] = chosen
    fields.drop({"max_duration_ms", "maxDurationMs"}, "the time of single calls is not measured")
    fields.end()
    return made


def _skill(draft: Draft, fields: Fields) -> Evaluator | None:
    skill = fields.text("skill", "skill_name")
    if skill is None:
        return None
    made: Evaluator = {"code": draft.script("agentv_skill.py"), "config": {"skill": skill}}
    return made | ({"negate": True} if fields.take("should_trigger") is False else {})


def _field_accuracy(draft: Draft, fields: Fields, context: CaseContext) -> Evaluator | None:
    listed = fields.at("fields")
    if listed is None:
        return None
    if not isinstance(context.reference, dict):
        draft.note("dropped", listed, "field-accuracy", "the case has no reference answer that is data")
        return None
    compared = [found for each in listed.items if (found := _field(draft, each, context.reference)) is not None]
    fields.approximate("match_type", "each field has its own")
    if not compared:
        return None
    made: Evaluator = {"type": "field_accuracy", "fields": compared}
    if fields.take("aggregation") == "all_or_nothing":
        made["min_score"] = 1
    return made


def _field(draft: Draft, place: Place, reference: JsonValue) -> Node | None:
    if isinstance(place.value, str):
        return {"path": place.value} if _found(reference, place.value) else None
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
        draft.note("dropped", place, f"field-accuracy: {path}", "the reference answer does not have it")
        return None
    value = found[0]
    if match == "date" and isinstance(value, str) and _is_date(value):
        made["match"] = match
    elif match == "numeric_tolerance" and isinstance(value, (int, float)):
        made |= {"match": match, "tolerance": tolerance if isinstance(tolerance, (int, float)) else 0}
    elif match != "exact":
        draft.note("approximated", place, f"match: {match}", "compared exactly, as its reference is another type")
    return made


def _found(reference: JsonValue, path: str) -> tuple[JsonValue, ...]:
    steps = [int(step) if step.isdigit() else step for step in _STEP.findall(path)]
    return found_at(reference, *steps) if steps else ()


def _is_date(text: str) -> bool:
    try:
        return _ISO_DATE.match(text) is not None and bool(date.fromisoformat(text[:10]))
    except ValueError:
        return False


_KINDS: Mapping[str, Callable[[Draft, Fields], Evaluator | None]] = {
    "regex": _regex,
    "is-json": _is_json,
    **dict.fromkeys(("code-grader", "code-judge", "script", "script-grader", "code"), _code),
    **dict.fromkeys(("llm-grader", "llm-judge", "agent-judge", "agent-grader", "llm-rubric", "g-eval"), _llm),
    **dict.fromkeys(("rubrics", "rubric"), _rubric),
    "skill-trigger": _skill,
    "latency": _latency,
    "cost": _cost,
    "token-usage": _tokens,
}
_WITH_CONTEXT: Mapping[str, Callable[[Draft, Fields, CaseContext], Evaluator | None]] = {
    **dict.fromkeys(("composite", "assert-set"), _composite),
    "tool-trajectory": _trajectory,
    "field-accuracy": _field_accuracy,
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
    return [cast("Evaluator", made[0])] if len(made) == 1 else [{"type": "composite", "evaluators": made}]


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def resolved(source: Source, path: str) -> Path:
    """Return the path that a file of AgentV names: from its own folder, or from the repository with a leading `/`."""
    if path.startswith("/"):
        return normal(source.root / path.lstrip("/"))
    return normal(source.path.parent / path)
