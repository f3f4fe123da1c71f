"""Judge an experiment: the effects on its metrics, and the verdict that follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from statistics import fmean
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.analysis.experiment.looks import Counted, Looks
from agentv_ci.analysis.experiment.models import unplanned_models
from agentv_ci.analysis.experiment.plan import ExperimentPlan
from agentv_ci.analysis.experiment.preferences import preference_counts
from agentv_ci.analysis.experiment.stopping import Planned, Stop, stop
from agentv_ci.analysis.experiment.trials import (
    CaseName,
    ExperimentTrials,
    Filling,
    MeasuredTrial,
)
from agentv_ci.analysis.statistics.claims import Claim, MetricVerdict, claims_of_known, discoveries
from agentv_ci.analysis.statistics.effects import Effect, Metric, Pair, effect
from agentv_ci.base.text import counted, listed
from agentv_ci.contracts.experiment import DETECT
from agentv_ci.contracts.experiment_report import (
    DRY_RUN,
    ArmFigures,
    CaseEffect,
    ExperimentReport,
    ExperimentVerdict,
    Look,
    MetricEffect,
)
from agentv_ci.contracts.results import PRECISION, ResultRow
from agentv_ci.jsonschema.schemas import schema_id

FROM_WORST: Sequence[MetricVerdict] = ("not worse", "equivalent", "better")
"""Verdicts on a metric that is decided and not worse."""
MAX_CASES = 100
"""Cases that are described."""

_Claims = Mapping[tuple[str, Metric], Claim | None]
"""Arm and metric → what the comparison says about it; None if too little was measured."""


class Judgement(Struct, frozen=True):
    """Judges an experiment while it runs, and at its end."""

    plan: ExperimentPlan
    regardless: bool = False
    """Whether to give a verdict even if more than the arms differs."""

    def report(self, rows: Iterable[ResultRow]) -> ExperimentReport:
        """Return the report of the rows, whose order does not matter."""
        judge = _Judge(self.plan)
        for row in rows:
            judge.add(row)
        return judge.report(regardless=self.regardless)

    def watch(self, earlier: Iterable[ResultRow]) -> Callable[[ResultRow | None], bool] | None:
        """Return what gets every new row and says whether no more are needed.

        None if it never stops early.

        Called with None, it says so of the rows of an earlier run.
        """
        if self.plan.document.stop is None:
            return None
        judge = _Judge(self.plan)
        for row in earlier:
            judge.add(row)

        def is_decided(row: ResultRow | None) -> bool:
            if row is not None:
                judge.add(row)
            judge.looks.take()
            return judge.looks.stopped is not None

        return is_decided


class _Judge:
    """The trials of an experiment, the looks at them, and what follows from them."""

    def __init__(self, plan: ExperimentPlan) -> None:
        self._plan = plan
        self._trials = ExperimentTrials(
            plan.document.cluster_by, plan.metrics, plan.document.preferences
        )
        self._digests: dict[CaseName, Mapping[str, str]] = {}
        trials, clusters = 0, set[str]()
        for case in plan.cases:
            self._digests[case.name] = case.digests
            clusters.add(case.cluster)
            trials += case.trials
        self._planned = Planned(trials, len(clusters))
        self._foreign = 0
        """Rows of other cases than those of the plan."""
        self._is_dry = False
        self._looks: list[Look] = []
        self.looks = Looks(plan, self._trials, self._look)

    def add(self, row: ResultRow) -> None:
        if row.verdict == "skipped":
            return
        if self._digests.get((row.suite, row.eval_id), {}).get(row.arm or "") != row.digest:
            self._foreign += 1
            return
        self._is_dry = self._is_dry or row.dry_run
        self._trials.add(row)

    def report(self, *, regardless: bool) -> ExperimentReport:
        plan, document = self._plan, self._plan.document
        among = self._counted()
        effects = [
            self._with_figures(effect, among) for effect in self._described(self._claims(among))
        ]
        withheld = list(self._withheld())
        verdict, reasons = _verdict(effects)
        if withheld and not regardless:
            verdict, reasons = "withheld", withheld
        elif verdict != "undecided" and (doubts := [*self._doubts(verdict, among)]):
            verdict, reasons = "withheld", doubts
            withheld += doubts
        arms = [
            _arm(name, plan.metrics, self._trials.among(name, among))
            for name in (document.base_name, *plan.heads)
        ]
        return ExperimentReport(
            schema_=schema_id("experiment-report-v1"),
            name=plan.name,
            description=document.description,
            plan_digest=plan.digest,
            base=document.base_name,
            primary=document.primary_metric,
            alpha=document.alpha,
            cluster_by=document.cluster_by,
            verdict=verdict,
            reasons=tuple(reasons),
            withheld=tuple(withheld),
            warnings=(*_warnings(plan, self._trials, among), *_unjudged(effects)),
            arms=tuple(arms),
            effects=tuple(effects),
            looks=tuple(self._looks),
            cases=tuple(_changed_cases(plan, self._trials, among)),
            planned_trials=plan.trials,
            trials=sum(arm.trials + arm.errors for arm in arms),
            stopped=self.looks.stopped,
            saved_trials=self._saved(),
            seed=document.seed,
        )

    def _counted(self) -> Counted:
        """Return the trials that the verdict is about: all, or those of the last look."""
        if self._plan.document.stop is None:
            return {case.name: case.trials for case in self._plan.cases}
        self.looks.take()
        return self.looks.counted

    def _withheld(self) -> Iterator[str]:
        """Yield why there is no verdict: more than the arms differs, or rows do not count."""
        yield from self._plan.differences
        yield from _foreign(self._foreign)
        yield from unplanned_models(self._plan, self._trials)
        if self._trials.doubled:
            yield f"{counted(self._trials.doubled, 'trial')} with more than one row"
        if self._is_dry:
            yield DRY_RUN

    def _saved(self) -> int:
        """Return how many trials were not needed."""
        if self.looks.stopped is None:
            return 0
        ran = map(self._trials.of_arm, self._trials.by_arm)
        return self._plan.trials - sum(map(len, ran))

    def _look(self, among: Counted) -> Stop | None:
        """Note what a look shows of the primary metric; return why the experiment may stop."""
        claimed = self._claims(among)
        trials = sum(among.values()) * len(self._plan.document.arms)
        for change in self._described(claimed):
            if not change.primary or change.estimate is None:
                continue
            self._looks.append(_look_at(change, cases=len(among), trials=trials))
        stops = list(map(self._stop, (claimed, *self._extremes(among))))
        if stops.count(stops[0]) < len(stops):
            return None
        return stops[0][0]

    def _stop(self, claimed: _Claims) -> tuple[Stop | None, Sequence[str]]:
        """Return why the experiment may stop, and the verdicts that this rests on."""
        deciding: list[Claim] = []
        for (_, metric), claim in claimed.items():
            if not self._decides(metric):
                continue
            if claim is None:
                return None, ()
            deciding.append(claim)
        return stop(deciding, self._planned), [claim.verdict for claim in deciding]

    def _doubts(self, verdict: ExperimentVerdict, among: Counted) -> Iterator[str]:
        """Yield why the verdict may be due to values that are missing.

        With extreme values in their place, it would be another one.
        """
        others = {_verdict(self._described(claimed))[0] for claimed in self._extremes(among)}
        if others <= {verdict}:
            return
        missing = "; ".join(_missing(self._plan, self._trials, among))
        missing = missing or "crashed trials did not report all metrics"
        could_be = f"the verdict could be {listed(sorted({verdict, *others}))}"
        yield f"{missing}. Depending on them, {could_be}: run them again with --resume"

    def _extremes(self, among: Counted) -> Sequence[_Claims]:
        """Return what the comparison would say with missing values that are as extreme as possible.

        First they are as bad for the arms as possible, then as good. Nothing if none is missing.
        """
        arms = (self._trials.among(arm.name, among) for arm in self._plan.document.arms)
        if all(trial.has_verdict for trial in chain.from_iterable(arms)):
            return ()
        return [self._claims(among, is_rising=is_rising) for is_rising in (False, True)]

    def _filling(
        self, metric: Metric, head: str, among: Counted, *, is_rising: bool
    ) -> Filling | None:
        """Return the extreme values of a metric.

        They are those of its range, or those that other trials measured.
        """
        bounds: tuple[float, float] | None = (0.0, 1.0)
        if metric.scale == "ratio":
            bounds = self._trials.bounds(metric.name, self._plan.document.base_name, head, among)
        if bounds is None:
            return None
        low, high = bounds
        return Filling(low, high) if is_rising else Filling(high, low)

    def _decides(self, metric: Metric) -> bool:
        return metric.name == self._plan.document.primary_metric or metric.margin is not None

    def _claims(self, among: Counted, *, is_rising: bool | None = None) -> _Claims:
        """Return what the comparison says about each metric of each arm.

        `is_rising`: whether values that are missing are the lowest before and the highest now, or
        the reverse; None: they are left out.
        """
        wanted = list(product(self._plan.heads, self._plan.metrics))
        effects = [self._effect(metric, head, among, is_rising) for head, metric in wanted]
        claimed = claims_of_known(effects, self._plan.document.alpha)
        return dict(zip(wanted, claimed, strict=True))

    def _described(self, claimed: _Claims) -> list[MetricEffect]:
        return [
            _described(self._plan, metric, head, claim) for (head, metric), claim in claimed.items()
        ]

    def _with_figures(self, effect: MetricEffect, among: Counted) -> MetricEffect:
        """Return an effect with the means that it is the change of.

        It also has what a judge prefers.
        """
        document = self._plan.document
        compared = effect.metric, document.base_name, effect.arm, among
        figures: dict[str, object] = {}
        if pairs := [*self._trials.pairs(*compared)]:
            figures = {"base": _mean_of_cases(pairs, "base"), "head": _mean_of_cases(pairs, "head")}
        if effect.metric in document.preferences:
            figures["preferences"] = preference_counts(self._trials.preferences(*compared))
        return effect.model_copy(update=figures)

    def _effect(
        self, metric: Metric, head: str, among: Counted, is_rising: bool | None
    ) -> Effect | None:
        document = self._plan.document
        filling = None
        if is_rising is not None:
            filling = self._filling(metric, head, among, is_rising=is_rising)
        pairs = self._trials.pairs(metric.name, document.base_name, head, among, filling)
        smallest = None
        if document.stop is not None:
            smallest = (document.detect or {}).get(metric.name, DETECT)
        return effect(metric, pairs, seed=document.seed, smallest=smallest)


def _look_at(change: MetricEffect, *, cases: int, trials: int) -> Look:
    assert change.estimate is not None, "only of what was measured"
    return Look(
        cases=cases,
        trials=trials,
        arm=change.arm,
        estimate=change.estimate,
        low=change.low,
        high=change.high,
        verdict=change.verdict,
    )


def _described(
    plan: ExperimentPlan, metric: Metric, head: str, claim: Claim | None
) -> MetricEffect:
    if claim is None:
        return _undecided(plan, metric, head)
    effect = claim.effect
    return _undecided(plan, metric, head).model_copy(
        update={
            "verdict": claim.verdict,
            "estimate": _rounded(effect.natural(effect.estimate)),
            "low": _rounded(effect.natural(claim.low)),
            "high": _rounded(effect.natural(claim.high)),
            "confidence": claim.confidence,
            "p_value": _rounded(effect.p_value),
            "clusters": effect.clusters,
            "pairs": effect.pairs,
            "method": effect.method,
        }
    )


def _undecided(plan: ExperimentPlan, metric: Metric, head: str) -> MetricEffect:
    """Return the effect on a metric of which too little was measured."""
    return MetricEffect(
        arm=head,
        metric=metric.name,
        primary=metric.name == plan.document.primary_metric,
        scale=metric.scale,
        higher_is_better=metric.higher_is_better,
        margin=metric.margin,
        verdict="undecided",
        estimate=None,
        low=None,
        high=None,
        confidence=None,
        p_value=None,
        clusters=0,
        pairs=0,
        method="measured in both arms in fewer than two clusters",
    )


def _rounded(value: float) -> float | None:
    return round(value, PRECISION) if math.isfinite(value) else None


def _verdict(effects: Sequence[MetricEffect]) -> tuple[ExperimentVerdict, list[str]]:
    """Return the verdict of all effects, and the sentences that it follows from.

    One metric of one arm that is worse decides. Otherwise the primary metric of every arm must be
    decided, and every other metric with a margin must not be worse by it.
    """
    worse = [effect for effect in effects if effect.verdict == "worse"]
    if worse:
        return "worse", list(map(_sentence, worse))
    undecided = [effect for effect in effects if effect.verdict == "undecided" and _decides(effect)]
    if undecided:
        return "undecided", list(map(_sentence, undecided))
    primary = [effect for effect in effects if effect.primary]
    # Several arms: what holds of each of them.
    verdict = min((effect.verdict for effect in primary), key=FROM_WORST.index)
    return verdict, list(map(_sentence, primary))


def _decides(effect: MetricEffect) -> bool:
    return effect.primary or effect.margin is not None


def _sentence(effect: MetricEffect) -> str:
    return f"{effect.metric} of '{effect.arm}' is {effect.verdict}"


def _foreign(others: int) -> Iterator[str]:
    if others:
        yield (
            f"{counted(others, 'row')} of other cases than the experiment has now: "
            "its arms, eval files or targets changed after they ran"
        )


def _warnings(plan: ExperimentPlan, trials: ExperimentTrials, among: Counted) -> Iterator[str]:
    for arm in plan.document.arms:
        ran = trials.among(arm.name, among)
        if crashed := [trial for trial in ran if trial.is_crash]:
            share = f"'{arm.name}' crashed in {len(crashed)} of {counted(len(ran), 'trial')}"
            yield f"{share}, which count as failed; first error: {crashed[0].error}"
    yield from _missing(plan, trials, among)


def _missing(plan: ExperimentPlan, trials: ExperimentTrials, among: Counted) -> Iterator[str]:
    """Yield which arms have trials with an error of the infrastructure."""
    for arm in plan.document.arms:
        if lost := trials.missing(arm.name, among):
            of_arm = f"{counted(len(lost), 'trial')} of '{arm.name}'"
            yield f"{of_arm} without a verdict, not compared; first error: {lost[0].error}"


def _unjudged(effects: Iterable[MetricEffect]) -> Iterator[str]:
    for change in effects:
        if change.preferences is not None and change.preferences.unjudged:
            pairs = counted(change.preferences.unjudged, "pair")
            yield f"{pairs} of '{change.arm}' not judged by '{change.metric}', and not compared"


def _arm(name: str, metrics: Sequence[Metric], ran: Sequence[MeasuredTrial]) -> ArmFigures:
    targets, models = set[str](), set[str]()
    graded = crashed = 0
    for trial in ran:
        targets.add(trial.target)
        if trial.model is not None:
            models.add(trial.model)
        graded += trial.is_graded
        crashed += trial.is_crash
    return ArmFigures(
        name=name,
        targets=tuple(sorted(targets)),
        models=tuple(sorted(models)),
        trials=graded,
        errors=len(ran) - graded,
        crashed=crashed,
        means=dict(_means(metrics, ran)),
    )


def _means(
    metrics: Iterable[Metric], trials: Sequence[MeasuredTrial]
) -> Iterator[tuple[str, float]]:
    for metric in metrics:
        values = [trial.values[metric.name] for trial in trials if metric.name in trial.values]
        if values:
            yield metric.name, _mean(values)


def _changed_cases(
    plan: ExperimentPlan, trials: ExperimentTrials, among: Counted
) -> Iterator[CaseEffect]:
    """Yield the cases whose primary metric changed, those that are called changes first."""
    changed: list[CaseEffect] = []
    for head, (case, most) in product(plan.heads, among.items()):
        if (of_case := _changed_case(plan, trials, {case: most}, head)) is not None:
            changed.append(of_case)
    tested = [effect.p_value for effect in changed if effect.p_value is not None]
    called = iter(discoveries(tested, plan.document.alpha))
    for index, change in enumerate(changed):
        is_called = change.p_value is not None and next(called)
        changed[index] = change.model_copy(update={"called": is_called})
    changed.sort(key=lambda effect: (not effect.called, -abs(effect.head - effect.base)))
    yield from changed[:MAX_CASES]


def _changed_case(
    plan: ExperimentPlan, trials: ExperimentTrials, case: Counted, head: str
) -> CaseEffect | None:
    metric, *_ = plan.metrics
    pairs = [*trials.pairs(metric.name, plan.document.base_name, head, case)]
    base, now = _mean(pair.base for pair in pairs), _mean(pair.head for pair in pairs)
    if base == now:
        return None
    # Within a case, its trials are what chance draws.
    alone = effect(metric, [replace(pair, cluster=str(pair.trial)) for pair in pairs])
    p_value = alone.p_value if alone is not None else None
    ((suite, name),) = case
    return CaseEffect(
        suite=suite, id=name, arm=head, base=base, head=now, p_value=p_value, called=False
    )


def _mean_of_cases(pairs: Iterable[Pair], side: Literal["base", "head"]) -> float:
    """Return the mean over cases of one side, each of which weighs the same."""
    by_case: dict[str, list[float]] = {}
    for pair in pairs:
        by_case.setdefault(pair.case, []).append(getattr(pair, side))
    return round(_mean(map(_mean, by_case.values())), PRECISION)


def _mean(values: Iterable[float]) -> float:
    known = [*values]
    if not known:
        return 0.0
    return fmean(known)
