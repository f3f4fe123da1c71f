"""What a comparison states as a whole, wrong with at most a known probability.

Half of that probability is for the means over all cases and for all trials together, half for single cases that got
worse, which a mean hides. Of few cases, the means have half, and all trials together and single cases a quarter each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.analysis.case_changes import Trials, dropped, p_of_total_drop
from agentv_ci.analysis.metric_changes import FEW_CASES, CasePair, Limit, metric_changes
from agentv_ci.analysis.outcomes import CaseOutcome
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.comparison import MetricChange, Statement
from agentv_ci.contracts.results import OfCase
from agentv_ci.text import counted, first_few, listed

RANKS: Mapping[Verdict, int] = {"error": 0, "fail": 0, "borderline": 1, "pass": 2}
"""Verdicts of graded cases, the worst first; of one whose trials all crashed, it is `error`."""
USUAL_TRIALS = 5
"""With so many trials a side, one case can show a drop."""
SHARE_OF_TOTAL, SHARE_OF_TOTAL_IF_FEW = 0.1, 0.25
"""Of the probability of a wrong statement: what the test of all trials together has."""


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
    found = _judged(comparable, targets, terms)
    is_open = not withheld and found.verdict == "undecided"
    fallen = [_named(each) for each in comparable if has_worse_verdict(each)] if is_open else []
    return Statement(
        verdict="withheld" if withheld else found.verdict,
        confidence=terms.confidence,
        cases=len(comparable),
        metrics=found.metrics,
        worse_cases=found.worse_cases,
        maybe_worse_cases=() if fallen and _could_fall(comparable, targets, terms) else tuple(fallen),
        withheld=withheld,
    )


class _Judged(NamedTuple):
    metrics: tuple[MetricChange, ...]
    worse_cases: tuple[OfCase, ...]

    @property
    def verdict(self) -> Literal["worse", "better", "undecided"]:
        verdicts = {each.verdict for each in self.metrics}
        is_worse = bool(self.worse_cases) or "worse" in verdicts
        return "worse" if is_worse else "better" if "better" in verdicts else "undecided"


def _judged(pairs: Sequence[CasePair], targets: Sequence[str], terms: Terms) -> _Judged:
    of_total = (1 - terms.confidence) * (SHARE_OF_TOTAL_IF_FEW if has_few(pairs) else SHARE_OF_TOTAL)
    of_cases = wrong_calls(pairs, terms.confidence)
    left = 1 - terms.confidence - of_total - of_cases
    metrics = metric_changes(pairs, targets, terms.limits, left) if pairs else ()
    calls = dropped([trials_of(each) for each in pairs], of_cases)
    worse = tuple(_named(pair) for pair, is_worse in zip(pairs, calls, strict=True) if is_worse)
    return _Judged(_with_trials(metrics, pairs, of_total), worse)


def _named(pair: CasePair) -> OfCase:
    suite, name, target = pair[1].key
    return OfCase(suite=suite, id=name, target=target)


def _could_fall(pairs: Sequence[CasePair], targets: Sequence[str], terms: Terms) -> bool:
    """Whether the statement were `worse` if every trial failed now."""
    return _judged([(base, _failed(head)) for base, head in pairs], targets, terms).verdict == "worse"


def _failed(outcome: CaseOutcome) -> CaseOutcome:
    trials = tuple(replace(each, verdict="fail", score=0.0) for each in outcome.graded)
    return replace(outcome.in_full, verdict="fail", score=0.0, trials=trials)


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
    """Return the changes with pass rates that the trials of all cases together decide, where means do not."""
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
        return rate.model_copy(update={"verdict": "worse", "reason": None, "low": None, "high": None})
    if not has_few(pairs):
        return rate
    can_fall = p_of_total_drop([Trials(each.base, each.base, 0, each.head) for each in trials]) <= alpha
    too_few = f"{counted(len(trials), 'case')} with so few trials cannot show any drop: {more_trials(trials)}"
    return rate.model_copy(update={"reason": None if can_fall else too_few})


def more_trials(cases: Iterable[Trials]) -> str:
    """Return what would let cases show a drop."""
    is_known_cure = any(min(each.base, each.head) < USUAL_TRIALS for each in cases)
    return f"use --repeat {USUAL_TRIALS}" if is_known_cure else "use more trials"


def has_worse_verdict(pair: CasePair) -> bool:
    """Whether the verdict of a case is worse than before."""
    base, head = pair
    return RANKS[head.verdict] < RANKS[base.verdict]


def _incomparable(pairs: Sequence[CasePair], comparable: Sequence[CasePair], base: str) -> Iterator[str]:
    if pairs and not comparable:
        cases = "1 case" if len(pairs) == 1 else f"all {len(pairs)} cases"
        yield f"the question or the evaluators of {cases} changed since {base}"
    elif worse := [pair[1].case.id for pair in pairs if has_other_task(pair) and has_worse_verdict(pair)]:
        cases = f"{counted(len(worse), 'case')} with a changed question or evaluators"
        yield f"{cases} and a worse verdict than in {base}: {first_few(worse)}"
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
