"""The trials of an experiment: what each measured.

Pairs are the same case and trial in two arms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain
from typing import NamedTuple

from msgspec import Struct

from agentv_ci.analysis.experiment.preferences import CHOSEN, MIRRORED
from agentv_ci.analysis.statistics.effects import Metric, Pair
from agentv_ci.base.canonical import digest_of
from agentv_ci.base.json_access import found_at
from agentv_ci.contracts.base import UNGRADED, JsonObject
from agentv_ci.contracts.experiment import ExperimentDocument
from agentv_ci.contracts.results import EvaluatorResult, Outcome, Preference, ResultRow

CaseName = tuple[str, str]
"""Suite and id."""

MORE_IS_WORSE = ("cost", "tokens", "duration")
OF_EVERY_TRIAL = ("score", "pass")
"""Metrics that every trial with a verdict has."""


def metrics_of(document: ExperimentDocument) -> tuple[Metric, ...]:
    """Return the metrics of an experiment, the primary one first.

    Of the others, a margin only asks whether they are not worse by more.
    """
    return tuple(map(partial(_metric, document), document.all_metrics))


def _metric(document: ExperimentDocument, name: str) -> Metric:
    return Metric(
        name,
        scale="ratio" if name in MORE_IS_WORSE else "difference",
        higher_is_better=name not in MORE_IS_WORSE,
        margin=(document.margin or {}).get(name),
        non_inferiority=name != document.primary_metric,
    )


def cluster_of(by: str, case: CaseName, tags: Iterable[str], metadata: JsonObject) -> str:
    """Return what a case belongs to: by default it is on its own."""
    kind, _, pattern = by.partition(":" if by.startswith("tag:") else ".")
    named: list[str] = []
    match kind:
        case "suite":
            return case[0]
        case "tag":
            named = sorted(tag for tag in tags if fnmatchcase(tag, pattern))
        case "meta":
            named = list(map(str, found_at(metadata, *pattern.split("."))))
        case _:
            pass
    if not named:
        return "/".join(case)
    return f"{by}={named[0]}"


class Filling(NamedTuple):
    """The values of the base and of the head where errors left none."""

    base: float
    head: float


class _Both(NamedTuple):
    """The same trial in two arms."""

    number: int
    base: MeasuredTrial
    head: MeasuredTrial


class MeasuredTrial(Struct, frozen=True):
    """One trial of one arm; what it did not measure is absent."""

    cluster: str
    digest: str
    target: str
    model: str | None
    has_verdict: bool
    is_crash: bool
    """Whether it has an error of the agent: it failed, with score 0."""
    error: str
    """Why it has no verdict."""
    values: Mapping[str, float]
    answer: str
    """Its SHA-256; empty where no answers are compared."""
    preferences: Sequence[tuple[str, Preference]] = ()
    """Evaluator and what it prefers."""

    @property
    def is_graded(self) -> bool:
        """Whether it counts."""
        return self.has_verdict or self.is_crash


class ExperimentTrials:
    """The trials of an experiment so far, in any order."""

    def __init__(
        self, cluster_by: str, metrics: Sequence[Metric], preferences: Collection[str] = ()
    ) -> None:
        """`preferences` are the metrics for which a judge compares two arms."""
        self._cluster_by = cluster_by
        self._names = [metric.name for metric in metrics]
        self._preferences = preferences
        self.by_arm: dict[str, dict[CaseName, dict[int, MeasuredTrial]]] = {}
        """Arm → case → number of the trial → trial."""
        self.doubled = 0
        """Rows of trials that already have a verdict."""

    def add(self, row: ResultRow) -> None:
        """Add a row; one of a case that is skipped does not count.

        Without an experiment, a target is an arm.

        A row without a verdict gives way to another one of the same trial.
        """
        if row.verdict == "skipped":
            return
        of_arm = self.by_arm.setdefault(row.arm or row.target, {})
        known = of_arm.setdefault((row.suite, row.eval_id), {})
        if row.trial in known and known[row.trial].has_verdict:
            self.doubled += row.verdict not in UNGRADED
            return
        known[row.trial] = self._trial(row)

    def _trial(self, row: ResultRow) -> MeasuredTrial:
        compared = any(result.compares_arms for result in row.evaluator_results)
        answer = digest_of(row.candidate_answer) if compared else ""
        case = row.suite, row.eval_id
        return MeasuredTrial(
            cluster=cluster_of(self._cluster_by, case, row.tags, row.metadata),
            digest=row.digest,
            target=row.target,
            model=row.model,
            has_verdict=row.verdict not in UNGRADED,
            is_crash=row.is_crash,
            error=f"{row.error_kind or 'error'}: {row.error}",
            values=dict(_measured(row, self._names)),
            answer=answer,
            preferences=tuple(_preferences(row, answer)),
        )

    def has(self, case: CaseName, number: int, arms: Iterable[str]) -> bool:
        """Whether a trial of a case has run in all of these arms."""
        return all(number in self.by_arm.get(arm, {}).get(case, ()) for arm in arms)

    def of_arm(self, arm: str) -> Sequence[MeasuredTrial]:
        """Return the trials of an arm."""
        cases = self.by_arm.get(arm, {}).values()
        return list(chain.from_iterable(of_case.values() for of_case in cases))

    def pairs(
        self,
        metric: str,
        base: str,
        head: str,
        among: Mapping[CaseName, int],
        filling: Filling | None = None,
    ) -> Iterator[Pair]:
        """Yield the pairs of trials that measured a metric in both arms.

        Of each case (`among`), the first so many.

        Of preferences, the values are whether the answer of the base and that of the head is
        preferred. With `filling`, also the pairs in which an error left no value, and what stands
        for it.
        """
        for case, most in among.items():
            pairs = self._both(case, most, base, head)
            is_scored = metric in OF_EVERY_TRIAL or any(metric in _known(pair) for pair in pairs)
            for pair in pairs:
                values: tuple[float, float] | None = filling
                if metric not in self._preferences:
                    values = _measured_by_both(metric, pair, filling, is_scored=is_scored)
                elif judged := _preference(metric, (base, pair.base), (head, pair.head)):
                    values = CHOSEN[judged[0]]
                if values is not None:
                    yield Pair(pair.base.cluster, "/".join(case), pair.number, *values)

    def bounds(
        self, metric: str, base: str, head: str, among: Mapping[CaseName, int]
    ) -> tuple[float, float] | None:
        """Return the lowest and the highest value that a metric has in these pairs.

        None without any above 0.
        """
        trials = (*self.among(base, among), *self.among(head, among))
        above = [value for trial in trials if (value := trial.values.get(metric, 0.0)) > 0]
        if not above:
            return None
        return min(above), max(above)

    def missing(self, arm: str, among: Mapping[CaseName, int]) -> Sequence[MeasuredTrial]:
        """Return the trials of an arm with an error of the infrastructure."""
        return [trial for trial in self.among(arm, among) if not trial.is_graded]

    def among(self, arm: str, among: Mapping[CaseName, int]) -> Sequence[MeasuredTrial]:
        """Return the trials of an arm; of each case, the first so many."""
        of_arm = self.by_arm.get(arm, {})
        first: list[MeasuredTrial] = []
        for case, most in among.items():
            of_case = of_arm.get(case, {})
            first += (of_case[number] for number in sorted(of_case) if number <= most)
        return first

    def preferences(
        self, metric: str, base: str, head: str, among: Mapping[CaseName, int]
    ) -> Iterator[tuple[Outcome, Preference | None] | None]:
        """Yield what an evaluator prefers in the same pairs.

        That is the outcome for the head, and the preference. There is no preference where an arm
        crashed, and None stands for a pair that is not judged.
        """
        for case, most in among.items():
            for pair in self._both(case, most, base, head):
                if pair.base.is_graded and pair.head.is_graded:
                    yield _preference(metric, (base, pair.base), (head, pair.head))

    def _both(self, case: CaseName, most: int, base: str, head: str) -> Sequence[_Both]:
        before = self.by_arm.get(base, {}).get(case, {})
        now = self.by_arm.get(head, {}).get(case, {})
        return [
            _Both(number, trial, now[number])
            for number, trial in before.items()
            if number <= most and number in now
        ]


def _known(both: _Both) -> set[str]:
    return {*both.base.values, *both.head.values}


def _measured_by_both(
    metric: str, both: _Both, filling: Filling | None, *, is_scored: bool
) -> tuple[float, float] | None:
    before = now = None
    if filling is not None and is_scored:
        before, now = filling
    base = _value_of(both.base, metric, before, is_scored=is_scored)
    head = _value_of(both.head, metric, now, is_scored=is_scored)
    if base is None or head is None:
        return None
    return base, head


def _value_of(
    trial: MeasuredTrial, metric: str, filling: float | None, *, is_scored: bool
) -> float | None:
    """Return what a trial measured.

    `is_scored`: whether the metric is known of any trial of the case.
    """
    if metric in trial.values:
        return trial.values[metric]
    if trial.is_crash and is_scored and metric not in MORE_IS_WORSE:
        return 0.0
    return None if trial.has_verdict else filling


def _preference(
    metric: str, base: tuple[str, MeasuredTrial], head: tuple[str, MeasuredTrial]
) -> tuple[Outcome, Preference | None] | None:
    """Return the outcome for the head of a comparison, and the comparison.

    An answer is better than a crash.

    Either row may have it. In both rows, or of an earlier answer, it is from a run that was
    resumed.
    """
    if not (base[1].is_graded and head[1].is_graded):
        return None
    if base[1].is_crash or head[1].is_crash:
        return OF_CRASHES[base[1].is_crash, head[1].is_crash], None
    if (of_head := _preferred(metric, head[1], base)) is not None:
        return of_head.outcome, of_head
    if (of_base := _preferred(metric, base[1], head)) is not None:
        return MIRRORED[of_base.outcome], of_base
    return None


def _preferred(
    metric: str, own: MeasuredTrial, other: tuple[str, MeasuredTrial]
) -> Preference | None:
    """Return what a judge prefers of an answer and that of the other arm, if the row says so."""
    arm, trial = other
    for name, preference in own.preferences:
        if (name, preference.arm, preference.answer) == (metric, arm, trial.answer):
            return preference
    return None


OF_CRASHES: Mapping[tuple[bool, bool], Outcome] = {
    (True, True): "tie",
    (True, False): "win",
    (False, True): "loss",
}
"""Whether the base and the head crashed → the outcome for the head."""


def _preferences(row: ResultRow, answer: str) -> Iterator[tuple[str, Preference]]:
    """Yield the comparisons of a row's answer, without those that contradict each other."""
    for result in row.evaluator_results:
        if not result.compares_arms:
            continue
        given = result.preferences or ()
        arms = Counter(preference.arm for preference in given)
        for preference in given:
            if preference.own_answer == answer and arms[preference.arm] == 1:
                yield result.name, preference


