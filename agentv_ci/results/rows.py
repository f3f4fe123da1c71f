"""Build result rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.exchange import Grade, ProviderError, Response
from agentv_ci.contracts.plan import PlanCase, PlanSuite
from agentv_ci.contracts.results import (
    EvaluatorResult,
    Expense,
    InputMessageRecord,
    OutputMessage,
    ResultRow,
    RowSource,
    TraceSummary,
    Usage,
    blame_of,
)
from agentv_ci.contracts.targets import Target, model_name
from agentv_ci.results.caps import NOTHING_USED, Used
from agentv_ci.results.expenses import with_expenses, with_totals

TrialKey = tuple[CaseKey, int]
"""Case and number of a trial."""


class Trial(Struct, frozen=True):
    """One run of one case."""

    case: PlanCase
    suite: PlanSuite
    target: Target
    number: int
    """From 1."""
    seed: int | None
    dry_run: bool
    used: Used = NOTHING_USED
    """What its case has used before, if it has a cap."""
    earlier: tuple[Expense, ...] = ()
    """What earlier runs, which this one continues, have used for it without an answer that is kept.
    """

    @property
    def key(self) -> TrialKey:
        """Case and number, unique in a run."""
        return (self.case.suite, self.case.id, self.case.arm or self.target.name), self.number


class Effort(Struct, frozen=True):
    """Attempts, requests and time that an answer or an error took."""

    attempts: int
    requests: int
    duration_ms: int
    expenses: tuple[Expense, ...] = ()
    """What each request used, if one of them failed and still used something."""


def graded_row(
    trial: Trial,
    effort: Effort,
    response: Response,
    grade: Grade,
    *,
    now: datetime,
    include_trace: bool,
) -> ResultRow:
    """Return the row of an answered trial."""
    summary = None
    if response.has_trace:
        summary = TraceSummary.of(call.tool for call in response.calls)
    answer = {
        "model": response.model or (None if trial.dry_run else model_name(trial.target)),
        "finish_reason": response.finish_reason,
        "candidate_answer": response.answer,
        "usage": response.usage or Usage(),
        "cost_usd": 0.0 if response.cached else response.cost_usd,
        "cached": response.cached,
        "masked": response.masked or grade.masked,
        "request": dict(response.request),
        "output_messages": response.messages if include_trace and _says_more(response) else None,
        "trace_summary": summary,
    }
    if not include_trace:
        grade = replace(grade, results=tuple(map(without_prompts, grade.results)))
    return _row(trial, effort, _graded(trial.case, grade, now) | answer, grade.judge_expenses)


def without_prompts(result: EvaluatorResult) -> EvaluatorResult:
    """Return a result without questions to judges, in its members too."""
    members = tuple(map(without_prompts, result.evaluator_results or ())) or None
    return result.model_copy(update={"judge_prompt": None, "evaluator_results": members})


def _says_more(response: Response) -> bool:
    """Whether the messages of an answer are more than its text."""
    match response.messages:
        case () | (OutputMessage(role="assistant", content=response.answer, tool_calls=()),):
            return False
        case _:
            return True


def _only_message(answer: str) -> OutputMessage:
    return OutputMessage(role="assistant", content=answer)


def tool_calls_are_known(row: ResultRow) -> bool:
    """Whether a row has the tool calls of its answer (not with `--no-trace`)."""
    summary = row.trace_summary
    return summary is not None and (row.output_messages is not None or summary.event_count == 0)


def stored_response(row: ResultRow) -> Response:
    """Return the answer of a row, with what the run has used that answered it."""
    response = Response(
        answer=row.candidate_answer,
        messages=row.output_messages or (_only_message(row.candidate_answer),),
        has_trace=tool_calls_are_known(row),
        model=row.model,
        usage=row.usage if row.usage != Usage() else None,
        finish_reason=row.finish_reason,
        requests=row.requests,
        duration_ms=row.duration_ms,
        cost_usd=row.cost_usd,
        request=row.request,
        masked=row.masked,
        changes=row.workspace.changes if row.workspace is not None else None,
    )
    if row.expenses is None:
        return response
    own = tuple(
        expense for expense in row.expenses if not expense.is_judge and not expense.is_earlier
    )
    return with_totals(response, own)


def unscored_row(trial: Trial, answer: str, *, duration_ms: int, now: datetime) -> ResultRow:
    """Return the row of an answer before it is scored."""
    nothing = Grade(score=0.0, verdict="fail", hits=(), misses=(), reasoning="", results=())
    effort = Effort(attempts=1, requests=0, duration_ms=duration_ms)
    return _row(trial, effort, _graded(trial.case, nothing, now) | {"candidate_answer": answer})


def regraded_row(
    row: ResultRow, case: PlanCase, grade: Grade, *, now: datetime, dry_run: bool
) -> ResultRow:
    """Return a row with a new grade of the same answer.

    It keeps the digest of the case that was asked, so that later runs do not reuse the answer for a
    changed question.
    """
    masked, dry_run = row.masked or grade.masked, row.dry_run or dry_run
    update = {"digest": row.digest, "masked": masked, "dry_run": dry_run}
    fields = _graded(case, grade, now) | update
    if row.expenses is not None or grade.judge_expenses:
        answer = {"usage": row.usage, "cost_usd": row.cost_usd, "model": row.model}
        of_target = [expense for expense in row.expenses or () if not expense.is_judge]
        fields = with_expenses(answer | fields, of_target, grade.judge_expenses)
    return row.model_copy(update=fields)


def failed_row(trial: Trial, effort: Effort, error: ProviderError, *, now: datetime) -> ResultRow:
    """Return the row of a trial without an answer."""
    nothing = Grade(
        score=0.0, verdict="error", hits=(), misses=(), reasoning="", results=(), error=error.detail
    )
    failure = {
        "error_kind": error.kind,
        "blame": error.blame or blame_of(error.kind, trial.target.provider),
        "candidate_answer": "",
        "masked": error.masked,
        "printed": error.printed,
    }
    return _row(trial, effort, _graded(trial.case, nothing, now) | failure)


def skipped_row(trial: Trial, *, now: datetime) -> ResultRow:
    """Return the row of a case that is not run."""
    nothing = Grade(score=0.0, verdict="error", hits=(), misses=(), reasoning="", results=())
    skipped = {
        "status": "skipped",
        "verdict": "skipped",
        "score": None,
        "error_kind": None,
        "blame": None,
        "candidate_answer": "",
    }
    effort = Effort(attempts=0, requests=0, duration_ms=0)
    return _row(
        trial, effort, _graded(trial.case, nothing, now) | skipped | {"skip": trial.case.skip}
    )


def _row(
    trial: Trial, effort: Effort, answer: dict[str, Any], judges: Sequence[Expense] = ()
) -> ResultRow:
    case = trial.case
    return ResultRow(
        **with_expenses(answer, (*trial.earlier, *effort.expenses), judges),
        eval_id=case.id,
        dataset=trial.suite.dataset,
        conversation_id=case.conversation_id,
        suite=case.suite,
        target=trial.target.name,
        arm=case.arm,
        trials=case.trials,
        require=case.require,
        stop_when=case.stop_when,
        provider="mock" if trial.dry_run else trial.target.provider,
        trial=trial.number,
        seed=trial.seed,
        input_messages=tuple(
            InputMessageRecord(role=message.role, name=message.name, content=message.outline)
            for message in case.input_messages
        ),
        attempts=effort.attempts,
        requests=effort.requests,
        duration_ms=effort.duration_ms,
        dry_run=trial.dry_run,
        metadata=case.metadata,
        tags=case.tags or (),
    )


def _graded(case: PlanCase, grade: Grade, now: datetime) -> dict[str, Any]:
    """Return the fields of a row that come from its grade and case."""
    return {
        "timestamp": now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "digest": case.digest,
        "threshold": case.threshold,
        "expected_outcome": case.expected_outcome,
        "reference_answer": case.reference_answer,
        "status": "error" if grade.verdict == "error" else "ok",
        "verdict": grade.verdict,
        # A part of a score means nothing without the rest.
        "score": 0.0 if grade.verdict == "error" else grade.score,
        "hits": grade.hits,
        "misses": grade.misses,
        "reasoning": grade.reasoning,
        "evaluator_results": grade.results,
        "error": grade.error,
        "error_kind": "evaluator" if grade.verdict == "error" else None,
        "blame": "infrastructure" if grade.verdict == "error" else None,
        "judge_usage": grade.judge_usage,
        "judge_cost_usd": grade.judge_cost_usd,
        "source": RowSource(path=case.source.path, line=case.source.line),
    }
