"""How metrics change from one run to another: rates and scores, costs, tokens and times.

Cases of both runs count. Each case weighs the same, whatever its number of trials. Pass rates are
those of the trials of these cases. Means of scores, costs and times are compared from case to
case, and a case that several targets answer is one cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, product
from statistics import fmean
from typing import Any, NamedTuple, assert_never

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.cases.trial_outcomes import TrialOutcome
from agentv_ci.analysis.statistics.claims import Claim, claim, claims_of_known
from agentv_ci.analysis.statistics.effects import Effect, Metric, Pair, effect, quantile
from agentv_ci.analysis.statistics.exact_tests import Trials, cochran_mantel_haenszel, rises
from agentv_ci.analysis.statistics.inference import mean_rate_change_interval
from agentv_ci.base.text import counted, listed
from agentv_ci.contracts.comparison import MetricChange, MetricName, MetricVerdict
from agentv_ci.contracts.gate import IncreasingMetric, WhenUndecided
from agentv_ci.contracts.report import GateSettings
from agentv_ci.contracts.results import PRECISION

CasePair = tuple[CaseOutcome, CaseOutcome]
"""A case before and now."""

FEW_CASES = 10
NOUNS: Mapping[MetricName, str] = {
    "pass rate": "pass rates",
    "mean score": "scores",
    "cost": "costs",
    "tokens": "tokens",
    "mean_latency": "times",
    "p95_latency": "times",
}
NOT_SHARED = "no case is on both sides"
"""Why a limit has nothing to compare that could have been measured."""
P95 = 0.95
MOST_STEPS = 100
"""Of a distribution that is compared with one of another number of values."""
USUAL_TRIALS = 5
"""With so many trials a side, one case can show a drop."""
REPEATS = (USUAL_TRIALS, 10, 20, 50)
"""Numbers of trials that are advised, the first that is more than there are and can decide."""
SAME_SCORE = 1e-4
"""Largest difference of scores that are stored with few digits."""


class Limit(Struct, frozen=True):
    """The largest increase that a gate allows."""

    metric: IncreasingMetric
    allowed: float
    suites: tuple[str, ...] = ()
    """Those that it holds for; empty: all."""


class _Question(Struct, frozen=True):
    """What is compared."""

    metric: MetricName
    target: str | None
    limit: Limit | None = None

    @property
    def origin(self) -> float:
        """The change that its effect is measured from: what is allowed, on the analysis scale."""
        if self.limit is None:
            return 0.0
        return math.log1p(self.limit.allowed)

    def concerns(self, pair: CasePair) -> bool:
        """Whether a case is among those that it is about."""
        _, head = pair
        if self.target is not None and head.target != self.target:
            return False
        if self.limit is None or not self.limit.suites:
            return True
        return head.case.suite in self.limit.suites


class _Measured(NamedTuple):
    """A case with its values on both sides."""

    pair: CasePair
    base: Sequence[float]
    head: Sequence[float]

    @property
    def costs_nothing(self) -> tuple[bool, bool]:
        """Whether all values are 0, before and now."""
        return not any(self.base), not any(self.head)


class _Answer(Struct, frozen=True):
    """A question with its effect, measured from the allowed increase."""

    question: _Question
    pairs: Sequence[CasePair]
    """The cases that it concerns."""
    known: Sequence[_Measured]
    """Those with values on both sides."""
    effect: Effect | None
    """Of those whose values are not 0, where it is a ratio."""

    @property
    def unmeasured(self) -> int:
        """Number of trials without a value, in the cases that have values."""
        metric, total = self.question.metric, 0
        for base, head in self.pairs:
            if _values(metric, base) or _values(metric, head):
                total += _unmeasured(metric, base) + _unmeasured(metric, head)
        return total

    @property
    def bases(self) -> Sequence[Sequence[float]]:
        """The values of each case before."""
        return [case.base for case in self.known]

    @property
    def heads(self) -> Sequence[Sequence[float]]:
        """The values of each case now."""
        return [case.head for case in self.known]

    @property
    def rising(self) -> Sequence[_Measured]:
        """Cases that rose from 0, which no ratio shows."""
        return [case for case in self.known if case.costs_nothing == (True, False)]

    @property
    def falling(self) -> Sequence[_Measured]:
        """Cases that fell to 0."""
        return [case for case in self.known if case.costs_nothing == (False, True)]


def limits_of(settings: Iterable[GateSettings]) -> tuple[Limit, ...]:
    """Return the limits of all suites; suites with the same limit are judged together."""
    suites: dict[tuple[IncreasingMetric, float], list[str]] = {}
    every = [*settings]
    for suite in every:
        for metric, allowed in (suite.max_increases or {}).items():
            suites.setdefault((metric, allowed), []).append(suite.suite)

    limits: list[Limit] = []
    for (metric, allowed), names in suites.items():
        is_shared_by_all = len(names) == len(every)
        limits.append(Limit(metric, allowed, () if is_shared_by_all else tuple(names)))
    return tuple(limits)


def when_undecided(settings: Iterable[GateSettings]) -> WhenUndecided | None:
    """Return what an undecided comparison of all suites counts as.

    It is `pass` only if all of them say so.
    """
    given = {suite.undecided for suite in settings}
    if "fail" in given:
        return "fail"
    return "pass" if given == {"pass"} else None


def sides(pairs: Iterable[CasePair]) -> tuple[list[CaseOutcome], list[CaseOutcome]]:
    """Return the cases before, and those now."""
    before: list[CaseOutcome] = []
    now: list[CaseOutcome] = []
    for base, head in pairs:
        before.append(base)
        now.append(head)
    return before, now


def trials_of(pair: CasePair) -> Trials:
    """Return the graded trials of a case on both sides."""
    base, head = pair
    return Trials(base.passed, len(base.graded), head.passed, len(head.graded))


def quality_changes(
    pairs: Sequence[CasePair], targets: Sequence[str], alpha: float, confidence: float
) -> tuple[MetricChange, ...]:
    """Return the changes of the pass rate and, if it says more, of the mean score.

    With targets, also of each alone. With a probability of `alpha` or less, one of them is called
    worse that is not. `confidence` is that of the ranges of pass rates.
    """
    metrics: list[MetricName] = ["pass rate"]
    if _scores_say_more(pairs):
        metrics.append("mean score")
    level = alpha / (len(metrics) * (1 + len(targets)))
    changes: list[MetricChange] = []
    for target, metric in product((None, *targets), metrics):
        question = _Question(metric, target)
        if question.metric == "pass rate":
            changes.append(_rate_change(question, pairs, level, confidence))
        else:
            changes.append(_score_change(_answer(question, pairs), level))
    return tuple(changes)


def limit_changes(
    pairs: Sequence[CasePair],
    targets: Sequence[str],
    limits: Sequence[Limit],
    alpha: float,
    confidence: float,
) -> tuple[MetricChange, ...]:
    """Return the changes of what has a limit, of each target alone.

    With a probability of `alpha` or less, any is called worse that keeps its limit; one that is
    called within its limit keeps it with this confidence.
    """
    answers: list[_Answer] = []
    for limit, target in product(limits, targets or (None,)):
        answers.append(_answer(_Question(limit.metric, target, limit), pairs))
    claimed = claims_of_known([answer.effect for answer in answers], 2 * alpha)
    level = 2 * alpha / max(1, len(answers))
    return tuple(
        _limit_change(answer, _within(exceeded, confidence), level)
        for answer, exceeded in zip(answers, claimed, strict=True)
    )


def _within(exceeded: Claim | None, confidence: float) -> Claim | None:
    """Return the claim that a limit is kept, with this confidence, where it can be made."""
    if exceeded is None or exceeded.verdict == "worse":
        return exceeded
    kept = claim(exceeded.effect, 1 - 2 * (1 - confidence))
    return kept if kept.verdict == "better" else exceeded


def _scores_say_more(pairs: Sequence[CasePair]) -> bool:
    """Whether scores of cases do not follow from how many of their trials pass."""
    points = [(side.passed / len(side.graded), side.score) for side in chain.from_iterable(pairs)]
    low_rate, low = min(points, default=(0.0, 0.0))
    high_rate, high = max(points, default=(0.0, 0.0))
    slope = 0.0
    if high_rate > low_rate:
        slope = (high - low) / (high_rate - low_rate)
    return any(abs(low + slope * (rate - low_rate) - score) > SAME_SCORE for rate, score in points)


def _rate_change(
    question: _Question, pairs: Sequence[CasePair], level: float, confidence: float
) -> MetricChange:
    """Return the change of the pass rate; the test is one-sided at this level, each way."""
    cases = list(map(trials_of, filter(question.concerns, pairs)))
    if not cases:
        return MetricChange(
            metric="pass rate",
            target=question.target,
            cases=0,
            verdict="not compared",
            reason=NOT_SHARED,
        )
    drop = cochran_mantel_haenszel(cases)
    rise = cochran_mantel_haenszel(rises(cases))
    verdict: MetricVerdict = "undecided"
    if drop <= level:
        verdict = "worse"
    elif rise <= level:
        verdict = "better"
    low, high = mean_rate_change_interval(cases, confidence)
    total = Trials(*map(sum, zip(*cases, strict=True)))
    before = fmean(case.base_passed / case.base for case in cases)
    now = fmean(case.head_passed / case.head for case in cases)
    return MetricChange(
        metric="pass rate",
        target=question.target,
        cases=len(cases),
        base=round(before, PRECISION),
        head=round(now, PRECISION),
        change=round(now - before, PRECISION),
        low=low,
        high=high,
        confidence=confidence,
        p_value=min(drop, rise),
        verdict=verdict,
        reason=_too_few_trials(cases, level) if verdict == "undecided" else None,
        base_passed=total.base_passed,
        base_trials=total.base,
        head_passed=total.head_passed,
        head_trials=total.head,
    )


def _too_few_trials(cases: Sequence[Trials], level: float) -> str | None:
    """Return what would show a drop, if no drop of these cases is large enough to be seen."""
    if _shows_drop([case._replace(base_passed=case.base, head_passed=0) for case in cases], level):
        return None
    most = Trials(*map(max, zip(*cases, strict=True)))
    for repeat in REPEATS:
        if repeat <= min(most.base, most.head):
            continue
        if _shows_drop([Trials(repeat, repeat, 0, repeat)] * len(cases), level):
            both = " on both sides" if repeat <= max(most.base, most.head) else ""
            return f"too few trials to see any drop; use --repeat {repeat}{both}"
    return "too few trials to see any drop; use more trials"


def _shows_drop(cases: Sequence[Trials], level: float) -> bool:
    return cochran_mantel_haenszel(cases) <= level


def _score_change(answer: _Answer, level: float) -> MetricChange:
    """Return the change of the mean score, each way at this level."""
    needed = 1 + math.ceil(math.log2(0.5 / level))
    number = len(answer.known)
    change = MetricChange(
        metric="mean score",
        target=answer.question.target,
        cases=number,
        base=_of_side(answer.question.metric, answer.bases),
        head=_of_side(answer.question.metric, answer.heads),
        change=None,
        verdict="not compared",
        reason=f"it needs {needed} cases, there {'is' if number == 1 else 'are'} {number}",
    )
    if answer.effect is None or answer.effect.clusters < needed:
        return change
    claimed = claim(answer.effect, 1 - 2 * level)
    interval = _interval(answer.question, claimed)
    return change.model_copy(update={**interval, "verdict": _verdict_of(claimed), "reason": None})


def _verdict_of(claimed: Claim | None) -> MetricVerdict:
    if claimed is None or claimed.verdict not in ("worse", "better"):
        return "undecided"
    return claimed.verdict


def _answer(question: _Question, pairs: Sequence[CasePair]) -> _Answer:
    concerned = list(filter(question.concerns, pairs))
    known: list[_Measured] = []
    for base, head in concerned:
        before, now = _values(question.metric, base), _values(question.metric, head)
        if before and now:
            known.append(_Measured((base, head), before, now))

    compared = known
    if question.limit is not None:
        compared = [case for case in known if not any(case.costs_nothing)]
    by_trial = question.limit is not None and len(compared) < FEW_CASES
    samples = map(partial(_samples, question.metric, by_trial=by_trial), compared)
    measured = effect(_metric(question.metric), chain.from_iterable(samples))
    if measured is not None:
        measured = replace(measured, estimate=measured.estimate - question.origin)
    return _Answer(question, concerned, known, measured)


def _metric(name: MetricName) -> Metric:
    if name == "mean score":
        return Metric(name)
    share = P95 if name == "p95_latency" else None
    return Metric(name, "ratio", higher_is_better=False, quantile=share)


def _values(metric: MetricName, outcome: CaseOutcome) -> list[float]:
    """Return the known values of a case's graded trials.

    Costs and times of stored answers are not known.
    """
    if metric in ("pass rate", "mean score"):
        return [outcome.score]
    return [value for trial in outcome.graded if (value := _value(metric, trial)) is not None]


def _value(metric: MetricName, trial: TrialOutcome) -> float | None:
    match metric:
        case "pass rate" | "mean score":
            return trial.score
        case "cost":
            return trial.cost_usd
        case "tokens":
            return trial.tokens
        case "mean_latency" | "p95_latency":
            return trial.duration_ms / 1000 if trial.duration_ms and not trial.is_cached else None
        case _:
            assert_never(metric)


def _unmeasured(metric: MetricName, outcome: CaseOutcome) -> int:
    """Return how many graded trials that were asked have no known value."""
    if metric not in ("cost", "tokens"):
        return 0
    return sum(_value(metric, trial) is None for trial in outcome.graded if not trial.is_cached)


def _samples(metric: MetricName, of: _Measured, *, by_trial: bool) -> Iterator[Pair]:
    """Yield the trials of a case.

    If their numbers differ or some cost nothing, yield what stands for each side.
    """
    suite, case_id, target = of.pair[1].key
    base, head = of.base, of.head
    if len(base) != len(head) or not all((*base, *head)):
        by_trial = False
        base, head = _stand_ins(metric, base, head)
    for number, (before, now) in enumerate(zip(base, head, strict=True), 1):
        cluster = f"{suite}\n{case_id}\n{number}" if by_trial else f"{suite}\n{case_id}"
        yield Pair(cluster, f"{cluster}\n{target}", number, before, now)


def _stand_ins(
    metric: MetricName, base: Sequence[float], head: Sequence[float]
) -> tuple[Sequence[float], Sequence[float]]:
    """Return as many values for each side, which stand for all of them."""
    if metric != "p95_latency":
        return [fmean(base)], [fmean(head)]
    size = min(math.lcm(len(base), len(head)), MOST_STEPS)
    return _steps(base, size), _steps(head, size)


def _steps(values: Sequence[float], size: int) -> list[float]:
    """Return `size` values that are distributed like these.

    Each is repeated as often, if `size` is a multiple.
    """
    ordered = sorted(values)
    return [ordered[(2 * step + 1) * len(ordered) // (2 * size)] for step in range(size)]


def _limit_change(answer: _Answer, claimed: Claim | None, level: float) -> MetricChange:
    question, limit = answer.question, answer.question.limit
    assert limit is not None, "a question about a limit"
    interval: dict[str, Any] = {"change": None}
    if claimed is not None:
        interval = _interval(question, claimed)
        level = 1 - claimed.confidence
    verdict = _limit_verdict(answer, claimed)
    return MetricChange(
        metric=question.metric,
        target=question.target,
        suites=limit.suites,
        cases=len(answer.known),
        base=_of_side(question.metric, answer.bases),
        head=_of_side(question.metric, answer.heads),
        **interval,
        allowed=limit.allowed,
        verdict=verdict,
        reason=_limit_reason(answer, verdict, level),
    )


def _of_side(metric: MetricName, cases: Sequence[Sequence[float]]) -> float | None:
    if not cases:
        return None
    if metric == "p95_latency":
        return round(quantile(chain.from_iterable(cases), P95), PRECISION)
    return round(fmean(map(fmean, cases)), PRECISION)


def _interval(question: _Question, claim: Claim) -> dict[str, float | None]:
    """Return the estimate and the interval as people read them.

    An interval that excludes nothing has no bounds.
    """
    values = {"change": claim.effect.estimate, "low": claim.low, "high": claim.high}
    if math.isinf(claim.high):
        del values["low"], values["high"]
    interval: dict[str, float | None] = {"confidence": claim.confidence}
    for name, value in values.items():
        interval[name] = round(claim.effect.natural(value + question.origin), PRECISION)
    return interval


def _limit_verdict(answer: _Answer, claimed: Claim | None) -> MetricVerdict:
    """Return the verdict on a limit.

    A ratio without the cases that rose from 0 or fell to it does not decide alone.
    """
    if not answer.known:
        return "not compared"
    if claimed is None and not answer.rising:
        costs_nothing = all(case.costs_nothing[1] for case in answer.known)
        return "within" if costs_nothing and not answer.unmeasured else "undecided"
    verdict = _verdict_of(claimed)
    if verdict == "better":
        return "undecided" if answer.rising or answer.unmeasured else "within"
    return "undecided" if answer.falling else verdict


def _limit_reason(answer: _Answer, verdict: MetricVerdict, level: float) -> str | None:
    """Return why there is no verdict, and what to do; or which cases are not in it."""
    if verdict == "not compared":
        return _missing(answer)
    total, reasons = counted(len(answer.pairs), "case"), list[str]()
    if rising := answer.rising:
        reasons.append(f"{len(rising)} of {total} had 0 before and more now")
    if falling := answer.falling:
        reasons.append(f"{len(falling)} of {total} had more before and 0 now")
    if left := len(answer.pairs) - len(answer.known):
        reasons.append(f"{left} of {total} not measured on both sides")
    if verdict != "undecided":
        return "; ".join(reasons) or None

    if unmeasured := answer.unmeasured:
        reasons.append(f"{counted(unmeasured, 'trial')} not measured, which may break the limit")
    if not (rising or falling or unmeasured):
        reasons.append(_what_decides(answer, needed=1 + math.ceil(math.log2(1 / level))))
    return "; ".join(reasons)


def _what_decides(answer: _Answer, *, needed: int) -> str:
    """Return what would decide about a limit of which enough values may be known."""
    if answer.effect is not None and answer.effect.clusters >= needed:
        return "use more trials, or allow more"
    return _enough_values(answer, needed)


def _enough_values(answer: _Answer, needed: int) -> str:
    """Return how many cases or trials a limit needs, of which there are fewer."""
    cases = max(1, len(answer.known))
    most_before = max(map(len, answer.bases), default=0)
    most_now = max(map(len, answer.heads), default=0)
    fewest, most = sorted((most_before, most_now))
    enough = (repeat for repeat in REPEATS if repeat > fewest and repeat * cases >= needed)
    repeat = next(enough, None)
    if cases >= FEW_CASES or repeat is None:
        # Then trials do not count as cases do.
        return f"it needs {needed} cases"
    both = " on both sides" if repeat <= most else ""
    return f"it needs {needed} cases, or --repeat {repeat}{both}"


def _missing(answer: _Answer) -> str:
    """Return which targets do not give the values that are asked for."""
    metric = answer.question.metric
    if not answer.pairs:
        return NOT_SHARED
    before, now = map(partial(_targets_without, metric), sides(answer.pairs))
    if before == now:
        return f"no {NOUNS[metric]} from target {now}"
    lacking: list[str] = []
    if before:
        lacking.append(f"before from target {before}")
    if now:
        lacking.append(f"now from target {now}")
    return f"no {NOUNS[metric]} {' and '.join(lacking)}"


def _targets_without(metric: MetricName, cases: Iterable[CaseOutcome]) -> str:
    return listed(dict.fromkeys(case.target for case in cases if not _values(metric, case)))