def _measured(row: ResultRow, names: Iterable[str]) -> Iterator[tuple[str, float]]:
    for name in names:
        if (value := _value(row, name)) is not None:
            yield name, value


def _value(row: ResultRow, metric: str) -> float | None:
    """Return what a row measured; None: nothing, as of a cached answer its cost and its time."""
    if row.verdict in UNGRADED and not row.is_crash:
        return None
    if row.cached and metric in ("cost", "duration"):
        return None
    match metric:
        case "score":
            return row.score
        case "pass":
            return float(row.verdict == "pass")
        case "cost":
            return row.cost_usd
        case "duration":
            return float(row.duration_ms)
        case "tokens":
            return _tokens(row)
        case _:
            return _score(row.evaluator_results, metric)


def _tokens(row: ResultRow) -> float | None:
    usage = row.usage
    if usage.total_tokens is not None:
        return float(usage.total_tokens)
    if usage.input_tokens is None and usage.output_tokens is None:
        return None
    return float((usage.input_tokens or 0) + (usage.output_tokens or 0))


def _score(results: Iterable[EvaluatorResult], name: str) -> float | None:
    """Return the score of an evaluator, or of a member of one."""
    for result in results:
        if result.name == name and result.status == "ok" and not result.compares_arms:
            return result.score
        if (score := _score(result.evaluator_results or (), name)) is not None:
            return score
    return None
