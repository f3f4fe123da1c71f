"""`type: schema`: 1 when the answer parses and matches a JSON Schema, else 0."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from agentv_ci.base.json_access import read_answer
from agentv_ci.base.process import ProcessFailed, child_environment, run
from agentv_ci.base.text import unfenced
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan_evaluators import PlanSchemaEvaluator
from agentv_ci.evaluate.submission import EvaluatorServices, Submission
from agentv_ci.jsonschema import apart
from agentv_ci.jsonschema.apart import TIMEOUT_APART_S, has_unevaluated
from agentv_ci.jsonschema.dialects import CannotCheck, check

MAX_MISSES = 100
PACKAGES = Path(__file__).parents[3]
"""The folder that contains this package."""


async def schema(
    settings: PlanSchemaEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Parse the answer without its code fence, and list violations of the schema by JSON path."""
    answer = submission.answer
    try:
        if settings.format == "yaml":
            value = services.read_yaml(unfenced(answer))
        else:
            value = read_answer(answer)
    except ValueError as error:
        return Score(0.0, misses=(f"not {settings.format.upper()}: {error}",))
    try:
        misses = await _misses(settings.schema_, value, services.environ)
    except CannotCheck as error:
        return Score(error=str(error))
    if not misses:
        return Score(1.0, hits=("Valid",))
    more = ["… and more"] if len(misses) > MAX_MISSES else []
    return Score(0.0, misses=(*misses[:MAX_MISSES], *more))


async def _misses(
    schema: JsonObject | bool, value: JsonValue, environ: Mapping[str, str]
) -> list[str]:
    if has_unevaluated(schema):
        return await _check_apart(schema, value, environ)
    return await asyncio.to_thread(check, schema, value)


async def _check_apart(
    schema: JsonObject | bool, value: JsonValue, environ: Mapping[str, str]
) -> list[str]:
    """Check in a process that can be killed: the `unevaluated` keywords take quadratic time."""
    try:
        finished = await run(
            # -P: do not import modules from the working directory.
            [sys.executable, "-P", "-m", apart.__name__],
            cwd=PACKAGES,
            env=child_environment(environ, {"PYTHONPATH": str(PACKAGES)}),
            timeout_s=TIMEOUT_APART_S,
            stdin=json.dumps({"schema": schema, "value": value}).encode(),
        )
    except ProcessFailed as error:
        raise CannotCheck(f"cannot check the answer with the schema: it {error}") from error
    try:
        found = json.loads(finished.stdout)
    except ValueError as error:
        raise CannotCheck(f"cannot check the answer with the schema: {finished.stderr}") from error
    if "error" in found:
        raise CannotCheck(found["error"])
    misses: list[str] = found["misses"]
    return misses
