"""What a comparison states as a whole, wrong with at most a known probability.

Half of that probability is for the means over all cases, half for single cases that got worse, which a mean hides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from agentv_ci.analysis.case_changes import Trials, dropped, p_of_total_drop
from agentv_ci.analysis.metric_changes import FEW_CASES, CasePair, Limit, metric_changes
from agentv_ci.contracts.comparison import MetricChange, OfCase, Statement
from agentv_ci.text import counted, listed


class Terms(Struct, frozen=True):
    """What a statement is asked for."""

    confidence: float
    limits: Sequence[Limit] = ()
    """Largest increases of costs, tokens and times."""
    allows_changes: bool = False
    """Whether to state something though judges, models or tasks differ."""


def has_other_task(pair: CasePair) -> bool:
    """Whether the question of a case, or how its answers are scored, changed; texts of files do not count."""
    before, now = (side.makeup.task for side in pair)
    return bool(before and now) and before != now


def state(pairs: Sequence[CasePair], targets: Sequence[str], terms: Terms, *, base: str) -> Statement:
    """Return the statement about graded cases of both sides; `base` is the name of the older side.

    Cases with another task are left out, and with `targets`, each of them is also judged alone.
    """
    comparable = [each for each in pairs if terms.allows_changes or not has_other_task(each)]
    withheld = () if terms.allows_changes else tuple(_incomparable(pairs, comparable, base))
    alpha = 1 - terms.confidence
    of_cases = wrong_calls(comparable, terms.confidence)
    metrics = metric_changes(comparable, targets, terms.limits, alpha / 2) if comparable else ()
    if has_few(comparable):
        metrics = _with_trials(metrics, comparable, of_cases)
    calls = dropped([trials_of(each) for each in comparable], of_cases)
    worse = [pair for pair, is_worse in zip(comparable, calls, strict=True) if is_worse]
    cases = tuple(OfCase(suite=suite, id=name, target=target) for suite, name, target in (now.key for _, now in worse))
    return Statement(
        verdict="withheld" if withheld else _verdict(metrics, cases),
        confidence=terms.confidence,
        cases=len(comparable),
        metrics=metrics,
        worse_cases=cases,
        withheld=withheld,
    )


def has_few(pairs: Sequence[CasePair]) -> bool:
    """Whether a mean over these cases says little."""
    return len({pair[1].key[:2] for pair in pairs}) < FEW_CASES


def wrong_calls(pairs: Sequence[CasePair], confidence: float) -> float:
    """Return the largest share of wrong calls among the cases that are called worse."""
    return (1 - confidence) / (4 if has_few(pairs) else 2)


def trials_of(pair: CasePair) -> Trials:
    """Return the graded trials of a case on both sides."""
    base, head = pair
    return Trials(base.passed, len(base.graded), head.passed, len(head.graded))


def _with_trials(metrics: Sequence[MetricChange], pairs: Sequence[CasePair], alpha: float) -> tuple[MetricChange, ...]:
    """Return the changes with pass rates that trials decide, since the cases are too few for a mean."""
    rates = sum(each.metric == "pass rate" for each in metrics)
    return tuple(
        _by_trials(each, [pair for pair in pairs if each.target in (None, pair[1].target)], alpha / rates)
        if each.metric == "pass rate" and each.verdict == "undecided"
        else each
        for each in metrics
    )


def _by_trials(rate: MetricChange, pairs: Sequence[CasePair], alpha: float) -> MetricChange:
    trials = [trials_of(each) for each in pairs]
    if p_of_total_drop(trials) <= alpha:
        return rate.model_copy(update={"verdict": "worse", "reason": None})
    lost = [Trials(each.base, each.base, 0, each.head) for each in trials]
    can_fall = p_of_total_drop(lost) <= alpha
    too_few = f"{counted(len(trials), 'case')} with so few trials cannot show any drop: use --repeat 5"
    return rate.model_copy(update={"reason": None if can_fall else too_few})


def _verdict(metrics: Iterable[MetricChange], worse: Sequence[OfCase]) -> Literal["worse", "better", "undecided"]:
    verdicts = {each.verdict for each in metrics}
    return "worse" if worse or "worse" in verdicts else "better" if "better" in verdicts else "undecided"


def _incomparable(pairs: Sequence[CasePair], comparable: Sequence[CasePair], base: str) -> Iterator[str]:
    if pairs and not comparable:
        cases = "1 case" if len(pairs) == 1 else f"all {len(pairs)} cases"
        yield f"the question or the evaluators of {cases} changed since {base}"
    by_target: dict[str, list[CasePair]] = {}
    for pair in comparable:
        if pair[0].target == pair[1].target:
            by_target.setdefault(pair[1].target, []).append(pair)
    for target, own in by_target.items():
        before, now = ({name for pair in own for name in pair[side].makeup.models} for side in (0, 1))
        if before and now and before != now:
            models = f"{listed(sorted(before))} in {base}, and by {listed(sorted(now))} now"
            yield f"questions to target {target} were answered by {models}"
    before, now = ({name for pair in comparable for name in pair[side].makeup.judges} for side in (0, 1))
    if before and now and before != now:
        yield f"{base} was judged by {listed(sorted(before))}, this run by {listed(sorted(now))}"
