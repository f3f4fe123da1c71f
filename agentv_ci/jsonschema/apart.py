"""Check schemas with `unevaluatedProperties`: `python -m agentv_ci.jsonschema.apart`.

For these keywords jsonschema calls `re` itself, without a time limit and with another syntax, and
offers no way to replace it. So `re` is replaced in the library's private modules. This is a program
of its own because nothing else uses them here: see ADR 5.
"""

from __future__ import annotations

import json
import signal
import sys

from jsonschema import _legacy_keywords, _utils

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.jsonschema.dialects import CannotCheck, check, pattern_occurs

TIMEOUT_APART_S = 5.0
UNEVALUATED = frozenset({"unevaluatedProperties", "unevaluatedItems"})


def has_unevaluated(schema: JsonValue) -> bool:
    """Whether a schema has `unevaluatedProperties` or `unevaluatedItems`."""
    match schema:
        case dict():
            return not schema.keys().isdisjoint(UNEVALUATED) or any(
                map(has_unevaluated, schema.values())
            )
        case list():
            return any(map(has_unevaluated, schema))
        case _:
            return False


class _Bounded:
    """The part of `re` that jsonschema uses, with a time limit."""

    @staticmethod
    def search(pattern: str, text: str) -> bool:
        """Search."""
        return pattern_occurs(pattern, text)


def main() -> None:
    """Check the schema and value on standard input; exit even if the parent process is gone."""
    signal.alarm(round(TIMEOUT_APART_S) + 1)
    for module in (_utils, _legacy_keywords):
        setattr(module, "re", _Bounded)  # noqa: B010  # not declared in the stubs
    given = json.load(sys.stdin)
    try:
        found: JsonObject = {"misses": [*check(given["schema"], given["value"])]}
    except CannotCheck as error:
        found = {"error": str(error)}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
