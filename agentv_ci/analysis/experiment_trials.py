"""The trials of an experiment: what each measured, and the pairs of the same case and trial in two arms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from agentv_ci.analysis.effects import Metric, Pair
from agentv_ci.analysis.preferences import CHOSEN, MIRRORED
from agentv_ci.canonical import digest_of
from agentv_ci.contracts.base import UNGRADED, JsonObject
from agentv_ci.contracts.experiment import ExperimentDocument
from agentv_ci.contracts.results import EvaluatorResult, Outcome, Preference, ResultRow
from agentv_ci.json_access import found_at

CaseName = tuple[str, str]
"""Suite and id."""

MORE_IS_WORSE = ("cost", "tokens", "duration")


def metrics_of(document: ExperimentDocument) -> tuple[Metric, ...]:
    """Return the metrics of an experiment, the primary one first.

    Of the others, a margin only asks whether they are not worse by more.
    """
    primary, margins = document.primary_metric, document.margin or {}
    return tuple(
        Metric(
            name,
            scale="ratio" if name in MORE_IS_WORSE else "difference",
            higher_is_better=name not in MORE_IS_WORSE,
            margin=margins.get(name),
            non_inferiority=name != primary,
        )
        for name in document.all_metrics
    )


def cluster_of(by: str, case: CaseName, tags: Iterable[str], metadata: JsonObject) -> str:
    """Return what a case belongs to: by default it is on its own."""
    kind, _, pattern = by.partition(":" if by.startswith("tag:") else ".")
    match kind:
        case "suite":
            return case[0]
        case "tag":
            named = sorted(each for each in tags if fnmatchcase(each, pattern))
        case "meta":
            named = [str(each) for each in found_at(metadata, *pattern.split("."))]
        case _:
            named = []
    return f"{by}={named[0]}" if named else "/".join(case)


class MeasuredTrial(Struct, frozen=True):
    """One trial of one arm; what it did not measure is absent."""

    cluster: str
    digest: str
    target: str
    model: str | None
    is_graded: bool
    values: Mapping[str, float]
    answer: str
    """Its SHA-256; empty where no answers are compared."""
    preferences: Sequence[tuple[str, Preference]] = ()
    """Evaluator and what it prefers."""


class ExperimentTrials:
    """The trials of an experiment so far, in any order."""

    def __init__(self, cluster_by: str, metrics: Sequence[Metric]) -> None:
        self._cluster_by = cluster_by
        self._names = [each.name for each in metrics]
        self.by_arm: dict[str, dict[CaseName, dict[int, MeasuredTrial]]] = {}
        """Arm → case → number of the trial → trial."""
        self.doubled = 0
        """Rows of trials that already have a verdict."""

    def add(self, row: ResultRow) -> None:
        """Add a row; one of a case that is skipped does not count. Without an experiment, a target is an arm.

        A row without a verdict gives way to another one of the same trial.
        """
        if row.verdict == "skipped":
            return
        case, is_graded = (row.suite, row.eval_id), row.verdict not in UNGRADED
        known = self.by_arm.setdefault(row.arm or row.target, {}).setdefault(case, {})
        if row.trial in known and known[row.trial].is_graded:
            self.doubled += is_graded
            return
        compared = any(each.compares_arms for each in row.evaluator_results)
        answer = digest_of(row.candidate_answer) if compared else ""
        known[row.trial] = MeasuredTrial(
            cluster=cluster_of(self._cluster_by, case, row.tags, row.metadata),
            digest=row.digest,
            target=row.target,
            model=row.model,
            is_graded=is_graded,
            values=dict(_measured(row, self._names)),
            answer=answer,
            preferences=tuple(_preferences(row, answer)),
        )

    def has(self, case: CaseName, number: int, arms: Iterable[str]) -> bool:
        """Whether a trial of a case has run in all of these arms."""
        return all(number in self.by_arm.get(arm, {}).get(case, ()) for arm in arms)

    def of_arm(self, arm: str) -> Sequence[MeasuredTrial]:
        """Return the trials of an arm."""
        return [each for of_case in self.by_arm.get(arm, {}).values() for each in of_case.values()]

    def pairs(self, metric: str, base: str, head: str, among: Mapping[CaseName, int]) -> Iterator[Pair]:
        """Yield the pairs of trials that measured a metric in both arms; of each case (`among`), the first so many.

        Of preferences, the values are whether the answer of the base and that of the head is preferred.
        """
        for case, number, one, other in self._both(base, head, among):
            name = "/".join(case)
            if metric in one.values and metric in other.values:
                yield Pair(one.cluster, name, number, one.values[metric], other.values[metric])
            elif (found := _preference(metric, (base, one), (head, other))) is not None:
                yield Pair(one.cluster, name, number, *CHOSEN[found[0]])

    def preferences(
        self, metric: str, base: str, head: str, among: Mapping[CaseName, int]
    ) -> Iterator[tuple[Outcome, Preference] | None]:
        """Yield what an evaluator prefers in the same pairs: the outcome for the head, and the preference.

        None stands for a pair that it has not judged.
        """
        for _, _, one, other in self._both(base, head, among):
            if one.is_graded and other.is_graded:
                yield _preference(metric, (base, one), (head, other))

    def _both(
        self, base: str, head: str, among: Mapping[CaseName, int]
    ) -> Iterator[tuple[CaseName, int, MeasuredTrial, MeasuredTrial]]:
        before, now = self.by_arm.get(base, {}), self.by_arm.get(head, {})
        for case, most in among.items():
            others = now.get(case, {})
            for number, one in before.get(case, {}).items():
                if number <= most and (other := others.get(number)) is not None:
                    yield case, number, one, other


def _preference(
    metric: str, base: tuple[str, MeasuredTrial], head: tuple[str, MeasuredTrial]
) -> tuple[Outcome, Preference] | None:
    """Return the outcome for the head of a comparison, and the comparison.

    Either row may have it. In both rows, or of an earlier answer, it is from a run that was resumed.
    """
    if not (base[1].is_graded and head[1].is_graded):
        return None
    for is_head, own, other in ((True, head, base), (False, base, head)):
        for name, each in own[1].preferences:
            if (name, each.arm, each.answer) == (metric, other[0], other[1].answer):
                return each.outcome if is_head else MIRRORED[each.outcome], each
    return None


def _preferences(row: ResultRow, answer: str) -> Iterator[tuple[str, Preference]]:
    """Yield the comparisons of a row's answer, without those that contradict each other."""
    for result in row.evaluator_results:
        given = (result.preferences or ()) if result.compares_arms else ()
        arms = Counter(each.arm for each in given)
        yield from ((result.name, each) for each in given if each.own_answer == answer and arms[each.arm] == 1)


