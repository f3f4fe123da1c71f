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
    """Yield annotations on the lines of the documents."""
    return (_annotation(each, relative(each.path)) for each in document.errors_first)


def _annotation(diagnostic: DiagnosticRecord, path: str) -> Annotation:
    about = diagnostic.case or diagnostic.target or diagnostic.pointer
    hint = f"\n{diagnostic.hint}" if diagnostic.hint else ""
    rule = RULES.get(diagnostic.rule)
    return Annotation(
        level=diagnostic.severity,
        title=f"{diagnostic.rule} {rule.name}" if rule is not None else diagnostic.rule,
        message=diagnostic.message + (f" ({about})" if about else "") + hint,
        path=path,
        line=diagnostic.line,
        end_line=diagnostic.end_line,
        column=diagnostic.column,
        end_column=diagnostic.end_column,
    )
