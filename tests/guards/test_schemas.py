"""The published schemas: fresh, as strict as the contracts, and kind to what was written before."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from agentv_ci.jsonschema.schemas import SCHEMAS, TITLES, SchemaName, document
from agentv_ci.jsonschema.violations import violations
from agentv_ci.load.document import KNOWN_SCHEMAS
from agentv_ci.load.parse import parse_yaml
from tests.render_schemas import example
from tests.schema_rendering import CONTRACTS
from tests.support import REPOSITORY

CORPUS = Path(__file__).parent.parent / "corpus"
NAMES = tuple(TITLES)


def test_schemas_are_what_the_contracts_say() -> None:
    # In a process of its own: which recursive contract is used first changes what pydantic renders.
    command = [sys.executable, "-m", "tests.render_schemas", "--check"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", NAMES)
def test_schema_is_a_closed_draft_2020_12_schema_of_its_own(name: SchemaName) -> None:
    schema = document(name)
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"https://org.github.io/agentv-action/schemas/{name}.schema.json"
    assert schema["additionalProperties"] is False
    references = [value for key, value in pairs(schema) if key == "$ref"]
    assert all(str(reference).startswith("#/") for reference in references)


@pytest.mark.parametrize("name", NAMES)
def test_schema_uses_no_word_that_json_schema_does_not_know(name: SchemaName) -> None:
    assert {key for key, _ in keywords(document(name))} <= {*KEYWORDS}


@pytest.mark.parametrize("name", NAMES)
def test_example_is_what_the_schema_says(name: SchemaName) -> None:
    assert document(name)["examples"] == [example(name)]
    assert violations(name, example(name)) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_described(name: SchemaName) -> None:
    undescribed = [
        f"{where}.{field}"
        for where, schema in [("", document(name)), *document(name).get("$defs", {}).items()]  # type: ignore[union-attr]
        for field, about in schema.get("properties", {}).items()
        if "description" not in about and "const" not in about and "enum" not in about
    ]
    assert undescribed == []


def samples() -> Iterator[tuple[str, SchemaName, Any]]:
    """Every document of the valid corpus, authored and made."""
    for path in sorted(path for folder in ("valid", "checked", "judged") for path in (CORPUS / folder).rglob("*")):
        where = str(path.relative_to(CORPUS))
        if path.suffix in (".yaml", ".yml") and "expected" not in path.parts:
            data = parse_yaml(path.read_text("utf-8")).data
            schema = data.get("$schema") if isinstance(data, dict) else None
            if isinstance(schema, str) and schema in KNOWN_SCHEMAS:
                yield where, SCHEMAS[KNOWN_SCHEMAS[schema]], data
        elif path.name == "plan.json":
            yield where, "plan-v1", json.loads(path.read_text("utf-8"))
        elif path.name == "report.json":
            yield where, "report-v1", json.loads(path.read_text("utf-8"))
        elif path.name == "results.jsonl":
            # One row of a file is like the others, and mutants are many.
            yield where, "result-v1", json.loads(path.read_text("utf-8").splitlines()[0])


SAMPLES = list(samples())
MUTANTS = 250
EXPLAINED = 10
"""Of so many mutants one is explained."""


@pytest.mark.parametrize(("name", "data"), [sample[1:] for sample in SAMPLES], ids=[sample[0] for sample in SAMPLES])
def test_schema_and_contract_agree_on_every_one_mistake_mutant(name: SchemaName, data: Any) -> None:
    assert violations(name, data) == []
    everything = list(unique(mutants(data)))
    # Of a large document every n-th mutant: its parts are those of the others, and time is short.
    some = everything[:: len(everything) // MUTANTS + 1]
    for mutant in some:
        refused = not validator(name).is_valid(mutant)
        assert refused == (not accepts(name, mutant)), f"schema {'refuses' if refused else 'accepts'}: {mutant}"
    # Telling what is wrong takes as long as deciding whether something is.
    for mutant in some[::EXPLAINED]:
        assert bool(violations(name, mutant)) == (not accepts(name, mutant)), mutant


@cache
def validator(name: SchemaName) -> Draft202012Validator:
    """Return what decides by a schema; its references are its own."""
    return Draft202012Validator(document(name))


def accepts(name: SchemaName, data: Any) -> bool:
    """Whether the contract takes a document."""
    try:
        CONTRACTS[name].model_validate(data, by_alias=True, by_name=False)
    except ValidationError:
        return False
    return True


def shape(value: Any) -> Any:
    """Keys and kinds of a value, and the words that choose between branches."""
    match value:
        case dict():
            chosen = ("type", "provider", "mode", "role")
            return tuple(
                (key, item if key in chosen and isinstance(item, str) else shape(item))
                for key, item in sorted(value.items())
            )
        case list():
            return tuple(map(shape, value))
        case _:
            return type(value).__name__


def mutants(value: Any) -> Iterator[Any]:
    """Every document one small mistake away from `value`."""

    others: tuple[Any, ...] = (None, 0, -1, 1.5, True, "", "x", [], {})

    def walk(node: Any, put: Callable[[Any], Any]) -> Iterator[Any]:
        yield from map(put, others)
        if isinstance(node, dict):
            yield put({**node, "zzz": 1})
            for key in node:
                rest = {other: item for other, item in node.items() if other != key}
                yield put(rest)
                yield put({**rest, f"{key}_": node[key]})
                yield from walk(node[key], into(node, key, put))
        if isinstance(node, list):
            # Of items of one shape the first: what is wrong in one is wrong in all.
            firsts = {shape(item): index for index, item in reversed(list(enumerate(node)))}
            for index in sorted(firsts.values()):
                yield from walk(node[index], into(node, index, put))

    def into(node: Any, step: Any, put: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def replaced(item: Any) -> Any:
            if isinstance(node, dict):
                return put({**node, step: item})
            return put([*node[:step], item, *node[step + 1 :]])

        return replaced

    yield from walk(value, lambda item: item)


def unique(values: Iterator[Any]) -> Iterator[Any]:
    """Leave out what was there before."""
    seen = set()
    for value in values:
        key = json.dumps(value)
        if key not in seen:
            seen.add(key)
            yield value


KEYWORDS = (
    *("properties", "patternProperties", "additionalProperties", "required", "items", "minItems", "maxItems"),
    *("type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "pattern"),
    *("anyOf", "allOf", "if", "then", "else", "description", "title", "default", "propertyNames"),
    *("$id", "$schema", "$ref", "$defs"),
)
FREE = ("properties", "$defs", "patternProperties", "default")


def keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    """Every keyword of a schema; names of properties are none."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "examples":
                continue
            yield key, value
            for inner in value.values() if key in FREE and isinstance(value, dict) else (value,):
                yield from keywords(inner)
    elif isinstance(schema, list):
        for item in schema:
            yield from keywords(item)


def pairs(value: Any) -> Iterator[tuple[str, Any]]:
    """Every key with its value, anywhere."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key, item
            yield from pairs(item)
    elif isinstance(value, list):
        for item in value:
            yield from pairs(item)
