"""Schemas in several files: what is wrong with a reference, and the bundle that needs no file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from jsonschema import validators
from referencing import Registry

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.jsonschema.refs import bad_ref, bundle

ROOT = Path("/repository/schemas/root.json")
Files = Mapping[str, JsonValue]


def reader(files: Files, folder: Path = ROOT.parent) -> Reader:
    return Reader({folder / name: contents for name, contents in files.items()})


class Reader:
    """Reads files that are not there."""

    def __init__(self, files: Mapping[Path, JsonValue]) -> None:
        self._files = files

    def __call__(self, path: Path) -> JsonValue:
        if path not in self._files:
            raise FileNotFoundError(path)
        return self._files[path]


def bundled(root: JsonObject, files: Files) -> JsonObject:
    assert bad_ref(root, ROOT, reader(files)) is None
    made = bundle(root, ROOT, reader(files))
    assert isinstance(made, dict)
    assert bad_ref(made, Path("/elsewhere/x.json"), reader({})) is None, "a bundle needs no file"
    return made


def accepts(schema: JsonObject, value: JsonValue) -> bool:
    return validators.validator_for(schema)(schema, registry=Registry()).is_valid(value)


ADDRESS: JsonObject = {"$defs": {"zip": {"type": "string", "pattern": "^[0-9]+$"}}, "$ref": "#/$defs/zip"}


def test_schema_without_references_to_files_stays_as_it_is() -> None:
    schema: JsonObject = {"$defs": {"a": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/a"}}}
    assert bundle(schema, ROOT, reader({})) is schema
    assert bundle(True, ROOT, reader({})) is True


@pytest.mark.parametrize(
    ("reference", "good", "bad"),
    [
        ("address.json", "12", "x"),
        ("address.json#", "12", "x"),
        ("./address.json#/$defs/zip", "12", "x"),
        ("../schemas/address.json", "12", "x"),
        ("common/anchored.json#here", 1, "x"),
        ("with%20space.json", True, 1),
        ("never.json", None, None),
    ],
)
def test_reference_means_in_the_bundle_what_it_means_beside_the_files(
    reference: str, good: JsonValue, bad: JsonValue
) -> None:
    files: Files = {
        "address.json": ADDRESS,
        "common/anchored.json": {"$defs": {"x": {"$anchor": "here", "type": "integer"}}},
        "with space.json": {"type": "boolean"},
        "never.json": False,
    }
    schema = bundled({"properties": {"x": {"$ref": reference}}}, files)
    assert accepts(schema, {"x": good}) is (reference != "never.json")
    assert not accepts(schema, {"x": bad})


def test_files_refer_to_each_other_and_back() -> None:
    root: JsonObject = {"type": "object", "properties": {"next": {"$ref": "other.json"}}}
    files: Files = {"root.json": root, "other.json": {"anyOf": [{"type": "null"}, {"$ref": "root.json"}]}}
    schema = bundled(root, files)
    assert accepts(schema, {"next": {"next": {"next": None}}})
    assert not accepts(schema, {"next": {"next": 1}})


def test_bundle_does_not_know_where_the_files_lie() -> None:
    root: JsonObject = {"$ref": "a.json"}
    one = bundle(root, ROOT, reader({"a.json": ADDRESS}))
    moved = bundle({"$ref": "../b/c.json"}, Path("/other/x/y.json"), reader({"c.json": ADDRESS}, Path("/other/b")))
    assert one == moved
    assert "repository" not in json.dumps(one)


@pytest.mark.parametrize("draft", ["draft-04", "draft-06", "draft-07"])
def test_older_dialect_keeps_its_words(draft: str) -> None:
    dialect = f"http://json-schema.org/{draft}/schema#"
    files: Files = {
        "old.json": {"$schema": dialect, "$ref": "#/definitions/n", "definitions": {"n": {"type": "integer"}}}
    }
    schema = bundled({"$schema": dialect, "properties": {"x": {"$ref": "old.json"}}}, files)
    assert "$defs" not in schema
    assert accepts(schema, {"x": 1})
    assert not accepts(schema, {"x": "1"})


def test_absolute_id_is_kept_and_a_relative_one_is_not() -> None:
    files: Files = {
        "named.json": {"$id": "https://example.com/named.json", "$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}},
        "relative.json": {"$id": "relative.json", "$defs": {"b": {"type": "null"}}, "$ref": "#/$defs/b"},
    }
    schema = bundled({"properties": {"a": {"$ref": "named.json"}, "b": {"$ref": "relative.json"}}}, files)
    embedded = schema["$defs"]
    assert isinstance(embedded, dict)
    assert list(embedded) == ["https://example.com/named.json", f"{schema['$id']}:2"]
    assert accepts(schema, {"a": None, "b": None})
    assert not accepts(schema, {"a": 1})
    assert not accepts(schema, {"b": 1})


@pytest.mark.parametrize(
    ("root", "files", "said"),
    [
        ({"$ref": "missing.json"}, {}, "$ref 'missing.json' cannot be resolved"),
        ({"$ref": "#/nowhere"}, {}, "$ref '#/nowhere' cannot be resolved"),
        ({"$ref": "a.json#/nowhere"}, {"a.json": {}}, "$ref 'a.json#/nowhere' cannot be resolved"),
        ({"$ref": "a.json"}, {"a.json": {"$ref": "b.json"}}, "$ref 'b.json' cannot be resolved, in 'a.json'"),
        ({"$ref": "https://example.com/a.json"}, {}, "$ref 'https://example.com/a.json' cannot be resolved"),
        ({"$dynamicRef": "#nowhere"}, {}, "$dynamicRef '#nowhere' cannot be resolved"),
    ],
)
def test_first_reference_that_leads_nowhere_is_named(root: JsonObject, files: Files, said: str) -> None:
    assert bad_ref(root, ROOT, reader(files)) == said


def test_two_bundles_never_share_an_id() -> None:
    one = bundled({"$ref": "a.json"}, {"a.json": {"type": "integer"}})
    other = bundled({"$ref": "a.json"}, {"a.json": {"type": "string"}})
    assert one["$id"] != other["$id"]


def test_long_chain_of_references_is_not_nested_too_deep() -> None:
    definitions: JsonObject = {f"d{number}": {"$ref": f"#/$defs/d{number + 1}"} for number in range(2_000)}
    definitions["d2000"] = {"$ref": "end.json"}
    schema = bundled({"$ref": "#/$defs/d0", "$defs": definitions}, {"end.json": {"type": "integer"}})
    assert isinstance(schema["$defs"], dict)
