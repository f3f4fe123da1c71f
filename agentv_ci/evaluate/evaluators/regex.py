"""`type: regex`: 1 when a pattern matches somewhere in the answer, else 0."""

from __future__ import annotations

import asyncio

import regex

from agentv_ci.contracts.evaluators import RegexEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.submission import Submission

TIMEOUT_S = 2.0


class Regex:
    """See Evaluator."""

    def __init__(self, settings: RegexEvaluator) -> None:
        self._settings = settings

    async def evaluate(self, submission: Submission) -> Score:
        """Search, for a limited time: a pattern that backtracks without end is an error, not a zero."""
        flags = 0 if self._settings.case_sensitive else regex.IGNORECASE
        try:
            pattern = regex.compile(self._settings.value, flags)
            # In a thread: the search holds neither the loop nor, with a time limit, the interpreter.
            found = await asyncio.to_thread(pattern.search, submission.answer, timeout=TIMEOUT_S)
        except TimeoutError:
            return Score(error=f"the pattern took longer than {TIMEOUT_S:g} s: '{self._settings.value}'")
        except (regex.error, RecursionError) as error:
            return Score(error=f"not a regular expression: {error}")
        if found:
            return Score(1.0, hits=(f"matches '{self._settings.value}'",))
        return Score(0.0, misses=(f"does not match '{self._settings.value}'",))
