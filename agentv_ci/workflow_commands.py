"""Commands to the runner of GitHub Actions: lines such as `::error file=a.yaml,line=3::message`.

Escaping as the runner undoes it: actions/toolkit, packages/core/src/command.ts.
"""

from __future__ import annotations

from collections.abc import Mapping

_IN_MESSAGES = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
_IN_PROPERTIES = (*_IN_MESSAGES, (":", "%3A"), (",", "%2C"))


def workflow_command(name: str, message: str, properties: Mapping[str, str | int | None]) -> str:
    """Return one command as a line; properties that are None or empty are left out."""
    given = ",".join(
        f"{key}={_escaped(str(value), _IN_PROPERTIES)}" for key, value in properties.items() if value not in (None, "")
    )
    return f"::{name}{' ' if given else ''}{given}::{_escaped(message, _IN_MESSAGES)}"


def _escaped(text: str, escapes: tuple[tuple[str, str], ...]) -> str:
    for character, escape in escapes:
        text = text.replace(character, escape)
    return text
