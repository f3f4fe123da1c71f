"""Compare two runs, as a whole and case by case.

The statement about the whole decides whether a run is a regression. What is said of each case is a
description: with one trial per side, its verdict is worse or better, which may be noise; with
several, an exact test of its trials says so, and on average at most the share (1 − confidence) / 2
of the cases that are called regressed is not. Cases that passed in all trials and pass in none, or
that alone would be called, leave the comparison undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import starmap
from shlex import quote
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.analysis.cases.outcomes import CaseOutcome, keys_of, threshold_of
from agentv_ci.analysis.cases.trial_outcomes import TrialOutcome, numbers_of
from agentv_ci.analysis.comparison.answers import Rows, with_answers
from agentv_ci.analysis.comparison.case_changes import can_be_called, dropped
from agentv_ci.analysis.comparison.metric_changes import (
    NOT_SHARED,
    USUAL_TRIALS,
    CasePair,
    limits_of,
    sides,
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
from agentv_ci.analysis.statistics.exact_tests import Margins, rises
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
from agentv_ci.contracts.results import PRECISION, OfCase
from agentv_ci.results.trials import verdict_of_trials

CONFIDENCE = 0.95
"""Of the statement; docs/verdicts.md compares other values."""
STALE_AFTER_DAYS = 30
MAX_NAME = 80
MAX_SUSPECTS = 20
"""Of a command that decides about them."""

_Pair = tuple[CaseOutcome | None, CaseOutcome | None]
"""A case of both sides or of one of them."""

CHANGES_WORST_FIRST: tuple[Change, ...] = get_args(Change)


class Side(Struct, frozen=True):
    """A run that is compared."""

    name: str
    cases: Sequence[CaseOutcome]
    measured: str | None = None
    """When its last answer was received: ISO 8601."""
    has_no_figures: bool = False
    """Whether it is a baseline of an earlier version, which has no costs, tokens and times."""
    rows: Rows | None = None
    """Reads its rows; None for a baseline, which has none."""


class BaselineComparison(Struct, frozen=True):
    """How a run is compared with an older one."""

    base: Side
    head: str
    """The name of the run."""
    now: datetime
    rows: Rows | None = None
    """Reads the rows of the run; None: no answers are shown."""
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
        base = _shared_with(head, base)
    terms = Terms(
        CONFIDENCE,
        limits_of(settings),
        allows_changes=against.allows_changes,
        when_undecided=against.when_undecided or when_undecided(settings),
    )
    comparison = compare_sides(base, head, terms, now=against.now, is_part=against.is_part)
    return with_answers(comparison, base.rows, against.rows)


def _shared_with(head: Side, base: Side) -> Side:
    """Return the older side with only the cases of the newer one."""
    match = _match(base, head)
    in_head = set(map(match, _keys(head)))
    return replace(base, cases=tuple(case for case in base.cases if match(case.key) in in_head))


def compare_targets(
    cases: Sequence[CaseOutcome], base: str, head: str, terms: Terms, *, now: datetime
) -> Comparison:
    """Compare two targets of one run, over the cases that both answer.

    That their models differ is the point of it.
    """
    answered: dict[str, dict[tuple[str, str], CaseOutcome]] = {base: {}, head: {}}
    for case in cases:
        if case.target in answered:
            answered[case.target][case.key[:2]] = case
    shared = answered[base].keys() & answered[head].keys()

    def side(target: str) -> Side:
        return Side(target, [case for key, case in answered[target].items() if key in shared])

    return compare_sides(
        side(base),
        side(head),
        replace(terms, allows_changes=True),
        now=now,
        compares_digests=False,
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
    paired = _paired(base, head)
    every = [(old, _held_to(old, new)) for old, new in paired]
    pairs = [(old, new) for old, new in every if new is None or new.quarantine is None]
    shared = [(old, new) for old, new in pairs if old and new]
    calls = _called(shared, terms.confidence)
    cases = [_compared(old, new, terms, calls) for old, new in pairs]
    if not compares_digests:
        cases = [case.model_copy(update={"stale": False}) for case in cases]

    by_target = any(map(in_matrix, (_keys(base), _keys(head))))
    targets = list(_targets(head)) if by_target else []
    statement = state(shared, targets, terms, base=base.name, renamed=list(_renamed(cases)))
    unmeasured = [] if base.has_no_figures else _unmeasured(statement)

    graded = list(filter(is_graded, shared))
    before, now_graded = sides(graded)
    changed = [case for case in cases if case.change != "unchanged"]
    return Comparison(
        base=base.name,
        head=head.name,
        confidence=terms.confidence,
        is_part=is_part,
        by_target=by_target,
        compared=len(graded),
        lost=sum(starmap(_is_lost, pairs)),
        quarantined=len(every) - len(pairs),
        left_out=sum(case.left_out for case in cases),
        counts=_counts(cases),
        statement=statement,
        pass_rate=pass_rate_change(_passes(before), _passes(now_graded)),
        mean_score=mean_score_change(_scores(before), _scores(now_graded)),
        unmeasured=tuple(map(metric_text, unmeasured)),
        undecided=tuple(_undecided(statement, cases, by_target=by_target)),
        when_undecided=terms.when_undecided,
        warnings=(
            *_crashes(base.name, before),
            *_crashes(head.name, now_graded),
            *_without_verdict(statement, base.name, head.name),
            *_below(base.name, paired, every),
            *_warnings(base, cases, now, terms, by_target=by_target),
        ),
        reasons=tuple(_reasons(statement, cases, by_target=by_target)),
        cases=tuple(sorted(changed, key=lambda case: CHANGES_WORST_FIRST.index(case.change))),
    )


def _counts(cases: Iterable[ComparedCase]) -> dict[Change, int]:
    counts = dict.fromkeys(CHANGES_WORST_FIRST, 0)
    for case in cases:
        if not case.left_out:
            counts[case.change] += 1
    return counts


def _keys(side: Side) -> list[CaseKey]:
    return keys_of(side.cases)


def _passes(judged: Iterable[CaseOutcome | TrialOutcome]) -> list[bool]:
    return [outcome.verdict == "pass" for outcome in judged]


def _scores(cases: Iterable[CaseOutcome]) -> list[float]:
    return [case.score for case in cases]


def _targets(side: Side) -> Iterable[str]:
    return dict.fromkeys(case.target for case in side.cases)


def _match(*sides: Side) -> Callable[[CaseKey], tuple[str, ...]]:
    return matching(*map(_keys, sides))


def _is_lost(base: CaseOutcome | None, head: CaseOutcome | None) -> bool:
    """Whether a case that was graded before has run and is not graded now."""
    if base is None or head is None:
        return False
    return bool(base.graded) and not head.graded and head.verdict != "skipped"


def _paired(base: Side, head: Side) -> list[_Pair]:
    """Return the cases of both sides in pairs, those of the newer side first.

    A case that is skipped where it ran at all has nothing to compare.
    """
    match = _match(base, head)
    older = dict(zip(map(match, _keys(base)), base.cases, strict=True))
    newer = dict(zip(map(match, _keys(head)), head.cases, strict=True))
    pairs: list[_Pair] = []
    for key, case in newer.items():
        pairs.append((older.get(key), case))
    for key, case in older.items():
        if key not in newer:
            pairs.append((case, None))
    return [pair for pair in pairs if any(side and side.verdict != "skipped" for side in pair)]


def _held_to(base: CaseOutcome | None, head: CaseOutcome | None) -> CaseOutcome | None:
    """Return the newer outcome, its passes below the threshold of the older one as failures."""
    if base is None or head is None or (threshold := threshold_of(base)) is None:
        return head
    trials = tuple(_at_threshold(trial, threshold) for trial in head.trials)
    if trials == head.trials:
        return head
    verdict, score = verdict_of_trials(trials, head.case.trials, head.case.require)
    return replace(head.in_full, verdict=verdict, score=score, trials=trials)


def _at_threshold(trial: TrialOutcome, threshold: float) -> TrialOutcome:
    if trial.verdict == "pass" and round(trial.score, PRECISION) < round(threshold, PRECISION):
        return replace(trial, verdict="fail")
    return trial


def _below(base: str, pairs: Sequence[_Pair], held: Sequence[_Pair]) -> Iterator[str]:
    """Yield which cases have lower thresholds than before, if that decides about their trials."""
    names: list[str] = []
    for (_, head), (_, judged) in zip(pairs, held, strict=True):
        if head is not None and judged is not head:
            names.append(shortened(head.case.id, MAX_NAME))
    if names:
        yield (
            f"{counted(len(names), 'case')} with trials that pass only below the threshold of "
            f"{base}, which count as failed: {first_few(names)}"
        )


def _renamed(cases: Sequence[ComparedCase]) -> Iterable[str]:
    """Yield which removed cases may be new ones: their ids differ only in detail.

    Such as `login` and `login [chromium]`.
    """
    added: dict[tuple[str, str], list[tuple[str, set[str]]]] = {}
    for case in cases:
        if case.change == "new":
            name, details = _parts(case.id)
            added.setdefault((case.suite, name), []).append((case.id, details))
    for case in cases:
        if case.change != "removed":
            continue
        name, details = _parts(case.id)
        candidates = added.get((case.suite, name), ())
        near = [
            shortened(new_id, MAX_NAME) for new_id, more in candidates if _may_be_one(details, more)
        ]
        if near:
            yield f"{shortened(case.id, MAX_NAME)} ({first_few(near)})"


def _may_be_one(details: set[str], others: set[str]) -> bool:
    """Whether two ids of a name may be of one test.

    One has fewer details, or one of the details is another.
    """
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
    several = list(filter(_has_trials, pairs))
    trials, rate = list(map(trials_of, several)), wrong_calls(confidence)
    worse, better = dropped(trials, rate), dropped(rises(trials), rate)
    calls: dict[CaseKey, Change] = {}
    for (_, head), is_worse, is_better in zip(several, worse, better, strict=True):
        if is_worse:
            calls[head.key] = "regressed"
        elif is_better:
            calls[head.key] = "improved"
    return calls


def _has_trials(pair: CasePair) -> bool:
    base, head = pair
    return bool(base.graded and head.graded) and not len(base.trials) == len(head.trials) == 1


def _compared(
    base: CaseOutcome | None, head: CaseOutcome | None, terms: Terms, calls: _Calls
) -> ComparedCase:
    known = head if head is not None else base
    assert known is not None, "a case is on at least one side"
    suite, case_id, target = known.key
    is_new = base is None or base.verdict == "skipped"
    one_sided = ComparedCase(
        suite=suite,
        id=case_id,
        target=target,
        change="new" if is_new else "removed",
        base=_rate(base),
        head=_rate(head),
    )
    if base is None or head is None or is_new or head.verdict == "skipped":
        return one_sided
    differs = has_other_task((base, head)) and not terms.allows_changes
    change = _change(base, head, terms.confidence, calls.get(head.key))
    return one_sided.model_copy(
        update={**change, "stale": base.case.digest != head.case.digest, "left_out": differs}
    )


def _rate(outcome: CaseOutcome | None) -> Rate | None:
    if outcome is None:
        return None
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
    before, now = _passes(base.graded), _passes(head.graded)
    is_paired = numbers_of(base.graded) == numbers_of(head.graded)
    low, high = change_interval(before, now, confidence, paired=is_paired)
    return {"change": call or _without_call(base, head), "low": low, "high": high}


def _by_verdict(base: Verdict, head: Verdict) -> Change:
    if RANKS[head] < RANKS[base]:
        return "regressed"
    if RANKS[head] > RANKS[base]:
        return "improved"
    return "unchanged"


def _without_call(base: CaseOutcome, head: CaseOutcome) -> Change:
    if (base.verdict == "pass") != (head.verdict == "pass"):
        return "not enough evidence"
    if base.flaky or head.flaky:
        return "flaky"
    if bool(base.passed) != bool(head.passed):
        return "not enough evidence"
    return "unchanged"


def _reasons(
    statement: Statement, cases: Sequence[ComparedCase], *, by_target: bool
) -> Iterable[str]:
    """Yield why this is a regression."""
    if statement.verdict != "worse":
        return
    if worse := statement.worse_cases:
        got_worse = _with_rates(worse, "got worse", cases, by_target=by_target)
        share = f"{100 * (1 - statement.confidence):g}%"
        yield f"{got_worse}; chance alone explains that in less than {share} of comparisons"
    yield from (metric_text(change) for change in statement.metrics if change.verdict == "worse")


def _undecided(
    statement: Statement, cases: Sequence[ComparedCase], *, by_target: bool
) -> Iterable[str]:
    """Yield what too few trials leave open, and what decides it."""
    if statement.verdict in ("worse", "withheld"):
        return
    if lost := statement.maybe_worse_cases:
        names = _with_rates(lost, "now fail more often", cases, by_target=by_target)
        command = _rerun_options(lost, cases)
        yield f"{names}; this may be chance: run both sides with {command} to decide"
    for change in statement.metrics:
        if change.allowed is not None and change.verdict == "undecided":
            yield f"{metric_text(change)}"


def _rerun_options(suspects: Sequence[OfCase], cases: Sequence[ComparedCase]) -> str:
    """Return the options of a run that decides about the suspects."""
    known = _by_key(cases)
    graded: list[int] = []
    for suspect in suspects:
        case = known[suspect.key]
        graded += (rate.graded for rate in (case.base, case.head) if rate is not None)
    fewest = min(graded)
    repeat = USUAL_TRIALS if fewest < USUAL_TRIALS else 2 * fewest
    distinct = list(dict.fromkeys(case.id for case in suspects))
    ids = " ".join(f"--eval-id {quote(case_id)}" for case_id in distinct[:MAX_SUSPECTS])
    return f"{ids} --repeat {repeat}"


def too_few_to_confirm(comparison: Comparison, more: int) -> str | None:
    """Return which suspects `more` trials of the newer side alone cannot show to be worse."""
    statement = comparison.statement
    if statement is None:
        return None
    suspects = {case.key for case in statement.maybe_worse_cases}
    rate = wrong_calls(statement.confidence)
    compared = [case for case in comparison.cases if case.key in suspects]
    few = [case for case in compared if not _can_be_confirmed(case, more, rate)]
    if not few:
        return None
    names = _ids(few, by_target=comparison.by_target)
    trials = counted(min(case.base.graded for case in few if case.base is not None), "trial")
    return (
        f"{comparison.base} has too few trials ({trials}) of {names}: "
        "more trials of this run alone can show that a case still passes, not that it is worse; "
        f"accept a baseline of --repeat {USUAL_TRIALS}"
    )


def _can_be_confirmed(case: ComparedCase, more: int, rate: float) -> bool:
    if case.base is None or case.head is None:
        return True
    return can_be_called(Margins(case.base.graded, case.head.graded + more, case.base.graded), rate)


def _by_key(cases: Iterable[ComparedCase]) -> dict[CaseKey, ComparedCase]:
    return {case.key: case for case in cases}


def _with_rates(
    named: Sequence[OfCase], what: str, cases: Sequence[ComparedCase], *, by_target: bool
) -> str:
    """Return what became of which cases, and of the first one from where to where."""
    known = _by_key(cases)
    first = known[named[0].key]
    before, now = first.base, first.head
    assert before is not None, "a case of both sides"
    assert now is not None, "a case of both sides"
    rates = f"passed {before.passed} of {before.graded}, now {now.passed} of {now.graded}"
    if len(named) == 1:
        return f"{_ids(named, by_target=by_target)} {rates}"
    return f"{len(named)} cases {what}: {_ids(named, by_target=by_target)} (the first {rates})"


def _unmeasured(statement: Statement) -> Iterable[MetricChange]:
    """Yield the limits that could not be checked, since a side does not have what they limit."""
    for change in statement.metrics:
        is_limit = change.allowed is not None
        if is_limit and change.verdict == "not compared" and change.reason != NOT_SHARED:
            yield change


def _crashes(side: str, cases: Sequence[CaseOutcome]) -> Iterable[str]:
    """Yield how many of the compared trials of a side crashed, and why the first of them did."""
    crashed: list[TrialOutcome] = []
    for case in cases:
        crashed += (trial for trial in case.trials if trial.is_crash)
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
    if all(case.change in ("new", "removed") for case in cases):
        yield f"no case of this run is in {base.name}: nothing was compared"
    if weak := [case for case in cases if _is_weak(case, wrong_calls(terms.confidence))]:
        have = f"{counted(len(weak), 'case')} {'has' if len(weak) == 1 else 'have'}"
        yield f"{have} too few trials to show that one of them broke: {ids(weak)}"
    gone = [case for case in cases if case.change == "removed" and case.head is None]
    if gone and len(gone) < len(cases):
        yield f"{counted(len(gone), 'case')} of {base.name} not in this run: {ids(gone)}"
    if left_out := [case for case in cases if case.left_out]:
        changed = f"{counted(len(left_out), 'case')} with a changed question or evaluators"
        yield (
            f"{changed} left out: {ids(left_out)}; "
            "accept a new baseline, or include them with --allow-changes"
        )
    if stale := [case for case in cases if case.stale and not case.left_out]:
        changed = f"{counted(len(stale), 'case')} changed since {base.name}"
        yield f"{changed} (case or target): {ids(stale)}"
    yield from _of_age(base, now, has_limits=bool(terms.limits))


def _of_age(base: Side, now: datetime, *, has_limits: bool) -> Iterator[str]:
    """Yield what is wrong with an old baseline."""
    if has_limits and base.has_no_figures:
        yield (
            f"{base.name} was written by an earlier version, "
            "without costs, tokens and times: accept it again"
        )
    age_days = _age_days(base.measured, now)
    if age_days is not None and age_days > STALE_AFTER_DAYS:
        yield f"{base.name} is {age_days} days old"


def _is_weak(case: ComparedCase, rate: float) -> bool:
    """Whether a case with several trials could not be called worse if it fell from all to none."""
    if case.base is None or case.head is None or case.single:
        return False
    before, now = case.base.graded, case.head.graded
    if not before or not now:
        return False
    return not can_be_called(Margins(before, now, before), rate)


def _ids(cases: Sequence[OfCase], *, by_target: bool) -> str:
    names = [shortened(case_name(case.key, names_target=by_target), MAX_NAME) for case in cases]
    return first_few(names)


def _age_days(measured: str | None, now: datetime) -> int | None:
    if measured is None:
        return None
    try:
        then = datetime.fromisoformat(measured)
    except ValueError:
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return (now - then).days
