"""Hold the evaluators of a case to older ones: what both have counts as much as before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentv_ci.base.mappings import picked
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
    """Return the newer evaluators of a case with the stricter settings of both sides.

    Also return what is weaker. `thresholds` are those of the case on both sides.
    """
    before = {evaluator.name: evaluator for evaluator in old}
    weights, lower = _held_weights(_weights_of(old), _weights_of(new))
    weaker = [Weaker(name, f"evaluator {name}: {text}", is_held=True) for name, text in lower]
    held: list[PlanEvaluator] = []
    for evaluator in new:
        update: dict[str, Any] = {}
        if weights[evaluator.name] != evaluator.weight:
            update["weight"] = weights[evaluator.name]
        if (known := before.get(evaluator.name)) is not None:
            settings, more = _held(known, evaluator, thresholds, is_mocked)
            update |= settings
            weaker += more
        held.append(evaluator.model_copy(update=update) if update else evaluator)
    return tuple(held), [*weaker, *_gone(old, new), *_outweighing(old, new)]


def _weights_of(evaluators: Evaluators) -> Weights:
    return {evaluator.name: evaluator.weight for evaluator in evaluators}


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
    least_before, least_now = thresholds
    is_lower = _given(new.min_score, least_now) < _given(old.min_score, least_before)
    if old.min_score != new.min_score and is_lower:
        update["min_score"] = old.min_score
        weaker.append((f"min_score {shown(old.min_score)} → {shown(new.min_score)}", True))
    if is_mocked(old, new):
        weaker.append(("its judge is now a mock", False))
    if old.type == new.type:
        more, lower = _held_rubrics(old, new)
        update |= more
        weaker += lower
    found = [Weaker(name, f"evaluator {name}: {text}", is_held) for text, is_held in weaker]
    if isinstance(old, PlanCompositeEvaluator) and isinstance(new, PlanCompositeEvaluator):
        more, inner = _held_members(old, new, thresholds, is_mocked)
        update |= more
        found += (part._replace(evaluator=name, text=f"{name}: {part.text}") for part in inner)
    return update, found


def _held_rubrics(
    old: PlanEvaluator, new: PlanEvaluator
) -> tuple[dict[str, Any], list[tuple[str, bool]]]:
    before, after = _rubrics_of(old), _rubrics_of(new)
    weights, lower = _held_weights(_weights_by_key(before), _weights_by_key(after))
    weaker = [(f"rubric {key}: {text}", True) for key, text in lower]
    weaker += ((f"rubric {key} removed", False) for key in before if key not in after)
    held: list[Any] = []
    for key, criterion in after.items():
        was_required = key in before and before[key].required
        if was_required and not criterion.required:
            weaker.append((f"rubric {key}: no longer required", True))
        required = criterion.required or was_required
        update = {"weight": weights[key], "required": required}
        held.append(criterion.model_copy(update=update))
    if not any(is_held for _, is_held in weaker):
        return {}, weaker
    return {"rubrics": tuple(held)}, weaker


def _weights_by_key(criteria: Mapping[str, Any]) -> Weights:
    return {key: criterion.weight for key, criterion in criteria.items()}


def _rubrics_of(evaluator: PlanEvaluator) -> dict[str, Any]:
    """Return the criteria of an evaluator by their ids; none of one without a judge."""
    rubrics = getattr(evaluator, "rubrics", None) or ()
    return {criterion.id: criterion for criterion in rubrics}


def _held_members(
    old: PlanCompositeEvaluator,
    new: PlanCompositeEvaluator,
    thresholds: tuple[float, float],
    is_mocked: IsMocked,
) -> tuple[dict[str, Any], list[Weaker]]:
    members, weaker = held_evaluators(_weighted(old), _weighted(new), thresholds, is_mocked)
    aggregator = new.aggregator
    if isinstance(aggregator, PlanWeightedAverage):
        aggregator = aggregator.model_copy(update={"weights": _weights_of(members)})
    if old.aggregator.type != new.aggregator.type:
        weaker.append(Weaker("", f"aggregator {old.aggregator.type} → {new.aggregator.type}"))
    return {"evaluators": members, "aggregator": aggregator}, weaker


def _weighted(composite: PlanCompositeEvaluator) -> Evaluators:
    """Return the members, with the weights that the aggregator gives them."""
    aggregator = composite.aggregator
    if not isinstance(aggregator, PlanWeightedAverage):
        return composite.evaluators
    return [
        member.model_copy(update={"weight": aggregator.weights[member.name]})
        for member in composite.evaluators
    ]


def _held_weights(old: Weights, new: Weights) -> tuple[Weights, list[tuple[str, str]]]:
    """Return the weights of the newer side, and which parts of both sides have a smaller share.

    The share is that of the sum of both sides' parts. If any is smaller, all have their older
    weights.
    """
    shared = list(filter(old.__contains__, new))
    total_before = sum(weight for name, weight in old.items() if name in new)
    total_now = sum(picked(new, shared).values())
    lower: list[tuple[str, str]] = []
    for name in shared:
        before = old[name] / total_before if total_before else 0.0
        after = new[name] / total_now if total_now else 0.0
        if after >= before - PRECISION:
            continue
        if new[name] < old[name]:
            lower.append((name, f"weight {old[name]:g} → {new[name]:g}"))
        else:
            lower.append((name, f"weight {before:.0%} → {after:.0%} of the score"))
    if not lower:
        return new, lower
    return {**new, **picked(old, shared)}, lower


def _gone(old: Evaluators, new: Evaluators) -> Iterator[Weaker]:
    """Yield the evaluators that could fail a case and are gone.

    Those that have only another name are not gone.
    """
    before, after = _weights_of(old), _weights_of(new)
    renamed = [_nameless(evaluator) for evaluator in new if evaluator.name not in before]
    for evaluator in old:
        if evaluator.name in after or not (evaluator.weight > 0 or evaluator.required):
            continue
        if _nameless(evaluator) not in renamed:
            yield Weaker("", f"evaluator {evaluator.name} ({evaluator.type}) removed")


def _nameless(evaluator: PlanEvaluator) -> PlanEvaluator:
    return evaluator.model_copy(update={"name": ""})


def _outweighing(old: Evaluators, new: Evaluators) -> Iterator[Weaker]:
    """Yield new evaluators that count more than any old one: the others decide less."""
    before = _weights_of(old)
    most = max((evaluator.weight for evaluator in old), default=0.0)
    for evaluator in new:
        if evaluator.name not in before and evaluator.weight > most > 0:
            new_one = f"evaluator {evaluator.name} is new, and outweighs the others"
            yield Weaker(evaluator.name, f"{new_one}: weight {evaluator.weight:g}")


def _given(value: float | None, default: float) -> float:
    return default if value is None else value
