"""Compare two runs, as a whole and case by case.

The statement about the whole decides whether a run is a regression. What is said of each case is a
description: with one trial per side, its verdict is worse or better, which may be noise; with
several, an exact test of its trials says so, and on average at most the share (1 − confidence) / 2
of the cases that are called regressed is not. Cases that passed in all trials and pass in none, or
that alone would be called, leave the comparison undecided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from shlex import quote
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.comparison.case_changes import can_be_called, dropped
from agentv_ci.analysis.comparison.metric_changes import (
    NOT_SHARED,
    USUAL_TRIALS,
    CasePair,
    limits_of,
    trials_of,
    when_undecided,
)
from agentv_ci.analysis.comparison.metric_texts import metric_text
from agentv_ci.analysis.comparison.statement import (
    RANKS,
    Missing,
    Terms,
    has_other_task,
    is_graded,
    state,
    wrong_calls,
)
from agentv_ci.analysis.statistics.exact_tests import Margins
from agentv_ci.analysis.statistics.inference import change_interval
from agentv_ci.analysis.statistics.significance import mean_score_change, pass_rate_change
from agentv_ci.base.text import counted, first_few, shortened
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.cases import CaseKey, case_name, in_matrix, matching
from agentv_ci.contracts.comparison import (
    Change,
    ComparedCase,
    Comparison,
    MetricChange,
    Rate,
    Statement,
)
from agentv_ci.contracts.gate import WhenUndecided
from agentv_ci.contracts.report import GateSettings
from agentv_ci.contracts.results import OfCase

CONFIDENCE = 0.95
"""Of the statement; docs/verdicts.md compares other values."""
STALE_AFTER_DAYS = 30
MAX_NAME = 80
MAX_SUSPECTS = 20
"""Of a command that decides about them."""

CHANGES_WORST_FIRST: tuple[Change, ...] = get_args(Change)


class Side(Struct, frozen=True):
    """A run that is compared."""

    name: str
    cases: Sequence[CaseOutcome]
    measured: str | None = None
    """When its last answer was received: ISO 8601."""
    has_no_figures: bool = False
    """Whether it is a baseline of an earlier version, which has no costs, tokens and times."""


class BaselineComparison(Struct, frozen=True):
    """How a run is compared with an older one."""

    base: Side
    head: str
    """The name of the run."""
    now: datetime
    is_part: bool = False
    """Whether the run has only some cases of its documents; the others are not compared."""
    allows_changes: bool = False
    """Whether to decide though judges, models or tasks differ."""
    when_undecided: WhenUndecided | None = None
    """What it counts as if it is undecided; None: what the gate says."""


def compare(
    against: BaselineComparison,
    outcomes: Iterable[CaseOutcome],
    settings: Sequence[GateSettings] = (),
) -> Comparison:
    """Compare the cases of a run with an older run, with the settings of its gate."""
    base, head = against.base, Side(against.head, tuple(outcomes))
    if against.is_part:
        match = _match(base, head)
        in_head = {match(each.key) for each in head.cases}
        base = replace(base, cases=tuple(each for each in base.cases if match(each.key) in in_head))
    terms = Terms(
        CONFIDENCE,
        limits_of(settings),
        allows_changes=against.allows_changes,
        when_undecided=against.when_undecided or when_undecided(settings),
    )
    return compare_sides(base, head, terms, now=against.now, is_part=against.is_part)


def compare_targets(
    cases: Sequence[CaseOutcome], base: str, head: str, terms: Terms, *, now: datetime
) -> Comparison:
    """Compare two targets of one run, over the cases that both answer: other models are the point of it."""
    asked = [{each.key[:2] for each in cases if each.target == target} for target in (base, head)]
    shared = [each for each in cases if each.key[:2] in asked[0] & asked[1]]
    older, newer = (
        Side(target, [each for each in shared if each.target == target]) for target in (base, head)
    )
    return compare_sides(
        older, newer, replace(terms, allows_changes=True), now=now, compares_digests=False
    )


def compare_sides(
    base: Side,
    head: Side,
    terms: Terms,
    *,
    now: datetime,
    is_part: bool = False,
    compares_digests: bool = True,
) -> Comparison:
    """Compare two runs."""
    by_target = any(in_matrix(each.key for each in side.cases) for side in (base, head))
    every = _paired(base, head)
    pairs = [(one, other) for one, other in every if other is None or other.quarantine is None]
    shared = [(one, other) for one, other in pairs if one and other]
    calls = _called(shared, terms.confidence)
    cases = [_compared(one, other, terms, calls) for one, other in pairs]
    if not compares_digests:
        cases = [each.model_copy(update={"stale": False}) for each in cases]
    graded = [pair for pair in shared if is_graded(pair)]
    targets = [*_targets(head)] if by_target else []
    statement = state(shared, targets, terms, base=base.name, renamed=[*_renamed(cases)])
    changes = Counter(each.change for each in cases if not each.left_out)
    changed = [each for each in cases if each.change != "unchanged"]
    return Comparison(
        base=base.name,
        head=head.name,
        confidence=terms.confidence,
        is_part=is_part,
        by_target=by_target,
        compared=len(graded),
        lost=sum(bool(one and one.graded and other and _is_lost(other)) for one, other in pairs),
        quarantined=len(every) - len(pairs),
        left_out=sum(each.left_out for each in cases),
        counts={change: changes[change] for change in CHANGES_WORST_FIRST},
        statement=statement,
        pass_rate=pass_rate_change(
            [(one.verdict == "pass", other.verdict == "pass") for one, other in graded]
        ),
        mean_score=mean_score_change([(one.score, other.score) for one, other in graded]),
        unmeasured=() if base.has_no_figures else tuple(map(metric_text, _unmeasured(statement))),
        undecided=tuple(_undecided(statement, cases, by_target=by_target)),
        when_undecided=terms.when_undecided,
        warnings=(
            *_crashes(base.name, [one for one, other in graded]),
            *_crashes(head.name, [other for one, other in graded]),
            *_without_verdict(statement, base.name, head.name),
            *_warnings(base, cases, now, terms, by_target=by_target),
        ),
        reasons=tuple(_reasons(statement, cases, by_target=by_target)),
        cases=tuple(sorted(changed, key=lambda each: CHANGES_WORST_FIRST.index(each.change))),
    )


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


def _renamed(cases: Sequence[ComparedCase]) -> Iterable[str]:
    """Yield which removed cases may be new ones: `login` and `login [chromium]`, whose ids differ only in detail."""
    added: dict[tuple[str, str], list[tuple[str, set[str]]]] = {}
    for case in cases:
        if case.change == "new":
            name, details = _parts(case.id)
            added.setdefault((case.suite, name), []).append((case.id, details))
    for case in cases:
        name, details = _parts(case.id)
        if case.change == "removed":
            near = [
                other
                for other, more in added.get((case.suite, name), ())
                if _may_be_one(details, more)
            ]
            if near:
                yield f"{shortened(case.id, MAX_NAME)} ({first_few([shortened(each, MAX_NAME) for each in near])})"


def _may_be_one(details: set[str], others: set[str]) -> bool:
    """Whether two ids of a name may be of one test: one has fewer details, or one of them is another."""
    is_part = details < others or others < details
    return is_part or len(details - others) == 1 == len(others - details)


def _parts(case_id: str) -> tuple[str, set[str]]:
    """Return the name of a test, and what else distinguishes it from others of that name."""
    name, _, details = case_id.partition(" [")
    return name, {*details.removesuffix("]").split(", ")} - {""}


_Calls = Mapping[CaseKey, Change]
"""Cases that are called regressed or improved, by their key on the newer side."""


def _called(pairs: Sequence[CasePair], confidence: float) -> _Calls:
    """Return the calls of cases with several trials; on average, few of each kind are wrong."""
    several = [each for each in pairs if _has_trials(each)]
    trials, rate = [trials_of(each) for each in several], wrong_calls(confidence)
    worse, better = dropped(trials, rate), dropped([each.reversed for each in trials], rate)
    return {
        head.key: "regressed" if is_worse else "improved"
        for (_, head), is_worse, is_better in zip(several, worse, better, strict=True)
        if is_worse or is_better
    }


def _has_trials(pair: CasePair) -> bool:
    base, head = pair
    return bool(base.graded and head.graded) and not len(base.trials) == len(head.trials) == 1


def _compared(
    base: CaseOutcome | None, head: CaseOutcome | None, terms: Terms, calls: _Calls
) -> ComparedCase:
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
    differs = has_other_task((base, head)) and not terms.allows_changes
    change = _change(base, head, terms.confidence, calls.get(head.key))
    return one_sided.model_copy(
        update={**change, "stale": base.case.digest != head.case.digest, "left_out": differs}
    )


def _rate(outcome: CaseOutcome) -> Rate:
    graded = len(outcome.graded)
    mean = outcome.score if graded else None
    return Rate(verdict=outcome.verdict, passed=outcome.passed, graded=graded, mean=mean)


def _change(
    base: CaseOutcome, head: CaseOutcome, confidence: float, call: Change | None
) -> dict[str, object]:
    if not base.graded or not head.graded:
        return {"change": "not enough evidence"}
    if not _has_trials((base, head)):
        return {"change": _by_verdict(base.verdict, head.verdict), "single": True}
    before, now = ([each.verdict == "pass" for each in side.graded] for side in (base, head))
    is_paired = [each.number for each in base.graded] == [each.number for each in head.graded]
    low, high = change_interval(before, now, confidence, paired=is_paired)
    return {"change": call or _without_call(base, head), "low": low, "high": high}


def _by_verdict(base: Verdict, head: Verdict) -> Change:
    difference = RANKS[head] - RANKS[base]
    if difference < 0:
        return "regressed"
    return "improved" if difference > 0 else "unchanged"


def _without_call(base: CaseOutcome, head: CaseOutcome) -> Change:
    if (base.verdict == "pass") != (head.verdict == "pass"):
        return "not enough evidence"
    if base.flaky or head.flaky:
        return "flaky"
    return "unchanged" if bool(base.passed) == bool(head.passed) else "not enough evidence"


def _reasons(
    statement: Statement, cases: Sequence[ComparedCase], *, by_target: bool
) -> Iterable[str]:
    """Yield why this is a regression."""
    if statement.verdict != "worse":
        return
    if worse := statement.worse_cases:
        got_worse = _with_rates(worse, "got worse", cases, by_target=by_target)
        chance = f"chance alone explains that in less than {100 * (1 - statement.confidence):g}% of comparisons"
        yield f"{got_worse}; {chance}"
    yield from (metric_text(change) for change in statement.metrics if change.verdict == "worse")


def _undecided(
    statement: Statement, cases: Sequence[ComparedCase], *, by_target: bool
) -> Iterable[str]:
    """Yield what too few trials leave open, and what decides it."""
    if statement.verdict in ("worse", "withheld"):
        return
    if lost := statement.maybe_worse_cases:
        known = {case.key: case for case in cases}
        rates = [
            rate
            for case in lost
            for rate in (known[case.key].base, known[case.key].head)
            if rate is not None
        ]
        fewest = min(rate.graded for rate in rates)
        repeat = USUAL_TRIALS if fewest < USUAL_TRIALS else 2 * fewest
        distinct = [*dict.fromkeys(case.id for case in lost)]
        ids = " ".join(f"--eval-id {quote(case_id)}" for case_id in distinct[:MAX_SUSPECTS])
        names = _with_rates(lost, "now fail more often", cases, by_target=by_target)
        yield f"{names}; this may be chance: run both sides with {ids} --repeat {repeat} to decide"
    for change in statement.metrics:
        if change.allowed is not None and change.verdict == "undecided":
            yield f"{metric_text(change)}"


def too_few_to_confirm(comparison: Comparison, more: int) -> str | None:
    """Return which suspects so many more trials of the newer side alone cannot show to be worse, if any."""
    statement = comparison.statement
    if statement is None:
        return None
    suspects, rate = (
        {case.key for case in statement.maybe_worse_cases},
        wrong_calls(statement.confidence),
    )
    few = [
        case
        for case in comparison.cases
        if case.key in suspects and not _can_be_confirmed(case, more, rate)
    ]
    if not few:
        return None
    names = _ids(few, by_target=comparison.by_target)
    trials = counted(min(case.base.graded for case in few if case.base is not None), "trial")
    return (
        f"{comparison.base} has too few trials ({trials}) of {names}: more trials of this run alone can show that "
        f"a case still passes, not that it is worse; accept a baseline of --repeat {USUAL_TRIALS}"
    )


def _can_be_confirmed(case: ComparedCase, more: int, rate: float) -> bool:
    if case.base is None or case.head is None:
        return True
    return can_be_called(Margins(case.base.graded, case.head.graded + more, case.base.graded), rate)


def _with_rates(
    named: Sequence[OfCase], what: str, cases: Sequence[ComparedCase], *, by_target: bool
) -> str:
    """Return what became of which cases, and of the first one from where to where."""
    known = {case.key: case for case in cases}
    first = known[named[0].key]
    assert first.base is not None, "a case of both sides"
    assert first.head is not None, "a case of both sides"
    rates = f"passed {first.base.passed} of {first.base.graded}, now {first.head.passed} of {first.head.graded}"
    if len(named) == 1:
        return f"{_ids(named, by_target=by_target)} {rates}"
    return f"{len(named)} cases {what}: {_ids(named, by_target=by_target)} (the first {rates})"


def _unmeasured(statement: Statement) -> Iterable[MetricChange]:
    """Return the limits that could not be checked, since a side does not have what they limit."""
    limits = (each for each in statement.metrics if each.allowed is not None)
    return (each for each in limits if each.verdict == "not compared" and each.reason != NOT_SHARED)


def _crashes(side: str, cases: Sequence[CaseOutcome]) -> Iterable[str]:
    """Yield how many of the compared trials of a side crashed, and why the first of them did."""
    crashed = [trial for case in cases for trial in case.trials if trial.is_crash]
    if not crashed:
        return
    trials = counted(sum(len(case.graded) for case in cases), "trial")
    # A baseline has no messages.
    reason = f"; first error: {crashed[0].summary}" if crashed[0].summary else ""
    yield f"{len(crashed)} of {trials} of {side} crashed, and count as failed{reason}"


def _without_verdict(statement: Statement, base: str, head: str) -> Iterable[str]:
    """Yield how many trials are missing, unless they withhold the statement, which says so."""
    missing = Missing(statement.missing_before, statement.missing_now)
    if missing.total and not statement.missing_decide:
        does = "does" if missing.total == 1 else "do"
        yield f"{missing.text(base, head)} {does} not count, and cannot change that"


def _warnings(
    base: Side, cases: Sequence[ComparedCase], now: datetime, terms: Terms, *, by_target: bool
) -> Iterable[str]:
    ids = partial(_ids, by_target=by_target)
    if all(each.change in ("new", "removed") for each in cases):
        yield f"no case of this run is in {base.name}: nothing was compared"
    if weak := [case for case in cases if _is_weak(case, wrong_calls(terms.confidence))]:
        are = "has" if len(weak) == 1 else "have"
        yield f"{counted(len(weak), 'case')} {are} too few trials to show that one of them broke: {ids(weak)}"
    gone = [each for each in cases if each.change == "removed"]
    if gone and len(gone) < len(cases):
        yield f"{counted(len(gone), 'case')} of {base.name} not in this run: {ids(gone)}"
    if left_out := [each for each in cases if each.left_out]:
        changed = f"{counted(len(left_out), 'case')} with a changed question or evaluators left out: {ids(left_out)}"
        yield f"{changed}; accept a new baseline, or include them with --allow-changes"
    if stale := [each for each in cases if each.stale and not each.left_out]:
        yield f"{counted(len(stale), 'case')} changed since {base.name} (case or target): {ids(stale)}"
    if terms.limits and base.has_no_figures:
        yield f"{base.name} was written by an earlier version, without costs, tokens and times: accept it again"
    age_days = _age_days(base.measured, now)
    if age_days is not None and age_days > STALE_AFTER_DAYS:
        yield f"{base.name} is {age_days} days old"


def _is_weak(case: ComparedCase, rate: float) -> bool:
    """Whether a case with several trials could not be called worse if it fell from all to none."""
    if (
        case.base is None
        or case.head is None
        or case.single
        or not (case.base.graded and case.head.graded)
    ):
        return False
    return not can_be_called(Margins(case.base.graded, case.head.graded, case.base.graded), rate)


def _ids(cases: Sequence[OfCase], *, by_target: bool) -> str:
    names = [case_name(each.key, names_target=by_target) for each in cases]
    return first_few([shortened(each, MAX_NAME) for each in names])


def _age_days(measured: str | None, now: datetime) -> int | None:
    if measured is None:
        return None
    try:
        then = datetime.fromisoformat(measured)
    except ValueError:
        return None
    return (now - (then if then.tzinfo is not None else then.replace(tzinfo=UTC))).days
