"""The document that `schemas/diagnostics-v1.schema.json` describes."""

from __future__ import annotations

import json

from agentv_ci.contracts.diagnostics_document import DiagnosticsDocument


def render(document: DiagnosticsDocument) -> str:
    """Return the document itself."""
    return json.dumps(document.model_dump(by_alias=True), indent=2) + "\n"
