"""Judge an experiment: the effects on its metrics, and the verdict that follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.analysis.experiment.looks import Counted, Looks
from agentv_ci.analysis.experiment.models import unplanned_models
from agentv_ci.analysis.experiment.plan import ExperimentPlan
from agentv_ci.analysis.experiment.preferences import preference_counts
from agentv_ci.analysis.experiment.stopping import Planned, Stop, stop
from agentv_ci.analysis.experiment.trials import ExperimentTrials, Filling
from agentv_ci.analysis.statistics.claims import Claim, claims, discoveries
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
        self._digests = {each.name: each.digests for each in plan.cases}
        clusters = {each.cluster for each in plan.cases}
        self._planned = Planned(sum(each.trials for each in plan.cases), len(clusters))
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
        if document.stop is not None:
            self.looks.take()
        among = (
            self.looks.counted
            if document.stop is not None
            else {each.name: each.trials for each in plan.cases}
        )
        claimed = self._claims(among)
        effects = [self._with_figures(each, among) for each in self._described(claimed)]
        withheld = [
            *plan.differences,
            *_foreign(self._foreign),
            *unplanned_models(plan, self._trials),
        ]
        if self._trials.doubled:
            withheld.append(f"{counted(self._trials.doubled, 'trial')} with more than one row")
        withheld += [DRY_RUN] if self._is_dry else []
        verdict, reasons = _verdict(effects)
        if withheld and not regardless:
            verdict, reasons = "withheld", withheld
        elif verdict != "undecided" and (doubts := [*self._doubts(verdict, among)]):
            verdict, reasons = "withheld", doubts
            withheld += doubts
        arms = [
            _arm(name, plan.metrics, self._trials, among)
            for name in (document.base_name, *plan.heads)
        ]
        ran = sum(len(self._trials.of_arm(arm)) for arm in self._trials.by_arm)
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
            trials=sum(each.trials + each.errors for each in arms),
            stopped=self.looks.stopped,
            saved_trials=plan.trials - ran if self.looks.stopped is not None else 0,
            seed=document.seed,
        )

    def _look(self, among: Counted) -> Stop | None:
        """Note what a look shows of the primary metric; return why the experiment may stop."""
        claimed = self._claims(among)
        effects = self._described(claimed)
        trials = sum(among.values()) * len(self._plan.document.arms)
        self._looks += (
            Look(
                cases=len(among),
                trials=trials,
                arm=each.arm,
                estimate=each.estimate,
                low=each.low,
                high=each.high,
                verdict=each.verdict,
            )
            for each in effects
            if each.primary and each.estimate is not None
        )
        found = [self._stop(each) for each in (claimed, *self._extremes(among))]
        return found[0][0] if all(each == found[0] for each in found) else None

    def _stop(self, claimed: _Claims) -> tuple[Stop | None, Sequence[str]]:
        """Return why the experiment may stop, and the verdicts that this rests on."""
        deciding = [claim for (_, metric), claim in claimed.items() if self._decides(metric)]
        known = [each for each in deciding if each is not None]
        if len(known) < len(deciding):
            return None, ()
        return stop(known, self._planned), [each.verdict for each in known]

    def _doubts(self, verdict: ExperimentVerdict, among: Counted) -> Iterator[str]:
        """Yield why the verdict may be due to values that are missing: at an extreme, it would be another one."""
        others = {_verdict(self._described(each))[0] for each in self._extremes(among)} - {verdict}
        if others:
            could_be = f"the verdict could be {listed(sorted({verdict, *others}))}: run them again with --resume"
            missing = [*_missing(self._plan, self._trials, among)] or [
                "crashed trials did not report all metrics"
            ]
            yield f"{'; '.join(missing)}. Depending on them, {could_be}"

    def _extremes(self, among: Counted) -> Sequence[_Claims]:
        """Return what the comparison would say if missing values were as bad for the arms as possible, and as good.

        Nothing if none is missing.
        """
        names = [arm.name for arm in self._plan.document.arms]
        if all(each.has_verdict for name in names for each in self._trials.among(name, among)):
            return ()
        return [self._claims(among, is_rising=is_rising) for is_rising in (False, True)]

    def _filling(
        self, metric: Metric, head: str, among: Counted, *, is_rising: bool
    ) -> Filling | None:
        """Return the extreme values of a metric: those of its range, or those that other trials measured."""
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
        wanted = [(head, metric) for head in self._plan.heads for metric in self._plan.metrics]
        found = [self._effect(metric, head, among, is_rising) for head, metric in wanted]
        claimed = iter(
            claims([each for each in found if each is not None], self._plan.document.alpha)
        )
        return {
            key: next(claimed) if each is not None else None
            for key, each in zip(wanted, found, strict=True)
        }

    def _described(self, claimed: _Claims) -> list[MetricEffect]:
        return [
            _described(self._plan, metric, head, claim) for (head, metric), claim in claimed.items()
        ]

    def _with_figures(self, effect: MetricEffect, among: Counted) -> MetricEffect:
        """Return an effect with the means that it is the change of, and with what a judge prefers."""
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
        filling = (
            self._filling(metric, head, among, is_rising=is_rising)
            if is_rising is not None
            else None
        )
        pairs = self._trials.pairs(metric.name, document.base_name, head, among, filling)
        smallest = (
            (document.detect or {}).get(metric.name, DETECT) if document.stop is not None else None
        )
        return effect(metric, pairs, seed=document.seed, smallest=smallest)


def _described(
    plan: ExperimentPlan, metric: Metric, head: str, claim: Claim | None
) -> MetricEffect:
    of = claim.effect if claim is not None else None
    return MetricEffect(
        arm=head,
        metric=metric.name,
        primary=metric.name == plan.document.primary_metric,
        scale=metric.scale,
        higher_is_better=metric.higher_is_better,
        margin=metric.margin,
        verdict=claim.verdict if claim is not None else "undecided",
        estimate=_rounded(of.natural(of.estimate)) if of is not None else None,
        low=_rounded(of.natural(claim.low)) if of is not None and claim is not None else None,
        high=_rounded(of.natural(claim.high)) if of is not None and claim is not None else None,
        confidence=claim.confidence if claim is not None else None,
        p_value=_rounded(of.p_value) if of is not None else None,
        clusters=of.clusters if of is not None else 0,
        pairs=of.pairs if of is not None else 0,
        method=of.method if of is not None else "measured in both arms in fewer than two clusters",
    )


def _rounded(value: float) -> float | None:
    return round(value, PRECISION) if math.isfinite(value) else None


def _verdict(effects: Sequence[MetricEffect]) -> tuple[ExperimentVerdict, list[str]]:
    """Return the verdict of all effects, and the sentences that it follows from.

    One metric of one arm that is worse decides. Otherwise the primary metric of every arm must be
    decided, and every other metric with a margin must not be worse by it.
    """
    worse = [each for each in effects if each.verdict == "worse"]
    if worse:
        return "worse", [f"{each.metric} of '{each.arm}' is worse" for each in worse]
    undecided = [
        each
        for each in effects
        if each.verdict == "undecided" and (each.primary or each.margin is not None)
    ]
    if undecided:
        return "undecided", [f"{each.metric} of '{each.arm}' is undecided" for each in undecided]
    primary = [each for each in effects if each.primary]
    verdicts = {each.verdict for each in primary}
    # Several arms: what holds of each of them.
    verdict = next(each for each in ("not worse", "equivalent", "better") if each in verdicts)
    return verdict, [f"{each.metric} of '{each.arm}' is {each.verdict}" for each in primary]


def _foreign(others: int) -> Iterator[str]:
    if others:
        yield (
            f"{counted(others, 'row')} of other cases than the experiment has now: "
            "its arms, eval files or targets changed after they ran"
        )


def _warnings(plan: ExperimentPlan, trials: ExperimentTrials, among: Counted) -> Iterator[str]:
    for arm in plan.document.arms:
        ran = trials.among(arm.name, among)
        if crashed := [each for each in ran if each.is_crash]:
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
    for each in effects:
        if each.preferences is not None and each.preferences.unjudged:
            pairs = counted(each.preferences.unjudged, "pair")
            yield f"{pairs} of '{each.arm}' not judged by '{each.metric}', and not compared"


def _arm(
    name: str, metrics: Sequence[Metric], trials: ExperimentTrials, among: Counted
) -> ArmFigures:
    ran = trials.among(name, among)
    graded = sum(each.is_graded for each in ran)
    values = {
        each.name: [trial.values[each.name] for trial in ran if each.name in trial.values]
        for each in metrics
    }
    return ArmFigures(
        name=name,
        targets=tuple(sorted({each.target for each in ran})),
        models=tuple(sorted({each.model for each in ran if each.model is not None})),
        trials=graded,
        errors=len(ran) - graded,
        crashed=sum(each.is_crash for each in ran),
        means={metric: _mean(found) for metric, found in values.items() if found},
    )


def _changed_cases(
    plan: ExperimentPlan, trials: ExperimentTrials, among: Counted
) -> Iterator[CaseEffect]:
    """Yield the cases whose primary metric changed, those that are called changes first."""
    found = [
        each
        for head in plan.heads
        for case, most in among.items()
        if (each := _changed_case(plan, trials, {case: most}, head)) is not None
    ]
    tested = [each.p_value for each in found if each.p_value is not None]
    called = iter(discoveries(tested, plan.document.alpha))
    rows = [
        each.model_copy(update={"called": each.p_value is not None and next(called)})
        for each in found
    ]
    yield from sorted(rows, key=lambda each: (not each.called, -abs(each.head - each.base)))[
        :MAX_CASES
    ]


def _changed_case(
    plan: ExperimentPlan, trials: ExperimentTrials, case: Counted, head: str
) -> CaseEffect | None:
    metric, *_ = plan.metrics
    pairs = [*trials.pairs(metric.name, plan.document.base_name, head, case)]
    base, now = (_mean(getattr(each, side) for each in pairs) for side in ("base", "head"))
    if base == now:
        return None
    # Within a case, its trials are what chance draws.
    alone = effect(metric, [replace(each, cluster=str(each.trial)) for each in pairs])
    p_value = alone.p_value if alone is not None else None
    ((suite, name),) = case
    return CaseEffect(
        suite=suite, id=name, arm=head, base=base, head=now, p_value=p_value, called=False
    )


def _mean_of_cases(pairs: Iterable[Pair], side: Literal["base", "head"]) -> float:
    """Return the mean over cases of one side, each of which weighs the same."""
    by_case: dict[str, list[float]] = {}
    for each in pairs:
        by_case.setdefault(each.case, []).append(getattr(each, side))
    return round(_mean(map(_mean, by_case.values())), PRECISION)


def _mean(values: Iterable[float]) -> float:
    found = [*values]
    return math.fsum(found) / len(found) if found else 0.0
