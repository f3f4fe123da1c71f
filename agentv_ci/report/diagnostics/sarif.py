"""SARIF 2.1.0, which code scanning services read (OASIS Standard, 27 March 2020)."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable
from urllib.parse import quote

from agentv_ci import __version__
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.diagnostics import RULES
from agentv_ci.contracts.diagnostics_document import DiagnosticRecord, DiagnosticsDocument
from agentv_ci.outside import well_formed

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "off": "none"}
FINGERPRINT = "agentvCi/v1"


def render(document: DiagnosticsDocument, relative: Callable[[str], str]) -> str:
    """Return a log with one run."""
    seen: Counter[str] = Counter()
    results: list[JsonValue] = [
        _result(each, relative(each.path), seen) for file in document.files for each in file.diagnostics
    ]
    driver: JsonObject = {"name": "agentv-ci", "version": __version__, "rules": _rules()}
    run: JsonObject = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    log: JsonObject = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(well_formed(log), indent=2, ensure_ascii=False) + "\n"


def _rules() -> list[JsonValue]:
    return [
        {
            "id": rule_id,
            "name": "".join(word.capitalize() for word in rule.name.split("-")),
            "shortDescription": {"text": f"{rule.says[:1].upper()}{rule.says[1:]}."},
            "defaultConfiguration": {"level": LEVELS[rule.severity]},
        }
        for rule_id, rule in RULES.items()
    ]


def _result(found: DiagnosticRecord, path: str, seen: Counter[str]) -> JsonObject:
    region: JsonObject = {
        "startLine": found.line,
        "startColumn": found.column,
        "endLine": found.end_line,
        "endColumn": found.end_column,
    }
    location: JsonObject = {"physicalLocation": {"artifactLocation": {"uri": _uri(path)}, "region": region}}
    if found.pointer:
        location["logicalLocations"] = [{"fullyQualifiedName": found.pointer}]
    return {
        "ruleId": found.rule,
        "ruleIndex": list(RULES).index(found.rule),
        "level": found.severity,
        "message": {"text": found.message + (f"\n{found.hint}" if found.hint else "")},
        "locations": [location],
        "partialFingerprints": {FINGERPRINT: _fingerprint(found, path, seen)},
    }


def _uri(path: str) -> str:
    quoted = quote(os.fsencode(path))  # names of files need not be UTF-8
    return f"file://{quoted}" if path.startswith("/") else quoted


def _fingerprint(found: DiagnosticRecord, path: str, seen: Counter[str]) -> str:
    """Return what stays when lines are added above or cases are moved: no lines, no indices, no folder of a machine."""
    pointer = re.sub(r"\[\d+\]", "[]", found.pointer or "")
    message = found.message.replace(found.path.removesuffix(path), "")
    known = "\0".join((found.rule, path, found.case or found.target or "", pointer, message))
    seen[known] += 1
    return hashlib.sha256(f"{known}\0{seen[known]}".encode(errors="surrogateescape")).hexdigest()
