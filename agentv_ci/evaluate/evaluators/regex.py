"""`type: regex`: 1 when a pattern matches somewhere in the answer, else 0."""

from __future__ import annotations

import asyncio

from agentv_ci.contracts.evaluators import RegexEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.services import EvaluatorServices
from agentv_ci.evaluate.submission import Submission
from agentv_ci.patterns import TIMEOUT_S, NoPattern, compiled, occurs


async def regex(settings: RegexEvaluator, submission: Submission, services: EvaluatorServices) -> Score:
    """Search, for a limited time: a pattern that backtracks without end is an error, not a zero."""
    value = settings.value
    try:
        pattern = compiled(value, ignore_case=not settings.case_sensitive)
        # In a thread: the search holds neither the loop nor, with a time limit, the interpreter.
        found = await asyncio.to_thread(occurs, pattern, submission.answer)
    except TimeoutError:
        return Score(error=f"the pattern took longer than {TIMEOUT_S:g} s: '{value}'")
    except NoPattern as error:
        return Score(error=f"not a regular expression: {error}")
    if found:
        return Score(1.0, hits=(f"matches '{value}'",))
    return Score(0.0, misses=(f"does not match '{value}'",))
