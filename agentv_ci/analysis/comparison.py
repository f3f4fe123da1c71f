"""Compare two runs, case by case and as a whole.

With one trial per side, a worse verdict of a case is a regression, and possibly noise. With several trials, the
interval of the change of its pass rate decides: a case has regressed when the whole interval is below 0. As a whole,
two paired tests over the cases that are graded on both sides find changes that no single case shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.analysis.inference import change_interval
from agentv_ci.analysis.outcomes import CaseOutcome
from agentv_ci.analysis.statistics import apart, mean_score_change, p_text, pass_rate_change
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.case_key import CaseKey, case_name, in_matrix, matching
from agentv_ci.contracts.comparison import Change, ComparedCase, Comparison, Figure, Rate
from agentv_ci.text import counted, shortened

CONFIDENCE = 0.99
"""Of the interval of a case; docs/verdicts.md compares other values."""
STALE_AFTER_DAYS = 30
MAX_NAMED = 5
MAX_NAME = 80

CHANGES_WORST_FIRST: tuple[Change, ...] = get_args(Change)
RANKS: Mapping[Verdict, int] = {"fail": 0, "borderline": 1, "pass": 2}


class Side(Struct, frozen=True):
    """A run that is compared."""

    name: str
    cases: Sequence[CaseOutcome]
    measured: str | None = None
    """When its last answer was received: ISO 8601."""


class BaselineComparison(Struct, frozen=True):
    """How a run is compared with an older one."""

    base: Side
    head: str
    """The name of the run."""
    now: datetime
    is_part: bool = False
    """Whether the run has only some cases of its documents; the others are not compared."""


def compare(against: BaselineComparison, outcomes: Iterable[CaseOutcome]) -> Comparison:
    """Compare the cases of a run with an older run."""
    base, head = against.base, Side(against.head, tuple(outcomes))
    if against.is_part:
        match = _match(base, head)
        in_head = {match(each.key) for each in head.cases}
        base = replace(base, cases=tuple(each for each in base.cases if match(each.key) in in_head))
    return compare_sides(base, head, now=against.now, is_part=against.is_part)


def compare_targets(
    cases: Sequence[CaseOutcome], base: str, head: str, *, now: datetime, confidence: float
) -> Comparison:
    """Compare two targets of one run, over the cases that both answer."""
    asked = [{each.key[:2] for each in cases if each.target == target} for target in (base, head)]
    shared = [each for each in cases if each.key[:2] in asked[0] & asked[1]]
    sides = [Side(target, [each for each in shared if each.target == target]) for target in (base, head)]
    return compare_sides(*sides, now=now, confidence=confidence, compares_digests=False)


def compare_sides(
    base: Side,
    head: Side,
    *,
    now: datetime,
    confidence: float = CONFIDENCE,
    is_part: bool = False,
    compares_digests: bool = True,
) -> Comparison:
    """Compare two runs."""
    by_target = any(in_matrix(each.key for each in side.cases) for side in (base, head))
    every = _paired(base, head)
    pairs = [(one, other) for one, other in every if other is None or other.quarantine is None]
    cases = [_compared(one, other, confidence) for one, other in pairs]
    if not compares_digests:
        cases = [each.model_copy(update={"stale": False}) for each in cases]
    graded = [(one, other) for one, other in pairs if one and other and one.graded and other.graded]
    pass_rate, mean_score = _figures(graded)
    alone = {target: _figures([pair for pair in graded if pair[1].target == target]) for target in _targets(head)}
    figures = {"": (pass_rate, mean_score), **(alone if by_target else {})}
    changes = Counter(each.change for each in cases)
    changed = [each for each in cases if each.change != "unchanged"]
    return Comparison(
        base=base.name,
        head=head.name,
        confidence=confidence,
        is_part=is_part,
        by_target=by_target,
        compared=len(graded),
        lost=sum(bool(one and one.graded and other and _is_lost(other)) for one, other in pairs),
        quarantined=len(every) - len(pairs),
        counts={change: changes[change] for change in CHANGES_WORST_FIRST},
        pass_rate=pass_rate,
        mean_score=mean_score,
        warnings=tuple(_warnings(base, cases, now, confidence, by_target=by_target)),
        reasons=tuple(_reasons(cases, figures, by_target=by_target)),
        cases=tuple(sorted(changed, key=lambda each: CHANGES_WORST_FIRST.index(each.change))),
    )


_Pair = tuple[CaseOutcome, CaseOutcome]
_Figures = tuple[Figure | None, Figure | None]
"""Of the pass rate and of the mean score."""


def _figures(graded: Sequence[_Pair]) -> _Figures:
    pass_rate = pass_rate_change([(one.verdict == "pass", other.verdict == "pass") for one, other in graded])
    return pass_rate, mean_score_change([(one.score, other.score) for one, other in graded])


def _targets(side: Side) -> Iterable[str]:
    return dict.fromkeys(each.target for each in side.cases)


def _match(*sides: Side) -> Callable[[CaseKey], tuple[str, ...]]:
    return matching(*([each.key for each in side.cases] for side in sides))


def _is_lost(outcome: CaseOutcome) -> bool:
    return not outcome.graded and outcome.verdict != "skipped"


def _paired(base: Side, head: Side) -> list[tuple[CaseOutcome | None, CaseOutcome | None]]:
    """Return the cases of both sides in pairs, those of the newer side first."""
    match = _match(base, head)
    older, newer = ({match(each.key): each for each in side.cases} for side in (base, head))
    return [
        *((older.get(key), case) for key, case in newer.items()),
        *((case, None) for key, case in older.items() if key not in newer),
    ]


def _compared(base: CaseOutcome | None, head: CaseOutcome | None, confidence: float) -> ComparedCase:
    known = head if head is not None else base
    assert known is not None, "a case is on at least one side"
    suite, case_id, target = known.key
    one_sided = ComparedCase(
        suite=suite,
        id=case_id,
        target=target,
        change="new" if base is None else "removed",
        base=_rate(base) if base is not None else None,
        head=_rate(head) if head is not None else None,
    )
    if base is None or head is None:
        return one_sided
    change = _change(base, head, confidence)
    return one_sided.model_copy(update={**change, "stale": base.case.digest != head.case.digest})


def _rate(outcome: CaseOutcome) -> Rate:
    graded = len(outcome.graded)
    mean = outcome.score if graded else None
    return Rate(verdict=outcome.verdict, passed=outcome.passed, graded=graded, mean=mean)


def _change(base: CaseOutcome, head: CaseOutcome, confidence: float) -> dict[str, object]:
    if not base.graded or not head.graded:
        return {"change": "not enough evidence"}
    if len(base.trials) == len(head.trials) == 1:
        return {"change": _by_verdict(base.verdict, head.verdict), "single": True}
    before, now = ([each.verdict == "pass" for each in side.graded] for side in (base, head))
    is_paired = [each.number for each in base.graded] == [each.number for each in head.graded]
    low, high = change_interval(before, now, confidence, paired=is_paired)
    return {"change": _by_interval(base, head, low, high), "low": low, "high": high}


def _by_verdict(base: Verdict, head: Verdict) -> Change:
    difference = RANKS[head] - RANKS[base]
    return "regressed" if difference < 0 else "improved" if difference > 0 else "unchanged"


def _by_interval(base: CaseOutcome, head: CaseOutcome, low: float, high: float) -> Change:
    if high < 0:
        return "regressed"
    if low > 0:
        return "improved"
    if (base.verdict == "pass") != (head.verdict == "pass"):
        return "not enough evidence"
    if base.flaky or head.flaky:
        return "flaky"
    return "unchanged" if bool(base.passed) == bool(head.passed) else "not enough evidence"


def _reasons(cases: Sequence[ComparedCase], figures: Mapping[str, _Figures], *, by_target: bool) -> Iterable[str]:
    """Yield why this is a regression; `figures` are those of each target, and of all together under an empty name."""
    worse = [each for each in cases if each.change == "regressed"]
    if worse:
        noise = " (one trial per side: possibly noise)" if all(each.single for each in worse) else ""
        yield f"{counted(len(worse), 'case')} regressed{noise}: {_ids(worse, by_target=by_target)}"
    for target, (pass_rate, mean_score) in figures.items():
        of_target = f" of target {target}" if target else ""
        for name, figure, form, least in (("pass rate", pass_rate, ".{}%", 1), ("mean score", mean_score, ".{}f", 3)):
            if figure is not None and figure.falls:
                now, before = apart(figure.head, figure.base, form, least=least)
                yield f"{name} over all cases{of_target}: {before} → {now} ({p_text(figure.p_value)})"


def _warnings(
    base: Side, cases: Sequence[ComparedCase], now: datetime, confidence: float, *, by_target: bool
) -> Iterable[str]:
    ids = partial(_ids, by_target=by_target)
    stale = [each for each in cases if each.stale]
    if all(each.change in ("new", "removed") for each in cases):
        yield f"no case of this run is in {base.name}: nothing was compared"
    weak = [each for each in cases if _cannot_fall(each, confidence)]
    if weak:
        yield f"{counted(len(weak), 'case')} with too few trials to show any drop: {ids(weak)}; use --repeat 5"
    gone = [each for each in cases if each.change == "removed"]
    if gone and len(gone) < len(cases):
        yield f"{counted(len(gone), 'case')} of {base.name} not in this run: {ids(gone)}"
    if stale:
        yield f"{counted(len(stale), 'case')} changed since {base.name} (case or target): {ids(stale)}"
    age_days = _age_days(base.measured, now)
    if age_days is not None and age_days > STALE_AFTER_DAYS:
        yield f"{base.name} is {age_days} days old"


def _cannot_fall(case: ComparedCase, confidence: float) -> bool:
    """Whether even a drop from all trials to none would not count."""
    if case.base is None or case.head is None or case.single or not (case.base.graded and case.head.graded):
        return False
    return not _counts(case.base.graded, case.head.graded, confidence)


@cache
def _counts(before: int, now: int, confidence: float) -> bool:
    return change_interval([True] * before, [False] * now, confidence, paired=False)[1] < 0


def _ids(cases: Sequence[ComparedCase], *, by_target: bool) -> str:
    names = [case_name(each.key, names_target=by_target) for each in cases]
    return first_few([shortened(each, MAX_NAME) for each in names])


def first_few(names: Sequence[str]) -> str:
    """Return the first few names, and the number of the others."""
    listed = ", ".join(names[:MAX_NAMED])
    return f"{listed} and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else listed


def _age_days(measured: str | None, now: datetime) -> int | None:
    if measured is None:
        return None
    try:
        then = datetime.fromisoformat(measured)
    except ValueError:
        return None
    return (now - (then if then.tzinfo is not None else then.replace(tzinfo=UTC))).days
