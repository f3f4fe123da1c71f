"""How metrics change from one run to another, over the cases of both: rates and scores, costs, tokens and times.

Each case weighs the same, whatever its number of trials, and a case that several targets answer is one cluster. A few
cases say little about others; of fewer than FEW_CASES, only their own trials are compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, assert_never

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.analysis.claims import Claim, claims
from agentv_ci.analysis.effects import Effect, Metric, Pair, effect, quantile
from agentv_ci.analysis.outcomes import CaseOutcome
from agentv_ci.contracts.comparison import MetricChange, MetricName, MetricVerdict
from agentv_ci.contracts.increases import IncreasingMetric
from agentv_ci.contracts.report import GateSettings
from agentv_ci.contracts.results import PRECISION
from agentv_ci.text import counted, listed

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
WHOLE_RANGE = 2.0
"""Of a difference, from −1 to 1."""


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
        return is_asked and (self.limit is None or not self.limit.suites or pair[1].case.suite in self.limit.suites)


class _Measured(NamedTuple):
    """A case with its values on both sides."""

    pair: CasePair
    base: Sequence[float]
    head: Sequence[float]


class _Answer(Struct, frozen=True):
    """A question with its effect, measured from the allowed increase."""

    question: _Question
    pairs: Sequence[CasePair]
    """The cases that it concerns."""
    measured: Sequence[_Measured]
    """Those with values on both sides."""
    effect: Effect | None


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


def metric_changes(
    pairs: Sequence[CasePair], targets: Sequence[str], limits: Sequence[Limit], alpha: float
) -> tuple[MetricChange, ...]:
    """Return the changes of all metrics; with probability 1 − alpha or more, no verdict of them is wrong.

    With several targets, each is also judged alone.
    """
    answers = [_answer(each, pairs) for each in _questions(targets, limits)]
    known = [each.effect for each in answers if each.effect is not None]
    found = iter(claims(known, alpha))
    level = alpha / max(1, len(answers))
    return tuple(_change(each, next(found) if each.effect is not None else None, level) for each in answers)


def _questions(targets: Sequence[str], limits: Sequence[Limit]) -> Iterator[_Question]:
    for target in (None, *targets):
        yield _Question("pass rate", target)
        yield _Question("mean score", target)
    for limit in limits:
        yield from (_Question(limit.metric, target, limit) for target in (targets or (None,)))


def _answer(question: _Question, pairs: Sequence[CasePair]) -> _Answer:
    concerned = [each for each in pairs if question.concerns(each)]
    both = [_Measured(pair, *(_values(question.metric, side) for side in pair)) for pair in concerned]
    measured = [each for each in both if each.base and each.head]
    by_trial = question.limit is not None and len(measured) < FEW_CASES
    samples = chain.from_iterable(_samples(question.metric, each, by_trial=by_trial) for each in measured)
    found = effect(_metric(question.metric), samples)
    if found is not None:
        found = replace(found, estimate=found.estimate - question.origin)
    return _Answer(question, concerned, measured, found)


def _metric(name: MetricName) -> Metric:
    if name in ("pass rate", "mean score"):
        return Metric(name)
    return Metric(name, "ratio", higher_is_better=False, quantile=P95 if name == "p95_latency" else None)


def _values(metric: MetricName, outcome: CaseOutcome) -> list[float]:
    """Return the known values of a case's graded trials, without 0 and, of stored answers, costs and times."""
    match metric:
        case "pass rate":
            return [float(each.verdict == "pass") for each in outcome.graded]
        case "mean score":
            return [outcome.score]
        case "cost":
            return [each.cost_usd for each in outcome.graded if each.cost_usd]
        case "tokens":
            return [each.tokens for each in outcome.graded if each.tokens]
        case "mean_latency" | "p95_latency":
            return [each.duration_ms / 1000 for each in outcome.graded if each.duration_ms and not each.is_cached]
        case _:
            assert_never(metric)


