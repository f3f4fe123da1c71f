"""What changed between two plans, and why: the reasons are read off what the digests are made of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from agentv_ci.canonical import exact
from agentv_ci.compile.digest import CaseDigests, script_files
from agentv_ci.compile.document import prices_by_suite
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.config import Price
from agentv_ci.contracts.plan import (
    FilePart,
    Plan,
    PlanAggregator,
    PlanCase,
    PlanCompositeEvaluator,
    PlanEvaluator,
    PlanLlmJudgeEvaluator,
    PlanMessage,
    PlanRubric,
    PlanRubricEvaluator,
    PlanScript,
    PlanWeightedAverage,
    TextPart,
)
from agentv_ci.contracts.plan_summaries import ChangedCase, NamedCase, PlanDiff
from agentv_ci.contracts.targets import Target

MAX_VALUE = 60
"""Longer values are not shown, only that they changed."""

UNSHOWN = frozenset({"headers", "env"})
"""Settings of targets whose values may be secret."""


def diff(old: Plan, new: Plan) -> PlanDiff:
    """Return which cases were added, removed or changed. A case that only moved to another file is unchanged."""
    before = {(case.suite, case.id): case for case in old.cases}
    after = {(case.suite, case.id): case for case in new.cases}
    sides = _Side(old.targets, prices_by_suite(old)), _Side(new.targets, prices_by_suite(new))
    changed = [
        ChangedCase(id=case.id, suite=case.suite, reasons=_reasons(sides, before[key], case))
        for key, case in after.items()
        if key in before and before[key].digest != case.digest
    ]
    gone = [case for key, case in before.items() if key not in after]
    come = [case for key, case in after.items() if key not in before]
    return PlanDiff(added=_unmoved(come, gone), removed=_unmoved(gone, come), changed=tuple(changed))


def _unmoved(cases: Iterable[PlanCase], others: Iterable[PlanCase]) -> tuple[NamedCase, ...]:
    """Return those cases that are not one of the others in another file."""
    left = Counter((case.id, case.digest) for case in others)
    unmoved: list[NamedCase] = []
    for case in cases:
        if left[case.id, case.digest]:
            left[case.id, case.digest] -= 1
        else:
            unmoved.append(NamedCase(id=case.id, suite=case.suite))
    return tuple(unmoved)


@dataclass(frozen=True)
class _Side:
    """What the cases of one of the plans refer to."""

    targets: Mapping[str, Target]
    prices: Mapping[str, Mapping[str, Price]]
    """By suite."""

    @cached_property
    def digests(self) -> CaseDigests:
        return CaseDigests(self.targets)

    def content(self, case: PlanCase) -> JsonObject:
        return self.digests.content(case, self.prices[case.suite])


def _reasons(sides: tuple[_Side, _Side], old: PlanCase, new: PlanCase) -> tuple[str, ...]:
    """Return why two cases have different digests."""
    before, after = sides[0].content(old), sides[1].content(new)
    found: list[str] = []
    different = _different(before, after)
    for key in different:
        match key:
            case "inputMessages":
                messages = old.input_messages, new.input_messages
                found += _in_messages("input message", messages, before[key], after[key])
            case "expectedMessages":
                messages = old.expected_messages, new.expected_messages
                found += _in_messages("expected message", messages, before[key], after[key])
            case "target":
                names = sides[0].targets[old.target].name, sides[1].targets[new.target].name
                found += [f"target {names[0]} → {names[1]}"] if names[0] != names[1] else []
                found += _in_settings("target", before[key], after[key])
            case "evaluators":
                found += _in_evaluators("evaluator", _pairs(old, before[key]), _pairs(new, after[key]))
            case "prices" | "delay" if key not in before or key not in after or "target" in different:
                pass  # another evaluator or target makes them count, which is said there
            case "threshold":
                found.append(_change(key, before[key], after[key]))
            case _:
                found.append(f"{_authored(key).replace('_', ' ')} changed")
    assert found, "what is in a digest has a reason"
    return tuple(dict.fromkeys(found))


def _different(before: JsonObject, after: JsonObject) -> list[str]:
    """Return the keys whose values differ as JSON: to Python, 1 and true are the same."""
    return [key for key in {**before, **after} if exact(before.get(key)) != exact(after.get(key))]


Messages = tuple[Sequence[PlanMessage], Sequence[PlanMessage]]
"""Those of the older case, and of the newer one."""


def _in_messages(what: str, messages: Messages, before: JsonValue, after: JsonValue) -> Iterator[str]:
    assert isinstance(before, list)
    assert isinstance(after, list)
    for number, (old, new) in enumerate(zip_longest(before, after), 1):
        label = f"{what} {number}"
        if old is None or new is None:
            yield f"{label} {'added' if old is None else 'removed'}"
        elif isinstance(old, dict) and isinstance(new, dict) and (different := _different(old, new)):
            sides = messages[0][number - 1], messages[1][number - 1]
            yield from list(_in_message(label, different, *sides)) or [f"{label} changed"]


def _in_message(label: str, different: Sequence[str], old: PlanMessage, new: PlanMessage) -> Iterator[str]:
    if "role" in different:
        yield f"{label} role {old.role} → {new.role}"
    if "toolCalls" in different:
        yield f"{label} tool calls changed"
    before, after = _files(old), _files(new)
    renamed = {
        path: other
        for path, part in before.items()
        for other, same in after.items()
        if path not in after and other not in before and part.sha256 == same.sha256
    }
    for path in {**before, **after}:
        if path in renamed:
            yield f"file {path} is {renamed[path]} now"
        elif path in renamed.values():
            pass
        elif path not in before or path not in after:
            yield f"file {path} {'added to' if path in after else 'removed from'} {label}"
        elif before[path].sha256 != after[path].sha256:
            yield f"file {path} changed"
        elif before[path].type != after[path].type:
            yield f"file {path} is {'now' if after[path].type == 'guideline' else 'no longer'} a guideline"
    if _texts(old) != _texts(new):
        yield f"{label} text changed"


def _files(message: PlanMessage) -> dict[str, FilePart]:
    return {part.path: part for part in message.content if isinstance(part, FilePart)}


def _texts(message: PlanMessage) -> list[str]:
    return [part.text for part in message.content if isinstance(part, TextPart)]


Pairs = dict[str, tuple[PlanEvaluator, JsonObject]]
"""Evaluators by name, each with what counts of it."""


def _pairs(owner: PlanCase | PlanCompositeEvaluator, contents: JsonValue) -> Pairs:
    assert isinstance(contents, list)
    zipped = zip(owner.evaluators, contents, strict=True)
    return {each.name: (each, content) for each, content in zipped if isinstance(content, dict)}


def _in_evaluators(what: str, old: Pairs, new: Pairs) -> Iterator[str]:
    for name in {**old, **new}:
        label = f"{what} '{name}'"
        if name not in old or name not in new:
            yield f"{label} {'added' if name in new else 'removed'}"
        elif _different(old[name][1], new[name][1]):
            yield from list(_in_evaluator(label, *old[name], *new[name])) or [f"{label} changed"]
    common = [[name for name in side if name in old and name in new] for side in (old, new)]
    if common[0] != common[1]:
        yield f"order of {what}s changed"


def _in_evaluator(
    label: str, old: PlanEvaluator, before: JsonObject, new: PlanEvaluator, after: JsonObject
) -> Iterator[str]:
    if old.type != new.type:
        yield f"{label} type {old.type} → {new.type}"
        return
    for key in _different(before, after):
        match key:
            case "target":
                yield from _in_settings(f"{label} judge", before[key], after[key])
            case "evaluators":
                assert isinstance(old, PlanCompositeEvaluator)
                assert isinstance(new, PlanCompositeEvaluator)
                yield from _in_evaluators(f"{label} member", _pairs(old, before[key]), _pairs(new, after[key]))
            case "argv" | "files":
                assert isinstance(old, PlanScript)
                assert isinstance(new, PlanScript)
                yield from _in_script(label, old, new, command=before["argv"] != after["argv"])
            case "aggregator":
                assert isinstance(old, PlanCompositeEvaluator)
                assert isinstance(new, PlanCompositeEvaluator)
                yield from _in_aggregator(label, old.aggregator, new.aggregator)
            case "rubrics":
                yield from _in_rubrics(label, _rubrics_of(old), _rubrics_of(new))
            case "prompt" | "schema" | "config":
                yield f"{label} {key} changed"
            case _:
                values = [_value_of(*side, key) for side in ((old, before), (new, after))]
                yield _change(f"{label} {_authored(key)}", *values)


def _rubrics_of(evaluator: PlanEvaluator) -> dict[str, PlanRubric]:
    rubrics = evaluator.rubrics if isinstance(evaluator, (PlanRubricEvaluator, PlanLlmJudgeEvaluator)) else None
    return {rubric.id: rubric for rubric in rubrics or ()}


def _in_rubrics(label: str, old: Mapping[str, PlanRubric], new: Mapping[str, PlanRubric]) -> Iterator[str]:
    for rubric_id in {**old, **new}:
        what = f"{label} rubric '{rubric_id}'"
        if rubric_id not in old or rubric_id not in new:
            yield f"{what} {'added' if rubric_id in new else 'removed'}"
        elif old[rubric_id].description != new[rubric_id].description:
            yield f"{what} description changed"
        else:
            for field in ("weight", "required"):
                before, after = getattr(old[rubric_id], field), getattr(new[rubric_id], field)
                if before != after:
                    yield _change(f"{what} {field}", before, after)


def _in_script(label: str, old: PlanScript, new: PlanScript, *, command: bool) -> Iterator[str]:
    before, after = script_files(old), script_files(new)
    for place in {**before, **after}:
        known, now = before.get(place), after.get(place)
        if known is None or now is None:
            yield f"{label} file {(now or known or ('', place))[1]} {'removed' if now is None else 'added'}"
        elif known[0] != now[0]:
            yield f"{label} file {now[1]} changed"
    if command and _words(old) != _words(new):
        yield f"{label} command changed"


def _words(script: PlanScript) -> list[str]:
    """The command, with places beside the script for paths."""
    places = {path: place for place, (_, path) in script_files(script).items()}
    return [places.get(word, word) for word in script.argv or ()]


def _in_aggregator(label: str, old: PlanAggregator, new: PlanAggregator) -> Iterator[str]:
    if not (isinstance(old, PlanWeightedAverage) and isinstance(new, PlanWeightedAverage)):
        yield f"{label} aggregator changed"
        return
    for name, weight in new.weights.items():
        # Of members that came or went, that is said.
        if name in old.weights and old.weights[name] != weight:
            yield _change(f"{label} member '{name}' weight", old.weights[name], weight)


def _value_of(evaluator: PlanEvaluator, content: JsonObject, key: str) -> JsonValue:
    """What counts of a setting, or the default that is left out."""
    full: JsonObject = evaluator.model_dump(mode="json", by_alias=True)
    return content.get(key, full.get(key))


def _in_settings(label: str, old: JsonValue, new: JsonValue) -> Iterator[str]:
    assert isinstance(old, dict)
    assert isinstance(new, dict)
    for key in _different(old, new):
        field = _authored(key)
        if field in UNSHOWN:
            yield f"{label} {field} changed"
        else:
            yield _change(f"{label} {field}", old.get(key), new.get(key))


def _change(label: str, old: JsonValue, new: JsonValue) -> str:
    """Say what a value was and is, where both can be shown."""
    before, after = (_value_text(value) for value in (old, new))
    if before is None or after is None:
        return f"{label} changed"
    return f"{label} {before} → {after}"


def _value_text(value: JsonValue) -> str | None:
    if isinstance(value, (dict, list)):
        return None
    text = "not set" if value is None else value if isinstance(value, str) else exact(value)
    return text if 0 < len(text) <= MAX_VALUE and text.isprintable() else None


def _authored(key: str) -> str:
    """Write a key as authors do: `maxOutputTokens` is max_output_tokens."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: f"_{match[1].lower()}", key)