def _measured(row: ResultRow, names: Iterable[str]) -> Iterator[tuple[str, float]]:
    for name in names:
        if (value := _value(row, name)) is not None:
            yield name, value


def _value(row: ResultRow, metric: str) -> float | None:
    """Return what a row measured; None: nothing, as of an answer from a cache its cost and its time."""
    if row.verdict in UNGRADED:
        return None
    match metric:
        case "score":
            return row.score
        case "pass":
            return float(row.verdict == "pass")
        case "cost":
            return None if row.cached else row.cost_usd
        case "duration":
            return None if row.cached else float(row.duration_ms)
        case "tokens":
            return _tokens(row)
        case _:
            return _score(row.evaluator_results, metric)


def _tokens(row: ResultRow) -> float | None:
    parts = [each for each in (row.usage.input_tokens, row.usage.output_tokens) if each is not None]
    total = row.usage.total_tokens
    return float(total) if total is not None else float(sum(parts)) if parts else None


def _score(results: Iterable[EvaluatorResult], name: str) -> float | None:
    """Return the score of an evaluator, or of a member of one."""
    for each in results:
        if each.name == name and each.status == "ok" and not each.compares_arms:
            return each.score
        if (found := _score(each.evaluator_results or (), name)) is not None:
            return found
    return None
