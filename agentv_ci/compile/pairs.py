"""Pair the cases of two plans, also those that were moved to another file or renamed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from agentv_ci.base.canonical import exact
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.cases import matching
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.plan_parts import AttachmentPart, Part, TextPart
from agentv_ci.workspaces.contents import content_of


class Pairs(Struct, frozen=True):
    """The cases of a newer plan with those of an older one, by their places in the plans."""

    same: Mapping[int, int]
    """Newer → older: under the same path and id."""
    moved: Mapping[int, int]
    """Newer → older: under another path or id, recognised by what is asked."""
    missing: Sequence[int]
    """In the older plan alone."""
    new: Sequence[int]
    """In the newer plan alone."""


def pairs_of(old: Plan, new: Plan) -> Pairs:
    """Pair the cases of two plans."""
    keys = [[plan.key_of(case) for case in heads_of(plan)] for plan in (old, new)]
    match = matching(*keys)
    before, after = ({match(key): place for place, key in enumerate(side)} for side in keys)
    same = {place: before[key] for key, place in after.items() if key in before}
    gone = {place: (old.cases[place], key[2:]) for key, place in before.items() if key not in after}
    come = {place: (new.cases[place], key[2:]) for key, place in after.items() if key not in before}
    moved: dict[int, int] = {}
    # The least certain last: many cases may ask the same.
    for content in (_everything, _named_question, _scored_question, _question):
        found = dict(_recognised(gone, come, content))
        moved |= found
        gone = {place: case for place, case in gone.items() if place not in found.values()}
        come = {place: case for place, case in come.items() if place not in found}
    return Pairs(same, moved, tuple(gone), tuple(come))


_Targeted = tuple[PlanCase, tuple[str, ...]]
"""A case, and the target that answers it where several do."""


def _recognised(
    gone: Mapping[int, _Targeted],
    come: Mapping[int, _Targeted],
    content: Callable[[PlanCase], JsonValue],
) -> Iterable[tuple[int, int]]:
    waiting: dict[str, list[int]] = {}
    if not come:
        return
    for place, (case, target) in gone.items():
        waiting.setdefault(exact([*target, content(case)]), []).append(place)
    for place, (case, target) in come.items():
        if places := waiting.get(exact([*target, content(case)])):
            yield place, places.pop(0)


def _everything(case: PlanCase) -> JsonValue:
    return [case.id, case.digest]


def _named_question(case: PlanCase) -> JsonValue:
    return [case.id, _question(case)]


def _scored_question(case: PlanCase) -> JsonValue:
    return [_question(case), [each.model_dump(mode="json") for each in case.evaluators]]


def _question(case: PlanCase) -> JsonValue:
    """Return what a case asks: its messages, its system prompt and its workspace.

    Of files, their contents.
    """
    messages: list[JsonValue] = [
        [message.role, [_part(part) for part in message.content], message.value]
        for message in case.input_messages
    ]
    return [
        case.system_prompt,
        messages,
        content_of(case.workspace) if case.workspace is not None else None,
    ]


def _part(part: Part) -> JsonValue:
    if isinstance(part, TextPart):
        return part.text
    return part.sha256 or (part.name if isinstance(part, AttachmentPart) else part.path)
