"""Render diagnostics in the formats that other programs read."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, assert_never

from msgspec.structs import asdict

from agentv_ci.base.workflow_commands import annotation_command
from agentv_ci.contracts.action import Annotation
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.command_output import (
    DiagnosticRecord,
    DiagnosticsDocument,
    DiagnosticsSummary,
    FileRecord,
)
from agentv_ci.contracts.diagnostics import (
    PROOF_RULES,
    RULES,
    Diagnostic,
    FileDiagnostics,
    Rule,
    Severity,
)
from agentv_ci.jsonschema.schemas import schema_id
from agentv_ci.report.sarif import fingerprint, location, log, message, rule

DiagnosticsFormat = Literal["json", "github", "sarif"]

Relative = Callable[[str], str]
"""Return the path of a file relative to its repository, with `/`."""

SEVERITIES: Sequence[Severity] = ("error", "warning", "info")
"""The worst first."""
LEVELS = {"error": "error", "warning": "warning", "info": "note", "off": "none"}
"""SARIF's name for each severity."""


def document(
    files: Iterable[FileDiagnostics], skipped: int, *, strict: bool
) -> DiagnosticsDocument:
    """Return the diagnostics of all files; with `strict`, a file with warnings is invalid too."""
    records = tuple(_record(file, strict=strict) for file in files)
    severities = Counter(diagnostic.severity for diagnostic in _diagnostics(records))
    passed = sum(record.valid for record in records)
    summary = DiagnosticsSummary(
        files=len(records),
        passed=passed,
        failed=len(records) - passed,
        skipped=skipped,
        errors=severities["error"],
        warnings=severities["warning"],
    )
    return DiagnosticsDocument(schema_=schema_id("diagnostics-v1"), files=records, summary=summary)


def _record(file: FileDiagnostics, *, strict: bool) -> FileRecord:
    return FileRecord(
        path=str(file.path),
        kind=file.kind,
        valid=file.is_valid(strict=strict),
        diagnostics=tuple(DiagnosticRecord(**asdict(found)) for found in file.diagnostics),
    )


def _diagnostics(files: Iterable[FileRecord]) -> Iterator[DiagnosticRecord]:
    for file in files:
        yield from file.diagnostics


def render(document: DiagnosticsDocument, form: DiagnosticsFormat, relative: Relative) -> str:
    """Return the whole text, which ends with a line break unless it is empty."""
    match form:
        case "json":
            return json.dumps(document.model_dump(by_alias=True), indent=2) + "\n"
        case "github":
            return _commands(annotate(document, relative))
        case "sarif":
            return _sarif(_diagnostics(document.files), RULES, relative)
        case _:
            assert_never(form)


def render_findings(
    findings: Sequence[Diagnostic], form: Literal["github", "sarif"], relative: Relative
) -> str:
    """Return the findings of `prove` like diagnostics of documents."""
    if form == "sarif":
        return _sarif(findings, PROOF_RULES, relative)
    worst_first = sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
    return _commands(_annotation(finding, relative(finding.path)) for finding in worst_first)


def _commands(annotations: Iterable[Annotation]) -> str:
    return "".join(f"{annotation_command(annotation)}\n" for annotation in annotations)


def annotate(document: DiagnosticsDocument, relative: Relative) -> Iterator[Annotation]:
    """Yield annotations on the lines of the documents, errors first.

    GitHub's runner shows only a few.
    """
    for diagnostic in document.errors_first:
        yield _annotation(diagnostic, relative(diagnostic.path))


def _annotation(diagnostic: DiagnosticRecord | Diagnostic, path: str) -> Annotation:
    text = diagnostic.message
    if about := diagnostic.case or diagnostic.target or diagnostic.pointer:
        text += f" ({about})"
    if diagnostic.hint:
        text += f"\n{diagnostic.hint}"
    rule = RULES.get(diagnostic.rule) or PROOF_RULES.get(diagnostic.rule)
    return Annotation(
        level="notice" if diagnostic.severity == "info" else diagnostic.severity,
        title=f"{diagnostic.rule} {rule.name}" if rule is not None else diagnostic.rule,
        message=text,
        path=path,
        line=diagnostic.line,
        end_line=diagnostic.end_line,
        column=diagnostic.column,
        end_column=diagnostic.end_column,
    )


def _sarif(
    diagnostics: Iterable[DiagnosticRecord | Diagnostic],
    known: Mapping[str, Rule],
    relative: Relative,
) -> str:
    """Return a log with one run and a result per diagnostic."""
    seen: Counter[str] = Counter()
    rules = [
        rule(rule_id, known_rule.name, known_rule.summary, LEVELS[known_rule.severity])
        for rule_id, known_rule in known.items()
    ]
    order = list(known)
    results = [
        _result(diagnostic, order.index(diagnostic.rule), relative(diagnostic.path), seen)
        for diagnostic in diagnostics
    ]
    return log(rules, results)


def _result(
    diagnostic: DiagnosticRecord | Diagnostic, index: int, path: str, seen: Counter[str]
) -> JsonObject:
    region: JsonObject = {
        "startLine": diagnostic.line,
        "startColumn": diagnostic.column,
        "endLine": diagnostic.end_line,
        "endColumn": diagnostic.end_column,
    }
    place = location(path, region)
    if diagnostic.pointer:
        place["logicalLocations"] = [{"fullyQualifiedName": diagnostic.pointer}]
    return {
        "ruleId": diagnostic.rule,
        "ruleIndex": index,
        "level": LEVELS[diagnostic.severity],
        "message": message("\n".join(filter(None, [diagnostic.message, diagnostic.hint]))),
        "locations": [place],
        "partialFingerprints": fingerprint(_identity(diagnostic, path), seen),
    }


def _identity(diagnostic: DiagnosticRecord | Diagnostic, path: str) -> tuple[str, ...]:
    """Return what stays the same when lines or cases move.

    It has no line numbers, no indices and no absolute paths.
    """
    pointer = re.sub(r"\[\d+\]", "[]", diagnostic.pointer or "")
    text = diagnostic.message.replace(diagnostic.path.removesuffix(path), "")
    return diagnostic.rule, path, diagnostic.case or diagnostic.target or "", pointer, text
