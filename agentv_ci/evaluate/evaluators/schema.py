"""`type: schema`: 1 when the answer parses and a JSON Schema accepts it, else 0."""

from __future__ import annotations

import json
import re

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import UnknownType
from referencing import Registry
from referencing.exceptions import Unresolvable

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.documents import ReadYaml
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan import PlanSchemaEvaluator
from agentv_ci.evaluate.submission import Submission
from agentv_ci.outside import well_formed

FENCE = re.compile(r"\A\s*```[^\n`]*\n(?P<inside>.*?)\n?```\s*\Z", re.DOTALL)


class Schema:
    """See Evaluator."""

    def __init__(self, settings: PlanSchemaEvaluator, *, read_yaml: ReadYaml) -> None:
        self._settings = settings
        self._read_yaml = read_yaml

    async def evaluate(self, submission: Submission) -> Score:
        """Parse the answer, one code fence taken off, and list what the schema refuses by JSON path."""
        try:
            value = self._parse(submission.answer)
        except ValueError as error:
            return Score(0.0, misses=(f"not {self._settings.format.upper()}: {error}",))
        schema = self._settings.schema_
        dialect = validators.validator_for(schema, default=Draft202012Validator)
        # An empty registry: nothing is ever fetched.
        validator = dialect(schema, registry=Registry())
        try:
            errors = sorted(validator.iter_errors(value), key=lambda error: error.json_path)
        except Unresolvable as error:
            return Score(error=f"the schema refers to what it does not hold: {error.ref}")
        except (RecursionError, OverflowError, ValueError, re.error, UnknownType) as error:
            # Schemas without end, patterns and types that are none, numbers that no float can hold.
            return Score(error=f"the answer cannot be checked with the schema: {type(error).__name__}: {error}")
        if not errors:
            return Score(1.0, hits=("Valid",))
        return Score(0.0, misses=tuple(f"{error.json_path}: {error.message}" for error in errors))

    def _parse(self, answer: str) -> JsonValue:
        fenced = FENCE.match(answer)
        text = fenced["inside"] if fenced else answer
        if self._settings.format == "yaml":
            return self._read_yaml(text)
        try:
            return well_formed(json.loads(text, parse_constant=_refuse))
        except RecursionError as error:
            raise ValueError("nested too deep") from error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
