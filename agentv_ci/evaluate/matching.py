"""What evaluators share that look for text."""

from __future__ import annotations

from agentv_ci.contracts.evaluators import TextEvaluator


def comparable(text: str, settings: TextEvaluator) -> str:
    """Return a text as it is compared: without case, unless case matters."""
    return text if settings.case_sensitive else text.casefold()
