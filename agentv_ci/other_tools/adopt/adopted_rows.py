"""Results of other tools → rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from agentv_ci.base.canonical import digest_of_value
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.other_tools import AdoptedCheck, AdoptedResult
from agentv_ci.contracts.results import (
    EvaluatorResult,
    InputMessageRecord,
    ResultRow,
    RowSource,
    Usage,
)
from agentv_ci.other_tools.adopt.case_ids import Named, case_keys
from agentv_ci.other_tools.adopt.values import name_of, numbered


def adopted_rows(
    results: Iterable[tuple[str, AdoptedResult]], *, tool: str, now: datetime
) -> Iterator[ResultRow]:
    """Yield a row for each result; several of a case and a target are its trials.

    Each result comes with the path of its file from the repository: the suite of results that name
    no file. Results of two files are never trials of one case, whatever their tests are called. The
    digest of a case is that of its question, expected answer and checks, so that a comparison knows
    whether two runs had the same case.
    """
    found = list(results)
    keys = case_keys(found)
    trials, seen = Counter(keys), Counter[Named]()
    time = now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    for key, (_, result) in zip(keys, found, strict=True):
        seen[key] += 1
        yield _row(result, key, tool=tool, time=time, trial=seen[key], trials=trials[key])


def _verdict(result: AdoptedResult) -> Verdict:
    if result.skip is not None:
        return "skipped"
    if result.passed is None:
        return "error"
    if result.passed:
        return "pass"
    return "fail"


def _score(result: AdoptedResult, verdict: Verdict) -> float | None:
    if verdict == "skipped":
        return None
    if verdict == "error":
        return 0.0
    if result.score is None:
        return float(verdict == "pass")
    return result.score


def _row(
    result: AdoptedResult, key: Named, *, tool: str, time: str, trial: int, trials: int
) -> ResultRow:
    verdict = _verdict(result)
    definition = [key.id, result.question, result.expected, sorted(result.definition.items())]
    checks = [(check.name, check.type, check.weight) for check in result.checks]
    return ResultRow.model_validate(
        {
            "timestamp": time,
            "eval_id": key.id,
            "dataset": key.suite.rpartition("/")[2].partition(".")[0] or key.suite,
            "suite": key.suite,
            "target": key.target,
            "provider": tool,
            "model": result.model,
            "trial": trial,
            "trials": trials,
            "require": result.require,
            "digest": digest_of_value([*definition, checks]),
            "input_messages": tuple(
                InputMessageRecord(role=role, content=text) for role, text in result.question
            ),
            "expected_outcome": result.outcome,
            "reference_answer": result.expected,
            "status": "ok" if verdict in {"pass", "fail"} else verdict,
            "verdict": verdict,
            "score": _score(result, verdict),
            "hits": tuple(check.name for check in result.checks if check.passed),
            "misses": tuple(
                check.reasoning or check.name for check in result.checks if not check.passed
            ),
            "reasoning": result.reasoning,
            "candidate_answer": result.answer,
            "evaluator_results": tuple(_evaluator_results(result.checks)),
            "error": result.error,
            "error_kind": result.error_kind if verdict == "error" else None,
            "skip": result.skip,
            "attempts": 0 if verdict == "skipped" else 1,
            "requests": 0,
            "duration_ms": result.duration_ms,
            "usage": _usage(result),
            "cost_usd": result.cost_usd,
            "source": RowSource(path=key.suite, line=result.line),
            "tags": result.tags,
            "metadata": result.metadata,
        }
    )


def _usage(result: AdoptedResult) -> Usage:
    total = None
    if result.input_tokens is not None or result.output_tokens is not None:
        total = (result.input_tokens or 0) + (result.output_tokens or 0)
    return Usage(
        input_tokens=result.input_tokens, output_tokens=result.output_tokens, total_tokens=total
    )


def _evaluator_results(checks: Sequence[AdoptedCheck]) -> Iterator[EvaluatorResult]:
    names = numbered([name_of(check.name) for check in checks])
    for name, check in zip(names, checks, strict=True):
        yield EvaluatorResult(
            name=name,
            type=check.type,
            status="ok",
            score=check.score,
            weight=check.weight,
            required=False,
            verdict="pass" if check.passed else "fail",
            hits=(),
            misses=() if check.passed else (check.reasoning or check.name,),
            reasoning=check.reasoning,
        )
