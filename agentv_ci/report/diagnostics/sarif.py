"""SARIF: a result per diagnostic."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.diagnostics import RULES
from agentv_ci.contracts.diagnostics_document import DiagnosticRecord, DiagnosticsDocument
from agentv_ci.report.sarif import fingerprint, location, log, message, rule

LEVELS = {"error": "error", "warning": "warning", "off": "none"}


def render(document: DiagnosticsDocument, relative: Callable[[str], str]) -> str:
    """Return a log with one run."""
    seen: Counter[str] = Counter()
    rules = [rule(rule_id, each.name, each.says, LEVELS[each.severity]) for rule_id, each in RULES.items()]
    diagnostics = [each for file in document.files for each in file.diagnostics]
    return log(rules, [_result(each, relative(each.path), seen) for each in diagnostics])


def _result(diagnostic: DiagnosticRecord, path: str, seen: Counter[str]) -> JsonObject:
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
        "ruleIndex": list(RULES).index(diagnostic.rule),
        "level": diagnostic.severity,
        "message": message(diagnostic.message + (f"\n{diagnostic.hint}" if diagnostic.hint else "")),
        "locations": [place],
        "partialFingerprints": fingerprint(_identity(diagnostic, path), seen),
    }


def _identity(diagnostic: DiagnosticRecord, path: str) -> tuple[str, ...]:
    """Return what stays when lines are added above or cases are moved: no lines, no indices, no folder of a machine."""
    pointer = re.sub(r"\[\d+\]", "[]", diagnostic.pointer or "")
    text = diagnostic.message.replace(diagnostic.path.removesuffix(path), "")
    return diagnostic.rule, path, diagnostic.case or diagnostic.target or "", pointer, text
