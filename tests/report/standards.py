"""Schemas of others for files that we write."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker


def sarif_violations(log: Any) -> list[str]:
    """Return what the official schema of SARIF 2.1.0 reports for a log; skips if the schema is missing."""
    path = os.environ.get("SARIF_SCHEMA")
    if path is None:
        pytest.skip(
            "SARIF_SCHEMA is not set: npm install @microsoft/sarif-multitool-ts, "
            "and set it to assets/sarif-2.1.0.schema.json in that package"
        )
    schema = json.loads(Path(path).read_text("utf-8"))
    validator = Draft202012Validator(schema, format_checker=FormatChecker())
    return [error.message for error in validator.iter_errors(log)]
