"""Errors of pydantic models as places and messages."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import ValidationError

from agentv_ci.contracts.source import Pointer

MAX_NAMED = 3


class Refusal(NamedTuple):
    """One error of a model."""

    place: Pointer
    """The pointer to the value; pydantic adds the branch of a union as a step."""
    message: str
    kind: str
    """pydantic's error type: `missing`, `extra_forbidden`."""


def refusals(error: ValidationError) -> list[Refusal]:
    """Return all errors in order, without the values."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    return [Refusal(details["loc"], details["msg"], details["type"]) for details in errors]


def sentence(error: ValidationError, most: int = MAX_NAMED) -> str:
    """Return the first errors with their places, and the number of the rest."""
    texts = list(map(_text, refusals(error)))
    more = f"; and {len(texts) - most} more" if len(texts) > most else ""
    return "; ".join(texts[:most]) + more


def _text(refusal: Refusal) -> str:
    if not refusal.place:
        return refusal.message
    return f"{'.'.join(map(str, refusal.place))}: {refusal.message}"
