"""What a pydantic model refuses, as places and sentences."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import ValidationError

from agentv_ci.contracts.source import Pointer

MAX_NAMED = 3


class Refusal(NamedTuple):
    """One thing that a model refuses."""

    place: Pointer
    """The way to the value; pydantic counts the branch of a union as a step."""
    message: str
    kind: str
    """What pydantic calls errors of this kind: `missing`, `extra_forbidden`."""


def refusals(error: ValidationError) -> list[Refusal]:
    """Return everything that a model refuses, in order; values are not repeated."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [Refusal(each["loc"], each["msg"], each["type"]) for each in found]


def sentence(error: ValidationError, most: int = MAX_NAMED) -> str:
    """Return the first refusals, each with its place, and how many more there are."""
    found = refusals(error)
    texts = [f"{'.'.join(map(str, each.place))}: {each.message}" if each.place else each.message for each in found]
    more = f"; and {len(texts) - most} more" if len(texts) > most else ""
    return "; ".join(texts[:most]) + more
