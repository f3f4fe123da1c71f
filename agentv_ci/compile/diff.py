"""Compare two plans: which cases changed, and why.

The reasons come from the content of the digests.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from agentv_ci.base.canonical import exact
from agentv_ci.base.json_access import objects_at, value_at
from agentv_ci.base.mappings import without
from agentv_ci.base.source_files import names_of
from agentv_ci.compile.digest import CaseDigests, digests_of, script_files, words_of
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.cases import matching
from agentv_ci.contracts.command_output import ChangedCase, NamedCase, PlanDiff
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.plan_evaluators import (
    PlanCompositeEvaluator,
    PlanEvaluator,
    PlanRubric,
    PlanScript,
    PlanWeightedAverage,
)
from agentv_ci.contracts.plan_parts import AttachmentPart, FilePart, PlanMessage, TextPart

if TYPE_CHECKING:
    from agentv_ci.contracts.plan_evaluators import PlanAggregator

T = TypeVar("T")

MAX_VALUE = 60
"""Longer values are not shown."""

UNSHOWN = frozenset({"headers", "env"})
"""Settings of targets whose values may be secret."""


def diff(old: Plan, new: Plan) -> PlanDiff:
    """Return the added, removed and changed cases.

    A case that only moved to another file is unchanged.
    """
    old_keys = list(map(old.key_of, heads_of(old)))
    new_keys = list(map(new.key_of, heads_of(new)))
    match = matching(old_keys, new_keys)
    before = dict(zip(map(match, old_keys), old.cases, strict=True))
    after = dict(zip(map(match, new_keys), new.cases, strict=True))
    older = digests_of(old)
    newer = digests_of(new)

    changed: list[ChangedCase] = []
    for key, case in after.items():
        known = before.get(key)
        if known is not None and known.digest != case.digest:
            why = reasons(older, newer, known, case)
            changed.append(ChangedCase(**_named(key, case), reasons=why))
    gone, come = without(before, after), without(after, before)
    return PlanDiff(
        added=_unmoved(come, gone), removed=_unmoved(gone, come), changed=tuple(changed)
    )


_Cases = Mapping[tuple[str, ...], PlanCase]


def _unmoved(cases: _Cases, others: _Cases) -> tuple[NamedCase, ...]:
    """Return the cases that are not among the others under another path."""
    left = Counter((case.id, case.digest) for case in others.values())
    unmoved: list[NamedCase] = []
    for key, case in cases.items():
        if left[case.id, case.digest]:
            left[case.id, case.digest] -= 1
        else:
            unmoved.append(NamedCase(**_named(key, case)))
    return tuple(unmoved)


def _named(key: tuple[str, ...], case: PlanCase) -> dict[str, str]:
    named = dict(zip(("suite", "id", "target"), key, strict=False))
    if case.source.path != case.suite:
        named["row"] = f"{case.source.path}:{case.source.line}"
    return named


def reasons(
    older: CaseDigests, newer: CaseDigests, old: PlanCase, new: PlanCase
) -> tuple[str, ...]:
    """Return why two cases have different digests; nothing if they would have the same."""
    before, after = older.content(old), newer.content(new)
    found: list[str] = []
    different = _different(before, after)
    for key in different:
        match key:
            case "inputMessages":
                found += _in_messages("input message", old.input_messages, new.input_messages)
            case "expectedMessages":
                found += _in_messages(
                    "expected message", old.expected_messages, new.expected_messages
                )
            case "target":
                name, now = older.targets[old.target].name, newer.targets[new.target].name
                if name != now:
                    found.append(f"target {name} → {now}")
                found += _in_settings("target", before[key], after[key])
            case "evaluators":
                found += _in_evaluators("evaluator", _by_name(old, before), _by_name(new, after))
            case "prices" | "delay" if (
                key not in before or key not in after or "target" in different
            ):
                pass  # caused by another evaluator or target, which is reported there
            case "threshold":
                found.append(_change(key, before[key], after[key]))
            case _:
                found.append(f"{_authored(key).replace('_', ' ')} changed")
    assert found or not different, "every difference in a digest has a reason"
    return tuple(dict.fromkeys(found))


def _different(before: JsonValue, after: JsonValue) -> list[str]:
    """Return the keys whose values differ as JSON; in Python, 1 equals true."""
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    return [key for key in {**before, **after} if exact(before.get(key)) != exact(after.get(key))]


def _in_parts(
    label: str,
    old: Mapping[str, T],
    new: Mapping[str, T],
    inside: Callable[[str, T, T], Iterator[str]],
) -> Iterator[str]:
    """Yield added and removed parts, and what changed `inside` the others."""
    for key in {**old, **new}:
        if key not in old or key not in new:
            yield f"{label} {key} {'added' if key in new else 'removed'}"
        else:
            yield from inside(f"{label} {key}", old[key], new[key])


def _in_messages(
    label: str, old: Sequence[PlanMessage], new: Sequence[PlanMessage]
) -> Iterator[str]:
    return _in_parts(label, _numbered(old), _numbered(new), _in_message)


def _numbered(messages: Sequence[PlanMessage]) -> dict[str, PlanMessage]:
    return {str(number): message for number, message in enumerate(messages, 1)}


def _in_message(label: str, old: PlanMessage, new: PlanMessage) -> Iterator[str]:
    if different := _different(old.model_dump(mode="json"), new.model_dump(mode="json")):
        yield from list(_in_turn(label, different, old, new)) or [f"{label} changed"]


def _in_turn(
    label: str, different: Sequence[str], old: PlanMessage, new: PlanMessage
) -> Iterator[str]:
    if "role" in different:
        yield f"{label} role {old.role} → {new.role}"
    if "tool_calls" in different:
        yield f"{label} tool calls changed"
    yield from _in_files(label, _files(old), _files(new))
    if _texts(old) != _texts(new):
        yield f"{label} text changed"


def _in_files(label: str, before: _Files, after: _Files) -> Iterator[str]:
    renamed = _renamed(before, after)
    for file in {**before, **after}:
        named = " ".join(file)
        if file in renamed:
            yield f"{named} renamed to {renamed[file][1]}"
        elif file in renamed.values():
            pass
        elif file not in before or file not in after:
            yield f"{named} {'added to' if file in after else 'removed from'} {label}"
        elif before[file].sha256 != after[file].sha256:
            yield f"{named} changed"
        elif before[file].type != after[file].type:
            when = "now" if after[file].type == "guideline" else "no longer"
            yield f"{named} is {when} a guideline"


def _renamed(before: _Files, after: _Files) -> dict[tuple[str, str], tuple[str, str]]:
    """Return the files that have another name now; of several such names, the last."""
    gone, come = without(before, after), without(after, before)
    renamed: dict[tuple[str, str], tuple[str, str]] = {}
    for (kind, name), part in gone.items():
        for (other_kind, other_name), same in come.items():
            if kind == other_kind and part.sha256 == same.sha256 is not None:
                renamed[kind, name] = (other_kind, other_name)
    return renamed


_Files = Mapping[tuple[str, str], FilePart | AttachmentPart]
"""Parts of a message by what they are called, and their paths or URLs."""


def _files(message: PlanMessage) -> _Files:
    """Return what a message has besides texts."""
    found: dict[tuple[str, str], FilePart | AttachmentPart] = {}
    for part in message.content:
        match part:
            case FilePart():
                found["file", part.path] = part
            case AttachmentPart():
                found[part.type, part.name] = part
            case TextPart():
                pass
    return found


def _texts(message: PlanMessage) -> list[str]:
    return [part.text for part in message.content if isinstance(part, TextPart)]


Scored = tuple[PlanEvaluator, JsonObject]
"""An evaluator, and its content in the digest."""


def _by_name(owner: PlanCase | PlanCompositeEvaluator, content: JsonObject) -> Mapping[str, Scored]:
    contents = objects_at(content, "evaluators")
    by_name: dict[str, Scored] = {}
    for evaluator, scoring in zip(owner.evaluators, contents, strict=True):
        by_name[f"'{evaluator.name}'"] = (evaluator, scoring)
    return by_name


def _in_evaluators(
    what: str, old: Mapping[str, Scored], new: Mapping[str, Scored]
) -> Iterator[str]:
    yield from _in_parts(what, old, new, _in_evaluator)
    if list(filter(new.__contains__, old)) != list(filter(old.__contains__, new)):
        yield f"order of {what}s changed"


def _in_evaluator(label: str, older: Scored, newer: Scored) -> Iterator[str]:
    (old, before), (new, after) = older, newer
    if old.type != new.type:
        yield f"{label} type {old.type} → {new.type}"
    elif different := _different(before, after):
        found: list[str] = []
        for key in different:
            found += _in_setting(label, key, older, newer)
        yield from found or [f"{label} changed"]


def _in_setting(label: str, key: str, older: Scored, newer: Scored) -> Iterator[str]:
    (old, before), (new, after) = older, newer
    match key, old, new:
        case "target", _, _:
            yield from _in_settings(f"{label} judge", before[key], after[key])
        case "evaluators", PlanCompositeEvaluator(), PlanCompositeEvaluator():
            yield from _in_evaluators(
                f"{label} member", _by_name(old, before), _by_name(new, after)
            )
        case "aggregator", PlanCompositeEvaluator(), PlanCompositeEvaluator():
            yield from _in_aggregator(label, old.aggregator, new.aggregator)
        case "argv" | "files", PlanScript(), PlanScript():
            yield from _in_script(label, old, new, command=before["argv"] != after["argv"])
        case "rubrics", _, _:
            yield from _in_parts(f"{label} rubric", _rubrics(old), _rubrics(new), _in_rubric)
        case "prompt" | "schema" | "config", _, _:
            yield f"{label} {key} changed"
        case _:
            yield _change(f"{label} {_authored(key)}", _setting(older, key), _setting(newer, key))


def _setting(scored: Scored, key: str) -> JsonValue:
    """Return a setting of an evaluator; defaults are not in its content."""
    evaluator, content = scored
    if key in content:
        return content[key]
    dumped: JsonObject = evaluator.model_dump(mode="json", by_alias=True)
    return dumped.get(key)


def _rubrics(evaluator: PlanEvaluator) -> Mapping[str, PlanRubric]:
    return {f"'{rubric.id}'": rubric for rubric in getattr(evaluator, "rubrics", None) or ()}


def _in_rubric(label: str, old: PlanRubric, new: PlanRubric) -> Iterator[str]:
    if old.description != new.description:
        yield f"{label} description changed"
        return
    for field in ("weight", "required"):
        before, after = getattr(old, field), getattr(new, field)
        if before != after:
            yield _change(f"{label} {field}", before, after)


def _in_script(label: str, old: PlanScript, new: PlanScript, *, command: bool) -> Iterator[str]:
    before, after = script_files(old), script_files(new)
    for path in {**before, **after}:
        known, now = before.get(path), after.get(path)
        if known is None and now is not None:
            yield f"{label} file {now[1]} added"
        elif known is not None and now is None:
            yield f"{label} file {known[1]} removed"
        elif known is not None and now is not None and known[0] != now[0]:
            yield f"{label} file {now[1]} changed"
    if command and _words(old) != _words(new):
        yield f"{label} command changed"


def _words(script: PlanScript) -> list[str]:
    """Return the command with paths relative to the script."""
    from_script = {path: relative for relative, (_, path) in script_files(script).items()}
    return words_of(script, from_script)


def _in_aggregator(label: str, old: PlanAggregator, new: PlanAggregator) -> Iterator[str]:
    if not (isinstance(old, PlanWeightedAverage) and isinstance(new, PlanWeightedAverage)):
        yield f"{label} aggregator changed"
        return
    for name, weight in new.weights.items():
        # Added and removed members are reported elsewhere.
        if name in old.weights and old.weights[name] != weight:
            yield _change(f"{label} member '{name}' weight", old.weights[name], weight)


def _in_settings(label: str, old: JsonValue, new: JsonValue) -> Iterator[str]:
    for key in _different(old, new):
        field = _authored(key)
        if field in UNSHOWN:
            yield f"{label} {field} changed"
        elif field == "sources":
            before, after = _sources(value_at(old, key)), _sources(value_at(new, key))
            yield from _in_parts(f"{label} source", before, after, _in_source)
        else:
            yield _change(f"{label} {field}", value_at(old, key), value_at(new, key))


def _sources(value: JsonValue) -> Mapping[str, str]:
    return names_of(map(str, value if isinstance(value, list) else ()))


def _in_source(label: str, old: str, new: str) -> Iterator[str]:
    if old != new:
        yield f"{label} changed"


def _change(label: str, old: JsonValue, new: JsonValue) -> str:
    """Return `label old → new`, or `label changed` for values that cannot be shown."""
    before, after = _value_text(old), _value_text(new)
    if before is None or after is None:
        return f"{label} changed"
    return f"{label} {before} → {after}"


def _value_text(value: JsonValue) -> str | None:
    if isinstance(value, (dict, list)):
        return None
    if value is None:
        return "not set"
    text = value if isinstance(value, str) else exact(value)
    if not text or len(text) > MAX_VALUE or not text.isprintable():
        return None
    return text


def _authored(key: str) -> str:
    """Return a key in snake_case."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: f"_{match[1].lower()}", key)
