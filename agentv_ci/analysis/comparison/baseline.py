"""The baseline file: the outcomes of a run.

It has one line for each case, so that changes are readable in a diff.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import filterfalse
from typing import TypeVar

from agentv_ci.analysis.cases.outcomes import CaseOutcome, FullOutcome, threshold_of
from agentv_ci.analysis.cases.provenance import Makeup
from agentv_ci.analysis.cases.trial_outcomes import TrialOutcome, numbers_of
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.cases import RowCase
from agentv_ci.contracts.comparison import BASELINE_SCHEMA, BaselineCase, BaselineDocument

T = TypeVar("T")


def baseline_of(
    outcomes: Iterable[CaseOutcome], *, plan_digest: str | None, measured: str
) -> BaselineDocument | None:
    """Return the baseline of a run, without cases that are not graded; None when none is."""
    cases = tuple(_case(outcome) for outcome in outcomes if outcome.is_graded)
    if not cases:
        return None
    return BaselineDocument(
        schema_=BASELINE_SCHEMA, measured=measured, plan_digest=plan_digest, cases=cases
    )


def baseline_text(document: BaselineDocument) -> str:
    """Return the text of a baseline file; the same run gives the same bytes."""
    data = document.model_dump(by_alias=True)
    cases = ",\n".join(f"    {json.dumps(case, ensure_ascii=False)}" for case in data.pop("cases"))
    head = "".join(f"  {json.dumps(name)}: {json.dumps(value)},\n" for name, value in data.items())
    return f'{{\n{head}  "cases": [\n{cases}\n  ]\n}}\n'


def _case(outcome: CaseOutcome) -> BaselineCase:
    assert outcome.verdict != "skipped", "a baseline has no skipped cases"
    graded = outcome.graded
    return BaselineCase(
        suite=outcome.case.suite,
        id=outcome.case.id,
        target=outcome.target,
        # All trials of a graded case without a verdict crashed.
        verdict="fail" if outcome.verdict == "error" else outcome.verdict,
        mean=outcome.score,
        passed=tuple(numbers_of(filter(_has_passed, graded))),
        missed=tuple(numbers_of(filterfalse(_has_passed, graded))),
        crashed=tuple(numbers_of(trial for trial in graded if trial.is_crash)),
        without_verdict=outcome.ran - len(graded) + outcome.missing,
        digest=outcome.case.digest,
        threshold=threshold_of(outcome),
        costs_usd=_known([trial.cost_usd for trial in graded]),
        tokens=_known([trial.tokens for trial in graded]),
        durations_ms=_known(list(map(_duration_ms, graded))),
        task=outcome.makeup.task or None,
        models=outcome.makeup.models or None,
        judges=outcome.makeup.judges or None,
    )


def _has_passed(trial: TrialOutcome) -> bool:
    return trial.verdict == "pass"


def _duration_ms(trial: TrialOutcome) -> int | None:
    """Return how long an answer took; None if that is not known."""
    if trial.is_cached:
        return None
    return trial.duration_ms or None


def _known(values: Sequence[T | None]) -> tuple[T | None, ...] | None:
    """Return the values of all trials; None if none is known."""
    if values.count(None) == len(values):
        return None
    return tuple(values)


def outcome_of(case: BaselineCase) -> CaseOutcome:
    """Return the outcome of a case, as far as the baseline has it."""
    numbers = sorted((*case.passed, *case.missed))
    trials = tuple(_trial(case, index, number) for index, number in enumerate(numbers))
    planned = len(trials) + case.without_verdict
    known = RowCase(
        case.id,
        case.suite,
        case.digest,
        case.suite,
        1,
        planned,
        "majority",
        None,
        threshold=case.threshold,
    )
    makeup = Makeup(case.task or "", case.models or (), case.judges or ())
    return FullOutcome(known, case.target, case.verdict, case.mean, trials, makeup=makeup)


def _trial(case: BaselineCase, index: int, number: int) -> TrialOutcome:
    has_passed, is_crash = number in case.passed, number in case.crashed
    return TrialOutcome(
        number,
        _verdict(has_passed=has_passed, is_crash=is_crash),
        float(has_passed),
        "",
        duration_ms=_at(case.durations_ms, index) or 0,
        cost_usd=_at(case.costs_usd, index),
        tokens=_at(case.tokens, index),
        is_crash=is_crash,
    )


def _verdict(*, has_passed: bool, is_crash: bool) -> Verdict:
    if has_passed:
        return "pass"
    return "error" if is_crash else "fail"


def _at(values: Sequence[T | None] | None, index: int) -> T | None:
    if values is None or index >= len(values):
        return None
    return values[index]


def is_old(document: BaselineDocument) -> bool:
    """Whether a baseline is of an earlier version.

    That wrote no costs, tokens and times, nor what was asked.
    """
    return all(case.task is None for case in document.cases)
