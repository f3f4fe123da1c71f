"""The part of a row that is kept in memory."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from agentv_ci.base.text import shortened
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.results import EvaluatorResult, ResultRow
from agentv_ci.results.trials import is_graded

MAX_FINDING = 300


class Finding(Struct, frozen=True, gc=False):
    """The result of one evaluator for an answer that did not pass."""

    name: str
    type: str
    verdict: str
    score: float
    text: str
    required: bool = False
    """Whether it alone fails the case."""

    @property
    def title(self) -> str:
        """Its name, marked when it is required."""
        if self.required:
            return f"{self.name} (required)"
        return self.name


class TrialOutcome(Struct, frozen=True, gc=False):
    """The part of a row that is kept in memory."""

    number: int
    verdict: Verdict
    score: float
    summary: str
    """Why it did not pass, in one line."""
    duration_ms: int = 0
    """How long its answer took."""
    findings: tuple[Finding, ...] = ()
    """Why it did not pass, by evaluator; empty when it passed."""
    answer: str = ""
    """The shortened answer; empty when it passed."""
    cost_usd: float | None = None
    """Of the answer; None if unknown or not asked for."""
    tokens: int | None = None
    is_cached: bool = False
    """Whether its answer was not asked for."""
    is_crash: bool = False
    """Whether it has an error of the agent: it counts as failed, with score 0."""

    @property
    def is_graded(self) -> bool:
        """Whether it counts: it has a verdict, or it crashed."""
        return is_graded(self)


def numbers_of(trials: Iterable[TrialOutcome]) -> list[int]:
    """Return the numbers of trials."""
    return [trial.number for trial in trials]


def same_score(score: float) -> float:
    """Return the same object for the scores of most trials.

    One of its own for each takes 24 bytes.
    """
    if score == 1.0:
        return 1.0
    return 0.0 if score == 0.0 else score


def trial_outcome(row: ResultRow) -> TrialOutcome:
    """Return the part of a row that says why it did not pass."""
    has_passed = row.verdict == "pass"
    return TrialOutcome(
        row.trial,
        row.verdict,
        same_score(row.score or 0.0),
        summary="" if has_passed else shortened(_summary(row), MAX_FINDING),
        duration_ms=row.duration_ms,
        findings=() if has_passed else tuple(map(_finding, row.evaluator_results)),
        answer="" if has_passed else shortened(row.candidate_answer, MAX_FINDING),
        cost_usd=None if row.cached else row.cost_usd,
        tokens=row.usage.total_tokens,
        is_cached=row.cached,
        is_crash=row.is_crash,
    )


def _finding(result: EvaluatorResult) -> Finding:
    reasons = result.hits if result.verdict == "pass" else result.misses
    return Finding(
        result.name,
        result.type,
        result.verdict,
        result.score,
        shortened("; ".join(reasons) or result.reasoning, MAX_FINDING),
        result.required and result.verdict != "pass",
    )


def _summary(row: ResultRow) -> str:
    if row.verdict == "skipped":
        return row.skip or "no reason is given"
    if row.error is not None:
        if row.error_kind == "evaluator":
            return row.error
        return f"{row.error_kind}: {row.error}"
    return "; ".join(row.misses) or row.reasoning
