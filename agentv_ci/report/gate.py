"""Whether a run passed, decided in one place: the printed verdict, the report and the exit code all come from here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from agentv_ci.contracts.plan import PlanSuite
from agentv_ci.contracts.report import GateResult, GateSettings
from agentv_ci.contracts.results import PRECISION
from agentv_ci.errors import FAILED, INFRASTRUCTURE, PASSED
from agentv_ci.report.outcomes import CaseOutcome
from agentv_ci.report.statistics import describe

WORST_FIRST = (FAILED, INFRASTRUCTURE, PASSED)

VERDICTS: dict[int, Literal["pass", "fail", "error"]] = {PASSED: "pass", FAILED: "fail", INFRASTRUCTURE: "error"}


def judge_run(
    suites: Sequence[PlanSuite], outcomes: Sequence[CaseOutcome], *, dry_run: bool, write_error: str | None
) -> GateResult:
    """Return the gate's word over all suites; each has its own thresholds, and the worst exit code wins."""
    settings = tuple(
        GateSettings(
            suite=suite.path,
            min_pass_rate=suite.gate.min_pass_rate,
            min_mean_score=suite.gate.min_mean_score,
            max_errors=suite.gate.max_errors,
        )
        for suite in suites
    )
    if dry_run:
        return GateResult(verdict="dry-run", exit_code=PASSED, reasons=(), settings=settings)
    if not suites:
        reason = "nothing ran: no case was left to run"
        return GateResult(verdict="nothing", exit_code=PASSED, reasons=(reason,), settings=())
    codes, reasons = [PASSED], []
    if write_error is not None:
        codes.append(INFRASTRUCTURE)
        reasons.append(f"results could not be written: {write_error}")
    for suite in suites:
        code, why = _judge_suite(suite, [each for each in outcomes if each.case.suite == suite.path])
        codes.append(code)
        reasons += [f"{suite.path}: {reason}" if len(suites) > 1 else reason for reason in why]
    exit_code = next(code for code in WORST_FIRST if code in codes)
    return GateResult(verdict=VERDICTS[exit_code], exit_code=exit_code, reasons=tuple(reasons), settings=settings)


def _judge_suite(suite: PlanSuite, outcomes: Sequence[CaseOutcome]) -> tuple[int, list[str]]:
    quality = _quality(suite, outcomes)
    errors = sum(outcome.errors for outcome in outcomes)
    too_many = (
        [f"{errors} errors, at most {suite.gate.max_errors} are allowed"] if errors > suite.gate.max_errors else []
    )
    graded = any(outcome.verdict != "error" for outcome in outcomes)
    if not graded:
        # Without a single grade there is no answer about quality, only about what broke.
        return (INFRASTRUCTURE if too_many else FAILED), [*too_many, "no case was graded"]
    if quality:
        return FAILED, [*quality, *too_many]
    return (INFRASTRUCTURE if too_many else PASSED), too_many


def _quality(suite: PlanSuite, outcomes: Sequence[CaseOutcome]) -> list[str]:
    graded = [outcome for outcome in outcomes if outcome.verdict != "error"]
    if not graded:
        return []
    reasons = []
    rate = sum(outcome.verdict == "pass" for outcome in graded) / len(graded)
    if round(rate, PRECISION) < round(suite.gate.min_pass_rate, PRECISION):
        reasons.append("pass rate {} is below {}".format(*_apart(rate, suite.gate.min_pass_rate, ".{}%", least=1)))
    mean = describe(graded).mean
    if (
        suite.gate.min_mean_score is not None
        and mean is not None
        and mean < round(suite.gate.min_mean_score, PRECISION)
    ):
        reasons.append("mean score {} is below {}".format(*_apart(mean, suite.gate.min_mean_score, ".{}f", least=3)))
    return reasons


def _apart(reached: float, wanted: float, form: str, *, least: int) -> tuple[str, str]:
    """Write two different figures with as many digits as it takes to see that they are."""
    for digits in range(least, PRECISION):
        texts = format(reached, form.format(digits)), format(wanted, form.format(digits))
        if texts[0] != texts[1]:
            return texts
    return repr(reached), repr(wanted)
