"""Hold the evaluators of a case to older ones: what both have counts as much as before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentv_ci.compile.held_gates import shown
from agentv_ci.contracts.plan_evaluators import (
    PlanCompositeEvaluator,
    PlanEvaluator,
    PlanWeightedAverage,
)

PRECISION = 1e-9
"""Shares of a score that differ by less are equal."""

IsMocked = Callable[[PlanEvaluator, PlanEvaluator], bool]
"""Whether the judge of an evaluator has become a mock."""


class Weaker(NamedTuple):
    """What is weaker in the newer evaluators of a case."""

    evaluator: str
    """The name of the evaluator, or of the composite one that it is in."""
    text: str
    is_held: bool = False
    """Whether what the older ones say counts."""


Evaluators = Sequence[PlanEvaluator]
Weights = Mapping[str, float]


def held_evaluators(
    old: Evaluators, new: Evaluators, thresholds: tuple[float, float], is_mocked: IsMocked
) -> tuple[tuple[PlanEvaluator, ...], list[Weaker]]:
    """Return the newer evaluators of a case with the stricter settings of both sides, and what is weaker.

    `thresholds` are those of the case on both sides.
    """
    before, weaker = {each.name: each for each in old}, list[Weaker]()
    weights, found = _held_weights(
        {each.name: each.weight for each in old}, {each.name: each.weight for each in new}
    )
    weaker += (Weaker(name, f"evaluator {name}: {text}", is_held=True) for name, text in found)
    held: list[PlanEvaluator] = []
    for each in new:
        update: dict[str, Any] = (
            {} if weights[each.name] == each.weight else {"weight": weights[each.name]}
        )
        if (known := before.get(each.name)) is not None:
            settings, more = _held(known, each, thresholds, is_mocked)
            update |= settings
            weaker += more
        held.append(each.model_copy(update=update) if update else each)
    return tuple(held), [*weaker, *_gone(old, new), *_outweighing(old, new)]


def _held(
    old: PlanEvaluator, new: PlanEvaluator, thresholds: tuple[float, float], is_mocked: IsMocked
) -> tuple[dict[str, Any], list[Weaker]]:
    """Return the settings of an evaluator that are to be replaced, and what is weaker."""
    name, update, weaker = new.name, dict[str, Any](), list[tuple[str, bool]]()
    if old.type != new.type:
        weaker.append((f"replaced: {old.type} → {new.type}", False))
    if old.negate != new.negate:
        weaker.append((f"negate {shown(old.negate)} → {shown(new.negate)}", False))
    if old.required and not new.required:
        update["required"] = True
        weaker.append(("no longer required", True))
    limits = [_given(each.min_score, own) for each, own in zip((old, new), thresholds, strict=True)]
    if old.min_score != new.min_score and limits[1] < limits[0]:
        update["min_score"] = old.min_score
        weaker.append((f"min_score {shown(old.min_score)} → {shown(new.min_score)}", True))
    if is_mocked(old, new):
        weaker.append(("its judge is now a mock", False))
    inner: list[Weaker] = []
    if old.type == new.type:
        more, found = _held_rubrics(old, new)
        update |= more
        weaker += found
    if isinstance(old, PlanCompositeEvaluator) and isinstance(new, PlanCompositeEvaluator):
        more, inner = _held_members(old, new, thresholds, is_mocked)
        update |= more
    own = [Weaker(name, f"evaluator {name}: {text}", is_held) for text, is_held in weaker]
    return update, [
        *own,
        *(each._replace(evaluator=name, text=f"{name}: {each.text}") for each in inner),
    ]


def _held_rubrics(
    old: PlanEvaluator, new: PlanEvaluator
) -> tuple[dict[str, Any], list[tuple[str, bool]]]:
    before, after = (
        {each.id: each for each in getattr(side, "rubrics", None) or ()} for side in (old, new)
    )
    weights, found = _held_weights(
        *({key: each.weight for key, each in side.items()} for side in (before, after))
    )
    weaker = [(f"rubric {key}: {text}", True) for key, text in found]
    weaker += ((f"rubric {key} removed", False) for key in before if key not in after)
    weaker += (
        (f"rubric {key}: no longer required", True)
        for key, each in after.items()
        if key in before and before[key].required and not each.required
    )
    held = tuple(
        each.model_copy(
            update={
                "weight": weights[key],
                "required": each.required or _is_required(before.get(key)),
            }
        )
        for key, each in after.items()
    )
    return ({"rubrics": held} if any(is_held for _, is_held in weaker) else {}), weaker


def _is_required(rubric: Any) -> bool:  # noqa: ANN401  # a rubric of a judge, or none
    return rubric is not None and rubric.required


def _held_members(
    old: PlanCompositeEvaluator,
    new: PlanCompositeEvaluator,
    thresholds: tuple[float, float],
    is_mocked: IsMocked,
) -> tuple[dict[str, Any], list[Weaker]]:
    members, weaker = held_evaluators(_weighted(old), _weighted(new), thresholds, is_mocked)
    aggregator = new.aggregator
    if isinstance(aggregator, PlanWeightedAverage):
        aggregator = aggregator.model_copy(
            update={"weights": {each.name: each.weight for each in members}}
        )
    if old.aggregator.type != new.aggregator.type:
        weaker.append(Weaker("", f"aggregator {old.aggregator.type} → {new.aggregator.type}"))
    return {"evaluators": members, "aggregator": aggregator}, weaker


def _weighted(composite: PlanCompositeEvaluator) -> Evaluators:
    """Return the members, with the weights that the aggregator gives them."""
    aggregator = composite.aggregator
    if not isinstance(aggregator, PlanWeightedAverage):
        return composite.evaluators
    return [
        each.model_copy(update={"weight": aggregator.weights[each.name]})
        for each in composite.evaluators
    ]


def _held_weights(old: Weights, new: Weights) -> tuple[Weights, list[tuple[str, str]]]:
    """Return the weights of the newer side, and which parts of both sides have a smaller share of their sum.

    If any has, all of them have their older weights.
    """
    totals = [
        sum(side[name] for name in side if name in old and name in new) for side in (old, new)
    ]
    lower: list[tuple[str, str]] = []
    for name in (each for each in new if each in old):
        before, after = (
            side[name] / total if total else 0.0
            for side, total in zip((old, new), totals, strict=True)
        )
        if after < before - PRECISION:
            change = f"weight {old[name]:g} → {new[name]:g}"
            lower.append(
                (
                    name,
                    change
                    if new[name] < old[name]
                    else f"weight {before:.0%} → {after:.0%} of the score",
                )
            )
    return ({**new, **{name: old[name] for name in new if name in old}} if lower else new), lower


def _gone(old: Evaluators, new: Evaluators) -> Iterator[Weaker]:
    """Yield the evaluators that could fail a case and are gone, unless they have only another name."""
    names, known = {each.name for each in new}, {each.name for each in old}
    renamed = [each.model_copy(update={"name": ""}) for each in new if each.name not in known]
    for each in old:
        could_fail = each.weight > 0 or each.required
        if (
            each.name not in names
            and could_fail
            and each.model_copy(update={"name": ""}) not in renamed
        ):
            yield Weaker("", f"evaluator {each.name} ({each.type}) removed")


def _outweighing(old: Evaluators, new: Evaluators) -> Iterator[Weaker]:
    """Yield new evaluators that count more than any old one: the others decide less."""
    names, most = {each.name for each in old}, max(each.weight for each in old)
    for each in new:
        if each.name not in names and each.weight > most > 0:
            yield Weaker(
                each.name,
                f"evaluator {each.name} is new, and outweighs the others: weight {each.weight:g}",
            )


def _given(value: float | None, default: float) -> float:
    return default if value is None else value
