"""What a page tells of one trial: the texts of its row, cut where they are long, without what it does not have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.results import EvaluatorResult, OutputMessage, ResultRow, ToolCall, Usage
from agentv_ci.report.renderers.html.embedding import cut, pretty

MAX_LEVELS = 20
"""Of evaluators within evaluators."""


def details(row: ResultRow) -> JsonObject:
    """Return what is shown of a row. Absent is what the row does not have."""
    return _known(
        {
            "input": [
                _known({"role": turn.role, "name": turn.name, "text": cut(turn.content)})
                for turn in row.input_messages or ()
            ],
            "expected": cut(row.expected_outcome or ""),
            "reference": cut(row.reference_answer or ""),
            "answer": cut(row.candidate_answer),
            "evaluators": _evaluators(row.evaluator_results),
            "hits": _texts(row.hits) if not row.evaluator_results else [],
            "misses": _texts(row.misses) if not row.evaluator_results else [],
            "reasoning": cut(row.reasoning) if not row.evaluator_results else "",
            "error": cut(row.error or ""),
            "error_kind": row.error_kind,
            "stdout": cut(row.printed.stdout) if row.printed else "",
            "stderr": cut(row.printed.stderr) if row.printed else "",
            "turns": [_turn(each) for each in row.output_messages or ()],
            "calls": dict(row.trace_summary.tool_calls_by_name) if row.trace_summary else {},
            "failed_calls": (row.trace_summary.error_count or None) if row.trace_summary else None,
            "metadata": pretty(row.metadata) if row.metadata else "",
            "request": pretty(row.request) if row.request else "",
            "figures": _figures(row),
        }
    )


def _known(value: JsonObject) -> JsonObject:
    return {
        key: each for key, each in value.items() if each is not None and each is not False and each not in ("", [], {})
    }


def _texts(texts: Iterable[str]) -> list[JsonValue]:
    return [cut(each) for each in texts]


def _evaluators(results: Sequence[EvaluatorResult], levels: int = MAX_LEVELS) -> list[JsonValue]:
    return [
        _known(
            {
                "name": each.name,
                "type": each.type,
                "verdict": each.verdict,
                "score": each.score if each.status == "ok" else None,
                "weight": each.weight,
                "required": each.required,
                "hits": _texts(each.hits),
                "misses": _texts(each.misses),
                "reasoning": cut(each.reasoning),
                "raw": cut(each.raw_response or ""),
                "stderr": cut(each.stderr or ""),
                "members": _evaluators(each.evaluator_results or (), levels - 1),
            }
        )
        for each in (results if levels else ())
    ]


def _turn(turn: OutputMessage) -> JsonObject:
    return _known(
        {
            "role": turn.role,
            "text": pretty(turn.content) if turn.content is not None else "",
            "calls": [_call(each) for each in turn.tool_calls],
        }
    )


def _call(call: ToolCall) -> JsonObject:
    return _known(
        {
            "tool": call.tool,
            "input": pretty(call.input) if call.input is not None else "",
            "output": pretty(call.output) if call.output is not None else "",
        }
    )


def _figures(row: ResultRow) -> JsonObject:
    return _known(
        {
            "provider": row.provider,
            "model": row.model,
            "finish_reason": row.finish_reason,
            "attempts": row.attempts,
            "requests": row.requests,
            "duration_ms": row.duration_ms,
            "usage": _usage(row.usage),
            "cost_usd": row.cost_usd,
            "judge_usage": _usage(row.judge_usage),
            "judge_cost_usd": row.judge_cost_usd,
            "cached": row.cached,
            # JavaScript would round a large one.
            "seed": None if row.seed is None else str(row.seed),
            "timestamp": row.timestamp,
            "conversation": row.conversation_id,
            "digest": row.digest,
            "masked": row.masked,
        }
    )


def _usage(usage: Usage | None) -> JsonObject:
    return {} if usage is None else _known(usage.model_dump())
