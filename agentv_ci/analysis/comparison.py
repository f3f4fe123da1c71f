"""Two runs, case by case and as a whole: what has become worse, better, or cannot be told.

A case with one trial a side is taken at its word: a worse verdict is a regression, and perhaps noise. With several the
interval of the change of its pass rate decides: a regression is where all of it lies below 0. As a whole two paired
tests over the cases that both sides have graded look for what no case shows alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import get_args

from agentv_ci.analysis.inference import change_interval, detectable_mean_drop, mcnemar, smallest_loss, wilcoxon
from agentv_ci.analysis.outcomes import CaseOutcome
from agentv_ci.analysis.sides import Side, SideCase, paired
from agentv_ci.analysis.statistics import apart, p_text
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.compared import Change, ComparedCase, Comparison, Figure
from agentv_ci.contracts.results import PRECISION
from agentv_ci.text import counted, shortened

CONFIDENCE = 0.99
"""Of the interval of a case: docs/verdicts.md shows what others would give."""
ALPHA = 0.05
"""Of the tests over all cases, two-sided."""
POWER = 0.8
"""Of the smallest drop of the mean that is named."""
STALE_AFTER_DAYS = 30
MAX_NAMED = 5
MAX_NAME = 80

WORST_FIRST: tuple[Change, ...] = get_args(Change)
RANKS: Mapping[Verdict, int] = {"fail": 0, "borderline": 1, "pass": 2}


@dataclass(frozen=True, slots=True)
class Yardstick:
    """What a run is compared with."""

    base: Side
    head: str
    """What the run is called."""
    now: datetime
    confidence: float = CONFIDENCE
    is_part: bool = False
    """Whether the run has only some of its documents' cases: of the others, nothing is said."""


def compare(yardstick: Yardstick, outcomes: Iterable[CaseOutcome]) -> Comparison:
    """Compare a run's cases with the older ones."""
    head = Side.of_outcomes(yardstick.head, outcomes)
    base = yardstick.base
    if yardstick.is_part:
        there = {(each.suite, each.id) for each in head.cases}
        base = replace(base, cases=tuple(each for each in base.cases if (each.suite, each.id) in there))
    return compare_sides(base, head, yardstick)


def compare_sides(base: Side, head: Side, yardstick: Yardstick) -> Comparison:
    """Compare two runs."""
    pairs = paired(base, head)
    cases = [_compared(one, other, yardstick.confidence) for one, other in pairs]
    graded = [
        (one, other) for one, other in pairs if one is not None and other is not None and one.trials and other.trials
    ]
    pass_rate, mean_score = _pass_rate(graded), _mean_score(graded)
    counted = Counter(each.change for each in cases)
    return Comparison(
        base=base.name,
        head=head.name,
        confidence=yardstick.confidence,
        is_part=yardstick.is_part,
        compared=len(graded),
        lost=sum(bool(one and one.trials and other and not other.trials) for one, other in pairs),
        counts={change: counted[change] for change in WORST_FIRST},
        pass_rate=pass_rate,
        mean_score=mean_score,
        warnings=tuple(_warnings(base, cases, yardstick)),
        reasons=tuple(_reasons(cases, pass_rate, mean_score)),
        cases=tuple(sorted((each for each in cases if each.change != "unchanged"), key=_severity)),
    )


def _compared(base: SideCase | None, head: SideCase | None, confidence: float) -> ComparedCase:
    known = head if head is not None else base
    assert known is not None, "a case is on one side at least"
    plain = ComparedCase(
        suite=known.suite,
        id=known.id,
        target=known.target,
        change="new" if base is None else "removed",
        base=base.rate if base is not None else None,
        head=head.rate if head is not None else None,
    )
    if base is None or head is None:
        return plain
    found = _change(base, head, confidence)
    return plain.model_copy(update={**found, "stale": base.digest != head.digest})


def _change(base: SideCase, head: SideCase, confidence: float) -> dict[str, object]:
    if not base.trials or not head.trials:
        return {"change": "not enough evidence"}
    if base.ran == head.ran == 1:
        return {"change": _by_verdict(base.verdict, head.verdict), "single": True}
    is_paired = base.trials.keys() == head.trials.keys()
    low, high = change_interval(base.passes, head.passes, confidence, paired=is_paired)
    return {"change": _by_interval(base, head, low, high), "low": low, "high": high}


def _by_verdict(base: Verdict, head: Verdict) -> Change:
    difference = RANKS[head] - RANKS[base]
    return "regressed" if difference < 0 else "improved" if difference > 0 else "unchanged"


