"""The evaluators `latency`, `cost`, `token_usage` and `tool_calls`.

The score is 1 when the answer stays within its limits, else 0.
"""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from agentv_ci.base.text import counted
from agentv_ci.contracts.exchange import Response, Score
from agentv_ci.contracts.results import PRECISION, Usage, total_cost
from agentv_ci.contracts.trace_evaluators import (
    CostEvaluator,
    LatencyEvaluator,
    TokenUsageEvaluator,
    ToolCallsEvaluator,
)
from agentv_ci.evaluate.scoring import share_met
from agentv_ci.evaluate.submission import EvaluatorServices, Submission


async def latency(
    settings: LatencyEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Compare the response time of the last attempt."""
    took_ms = submission.response.duration_ms
    if took_ms is None:
        return Score(unmeasured="the response time")
    most = f"{Decimal(str(settings.max_ms)).normalize():,f} ms"
    return share_met([(took_ms <= settings.max_ms, f"{took_ms:,} ms, at most {most}")])


async def cost(
    settings: CostEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Compare the cost of the answer and of failed attempts, without judges."""
    response = submission.response
    is_partial = any(expense.cost_usd is None for expense in response.expenses)
    if response.cost_usd is None or (is_partial and response.cost_usd <= settings.max_usd):
        return Score(unmeasured="a cost, or the tokens of a model with a known price")
    dollars, most = _decimal(response.cost_usd), _decimal(settings.max_usd)
    return share_met([(dollars <= most, f"{_amount(dollars, response)}, at most ${most:f}")])


def _decimal(dollars: float) -> Decimal:
    return Decimal(str(round(dollars, PRECISION))).normalize()


def _amount(dollars: Decimal, response: Response) -> str:
    """Return a cost for people, with the part of failed attempts."""
    failed_usd = total_cost(
        expense for expense in response.expenses if expense.error_kind is not None
    )
    failed = ""
    if failed_usd:
        failed = f" (${Decimal(str(failed_usd)).normalize():f} of it in failed attempts)"
    return f"${dollars:f}{failed}"


async def tool_calls(
    settings: ToolCallsEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Compare the number of tool calls."""
    if not submission.response.has_trace:
        return Score(unmeasured="tool calls")
    number = len(submission.response.calls)
    return share_met(
        [(number <= settings.max, f"{counted(number, 'tool call')}, at most {settings.max}")]
    )


class _Tokens(Struct, frozen=True):
    """Counts of tokens; None if they are unknown."""

    input: int | None
    output: int | None
    total: int | None

    @classmethod
    def of(cls, usage: Usage | None, cost_usd: float | None) -> _Tokens:
        """Return what is known of tokens that cost so much."""
        known = usage or Usage()
        if cost_usd and not any((known.input_tokens, known.output_tokens, known.total_tokens)):
            # An answer that costs something has tokens: agents report zeros for what they did not
            # count.
            known = Usage()
        total = known.total_tokens
        if total is None and known.input_tokens is not None and known.output_tokens is not None:
            total = known.input_tokens + known.output_tokens
        return cls(known.input_tokens, known.output_tokens, total)


async def token_usage(
    settings: TokenUsageEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Compare the tokens that the provider counted with every limit that is set.

    Those of failed attempts count, but not as a part of a long answer.
    """
    response = submission.response
    whole = _Tokens.of(response.usage, response.cost_usd)
    parts = [_Tokens.of(expense.usage, None) for expense in response.expenses] or [whole]
    written = parts[-1].output
    hits: list[str] = []
    misses: list[str] = []
    unmeasured: dict[str, None] = {}
    for noun, used, counts, most in (
        ("tokens", whole.total, [part.total for part in parts], settings.max_total),
        ("input tokens", whole.input, [part.input for part in parts], settings.max_input),
        ("output tokens", whole.output, [part.output for part in parts], settings.max_output),
    ):
        least = settings.min_output if noun == "output tokens" else None
        if least is not None and written is None:
            unmeasured[noun] = None
        elif least is not None and written is not None:
            (hits if written >= least else misses).append(f"{written:,} {noun}, at least {least:,}")
        if most is not None and used is not None and used > most:
            misses.append(f"{used:,} {noun}, at most {most:,}")
        elif most is not None and (used is None or None in counts):
            # What was not counted of one attempt may be more than the limit leaves.
            unmeasured[noun] = None
        elif most is not None:
            hits.append(f"{used:,} {noun}, at most {most:,}")
    if unmeasured and not misses:
        return Score(unmeasured=f"the number of {' and '.join(unmeasured)}")
    return Score(0.0 if misses else 1.0, hits=tuple(hits), misses=tuple(misses))
