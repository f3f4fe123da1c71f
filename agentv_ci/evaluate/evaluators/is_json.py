"""`type: is_json`: 1 when the answer, as it is, is JSON, else 0."""

from __future__ import annotations

import json

from agentv_ci.contracts.evaluators import IsJsonEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.services import EvaluatorServices
from agentv_ci.evaluate.submission import Submission
from agentv_ci.json_access import refuse_constant
from agentv_ci.text import unfenced


async def is_json(settings: IsJsonEvaluator, submission: Submission, services: EvaluatorServices) -> Score:
    """Parse, as strictly as a program that gets the answer would."""
    answer = submission.answer
    try:
        # Numbers are looked at and not made: JSON has longer ones than any program.
        json.loads(answer, parse_int=str, parse_float=str, parse_constant=refuse_constant)
    except RecursionError:
        return Score(error="the answer is nested too deep to be read")
    except ValueError as error:
        reason = "it stands in a code fence" if unfenced(answer) != answer else str(error)
        return Score(0.0, misses=(f"not JSON: {reason}",))
    return Score(1.0, hits=("is JSON",))