def _by_interval(base: SideCase, head: SideCase, low: float, high: float) -> Change:
    if high < 0:
        return "regressed"
    if low > 0:
        return "improved"
    sides = [{*side.passes} for side in (base, head)]
    is_flaky = any(len(seen) > 1 for seen in sides)
    if (base.verdict == "pass") != (head.verdict == "pass") or not (is_flaky or sides[0] == sides[1]):
        return "not enough evidence"
    return "flaky" if is_flaky else "unchanged"


Graded = Sequence[tuple[SideCase, SideCase]]


def _pass_rate(graded: Graded) -> Figure | None:
    if not graded:
        return None
    passes = [(one.verdict == "pass", other.verdict == "pass") for one, other in graded]
    worse, better = passes.count((True, False)), passes.count((False, True))
    before, now = (sum(each) / len(graded) for each in zip(*passes, strict=True))
    loss = smallest_loss(better, sum(one for one, _ in passes), ALPHA)
    p_value = mcnemar(worse, better)
    return Figure(
        base=round(before, PRECISION),
        head=round(now, PRECISION),
        p_value=p_value,
        falls=worse > better and p_value <= ALPHA,
        detectable=round((loss - better) / len(graded), PRECISION) if loss is not None else None,
    )


def _mean_score(graded: Graded) -> Figure | None:
    if not graded:
        return None
    means = [(one.score, other.score) for one, other in graded]
    differences = [round(now - before, PRECISION) for before, now in means]
    before, now = (math.fsum(each) / len(graded) for each in zip(*means, strict=True))
    p_value, points_down = wilcoxon(differences)
    # Fewer differences have no pattern of signs that is rare enough.
    is_enough = 2 * 0.5 ** sum(each != 0 for each in differences) <= ALPHA
    drop = detectable_mean_drop(differences, 1 - ALPHA, POWER) if is_enough else None
    return Figure(
        base=round(before, PRECISION),
        head=round(now, PRECISION),
        p_value=p_value,
        falls=points_down and p_value <= ALPHA,
        # Of differences that are all the same nothing can be said.
        detectable=drop if drop and drop <= before else None,
    )


def _reasons(cases: Sequence[ComparedCase], pass_rate: Figure | None, mean_score: Figure | None) -> Iterable[str]:
    worse = [each for each in cases if each.change == "regressed"]
    if worse:
        noise = " (one trial a side: possibly noise)" if all(each.single for each in worse) else ""
        yield f"{counted(len(worse), 'case')} regressed{noise}: {named(worse)}"
    for name, figure, form, least in (("pass rate", pass_rate, ".{}%", 1), ("mean score", mean_score, ".{}f", 3)):
        if figure is not None and figure.falls:
            now, before = apart(figure.head, figure.base, form, least=least)
            yield f"{name} of all cases together: {before} → {now} ({p_text(figure.p_value)})"


def _warnings(base: Side, cases: Sequence[ComparedCase], yardstick: Yardstick) -> Iterable[str]:
    stale = [each for each in cases if each.stale]
    if all(each.change in ("new", "removed") for each in cases):
        yield f"no case of this run is in {base.name}: nothing was compared"
    weak = [each for each in cases if _cannot_fall(each, yardstick.confidence)]
    if weak:
        yield f"{counted(len(weak), 'case')} with too few trials for any fall to count: {named(weak)}; use --repeat 5"
    gone = [each for each in cases if each.change == "removed"]
    if gone and len(gone) < len(cases):
        yield f"{counted(len(gone), 'case')} of {base.name} not in this run: {named(gone)}"
    if stale:
        yield f"{counted(len(stale), 'case')} with a digest that {base.name} has not, of case or target: {named(stale)}"
    age_days = _age_days(base.measured, yardstick.now)
    if age_days is not None and age_days > STALE_AFTER_DAYS:
        yield f"{base.name} is {age_days} days old"


def _cannot_fall(case: ComparedCase, confidence: float) -> bool:
    """Whether not even a fall from all trials to none would count."""
    if case.base is None or case.head is None or case.single or not (case.base.graded and case.head.graded):
        return False
    return not _counts(case.base.graded, case.head.graded, confidence)


@cache
def _counts(before: int, now: int, confidence: float) -> bool:
    return change_interval([True] * before, [False] * now, confidence, paired=False)[1] < 0


def named(cases: Sequence[ComparedCase]) -> str:
    """Return the first few cases by their ids."""
    names = ", ".join(shortened(each.id, MAX_NAME) for each in cases[:MAX_NAMED])
    return f"{names} and {len(cases) - MAX_NAMED} more" if len(cases) > MAX_NAMED else names


def _age_days(measured: str | None, now: datetime) -> int | None:
    if measured is None:
        return None
    try:
        then = datetime.fromisoformat(measured)
    except ValueError:
        return None
    return (now - (then if then.tzinfo is not None else then.replace(tzinfo=UTC))).days


def _severity(case: ComparedCase) -> int:
    return WORST_FIRST.index(case.change)
