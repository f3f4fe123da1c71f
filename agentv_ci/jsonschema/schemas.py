"""Load the published schemas; `tests/schema_rendering.py` renders them from the contracts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.diagnostics import Kind

BASE_ID = "https://org.github.io/agentv-action/schemas/"

SchemaName = Literal[
    "eval-v2",
    "targets-v2",
    "config-v2",
    "plan-v1",
    "result-v1",
    "report-v1",
    "diagnostics-v1",
    "baseline-v1",
    "judge-set-v1",
    "quarantine-v1",
    "proof-v1",
    "ledger-v1",
    "health-v1",
    "experiment-v1",
    "experiment-report-v1",
]

TITLES: Mapping[SchemaName, str] = {
    "eval-v2": "agentv-ci eval document",
    "targets-v2": "agentv-ci targets document",
    "config-v2": "agentv-ci config document",
    "plan-v1": "agentv-ci plan",
    "result-v1": "agentv-ci result row",
    "report-v1": "agentv-ci run report",
    "diagnostics-v1": "agentv-ci diagnostics",
    "baseline-v1": "agentv-ci baseline",
    "judge-set-v1": "agentv-ci judge set",
    "quarantine-v1": "agentv-ci quarantine",
    "proof-v1": "agentv-ci proof",
    "ledger-v1": "agentv-ci line of a ledger",
    "health-v1": "agentv-ci health of an eval set",
    "experiment-v1": "agentv-ci experiment",
    "experiment-report-v1": "agentv-ci experiment report",
}


MOST_EXPLAINED = 2_000
"""Violations of a document that are explained; one with more is hostile, or something else."""
SCHEMAS: Mapping[Kind, SchemaName] = {
    "eval": "eval-v2",
    "targets": "targets-v2",
    "config": "config-v2",
    "judge-set": "judge-set-v1",
    "quarantine": "quarantine-v1",
    "experiment": "experiment-v1",
}
"""Kind of document → its schema."""


def schema_id(name: SchemaName) -> str:
    """Return the `$id` of a published schema."""
    return f"{BASE_ID}{name}.schema.json"


def text(name: SchemaName) -> str:
    """Return the text of a published schema: from the wheel, else from the checkout."""
    here = Path(__file__).parent.parent
    shipped = here / "published" / f"{name}.schema.json"
    return (shipped if shipped.exists() else here.parent / "schemas" / shipped.name).read_text(
        "utf-8"
    )


@cache
def document(name: SchemaName) -> JsonObject:
    """Return a published schema as data."""
    loaded: JsonObject = json.loads(text(name))
    return loaded
