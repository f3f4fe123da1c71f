"""Cases to prove."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from agentv_ci.contracts.exchange import ChatMessage, Request
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.plan_evaluators import PlanEvaluator
from agentv_ci.contracts.plan_parts import PlanMessage
from tests.support import runs

_EVALUATORS: TypeAdapter[PlanEvaluator] = TypeAdapter(PlanEvaluator)


def case(reference: str, *, calls: Sequence[Any] = (), evaluators: Sequence[Any] = (), **given: Any) -> PlanCase:
    """A case with this reference answer and its tool calls."""
    expected = PlanMessage.model_validate({"role": "assistant", "tool_calls": calls})
    own: dict[str, Any] = {"evaluators": tuple(map(_EVALUATORS.validate_python, evaluators))} if evaluators else {}
    return runs.case(reference_answer=reference, expected_messages=(expected,), **own, **given)


def request_of(case: PlanCase, question: str = "Which city?") -> Request:
    """The question of a case."""
    return Request(case.id, question, "", (ChatMessage("user", question),), timeout_s=1, cwd=Path())
