"""Parameters that a model does not take: newer models refuse what older ones want."""

from __future__ import annotations

import re

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.execute.answers import error_message
from agentv_ci.execute.apis.refusals import Refused
from agentv_ci.json_access import text_at

NEGOTIABLE = ("temperature", "top_p", "max_tokens", "max_completion_tokens")
"""Parameters that only shape an answer; without any other one the question would be a different one."""
OTHER_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
UNWANTED = re.compile(
    r"unsupported|not supported|does(?: not|n't) support|extra inputs are not permitted|deprecated|unrecognized"
    r"|unknown (?:parameter|field|name)|only the default|may only be set",
    re.IGNORECASE,
)


class Parameters:
    """What one target's model has refused so far; it is left out, or called by its other name, from then on."""

    def __init__(self) -> None:
        self._refused: dict[str, str | None] = {}

    def adapted(self, body: JsonObject) -> JsonObject:
        """Return a body without what the model refuses."""
        adapted = dict(body)
        for name, other in self._refused.items():
            if name in adapted:
                value = adapted.pop(name)
                if other is not None and other not in self._refused:
                    adapted.setdefault(other, value)
        return adapted

    def learn(self, error: ProviderError, sent: JsonObject) -> str | None:
        """Remember the parameter that an error is about and return a sentence about it; None: it is about none.

        A parameter is refused once: what was renamed and is refused again is left out.
        """
        name = _refused_parameter(error, sent)
        if name is None:
            return None
        other = OTHER_NAMES.get(name)
        self._refused[name] = None if other in self._refused else other
        if self._refused[name] is not None:
            return f"the model does not take '{name}'; it is sent as '{other}'"
        return f"the model does not take '{name}'; it is left out"


def _refused_parameter(error: ProviderError, sent: JsonObject) -> str | None:
    if not isinstance(error, Refused) or error.status not in (400, 422):
        return None
    message = error_message(error.body) or ""
    is_unwanted = bool(UNWANTED.search(message)) or _code(error.body).startswith("unsupported_")
    named = text_at(error.body, "error", "param")
    candidates = [named] if named else _mentioned(message)
    return next((name for name in candidates if name in sent and name in NEGOTIABLE), None) if is_unwanted else None


def _code(body: JsonValue) -> str:
    return text_at(body, "error", "code") or ""


def _mentioned(message: str) -> list[str]:
    found = [(match.start(), name) for name in NEGOTIABLE if (match := re.search(rf"\b{name}\b", message))]
    return [name for _, name in sorted(found)]
