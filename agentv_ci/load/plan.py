"""A plan from outside: checked against the published schema before anything believes it."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import ValidationError

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.diagnostics import RULES, Diagnostic
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.source import spell
from agentv_ci.errors import InvalidInput, UsageError
from agentv_ci.outside import read_json
from agentv_ci.schemas import schema_id, violations

PLAN_ID = re.compile(r".*/plan-v(\d+)\.schema\.json")
KNOWN_MAJOR = "1"


def load_plan(path: Path) -> tuple[Plan, JsonObject]:
    """Return the plan in a JSON file, and the data it was read from.

    Raises UsageError when the file cannot be read or is of an unknown major version, InvalidInput when the
    published schema refuses it.
    """
    try:
        data = read_json(path.read_text("utf-8"), strict=True)
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"'{path}' is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise UsageError(f"'{path}' is no plan: a plan is a mapping")
    _check_version(path, data)
    refused = violations("plan-v1", data)
    if refused:
        raise InvalidInput(
            [_diagnostic(path, spell(each.pointer), each.message or "a field is missing") for each in refused]
        )
    try:
        return Plan.model_validate(data, by_alias=True, by_name=False), data
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise InvalidInput([_diagnostic(path, spell(each["loc"]), each["msg"]) for each in found]) from error


def _check_version(path: Path, data: JsonObject) -> None:
    declared = data.get("$schema")
    if declared == schema_id("plan-v1"):
        return
    match = PLAN_ID.fullmatch(declared) if isinstance(declared, str) else None
    if match and match[1] != KNOWN_MAJOR:
        raise UsageError(
            f"'{path}' is a plan of version {match[1]}; this agentv-ci reads version {KNOWN_MAJOR}",
            hint="compile it again with this version, or install the version that wrote it",
        )
    raise UsageError(f"'{path}' is not a plan: its $schema is not {schema_id('plan-v1')}")


def _diagnostic(path: Path, pointer: str, message: str) -> Diagnostic:
    return Diagnostic("AV204", RULES["AV204"].severity, message, str(path), 1, 1, 1, 1, pointer=pointer or None)
