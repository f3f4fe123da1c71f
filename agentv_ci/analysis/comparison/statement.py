"""What a comparison states as a whole, wrong with at most a known probability.

One half of that probability is for the trials of all cases together, the other for single cases
that got worse, which the total hides. Limits of costs, tokens and times have a tenth, which the
total gives up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress
from typing import Literal, NamedTuple

from msgspec import Struct

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.comparison.case_changes import can_be_called, dropped
from agentv_ci.analysis.comparison.metric_changes import (
    CasePair,
    Limit,
    limit_changes,
    quality_changes,
    sides,
    trials_of,
)
from agentv_ci.analysis.statistics.exact_tests import (
    Margins,
    Trials,
    cochran_mantel_haenszel,
    fisher,
    rises,
)
from agentv_ci.base.mappings import gathered, grouped
from agentv_ci.base.text import counted, first_few, listed
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.comparison import MetricChange, Statement
from agentv_ci.contracts.gate import WhenUndecided
from agentv_ci.contracts.results import OfCase

RANKS: Mapping[Verdict, int] = {"error": 0, "fail": 0, "borderline": 1, "pass": 2}
"""Verdicts of graded cases, the worst first; of one whose trials all crashed, it is `error`."""
SHARE_OF_CASES = 0.5
"""Of the probability of a wrong statement: what single cases have."""
SHARE_OF_TOTAL, SHARE_OF_TOTAL_ALONE = 0.5, 0.6
"""What all trials together have, and what they have where no single case could be called worse."""
SHARE_OF_LIMITS = 0.1
"""What the total gives up to limits, if there are any."""


class Terms(Struct, frozen=True):
    """What a statement is asked for."""

    confidence: float
    limits: Sequence[Limit] = ()
    """Largest increases of costs, tokens and times."""
    allows_changes: bool = False
    """Whether to state something though judges, models or tasks differ."""
    when_undecided: WhenUndecided | None = None
    """What it counts as if too few trials leave it open."""


def has_other_task(pair: CasePair) -> bool:
    """Whether the question of a case, or how its answers are scored, changed.

    Texts of files do not count.
    """
    before, now = (side.makeup.task for side in pair)
    return bool(before and now) and before != now


def state(
    pairs: Sequence[CasePair],
    targets: Sequence[str],
    terms: Terms,
    *,
    base: str,
    renamed: Sequence[str] = (),
) -> Statement:
    """Return the statement about the cases of both sides that are graded.

    `base` is the name of the older side.

    Cases with another task are left out, and with `targets`, each of them is also judged alone.
    `renamed`: the cases of the older side that may have another id now.
    """
    known = [pair for pair in pairs if terms.allows_changes or not has_other_task(pair)]
    graded = list(filter(is_graded, pairs))
    comparable = list(filter(is_graded, known))
    withheld: list[str] = []
    if not terms.allows_changes:
        withheld += _incomparable(graded, comparable, base)
        withheld += _renamed(renamed, base)

    judged = _judged(comparable, targets, terms)
    suspects: list[CasePair] = []
    if judged.verdict != "worse":
        suspects = [pair for pair in comparable if _is_suspect(trials_of(pair), terms)]
    missing = _missing_of(known)
    passes = judged.verdict != "worse" and not suspects
    decides = bool(missing.total) and _could_change(judged, known, targets, terms, passes=passes)
    if decides:
        them = "it" if missing.total == 1 else "them"
        trials = missing.text(base, "this run")
        withheld.append(f"{trials} could decide either way: run {them} again")
    return Statement(
        verdict="withheld" if withheld else judged.verdict,
        confidence=terms.confidence,
        cases=len(comparable),
        metrics=judged.metrics,
        worse_cases=judged.worse_cases,
        maybe_worse_cases=() if withheld else tuple(map(_named, suspects)),
        withheld=tuple(withheld),
        missing_before=missing.before,
        missing_now=missing.now,
        missing_decide=decides,
    )


class Missing(NamedTuple):
    """How many trials say nothing about the agent."""

    before: int
    now: int

    @property
    def total(self) -> int:
        """Those of both sides."""
        return self.before + self.now

    def text(self, base: str, head: str) -> str:
        """Return how many there are on which side."""
        sides: list[str] = []
        if self.before:
            sides.append(f"{self.before} of {base}")
        if self.now:
            sides.append(f"{self.now} of {head}")
        return f"{counted(self.total, 'trial')} without a verdict ({' and '.join(sides)})"


def is_graded(pair: CasePair) -> bool:
    """Whether a case has graded trials on both sides."""
    base, head = pair
    return bool(base.graded and head.graded)


class _Judged(NamedTuple):
    metrics: tuple[MetricChange, ...]
    worse_cases: tuple[OfCase, ...]

    @property
    def verdict(self) -> Literal["worse", "better", "undecided"]:
        verdicts = {change.verdict for change in self.metrics}
        if self.worse_cases or "worse" in verdicts:
            return "worse"
        return "better" if "better" in verdicts else "undecided"


def _judged(pairs: Sequence[CasePair], targets: Sequence[str], terms: Terms) -> _Judged:
    if not pairs:
        return _Judged((), ())
    trials = list(map(trials_of, pairs))
    alpha, confidence = 1 - terms.confidence, terms.confidence
    metrics = (
        *quality_changes(pairs, targets, _of_total(trials, terms), confidence),
        *limit_changes(pairs, targets, terms.limits, SHARE_OF_LIMITS * alpha, confidence),
    )
    calls = dropped(trials, wrong_calls(confidence))
    return _Judged(metrics, tuple(map(_named, compress(pairs, calls))))


def _of_total(cases: Sequence[Trials], terms: Terms) -> float:
    """Return the probability of a wrong statement that the trials of all cases together have."""
    rate = wrong_calls(terms.confidence)
    share = SHARE_OF_TOTAL_ALONE
    # Numbers of trials decide, not how many of them pass: another failure must not cost the total
    # its share.
    if any(can_be_called(Margins(case.base, case.head, case.base), rate) for case in cases):
        share = SHARE_OF_TOTAL
    if terms.limits:
        share -= SHARE_OF_LIMITS
    return (1 - terms.confidence) * share


def _could_change(
    judged: _Judged,
    pairs: Sequence[CasePair],
    targets: Sequence[str],
    terms: Terms,
    *,
    passes: bool,
) -> bool:
    """Whether trials without a verdict could change the statement.

    They could make the head worse or not, or a statement that passes false.
    """
    worst, best = _extremes(pairs)
    metrics = len({change.metric for change in judged.metrics if change.allowed is None})
    least = _by_trials(worst, targets, metrics, terms)
    most = _by_trials(best, targets, metrics, terms)
    if "worse" in (least, most) and (least != most or passes):
        return True
    if judged.verdict == "better" and least != "better":
        return True
    # A case without any graded trial has lost its verdict, which is said of it.
    graded = compress(worst, map(is_graded, pairs))
    return passes and any(_is_suspect(trials, terms) for _, trials in graded)


_Targeted = tuple[str, Trials]
"""The target of a case, and its trials."""


def _extremes(pairs: Iterable[CasePair]) -> tuple[list[_Targeted], list[_Targeted]]:
    """Return all trials, those without a verdict as bad for the head as can be, and as good."""
    worst: list[_Targeted] = []
    best: list[_Targeted] = []
    for base, head in pairs:
        known = trials_of((base, head))
        before, now = _missing(base), _missing(head)
        whole = known._replace(base=known.base + before, head=known.head + now)
        passed_before, passed_now = known.base_passed + before, known.head_passed + now
        worst.append((head.target, whole._replace(base_passed=passed_before)))
        best.append((head.target, whole._replace(head_passed=passed_now)))
    return worst, best


def _by_trials(
    cases: Sequence[_Targeted], targets: Sequence[str], metrics: int, terms: Terms
) -> Literal["worse", "better", "undecided"]:
    """Return what trials alone state; each of the metrics has its share of the probability."""
    known = [(target, trials) for target, trials in cases if trials.base and trials.head]
    by_target = gathered(known)
    every = [trials for _, trials in known]
    groups = [every] if every else []
    groups += filter(None, map(by_target.get, targets))
    level = _of_total(every, terms) / ((1 + len(targets)) * max(1, metrics))
    if any(cochran_mantel_haenszel(group) <= level for group in groups):
        return "worse"
    if any(dropped(every, wrong_calls(terms.confidence))):
        return "worse"
    if any(cochran_mantel_haenszel(rises(group)) <= level for group in groups):
        return "better"
    return "undecided"


def _missing_of(pairs: Sequence[CasePair]) -> Missing:
    before, now = sides(pairs)
    return Missing(sum(map(_missing, before)), sum(map(_missing, now)))


def _missing(outcome: CaseOutcome) -> int:
    """Return how many trials of a case say nothing about the agent."""
    if outcome.verdict == "skipped":
        return 0
    return outcome.ran - len(outcome.graded) + outcome.missing


def _named(pair: CasePair) -> OfCase:
    suite, name, target = pair[1].key
    return OfCase(suite=suite, id=name, target=target)


def _is_suspect(trials: Trials, terms: Terms) -> bool:
    """Whether a case may have got worse.

    It passed in all of its trials and passes in none, or would be called if it were the only one.
    More failures of the head, of this case or of others, keep it a suspect; and if any case is
    called worse, so is one.
    """
    is_lost = trials.base_passed == trials.base > 0 == trials.head_passed
    return is_lost or fisher(trials) <= wrong_calls(terms.confidence)


def wrong_calls(confidence: float) -> float:
    """Return the largest share of wrong calls among the cases that are called worse."""
    return (1 - confidence) * SHARE_OF_CASES


def has_worse_verdict(pair: CasePair) -> bool:
    """Whether the verdict of a case is worse than before."""
    base, head = pair
    return RANKS[head.verdict] < RANKS[base.verdict]


def _renamed(cases: Sequence[str], base: str) -> Iterator[str]:
    if cases:
        number = counted(len(cases), "case")
        may_be = f"{number} of {base} may have another id now: {first_few(cases)}"
        yield f"{may_be}; accept a new baseline"


def _incomparable(
    pairs: Sequence[CasePair], comparable: Sequence[CasePair], base: str
) -> Iterator[str]:
    if pairs and not comparable:
        cases = "1 case" if len(pairs) == 1 else f"all {len(pairs)} cases"
        yield f"the question or the evaluators of {cases} changed since {base}"
    else:
        changed = list(filter(has_other_task, pairs))
        worse = [pair[1].case.id for pair in changed if has_worse_verdict(pair)]
        if worse:
            cases = f"{counted(len(worse), 'case')} with a changed question or evaluators"
            yield f"{cases} and a worse verdict than in {base}: {first_few(worse)}"
    yield from _other_models(comparable, base)
    before, now = map(_judges, sides(comparable))
    if before and now and before != now:
        yield f"{base} was judged by {listed(sorted(before))}, this run by {listed(sorted(now))}"


def _other_models(pairs: Sequence[CasePair], base: str) -> Iterator[str]:
    """Yield the targets that other models answered than before."""
    same = filter(_has_same_target, pairs)
    for target, own in grouped(same, lambda pair: pair[1].target).items():
        before, now = map(_models, sides(own))
        if before and now and before != now:
            models = f"{listed(sorted(before))} in {base}, and by {listed(sorted(now))} now"
            yield f"questions to target {target} were answered by {models}"


def _has_same_target(pair: CasePair) -> bool:
    before, now = pair
    return before.target == now.target


def _models(cases: Iterable[CaseOutcome]) -> set[str]:
    return set(chain.from_iterable(case.makeup.models for case in cases))


def _judges(cases: Iterable[CaseOutcome]) -> set[str]:
    return set(chain.from_iterable(case.makeup.judges for case in cases))
