"""The texts of one trial as data of a page: whatever they say, they end neither their element nor the page."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.results import EvaluatorResult, OutputMessage, ResultRow, ToolCall, Usage
from agentv_ci.json_access import well_formed
from agentv_ci.text import well_formed_text

MAX_TEXT = 100_000
"""Characters of one text that are there."""

MAX_LEVELS = 20
"""Of evaluators within evaluators."""


def details(row: ResultRow) -> JsonObject:
    """Return the texts and figures of a row. Absent is what the row does not have."""
    return _known(
        {
            "input": [
                _known({"role": turn.role, "name": turn.name, "text": turn.content})
                for turn in row.input_messages or ()
            ],
            "expected": row.expected_outcome,
            "reference": row.reference_answer,
            "answer": row.candidate_answer,
            "evaluators": _evaluators(row.evaluator_results),
            **({} if row.evaluator_results else _reasons(row)),
            "error": row.error,
            "error_kind": row.error_kind,
            "stdout": row.printed.stdout if row.printed else None,
            "stderr": row.printed.stderr if row.printed else None,
            "turns": [_turn(each) for each in row.output_messages or ()],
            "calls": dict(row.trace_summary.tool_calls_by_name) if row.trace_summary else {},
            "failed_calls": (row.trace_summary.error_count or None) if row.trace_summary else None,
            "metadata": _pretty(row.metadata or None),
            "request": _pretty(row.request or None),
            "figures": _figures(row),
        }
    )


def _known(value: JsonObject) -> JsonObject:
    return {
        key: each for key, each in value.items() if each is not None and each is not False and each not in ("", [], {})
    }


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
                **_reasons(each),
                "raw": each.raw_response,
                "stderr": each.stderr,
                "members": _evaluators(each.evaluator_results or (), levels - 1),
            }
        )
        for each in (results if levels else ())
    ]


def _reasons(of: ResultRow | EvaluatorResult) -> JsonObject:
    return {"hits": [*of.hits], "misses": [*of.misses], "reasoning": of.reasoning}


def _turn(turn: OutputMessage) -> JsonObject:
    return _known(
        {
            "role": turn.role,
            "text": _pretty(turn.content),
            "calls": [_call(each) for each in turn.tool_calls],
        }
    )


def _call(call: ToolCall) -> JsonObject:
    return _known(
        {
            "tool": call.tool,
            "input": _pretty(call.input),
            "output": _pretty(call.output),
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


def _pretty(value: JsonValue) -> str | None:
    """Return JSON as a text for people; a text that stands alone is itself, null is none."""
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except RecursionError:
        return "nested too deep to be shown"


def fitting_block(name: str, value: JsonObject, limit: int) -> bytes:
    """Return a block of at most about `limit` bytes: of texts too long together only beginnings are left."""
    pieces = (block(name, _beginnings(value, longest)) for longest in (MAX_TEXT, 20_000, 4_000, 800))
    fitting = (piece for piece in pieces if len(piece) <= limit)
    return next(fitting, None) or block(name, _beginnings(value, 100))


def _beginnings(value: JsonValue, longest: int) -> JsonValue:
    """Return the same with only the beginnings of texts that are longer, each with its whole length."""
    match value:
        case str() if len(value) > longest:
            return {"text": value[:longest], "length": len(value)}
        case dict():
            return {key: _beginnings(each, longest) for key, each in value.items()}
        case list():
            return [_beginnings(each, longest) for each in value]
        case _:
            return value


def block(name: str, value: JsonValue) -> bytes:
    """Return an element that holds a value as data; scripts find it by its name, a plain word."""
    return f'<script type="application/json" id="{name}">{encoded(value)}</script>\n'.encode()


def encoded(value: JsonValue) -> str:
    """Return JSON that can stand anywhere in a page, well-formed: U+FFFD for lone surrogates, null for NaN."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(well_formed(value), ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return well_formed_text(text)
