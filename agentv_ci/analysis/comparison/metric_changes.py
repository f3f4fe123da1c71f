"""How metrics change from one run to another, over the cases of both: rates and scores, costs, tokens and times.

Each case weighs the same, whatever its number of trials. Pass rates are those of the trials of these cases; means of
scores, costs and times are compared from case to case, and a case that several targets answer is one cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, assert_never

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.statistics.claims import Claim, claim, claims
from agentv_ci.analysis.statistics.effects import Effect, Metric, Pair, effect, quantile
from agentv_ci.analysis.statistics.exact_tests import Trials, cochran_mantel_haenszel
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
        """The change that its effect is measured from: what is allowed, on the scale of the analysis."""
        return math.log1p(self.limit.allowed) if self.limit is not None else 0.0

    def concerns(self, pair: CasePair) -> bool:
        """Whether a case is among those that it is about."""
        is_asked = self.target is None or pair[1].target == self.target
        return is_asked and (
            self.limit is None or not self.limit.suites or pair[1].case.suite in self.limit.suites
        )


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
        cases = (
            pair for pair in self.pairs if any(_values(self.question.metric, side) for side in pair)
        )
        return sum(_unmeasured(self.question.metric, side) for side in chain.from_iterable(cases))

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
    return tuple(
        Limit(metric, allowed, () if len(names) == len(every) else tuple(names))
        for (metric, allowed), names in suites.items()
    )


def when_undecided(settings: Iterable[GateSettings]) -> WhenUndecided | None:
    """Return what an undecided comparison of all suites counts as: `pass` only if all of them say so."""
    given = {suite.undecided for suite in settings}
    if "fail" in given:
        return "fail"
    return "pass" if given == {"pass"} else None


def trials_of(pair: CasePair) -> Trials:
    """Return the graded trials of a case on both sides."""
    base, head = pair
    return Trials(base.passed, len(base.graded), head.passed, len(head.graded))


def quality_changes(
    pairs: Sequence[CasePair], targets: Sequence[str], alpha: float, confidence: float
) -> tuple[MetricChange, ...]:
    """Return the changes of the pass rate and, if it says more, of the mean score.

    With targets, also of each alone.

    With a probability of `alpha` or less, one of them is called worse that is not. `confidence` is
    that of the ranges of pass rates.
    """
    metrics: tuple[MetricName, ...] = (
        ("pass rate", "mean score") if _scores_say_more(pairs) else ("pass rate",)
    )
    questions = [_Question(metric, target) for target in (None, *targets) for metric in metrics]
    level = alpha / len(questions)
    return tuple(
        _rate_change(question, pairs, level, confidence)
        if question.metric == "pass rate"
        else _score_change(_answer(question, pairs), level)
        for question in questions
    )


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
    questions = [
        _Question(limit.metric, target, limit)
        for limit in limits
        for target in (targets or (None,))
    ]
    answers = [_answer(question, pairs) for question in questions]
    known = [answer.effect for answer in answers if answer.effect is not None]
    exceeded = iter(claims(known, 2 * alpha))
    level = 2 * alpha / max(1, len(answers))
    changes = []
    for answer in answers:
        found = next(exceeded) if answer.effect is not None else None
        if answer.effect is not None and found is not None and found.verdict != "worse":
            kept = claim(answer.effect, 1 - 2 * (1 - confidence))
            found = kept if kept.verdict == "better" else found
        changes.append(_limit_change(answer, found, level))
    return tuple(changes)


def _scores_say_more(pairs: Sequence[CasePair]) -> bool:
    """Whether scores of cases do not follow from how many of their trials pass."""
    points = [(side.passed / len(side.graded), side.score) for side in chain.from_iterable(pairs)]
    (low_rate, low), (high_rate, high) = (
        min(points, default=(0.0, 0.0)),
        max(points, default=(0.0, 0.0)),
    )
    slope = (high - low) / (high_rate - low_rate) if high_rate > low_rate else 0.0
    return any(abs(low + slope * (rate - low_rate) - score) > SAME_SCORE for rate, score in points)


def _rate_change(
    question: _Question, pairs: Sequence[CasePair], level: float, confidence: float
) -> MetricChange:
    """Return the change of the pass rate; the test is one-sided at this level, each way."""
    cases = [trials_of(pair) for pair in pairs if question.concerns(pair)]
    if not cases:
        return MetricChange(
            metric="pass rate",
            target=question.target,
            cases=0,
            verdict="not compared",
            reason=NOT_SHARED,
        )
    drop, rise = (
        cochran_mantel_haenszel(cases),
        cochran_mantel_haenszel([case.reversed for case in cases]),
    )
    verdict: MetricVerdict = "better" if rise <= level else "undecided"
    if drop <= level:
        verdict = "worse"
    low, high = mean_rate_change_interval(cases, confidence)
    before = _mean([case.base_passed / case.base for case in cases])
    now = _mean([case.head_passed / case.head for case in cases])
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
        reason=None if verdict in ("worse", "better") else _too_few_trials(cases, level),
        base_passed=sum(case.base_passed for case in cases),
        base_trials=sum(case.base for case in cases),
        head_passed=sum(case.head_passed for case in cases),
        head_trials=sum(case.head for case in cases),
    )


def _too_few_trials(cases: Sequence[Trials], level: float) -> str | None:
    """Return what would show a drop, if no drop of these cases is large enough to be seen."""
    if _shows_drop([case._replace(base_passed=case.base, head_passed=0) for case in cases], level):
        return None
    sides = max(case.base for case in cases), max(case.head for case in cases)
    for repeat in REPEATS:
        if repeat > min(sides) and _shows_drop(
            [Trials(repeat, repeat, 0, repeat)] * len(cases), level
        ):
            both = " on both sides" if repeat <= max(sides) else ""
            return f"too few trials to see any drop; use --repeat {repeat}{both}"
    return "too few trials to see any drop; use more trials"


def _shows_drop(cases: Sequence[Trials], level: float) -> bool:
    return cochran_mantel_haenszel(cases) <= level


def _score_change(answer: _Answer, level: float) -> MetricChange:
    """Return the change of the mean score, each way at this level."""
    found = claim(answer.effect, 1 - 2 * level) if answer.effect is not None else None
    needed = 1 + math.ceil(math.log2(0.5 / level))
    is_enough = answer.effect is not None and answer.effect.clusters >= needed
    reason = f"it needs {needed} cases, there {'is' if len(answer.known) == 1 else 'are'} {len(answer.known)}"
    return MetricChange(
        metric="mean score",
        target=answer.question.target,
        cases=len(answer.known),
        base=_of_side("mean score", [case.base for case in answer.known]),
        head=_of_side("mean score", [case.head for case in answer.known]),
        **(
            _interval(answer.question, found)
            if found is not None and is_enough
            else {"change": None}
        ),
        verdict=_verdict_of(found) if is_enough else "not compared",
        reason=None if is_enough else reason,
    )


def _verdict_of(found: Claim | None) -> MetricVerdict:
    return (
        found.verdict if found is not None and found.verdict in ("worse", "better") else "undecided"
    )


def _answer(question: _Question, pairs: Sequence[CasePair]) -> _Answer:
    concerned = [each for each in pairs if question.concerns(each)]
    both = [
        _Measured(pair, *(_values(question.metric, side) for side in pair)) for pair in concerned
    ]
    known = [case for case in both if case.base and case.head]
    compared = [case for case in known if question.limit is None or not any(case.costs_nothing)]
    by_trial = question.limit is not None and len(compared) < FEW_CASES
    samples = chain.from_iterable(
        _samples(question.metric, case, by_trial=by_trial) for case in compared
    )
    found = effect(_metric(question.metric), samples)
    if found is not None:
        found = replace(found, estimate=found.estimate - question.origin)
    return _Answer(question, concerned, known, found)


def _metric(name: MetricName) -> Metric:
    if name == "mean score":
        return Metric(name)
    return Metric(
        name, "ratio", higher_is_better=False, quantile=P95 if name == "p95_latency" else None
    )


def _values(metric: MetricName, outcome: CaseOutcome) -> list[float]:
    """Return the known values of a case's graded trials.

    Costs and times of stored answers are not known.
    """
    match metric:
        case "pass rate" | "mean score":
            return [outcome.score]
        case "cost":
            return [trial.cost_usd for trial in outcome.graded if trial.cost_usd is not None]
        case "tokens":
            return [trial.tokens for trial in outcome.graded if trial.tokens is not None]
        case "mean_latency" | "p95_latency":
            return [
                trial.duration_ms / 1000
                for trial in outcome.graded
                if trial.duration_ms and not trial.is_cached
            ]
        case _:
            assert_never(metric)


def _unmeasured(metric: MetricName, outcome: CaseOutcome) -> int:
    """Return how many graded trials that were asked have no known value."""
    asked = [trial for trial in outcome.graded if not trial.is_cached]
    match metric:
        case "cost":
            return sum(trial.cost_usd is None for trial in asked)
        case "tokens":
            return sum(trial.tokens is None for trial in asked)
        case _:
            return 0


def _samples(metric: MetricName, of: _Measured, *, by_trial: bool) -> Iterator[Pair]:
    """Yield the trials of a case, or what stands for each side if their numbers differ or some cost nothing."""
    suite, case_id, target = of.pair[1].key
    base, head = of.base, of.head
    if len(base) != len(head) or not all((*base, *head)):
        by_trial = False
        size = min(math.lcm(len(base), len(head)), MOST_STEPS)
        base, head = (
            _steps(side, size) if metric == "p95_latency" else [_mean(side)]
            for side in (base, head)
        )
    for number, (before, now) in enumerate(zip(base, head, strict=True), 1):
        cluster = f"{suite}\n{case_id}\n{number}" if by_trial else f"{suite}\n{case_id}"
        yield Pair(cluster, f"{cluster}\n{target}", number, before, now)


def _steps(values: Sequence[float], size: int) -> list[float]:
    """Return `size` values that are distributed like these.

    Each is repeated as often, if `size` is a multiple.
    """
    ordered = sorted(values)
    return [ordered[(2 * place + 1) * len(ordered) // (2 * size)] for place in range(size)]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _limit_change(answer: _Answer, found: Claim | None, level: float) -> MetricChange:
    question, limit = answer.question, answer.question.limit
    assert limit is not None, "a question about a limit"
    verdict = _limit_verdict(answer, found)
    return MetricChange(
        metric=question.metric,
        target=question.target,
        suites=limit.suites,
        cases=len(answer.known),
        base=_of_side(question.metric, [case.base for case in answer.known]),
        head=_of_side(question.metric, [case.head for case in answer.known]),
        **(_interval(question, found) if found is not None else {"change": None}),
        allowed=limit.allowed,
        verdict=verdict,
        reason=_limit_reason(answer, verdict, 1 - found.confidence if found is not None else level),
    )


def _of_side(metric: MetricName, cases: Sequence[Sequence[float]]) -> float | None:
    if not cases:
        return None
    if metric == "p95_latency":
        return round(quantile(chain.from_iterable(cases), P95), PRECISION)
    return round(_mean([_mean(each) for each in cases]), PRECISION)


def _interval(question: _Question, claim: Claim) -> dict[str, float | None]:
    """Return the estimate and the interval as people read them.

    An interval that excludes nothing has no bounds.
    """
    values = {"change": claim.effect.estimate, "low": claim.low, "high": claim.high}
    if math.isinf(claim.high):
        del values["low"], values["high"]
    natural = {
        name: claim.effect.natural(value + question.origin) for name, value in values.items()
    }
    return {
        "confidence": claim.confidence,
        **{name: round(value, PRECISION) for name, value in natural.items()},
    }


def _limit_verdict(answer: _Answer, found: Claim | None) -> MetricVerdict:
    """Return the verdict on a limit.

    A ratio without the cases that rose from 0 or fell to it does not decide alone.
    """
    if not answer.known:
        return "not compared"
    if found is None and not answer.rising:
        costs_nothing = (
            all(case.costs_nothing[1] for case in answer.known) and not answer.unmeasured
        )
        return "within" if costs_nothing else "undecided"
    verdict = _verdict_of(found)
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
    unmeasured = answer.unmeasured if verdict == "undecided" else 0
    if unmeasured:
        reasons.append(f"{counted(unmeasured, 'trial')} not measured, which may break the limit")
    found, needed = answer.effect, 1 + math.ceil(math.log2(1 / level))
    if verdict == "undecided" and not (rising or falling or unmeasured):
        clusters = found.clusters if found is not None else len(answer.known)
        is_enough = found is not None and clusters >= needed
        reasons.append(
            "use more trials, or allow more" if is_enough else _enough_values(answer, needed)
        )
    return "; ".join(reasons) or None


def _enough_values(answer: _Answer, needed: int) -> str:
    """Return how many cases or trials a limit needs, of which there are fewer."""
    cases = max(1, len(answer.known))
    sides = (max((len(case[side]) for case in answer.known), default=0) for side in (1, 2))
    fewest, most = sorted(sides)
    repeat = next(
        (repeat for repeat in REPEATS if repeat > fewest and repeat * cases >= needed), None
    )
    if cases >= FEW_CASES or repeat is None:
        # Then trials do not count as cases do.
        return f"it needs {needed} cases"
    return f"it needs {needed} cases, or --repeat {repeat}" + (
        " on both sides" if repeat <= most else ""
    )


def _missing(answer: _Answer) -> str:
    """Return which targets do not give the values that are asked for."""
    metric = answer.question.metric
    if not answer.pairs:
        return NOT_SHARED
    before, now = (
        listed(
            dict.fromkeys(
                pair[side].target for pair in answer.pairs if not _values(metric, pair[side])
            )
        )
        for side in (0, 1)
    )
    if before == now:
        return f"no {NOUNS[metric]} from target {now}"
    sides = [
        f"{when} from target {targets}"
        for when, targets in (("before", before), ("now", now))
        if targets
    ]
    return f"no {NOUNS[metric]} {' and '.join(sides)}"
