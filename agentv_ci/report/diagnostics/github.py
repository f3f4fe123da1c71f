"""Annotations of GitHub Actions: a workflow command per diagnostic, errors first, since the runner shows only a few."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agentv_ci.contracts.action import Annotation
from agentv_ci.contracts.diagnostics import RULES
from agentv_ci.contracts.diagnostics_document import DiagnosticRecord, DiagnosticsDocument
from agentv_ci.workflow_commands import annotation_command


def render(document: DiagnosticsDocument, relative: Callable[[str], str]) -> str:
    """Return one line per diagnostic."""
    return "".join(annotation_command(each) + "\n" for each in annotate(document, relative))


def annotate(document: DiagnosticsDocument, relative: Callable[[str], str]) -> Iterator[Annotation]:
    """Yield what is to be shown on the lines of the documents."""
    found = [each for file in document.files for each in file.diagnostics]
    ordered = sorted(found, key=lambda each: each.severity != "error")
    return (_annotation(each, relative(each.path)) for each in ordered)


def _annotation(found: DiagnosticRecord, path: str) -> Annotation:
    about = found.case or found.target or found.pointer
    rule = RULES.get(found.rule)
    return Annotation(
        level=found.severity,
        title=f"{found.rule} {rule.name}" if rule is not None else found.rule,
        message=found.message + (f" ({about})" if about else "") + (f"\n{found.hint}" if found.hint else ""),
        path=path,
        line=found.line,
        end_line=found.end_line,
        column=found.column,
        end_column=found.end_column,
    )
