"""`type: latency`, `cost`, `token_usage`, `tool_calls`: 1 when the answer stays within its limits, else 0."""

from __future__ import annotations

from decimal import Decimal

from agentv_ci.contracts.evaluators import CostEvaluator, LatencyEvaluator, TokenUsageEvaluator, ToolCallsEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.results import PRECISION, Usage
from agentv_ci.evaluate.scoring import share_met
from agentv_ci.evaluate.submission import EvaluatorServices, Submission
from agentv_ci.text import counted


async def latency(settings: LatencyEvaluator, submission: Submission, services: EvaluatorServices) -> Score:
    """Compare the response time of the last attempt."""
    took_ms = submission.response.duration_ms
    if took_ms is None:
        return Score(unmeasured="the response time")
    most = f"{Decimal(str(settings.max_ms)).normalize():,f} ms"
    return share_met([(took_ms <= settings.max_ms, f"{took_ms:,} ms, at most {most}")])


async def cost(settings: CostEvaluator, submission: Submission, services: EvaluatorServices) -> Score:
    """Compare the cost of the answer, without judges."""
    cost_usd = submission.response.cost_usd
    if cost_usd is None:
        return Score(unmeasured="a cost, or the tokens of a model with a known price")
    dollars, most = (Decimal(str(round(each, PRECISION))).normalize() for each in (cost_usd, settings.max_usd))
    return share_met([(dollars <= most, f"${dollars:f}, at most ${most:f}")])


async def tool_calls(settings: ToolCallsEvaluator, submission: Submission, services: EvaluatorServices) -> Score:
    """Compare the number of tool calls."""
    if not submission.response.has_trace:
        return Score(unmeasured="tool calls")
    number = len(submission.response.calls)
    return share_met([(number <= settings.max, f"{counted(number, 'tool call')}, at most {settings.max}")])


async def token_usage(settings: TokenUsageEvaluator, submission: Submission, services: EvaluatorServices) -> Score:
    """Compare the tokens that the provider counted with every limit that is set."""
    usage = submission.response.usage or Usage()
    if submission.response.cost_usd and not any((usage.input_tokens, usage.output_tokens, usage.total_tokens)):
        # An answer that costs something has tokens: agents report zeros for what they did not count.
        usage = Usage()
    total = usage.total_tokens
    if total is None and usage.input_tokens is not None and usage.output_tokens is not None:
        total = usage.input_tokens + usage.output_tokens
    limits = {
        "tokens": (total, None, settings.max_total),
        "input tokens": (usage.input_tokens, None, settings.max_input),
        "output tokens": (usage.output_tokens, settings.min_output, settings.max_output),
    }
    hits: list[str] = []
    misses: list[str] = []
    unmeasured: list[str] = []
    for noun, (used, least, most) in limits.items():
        if used is None:
            unmeasured += [noun] if least is not None or most is not None else []
            continue
        if least is not None:
            (hits if used >= least else misses).append(f"{used:,} {noun}, at least {least:,}")
        if most is not None:
            (hits if used <= most else misses).append(f"{used:,} {noun}, at most {most:,}")
    if unmeasured and not misses:
        return Score(unmeasured=f"the number of {' and '.join(unmeasured)}")
    return Score(0.0 if misses else 1.0, hits=tuple(hits), misses=tuple(misses))
