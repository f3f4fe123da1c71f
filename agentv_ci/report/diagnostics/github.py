"""Annotations of GitHub Actions: a workflow command per diagnostic, errors first, since the runner shows only a few."""

from __future__ import annotations

from collections.abc import Callable

from agentv_ci.contracts.diagnostics import RULES
from agentv_ci.contracts.diagnostics_document import DiagnosticRecord, DiagnosticsDocument
from agentv_ci.outside import inert
from agentv_ci.workflow_commands import workflow_command


def render(document: DiagnosticsDocument, relative: Callable[[str], str]) -> str:
    """Return one line per diagnostic."""
    found = [each for file in document.files for each in file.diagnostics]
    ordered = sorted(found, key=lambda each: each.severity != "error")
    return "".join(_command(each, relative(each.path)) + "\n" for each in ordered)


def _command(found: DiagnosticRecord, path: str) -> str:
    # The runner drops columns of what goes over several lines.
    one_line = found.line == found.end_line
    about = found.case or found.target or found.pointer
    message = found.message + (f" ({about})" if about else "") + (f"\n{found.hint}" if found.hint else "")
    return workflow_command(
        found.severity,
        inert(message),
        {
            "file": inert(path),
            "line": found.line,
            "endLine": found.end_line,
            "col": found.column if one_line else None,
            "endColumn": found.end_column if one_line else None,
            "title": f"{found.rule} {RULES[found.rule].name}",
        },
    )
