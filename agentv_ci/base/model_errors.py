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
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [Refusal(each["loc"], each["msg"], each["type"]) for each in found]


def sentence(error: ValidationError, most: int = MAX_NAMED) -> str:
    """Return the first errors with their places, and the number of the rest."""
    found = refusals(error)
    texts = [
        f"{'.'.join(map(str, each.place))}: {each.message}" if each.place else each.message
        for each in found
    ]
    more = f"; and {len(texts) - most} more" if len(texts) > most else ""
    return "; ".join(texts[:most]) + more
