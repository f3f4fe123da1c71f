"""Pair the cases of two plans, also those that were moved to another file or renamed."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from msgspec import Struct

from agentv_ci.base.canonical import exact
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.cases import matching
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.plan_parts import AttachmentPart, Part, PlanMessage, TextPart
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
    old_keys = list(map(old.key_of, heads_of(old)))
    new_keys = list(map(new.key_of, heads_of(new)))
    match = matching(old_keys, new_keys)
    before, after = _indexes(map(match, old_keys)), _indexes(map(match, new_keys))
    same = {index: before[key] for key, index in after.items() if key in before}
    gone = _alone(old, before, after)
    come = _alone(new, after, before)
    moved: dict[int, int] = {}
    # The least certain last: many cases may ask the same.
    for content in (_everything, _named_question, _scored_question, _question):
        for new_index, old_index in list(_recognised(gone, come, content)):
            moved[new_index] = old_index
            del gone[old_index], come[new_index]
    return Pairs(same, moved, tuple(gone), tuple(come))


def _indexes(keys: Iterable[tuple[str, ...]]) -> Mapping[tuple[str, ...], int]:
    return {key: index for index, key in enumerate(keys)}


_Targeted = tuple[PlanCase, tuple[str, ...]]
"""A case, and the target that answers it where several do."""


def _alone(
    plan: Plan, indexes: Mapping[tuple[str, ...], int], others: Container[tuple[str, ...]]
) -> dict[int, _Targeted]:
    """Return the cases of a plan that the other one does not have under their keys."""
    alone: dict[int, _Targeted] = {}
    for key, index in indexes.items():
        if key not in others:
            alone[index] = (plan.cases[index], key[2:])
    return alone


def _recognised(
    gone: Mapping[int, _Targeted],
    come: Mapping[int, _Targeted],
    content: Callable[[PlanCase], JsonValue],
) -> Iterable[tuple[int, int]]:
    waiting: dict[str, list[int]] = {}
    if not come:
        return
    for index, (case, target) in gone.items():
        waiting.setdefault(exact([*target, content(case)]), []).append(index)
    for index, (case, target) in come.items():
        if indexes := waiting.get(exact([*target, content(case)])):
            yield index, indexes.pop(0)


def _everything(case: PlanCase) -> JsonValue:
    return [case.id, case.digest]


def _named_question(case: PlanCase) -> JsonValue:
    return [case.id, _question(case)]


def _scored_question(case: PlanCase) -> JsonValue:
    return [_question(case), [evaluator.model_dump(mode="json") for evaluator in case.evaluators]]


def _question(case: PlanCase) -> JsonValue:
    """Return what a case asks: its messages, its system prompt and its workspace.

    Of files, their contents.
    """
    messages = list(map(_message, case.input_messages))
    workspace = content_of(case.workspace) if case.workspace is not None else None
    return [case.system_prompt, messages, workspace]


def _message(message: PlanMessage) -> JsonValue:
    return [message.role, list(map(_part, message.content)), message.value]


def _part(part: Part) -> JsonValue:
    if isinstance(part, TextPart):
        return part.text
    return part.sha256 or (part.name if isinstance(part, AttachmentPart) else part.path)
