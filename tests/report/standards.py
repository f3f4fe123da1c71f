"""What others' standards say of files that we write."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker


def what_sarif_forbids(log: Any) -> list[str]:
    """Return what the official schema of SARIF 2.1.0 has against a log."""
    path = os.environ.get("SARIF_SCHEMA")
    if path is None:
        pytest.skip(
            "SARIF_SCHEMA names no schema; npm's @microsoft/sarif-multitool-ts has it: assets/sarif-2.1.0.schema.json"
        )
    schema = json.loads(Path(path).read_text("utf-8"))
    validator = Draft202012Validator(schema, format_checker=FormatChecker())
    return [error.message for error in validator.iter_errors(log)]
