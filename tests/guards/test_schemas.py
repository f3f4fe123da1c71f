"""The published schemas: fresh, closed, described, and as strict as the contracts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Hashable, Iterator
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from agentv_ci.contracts.api_targets import HttpTarget
from agentv_ci.contracts.cli_target import CliTarget
from agentv_ci.contracts.environment_references import OPENING, variable_of
from agentv_ci.contracts.ledger import LedgerLine
from agentv_ci.contracts.results import AS_TEXT
from agentv_ci.contracts.targets import Target, TargetsDocument
from agentv_ci.jsonschema.schemas import TITLES, SchemaName, document
from agentv_ci.jsonschema.violations import violations
from tests.render_schemas import example
from tests.schema_rendering import CONTRACTS
from tests.support import REPOSITORY
from tests.support.documents import corpus_documents, mutants

NAMES = tuple(TITLES)


def test_schemas_are_fresh() -> None:
    # In a new process: which recursive contract is used first changes what pydantic renders.
    command = [sys.executable, "-m", "tests.render_schemas", "--check"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", NAMES)
def test_schema_is_closed_self_contained_and_described(name: SchemaName) -> None:
    schema: Any = document(name)
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"https://org.github.io/agentv-action/schemas/{name}.schema.json"
    branches = [schema["$defs"][each["$ref"].rpartition("/")[2]] for each in schema.get("anyOf", [])] or [schema]
    assert all(each["additionalProperties"] is False for each in branches)
    assert all(str(value).startswith("#/") for key, value in pairs(schema) if key == "$ref")
    assert {key for key, _ in keywords(schema)} <= {*KEYWORDS}
    undescribed = [
        f"{where}.{field}"
        for where, part in [("", schema), *schema.get("$defs", {}).items()]
        for field, about in part.get("properties", {}).items()
        if "description" not in about and "const" not in about and "enum" not in about
    ]
    assert undescribed == []


@pytest.mark.parametrize("name", NAMES)
def test_example_is_valid(name: SchemaName) -> None:
    assert document(name)["examples"] == [example(name)]
    assert violations(name, example(name)) == []


EXPLAINED = 10
"""Every mutant is checked by a library that is a hundred times as fast as that of the product, which explains every
tenth one."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({name for name, _ in corpus_documents()}))
def test_schema_and_contract_agree_on_mutants(name: SchemaName) -> None:
    validator = jsonschema_rs.Draft202012Validator(document(name))
    known = frozenset(key for word, value in pairs(document(name)) if word == "properties" for key in value)
    seen: set[Hashable] = set()
    # Small documents first: a mutation is tried once, in the first document that has its place.
    for data in sorted(
        (data for other, data in corpus_documents() if other == name), key=lambda data: len(json.dumps(data))
    ):
        assert violations(name, data) == []
        for place, mutated in mutants(data, known):
            if place in seen:
                continue
            seen.add(place)
            mutant = mutated()
            is_accepted = accepts(name, mutant)
            assert validator.is_valid(mutant) == (is_accepted and keeps_rules(name, mutant)), place
            assert len(seen) % EXPLAINED or (violations(name, mutant) == []) == is_accepted, place


def accepts(name: SchemaName, data: Any) -> bool:
    """Return whether the contract accepts a document."""
    try:
        if name == "ledger-v1":
            msgspec.json.decode(json.dumps(data), type=LedgerLine)
        else:
            CONTRACTS[name].model_validate(data, by_alias=True, by_name=False, context=AS_TEXT)
    except (ValidationError, msgspec.ValidationError):
        return False
    return True


def keeps_rules(name: SchemaName, data: Any) -> bool:
    """Return whether a document that its contract accepts keeps the rules that its schema states, too."""
    if name != "targets-v2":
        return True
    return all(map(_keeps_rules, TargetsDocument.model_validate(data).targets)) and all(
        OPENING not in text or variable_of(text) is not None for text in texts(data)
    )


def _keeps_rules(target: Target) -> bool:
    settings = getattr(target, "workspace", None)
    if settings is not None and OPENING in settings.model_dump_json():
        return False
    match target:
        case CliTarget():
            return target.gets_prompt or variable_of(target.command_template) is not None
        case HttpTarget():
            return not target.api_key or variable_of(target.api_key) is not None
        case _:
            return True


def texts(value: Any) -> Iterator[str]:
    """Yield every text in a document but those in free keys."""
    if isinstance(value, str):
        yield value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if not str(key).startswith("x-"):
            yield from texts(item)


KEYWORDS = (
    *("properties", "patternProperties", "additionalProperties", "required", "items", "minItems", "maxItems"),
    *("type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "pattern"),
    *("anyOf", "allOf", "if", "then", "else", "description", "title", "default", "propertyNames"),
    *("$id", "$schema", "$ref", "$defs", "$comment", "deprecated", "enumDescriptions", "defaultSnippets"),
)
FREE = ("properties", "$defs", "patternProperties", "default")


def keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield every keyword of a schema, without names of properties."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("examples", "defaultSnippets"):
                continue
            yield key, value
            for inner in value.values() if key in FREE and isinstance(value, dict) else (value,):
                yield from keywords(inner)
    elif isinstance(schema, list):
        for item in schema:
            yield from keywords(item)


def pairs(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield every key with its value, at any depth."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key, item
            yield from pairs(item)
    elif isinstance(value, list):
        for item in value:
            yield from pairs(item)


@pytest.mark.parametrize("name", ["eval-v2", "targets-v2", "config-v2", "judge-set-v1"])
def test_every_listed_value_has_a_description_of_its_own(name: SchemaName) -> None:
    lists = [value for value in _schemas(document(name)) if len(value.get("enum", ())) > 1]
    assert [each["enum"] for each in lists if len({*each.get("enumDescriptions", ())}) < len(each["enum"])] == []


def _schemas(part: Any) -> Iterator[dict[str, Any]]:
    """Yield every schema of values that editors offer: not conditions, nor other spellings of keys."""
    if isinstance(part, dict):
        yield part
    for key, inner in part.items() if isinstance(part, dict) else enumerate(part):
        if isinstance(inner, (dict, list)) and key not in ("if", "patternProperties"):
            yield from _schemas(inner)
