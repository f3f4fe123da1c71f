"""What shows only across the cases of a target.

These are redundant, slow and expensive cases, and another model.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise

from msgspec import Struct

from agentv_ci.analysis.health.histories import MIN_RUNS, CaseHistory, CaseRun
from agentv_ci.analysis.health.verdicts import begin_of, finding
from agentv_ci.base.mappings import grouped
from agentv_ci.base.text import counted, quoted
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.command_output import HealthFinding
from agentv_ci.contracts.ledger import CaseLine

MIN_CHANGES = 3
"""Times that redundant cases must begin to pass together, and times that they must stop."""
MIN_CASES = 10
"""Cases of a target that outliers are among."""
DEVIATIONS = 5.0
"""Scaled median absolute deviations of the logarithms that make an outlier."""
SCALE = 1.4826
"""The median absolute deviation of a normal distribution times this is its standard deviation."""
TIMES = 3.0
"""How often an outlier exceeds the median at least."""


def by_target(histories: Sequence[CaseHistory]) -> dict[str, list[CaseHistory]]:
    """Return the histories of each target."""
    return grouped(histories, lambda history: history.key[2])


def redundant(histories: Sequence[CaseHistory]) -> Iterator[HealthFinding]:
    """Yield the cases of one target whose verdicts change together, each with the others."""
    verdicts = {history.key: _verdicts(history) for history in histories}
    changing = [history for history in histories if verdicts[history.key].changes_often]
    same: defaultdict[CaseKey, list[str]] = defaultdict(list)
    for one, other in combinations(changing, 2):
        if verdicts[one.key].agrees(verdicts[other.key]):
            same[one.key].append(other.key[1])
            same[other.key].append(one.key[1])
    for history in changing:
        if history.key not in same:
            continue
        ids = same[history.key]
        named = quoted(ids[:3])
        begins, stops = verdicts[history.key].changes
        times = f"begins to pass {counted(begins, 'time')} and stops {counted(stops, 'time')}"
        message = f"has the verdicts of {named} in every run; each {times}"
        action = "drop all but one of them, or see that they do not ask for the same"
        yield finding(history, "redundant", message, action, same_as=tuple(ids))


class _Verdicts(Struct, frozen=True):
    passed: Mapping[str, bool]
    """Run → whether the case passed, the oldest first."""
    changes: tuple[int, int]
    """How often it begins to pass, and how often it stops."""

    @property
    def changes_often(self) -> bool:
        return min(self.changes) >= MIN_CHANGES

    def agrees(self, other: _Verdicts) -> bool:
        """Whether both change together, in enough runs that have both."""
        shared: list[bool] = []
        for run, passed in self.passed.items():
            if run not in other.passed:
                continue
            if other.passed[run] != passed:
                return False
            shared.append(passed)
        return len(shared) >= MIN_RUNS and min(_changes(shared)) >= MIN_CHANGES


def _verdicts(history: CaseHistory) -> _Verdicts:
    passed = {run.run.run: run.case.verdict == "pass" for run in history.graded}
    return _Verdicts(passed, _changes([*passed.values()]))


def _changes(passed: Sequence[bool]) -> tuple[int, int]:
    pairs = list(pairwise(passed))
    return pairs.count((False, True)), pairs.count((True, False))


def outliers(histories: Sequence[CaseHistory]) -> Iterator[HealthFinding]:
    """Yield the cases of one target that take or cost far more than the others."""
    hint = "see in the report what its answers take; shorten it, or run it less often"
    for case, value, median in _far(histories, lambda line: line.duration_ms):
        message = f"takes {value / 1000:.1f} s, {value / median:.0f} times the median of its target"
        yield finding(case, "slow", message, hint)
    for case, value, median in _far(histories, lambda line: line.cost_usd):
        message = f"costs ${value:.3g}, {value / median:.0f} times the median of its target"
        yield finding(case, "expensive", message, hint)


def _far(
    histories: Sequence[CaseHistory], measure: Callable[[CaseLine], float | None]
) -> Iterator[tuple[CaseHistory, float, float]]:
    """Yield cases whose usual value is an outlier above.

    With each, yield that value and the median of all cases.
    """
    usual = list(_usual(histories, measure))
    if len(usual) < MIN_CASES:
        return
    # Durations and costs differ by factors.
    logs = [math.log(value) for _, value in usual]
    middle = statistics.median(logs)
    spread = SCALE * statistics.median(abs(log - middle) for log in logs)
    limit = math.exp(middle + max(DEVIATIONS * spread, math.log(TIMES)))
    for history, value in usual:
        if value > limit:
            yield history, value, math.exp(middle)


def _usual(
    histories: Iterable[CaseHistory], measure: Callable[[CaseLine], float | None]
) -> Iterator[tuple[CaseHistory, float]]:
    """Yield the median of each case with enough values."""
    for history in histories:
        values = [value for run in history.runs if (value := measure(run.case))]
        if len(values) >= MIN_RUNS:
            yield history, statistics.median(values)


def other_model(histories: Sequence[CaseHistory]) -> HealthFinding | None:
    """Return that the provider of a target reports another model than before.

    It does so for the same cases.
    """
    changes: defaultdict[tuple[str, str], list[tuple[CaseRun, CaseHistory]]] = defaultdict(list)
    for history in histories:
        if (change := _other_model(history)) is not None:
            before, run = change
            changes[before, run.case.model or ""].append((run, history))
    if not changes:
        return None
    (before, after), cases = max(changes.items(), key=lambda change: max(map(_time, change[1])))
    first, history = min(cases, key=_time)
    message = f"the provider reports '{after}' since {first.run.time[:10]}, and '{before}' before"
    action = "name the version of the model in the target, if results are to be compared"
    models = {"model_before": before, "model_after": after}
    changed = finding(history, "model-changed", message, action, **begin_of(first), **models)
    return changed.model_copy(update={"suite": None, "id": None})


def _time(change: tuple[CaseRun, CaseHistory]) -> str:
    run, _ = change
    return run.run.time


def _other_model(history: CaseHistory) -> tuple[str, CaseRun] | None:
    """Return the model before, and the run with which it changed last.

    None if the first model is back.
    """
    named = [run for run in history.graded if run.case.model is not None]
    if not named or named[0].case.model == named[-1].case.model:
        return None
    latest = named[-1].case.model
    for before, after in zip(reversed(named[:-1]), reversed(named), strict=False):
        if before.case.model is not None and before.case.model != latest:
            return before.case.model, after
    return None