def _samples(metric: MetricName, of: _Measured, *, by_trial: bool) -> Iterator[Pair]:
    """Yield the trials of a case; if the sides have different numbers of them, what stands for each side."""
    suite, case_id, target = of.pair[1].key
    base, head = of.base, of.head
    if len(base) != len(head):
        by_trial = False
        size = min(math.lcm(len(base), len(head)), MOST_STEPS)
        base, head = (_steps(side, size) if metric == "p95_latency" else [_mean(side)] for side in (base, head))
    for number, (before, now) in enumerate(zip(base, head, strict=True), 1):
        cluster = f"{suite}\n{case_id}\n{number}" if by_trial else f"{suite}\n{case_id}"
        yield Pair(cluster, f"{cluster}\n{target}", number, before, now)


def _steps(values: Sequence[float], size: int) -> list[float]:
    """Return `size` values that are distributed like these; each is repeated as often, if `size` is a multiple."""
    ordered = sorted(values)
    return [ordered[(2 * place + 1) * len(ordered) // (2 * size)] for place in range(size)]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _change(answer: _Answer, claim: Claim | None, level: float) -> MetricChange:
    question, limit = answer.question, answer.question.limit
    verdict = _verdict(answer, claim)
    return MetricChange(
        metric=question.metric,
        target=question.target,
        suites=limit.suites if limit is not None else (),
        cases=len(answer.measured),
        base=_of_side(question.metric, [each.base for each in answer.measured]),
        head=_of_side(question.metric, [each.head for each in answer.measured]),
        **(_interval(question, claim) if claim is not None else {"change": None}),
        allowed=limit.allowed if limit is not None else None,
        verdict=verdict,
        reason=_reason(answer, verdict, 1 - claim.confidence if claim is not None else level),
    )


def _of_side(metric: MetricName, cases: Sequence[Sequence[float]]) -> float | None:
    if not cases:
        return None
    if metric == "p95_latency":
        return round(quantile(chain.from_iterable(cases), P95), PRECISION)
    return round(_mean([_mean(each) for each in cases]), PRECISION)


def _interval(question: _Question, claim: Claim) -> dict[str, float | None]:
    """Return the estimate and the interval as people read them; an interval that excludes nothing has no bounds."""
    values = {"change": claim.effect.estimate, "low": claim.low, "high": claim.high}
    if math.isinf(claim.high) or (question.limit is None and claim.high - claim.low >= WHOLE_RANGE):
        del values["low"], values["high"]
    natural = {name: claim.effect.natural(value + question.origin) for name, value in values.items()}
    return {"confidence": claim.confidence, **{name: round(value, PRECISION) for name, value in natural.items()}}


def _verdict(answer: _Answer, claim: Claim | None) -> MetricVerdict:
    if not answer.measured:
        return "not compared"
    if claim is None or claim.verdict not in ("worse", "better"):
        return "undecided"
    return "within" if answer.question.limit is not None and claim.verdict == "better" else claim.verdict


def _reason(answer: _Answer, verdict: MetricVerdict, level: float) -> str | None:
    """Return why there is no verdict, and what to do; or which cases are not in it."""
    if verdict == "not compared":
        return _missing(answer)
    left = len(answer.pairs) - len(answer.measured)
    if left and verdict == "undecided":
        return f"{left} of {counted(len(answer.pairs), 'case')} not measured on both sides"
    found, needed = answer.effect, 1 + math.ceil(math.log2(1 / level))
    if found is None or found.clusters < needed:
        more = ", or use --repeat 5" if answer.question.limit is not None else ""
        return f"{counted(len(answer.measured), 'case')}, too few for a mean: compare at least {needed}{more}"
    return f"{left} of {counted(len(answer.pairs), 'case')} not measured on both sides" if left else None


def _missing(answer: _Answer) -> str:
    """Return which targets do not give the values that are asked for."""
    metric = answer.question.metric
    if metric in ("pass rate", "mean score") or not answer.pairs:
        return NOT_SHARED
    before, now = (
        listed(dict.fromkeys(pair[side].target for pair in answer.pairs if not _values(metric, pair[side])))
        for side in (0, 1)
    )
    if before == now:
        return f"no {NOUNS[metric]} from target {now}"
    sides = [f"{when} from target {targets}" for when, targets in (("before", before), ("now", now)) if targets]
    return f"no {NOUNS[metric]} {' and '.join(sides)}"
