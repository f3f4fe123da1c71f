"""The family of formats in which other programs read what is wrong with documents."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from typing import Literal, assert_never

from agentv_ci.contracts.diagnostics_document import (
    DiagnosticRecord,
    DiagnosticsDocument,
    DiagnosticsSummary,
    FileRecord,
)
from agentv_ci.contracts.documents import FileDiagnostics
from agentv_ci.jsonschema.schemas import schema_id
from agentv_ci.report.diagnostics import github, sarif

DiagnosticsFormat = Literal["json", "github", "sarif"]

Relative = Callable[[str], str]
"""Return the path of a file from its repository, with `/`."""


def document(files: Iterable[FileDiagnostics], skipped: int, *, strict: bool) -> DiagnosticsDocument:
    """Return the diagnostics of all files; with `strict`, warnings make a file invalid too."""
    records = tuple(
        FileRecord(
            path=str(each.path),
            kind=each.kind,
            valid=each.is_valid(strict=strict),
            diagnostics=tuple(DiagnosticRecord(**dataclasses.asdict(diagnostic)) for diagnostic in each.diagnostics),
        )
        for each in files
    )
    severities = [diagnostic.severity for each in records for diagnostic in each.diagnostics]
    passed = sum(each.valid for each in records)
    summary = DiagnosticsSummary(
        files=len(records),
        passed=passed,
        failed=len(records) - passed,
        skipped=skipped,
        errors=severities.count("error"),
        warnings=severities.count("warning"),
    )
    return DiagnosticsDocument(schema_=schema_id("diagnostics-v1"), files=records, summary=summary)


def render(document: DiagnosticsDocument, form: DiagnosticsFormat, relative: Relative) -> str:
    """Return the whole text, with a line break at its end where there is any text."""
    match form:
        case "json":
            return json.dumps(document.model_dump(by_alias=True), indent=2) + "\n"
        case "github":
            return github.render(document, relative)
        case "sarif":
            return sarif.render(document, relative)
        case _:
            assert_never(form)
