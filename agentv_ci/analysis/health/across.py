"""What shows only across the cases of a target: redundant, slow and expensive ones, and another model."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise

from msgspec import Struct

from agentv_ci.analysis.health.histories import MIN_RUNS, CaseHistory, CaseRun
from agentv_ci.analysis.health.verdicts import begin_of, finding
from agentv_ci.base.text import counted, listed
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
    grouped: defaultdict[str, list[CaseHistory]] = defaultdict(list)
    for each in histories:
        grouped[each.key[2]].append(each)
    return grouped


def redundant(histories: Sequence[CaseHistory]) -> Iterator[HealthFinding]:
    """Yield the cases of one target whose verdicts change together, each with the others."""
    verdicts = {each.key: _verdicts(each) for each in histories}
    changing = [each for each in histories if verdicts[each.key].changes_often]
    same: defaultdict[CaseKey, list[CaseKey]] = defaultdict(list)
    for one, other in combinations(changing, 2):
        if verdicts[one.key].agrees(verdicts[other.key]):
            same[one.key].append(other.key)
            same[other.key].append(one.key)
    for each in (case for case in changing if case.key in same):
        ids = [case_id for _, case_id, _ in same[each.key]]
        named = listed(f"'{name}'" for name in ids[:3])
        begins, stops = verdicts[each.key].changes
        times = f"begins to pass {counted(begins, 'time')} and stops {counted(stops, 'time')}"
        message = f"has the verdicts of {named} in every run; each {times}"
        action = "drop all but one of them, or see that they do not ask for the same"
        yield finding(each, "redundant", message, action, same_as=tuple(ids))


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
        theirs = other.passed
        if any(theirs.get(run, passed) != passed for run, passed in self.passed.items()):
            return False
        shared = [passed for run, passed in self.passed.items() if run in theirs]
        return len(shared) >= MIN_RUNS and min(_changes(shared)) >= MIN_CHANGES


def _verdicts(history: CaseHistory) -> _Verdicts:
    passed = {each.run.run: each.case.verdict == "pass" for each in history.graded}
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
    """Yield cases whose usual value is an outlier above, with that value and the median of all cases."""
    usual: list[tuple[CaseHistory, float]] = []
    for each in histories:
        values = [value for run in each.runs if (value := measure(run.case))]
        if len(values) >= MIN_RUNS:
            usual.append((each, statistics.median(values)))
    if len(usual) < MIN_CASES:
        return
    # Durations and costs differ by factors.
    logs = [math.log(value) for _, value in usual]
    middle = statistics.median(logs)
    spread = SCALE * statistics.median([abs(each - middle) for each in logs])
    limit = math.exp(middle + max(DEVIATIONS * spread, math.log(TIMES)))
    yield from ((each, value, math.exp(middle)) for each, value in usual if value > limit)


def other_model(histories: Sequence[CaseHistory]) -> HealthFinding | None:
    """Return that the provider of a target reports another model than before, for the same cases."""
    changes: defaultdict[tuple[str, str], list[tuple[CaseRun, CaseHistory]]] = defaultdict(list)
    for each in histories:
        if (change := _other_model(each)) is not None:
            before, run = change
            changes[before, run.case.model or ""].append((run, each))
    if not changes:
        return None
    (before, after), cases = max(
        changes.items(), key=lambda change: max(run.run.time for run, _ in change[1])
    )
    first, history = min(cases, key=lambda each: each[0].run.time)
    message = f"the provider reports '{after}' since {first.run.time[:10]}, and '{before}' before"
    action = "name the version of the model in the target, if results are to be compared"
    models = {"model_before": before, "model_after": after}
    found = finding(history, "model-changed", message, action, **begin_of(first), **models)
    return found.model_copy(update={"suite": None, "id": None})


def _other_model(history: CaseHistory) -> tuple[str, CaseRun] | None:
    """Return the model before and the run with which it changed last, unless the first model is back."""
    named = [each for each in history.graded if each.case.model is not None]
    latest = named[-1].case.model if named else None
    if not named or named[0].case.model == latest:
        return None
    for before, after in zip(reversed(named[:-1]), reversed(named), strict=False):
        if before.case.model is not None and before.case.model != latest:
            return before.case.model, after
    return None
