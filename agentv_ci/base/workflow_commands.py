"""Commands to the runner of GitHub Actions: lines such as `::error file=a.yaml,line=3::message`.

They are escaped as in actions/toolkit, packages/core/src/command.ts.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentv_ci.base.text import without_commands
from agentv_ci.contracts.action import Annotation

_IN_MESSAGES = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
_IN_PROPERTIES = (*_IN_MESSAGES, (":", "%3A"), (",", "%2C"))


def workflow_command(name: str, message: str, properties: Mapping[str, str | int | None]) -> str:
    """Return one command as a line; properties that are None or empty are left out."""
    given = ",".join(
        f"{key}={_escaped(str(value), _IN_PROPERTIES)}"
        for key, value in properties.items()
        if value not in (None, "")
    )
    if given:
        name = f"{name} {given}"
    return f"::{name}::{_escaped(message, _IN_MESSAGES)}"


def annotation_command(annotation: Annotation) -> str:
    """Return the line that makes the runner show an annotation; its texts cannot be commands."""
    properties: dict[str, str | int | None] = {
        "file": without_commands(annotation.path or ""),
        "line": annotation.line,
        "endLine": annotation.end_line,
    }
    # The runner drops the columns of annotations that span several lines.
    if annotation.end_line in (None, annotation.line):
        properties |= {"col": annotation.column, "endColumn": annotation.end_column}
    properties["title"] = without_commands(annotation.title)
    message = without_commands(annotation.message)
    return workflow_command(annotation.level, message, properties)


def _escaped(text: str, escapes: tuple[tuple[str, str], ...]) -> str:
    for character, escape in escapes:
        text = text.replace(character, escape)
    return text
