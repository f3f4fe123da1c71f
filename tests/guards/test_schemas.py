"""The published schemas: fresh, closed, described, and as strict as the contracts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
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


def test_schemas_are_fresh() -> None:
    # In a new process: which recursive contract is used first changes what pydantic renders.
    command = [sys.executable, "-m", "tests.render_schemas", "--check"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", NAMES)
def test_schema_is_closed_and_self_contained(name: SchemaName) -> None:
    schema = document(name)
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"https://org.github.io/agentv-action/schemas/{name}.schema.json"
    assert schema["additionalProperties"] is False
    references = [value for key, value in pairs(schema) if key == "$ref"]
    assert all(str(reference).startswith("#/") for reference in references)


@pytest.mark.parametrize("name", NAMES)
def test_schema_uses_known_keywords(name: SchemaName) -> None:
    assert {key for key, _ in keywords(document(name))} <= {*KEYWORDS}


@pytest.mark.parametrize("name", NAMES)
def test_example_is_valid(name: SchemaName) -> None:
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


def samples() -> Iterator[tuple[SchemaName, Any]]:
    """Yield every document of the valid corpus, authored and generated; of results only the first row."""
    for path in sorted(path for folder in ("valid", "checked", "judged") for path in (CORPUS / folder).rglob("*")):
        if path.suffix in (".yaml", ".yml") and "expected" not in path.parts:
            data = parse_yaml(path.read_text("utf-8")).data
            schema = data.get("$schema") if isinstance(data, dict) else None
            if isinstance(schema, str) and schema in KNOWN_SCHEMAS:
                yield SCHEMAS[KNOWN_SCHEMAS[schema]], data
        elif name := GENERATED.get(path.name):
            lines = path.read_text("utf-8")
            yield name, json.loads(lines.splitlines()[0] if path.suffix == ".jsonl" else lines)


GENERATED: Mapping[str, SchemaName] = {
    "plan.json": "plan-v1",
    "report.json": "report-v1",
    "results.jsonl": "result-v1",
}
EXPLAINED = 10
"""The errors of every tenth mutant are listed, which takes longer than finding one."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({name for name, _ in samples()}))
def test_schema_and_contract_agree_on_mutants(name: SchemaName) -> None:
    validator = Draft202012Validator(document(name))
    known = frozenset(key for word, value in pairs(document(name)) if word == "properties" for key in value)
    seen: set[Hashable] = set()
    # Small documents first: a mutation is tried once, in the first document that has its place.
    for data in sorted((data for other, data in samples() if other == name), key=lambda data: len(json.dumps(data))):
        assert violations(name, data) == []
        for place, mutated in mutants(data, known):
            if place in seen:
                continue
            seen.add(place)
            mutant = mutated()
            is_accepted = accepts(name, mutant)
            assert validator.is_valid(mutant) == is_accepted, place
            assert len(seen) % EXPLAINED or (violations(name, mutant) == []) == is_accepted, place


def accepts(name: SchemaName, data: Any) -> bool:
    """Return whether the contract accepts a document."""
    try:
        CONTRACTS[name].model_validate(data, by_alias=True, by_name=False)
    except ValidationError:
        return False
    return True


Place = tuple[Hashable, ...]
OTHERS: Sequence[Any] = (None, 0, -1, 1.5, True, "", "x", [], {})


def mutants(value: Any, known: AbstractSet[str]) -> Iterator[tuple[Place, Callable[[], Any]]]:
    """Yield every document with one small mistake, and what identifies the mutation: the path and the change.

    Keys that are not known, such as names and those of metadata, are not distinguished.
    """

    def walk(node: Any, put: Callable[[Any], Any], place: Place) -> Iterator[tuple[Place, Callable[[], Any]]]:
        for other in OTHERS:
            yield (*place, type(node), repr(other)), partial(put, other)
        if isinstance(node, dict):
            inside = (*place, *(node[key] for key in KINDS if isinstance(node.get(key), str)))
            yield (*inside, "unknown"), partial(put, {**node, "zzz": 1})
            for key in node:
                rest = {other: item for other, item in node.items() if other != key}
                at = (*inside, key if key in known else "*")
                yield (*at, "missing"), partial(put, rest)
                yield (*at, "misspelt"), partial(put, {**rest, f"{key}_": node[key]})
                yield from walk(node[key], into(node, key, put), at)
        if isinstance(node, list):
            for index, item in enumerate(node):
                yield from walk(item, into(node, index, put), (*place, "[]"))

    def into(node: Any, step: Any, put: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def replaced(item: Any) -> Any:
            # Other items of a list are left out: they only take time.
            return put({**node, step: item} if isinstance(node, dict) else [item])

        return replaced

    yield from walk(value, lambda item: item, ())


KINDS = ("type", "provider", "mode", "role")
"""Keys whose values select a branch of a schema."""
KEYWORDS = (
    *("properties", "patternProperties", "additionalProperties", "required", "items", "minItems", "maxItems"),
    *("type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "pattern"),
    *("anyOf", "allOf", "if", "then", "else", "description", "title", "default", "propertyNames"),
    *("$id", "$schema", "$ref", "$defs"),
)
FREE = ("properties", "$defs", "patternProperties", "default")


def keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield every keyword of a schema, without names of properties."""
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
    """Yield every key with its value, at any depth."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key, item
            yield from pairs(item)
    elif isinstance(value, list):
        for item in value:
            yield from pairs(item)
