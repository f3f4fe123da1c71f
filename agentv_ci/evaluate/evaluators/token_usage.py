"""`type: token_usage`: 1 when the answer took as many tokens as it may, else 0."""

from __future__ import annotations

from agentv_ci.contracts.evaluators import TokenUsageEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.results import Usage
from agentv_ci.evaluate.submission import Submission


class TokenUsage:
    """See Evaluator."""

    def __init__(self, settings: TokenUsageEvaluator) -> None:
        self._settings = settings

    async def evaluate(self, submission: Submission) -> Score:
        """Compare every limit that is given with what the provider counted."""
        usage = submission.response.usage or Usage()
        total = usage.total_tokens
        if total is None and usage.input_tokens is not None and usage.output_tokens is not None:
            total = usage.input_tokens + usage.output_tokens
        limits = {
            "tokens": (total, None, self._settings.max_total),
            "input tokens": (usage.input_tokens, None, self._settings.max_input),
            "output tokens": (usage.output_tokens, self._settings.min_output, self._settings.max_output),
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
            return Score(unmeasured=f"its number of {' and of '.join(unmeasured)}")
        return Score(0.0 if misses else 1.0, hits=tuple(hits), misses=tuple(misses))
