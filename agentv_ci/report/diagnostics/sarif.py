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
    found = [each for file in document.files for each in file.diagnostics]
    return log(rules, [_result(each, relative(each.path), seen) for each in found])


def _result(found: DiagnosticRecord, path: str, seen: Counter[str]) -> JsonObject:
    region: JsonObject = {
        "startLine": found.line,
        "startColumn": found.column,
        "endLine": found.end_line,
        "endColumn": found.end_column,
    }
    place = location(path, region)
    if found.pointer:
        place["logicalLocations"] = [{"fullyQualifiedName": found.pointer}]
    return {
        "ruleId": found.rule,
        "ruleIndex": list(RULES).index(found.rule),
        "level": found.severity,
        "message": message(found.message + (f"\n{found.hint}" if found.hint else "")),
        "locations": [place],
        "partialFingerprints": fingerprint(_known(found, path), seen),
    }


def _known(found: DiagnosticRecord, path: str) -> tuple[str, ...]:
    """Return what stays when lines are added above or cases are moved: no lines, no indices, no folder of a machine."""
    pointer = re.sub(r"\[\d+\]", "[]", found.pointer or "")
    said = found.message.replace(found.path.removesuffix(path), "")
    return found.rule, path, found.case or found.target or "", pointer, said
