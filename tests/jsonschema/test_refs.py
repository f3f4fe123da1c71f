"""References of a schema across files, and the bundle that needs no file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, validators
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from agentv_ci.app.documents.documents import read_yaml
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.jsonschema.refs import Read, bad_ref, bundle

FOLDER = Path("/repository/schemas")
ROOT = FOLDER / "root.json"
Files = Mapping[str, JsonValue]

DRAFT_04, DRAFT_06, DRAFT_07 = (f"http://json-schema.org/draft-0{number}/schema#" for number in (4, 6, 7))
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
INTEGER: JsonObject = {"type": "integer"}
TEXT: JsonObject = {"type": "string"}
ZIP: JsonObject = {"$defs": {"zip": {"type": "string", "pattern": "^[0-9]+$"}}, "$ref": "#/$defs/zip"}


def reader(files: Files, folder: Path = FOLDER) -> Read:
    def read(path: Path) -> JsonValue:
        name = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else ""
        if name not in files:
            raise FileNotFoundError(path)
        return files[name]

    return read


def bundled(root: JsonValue, files: Files) -> JsonObject:
    read = reader({**files, "root.json": root})
    assert bad_ref(root, ROOT, read) is None
    made = bundle(root, ROOT, read)
    assert isinstance(made, dict)
    assert bad_ref(made, Path("/elsewhere/x.json"), reader({})) is None, "a bundle needs no file"
    assert "repository" not in json.dumps(made)
    return made


def accepts(schema: Any, value: JsonValue, registry: Registry[Any] | None = None) -> bool:
    dialect = validators.validator_for(schema, default=Draft202012Validator)
    return dialect(schema, registry=Registry() if registry is None else registry).is_valid(value)


def holding(**properties: str) -> JsonObject:
    return {"properties": {name: {"$ref": reference} for name, reference in properties.items()}}


def test_schema_without_references_to_files_is_its_own_bundle() -> None:
    schema: JsonObject = {"$defs": {"a": TEXT}, "properties": {"x": {"$ref": "#/$defs/a"}}}
    assert bundle(schema, ROOT, reader({})) is schema
    assert bundle(True, ROOT, reader({})) is True


BUNDLES: Any = read_yaml(Path(__file__).with_name("bundles.yaml").read_text("utf-8"))


@pytest.mark.parametrize("files", BUNDLES.values(), ids=BUNDLES)
def test_bundle_means_what_its_files_mean(files: Files) -> None:
    schema = bundled(files["root.json"], files)
    assert (accepts(schema, {"a": 1, "b": "x"}), accepts(schema, {"a": "x", "b": 1})) == (True, False)


def test_long_chain_of_references_is_bundled() -> None:
    chain: JsonObject = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}" if n < 50 else "end.json"} for n in range(51)}
    schema = bundled({**holding(a="#/$defs/d0"), "$defs": chain}, {"end.json": INTEGER})
    assert (accepts(schema, {"a": 1}), accepts(schema, {"a": "x"})) == (True, False)


def test_yaml_alias_of_a_reference_inside_const_stays() -> None:
    root = read_yaml("properties:\n  a: &x {$ref: b.json}\n  b: {const: *x}\n")
    schema = bundled(root, {"b.json": INTEGER})
    assert (accepts(schema, {"b": {"$ref": "b.json"}}), accepts(schema, {"b": 1})) == (True, False)


@pytest.mark.parametrize(
    ("dialect", "anchor", "reference"),
    [
        (DRAFT_2020, {"$dynamicAnchor": "node"}, {"$dynamicRef": "#node"}),
        (DRAFT_2019, {"$recursiveAnchor": True}, {"$recursiveRef": "#"}),
    ],
)
def test_dynamic_reference_is_to_the_outer_schema(dialect: str, anchor: JsonObject, reference: JsonObject) -> None:
    own: JsonObject = {"$schema": dialect, **anchor}
    tree: JsonObject = {**own, "properties": {"data": True, "children": {"items": reference}}}
    schema = bundled({**own, "$ref": "tree.json", "unevaluatedProperties": False}, {"tree.json": tree})
    values: list[JsonValue] = [{"children": [{"data": 1}]}, {"children": [{"daat": 1}]}]
    assert [accepts(schema, value) for value in values] == [True, False]


def test_only_an_absolute_id_is_kept() -> None:
    files: Files = {
        "named.json": {"$id": "https://example.com/named.json", "$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}},
        "relative.json": {"$id": "relative.json", "$defs": {"b": {"type": "null"}}, "$ref": "#/$defs/b"},
    }
    schema = bundled(holding(a="named.json", b="relative.json"), files)
    assert isinstance(schema["$defs"], dict)
    assert list(schema["$defs"]) == ["https://example.com/named.json", f"{schema['$id']}:2"]
    given: list[JsonValue] = [{"a": None, "b": None}, {"a": 1}, {"b": 1}]
    assert [accepts(schema, value) for value in given] == [True, False, False]


def test_bundles_differ_only_by_content() -> None:
    one = bundled({"$ref": "a.json"}, {"a.json": ZIP})
    moved = bundle({"$ref": "../b/c.json"}, Path("/other/x/y.json"), reader({"c.json": ZIP}, Path("/other/b")))
    assert one == moved
    assert one["$id"] != bundled({"$ref": "a.json"}, {"a.json": TEXT})["$id"]


DEEP: JsonObject = {}
for _ in range(5_000):
    DEEP = {"not": DEEP}


@pytest.mark.parametrize(
    ("root", "files", "problem"),
    [
        ({"$ref": "missing.json"}, {}, "$ref 'missing.json' cannot be resolved"),
        ({"$ref": "#/nowhere"}, {}, "$ref '#/nowhere' cannot be resolved"),
        ({"$ref": "a.json#/nowhere"}, {"a.json": {}}, "$ref 'a.json#/nowhere' cannot be resolved"),
        ({"$ref": "a.json"}, {"a.json": {"$ref": "b.json"}}, "$ref 'b.json' cannot be resolved, in 'a.json'"),
        ({"$ref": "https://example.com/a.json"}, {}, "$ref 'https://example.com/a.json' cannot be resolved"),
        ({"$dynamicRef": "#nowhere"}, {}, "$dynamicRef '#nowhere' cannot be resolved"),
        (DEEP, {}, "nested too deep"),
    ],
)
def test_first_unresolved_reference_is_named(root: JsonObject, files: Files, problem: str) -> None:
    assert bad_ref(root, ROOT, reader(files)) == problem


DIALECTS = {DRAFT_04: "definitions", DRAFT_06: "definitions", DRAFT_07: "definitions"}
DIALECTS |= {DRAFT_2019: "$defs", DRAFT_2020: "$defs"}
NAMES = ("root.json", "b.json", "my b.json", "sub/b.json", "sub/é#%.yaml")
INSTANCES: Any = [
    *(None, 1, 1.5, "x", [], {}, {"a": 1}, {"a": "x"}, {"b": 1}, {"b": "x"}, {"a": 1, "b": "x"}, {"a": [1]}),
    *({"n": {"n": {"a": 1}}}, {"n": {"a": "x"}}, {"n": {"n": {"b": 1}}}, {"b": {"n": {"a": 1}}}),
]


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Return schemas of one dialect that refer to each other, to parts and to themselves."""
    dialect = draw(st.sampled_from(sorted(DIALECTS)))
    definitions = DIALECTS[dialect]
    names = ("root.json", *draw(st.lists(st.sampled_from(NAMES[1:]), min_size=1, unique=True)))
    fragments = st.sampled_from(["", "#", f"#/{definitions}/x", f"#/{definitions}/y~1z"])
    plain = st.sampled_from([INTEGER, TEXT, {"enum": [1, {"$ref": "b.json"}]}, {"type": ["array", "object"]}])

    def reference(here: str) -> st.SearchStrategy[Any]:
        up = "../" if here.startswith("sub/") else ""
        to = st.builds(
            lambda name, fragment: {"$ref": f"{up}{quote(name)}{fragment}"}, st.sampled_from(names), fragments
        )
        return to | st.just({"$ref": f"#/{definitions}/x"})

    made: dict[str, Any] = {}
    for name in names:
        schema: st.SearchStrategy[Any] = plain | reference(name)
        # A root of an older dialect that is itself a $ref is in bundles.yaml.
        least = 1 if name == "root.json" and definitions == "definitions" else 0
        properties = draw(st.dictionaries(st.sampled_from("abn"), schema, min_size=least, max_size=3))
        body: Any = {"properties": properties} if properties else draw(reference(name))
        parts = {"x": draw(schema), "y/z": INTEGER}
        made[name] = {"$schema": dialect, "title": name, definitions: parts, **body}
        closed: bool = draw(st.booleans())
        if properties and closed:
            made[name]["additionalProperties"] = False
    return made


def unbundled(files: dict[str, Any]) -> tuple[Any, Registry[Any]]:
    """Return the root schema with its path as `$id`, and a registry that reads the other files."""

    def retrieve(uri: str) -> Resource[Any]:
        name = Path(unquote(urlsplit(uri).path)).relative_to(FOLDER).as_posix()
        return Resource.from_contents(files[name], default_specification=DRAFT202012)

    schema = files["root.json"]
    keyword = "id" if "draft-04" in schema["$schema"] else "$id"
    based = {"$schema": schema["$schema"], keyword: ROOT.as_uri()}
    # In older dialects a $ref hides its siblings.
    whole = {**based, "allOf": [{"$ref": schema["$ref"]}]} if "$ref" in schema else {**schema, **based}
    own = {key: each for key, each in schema.items() if key in ("definitions", "$defs")}
    return {**whole, **own}, Registry(retrieve=retrieve)  # type: ignore[call-arg]


def verdict(schema: Any, value: Any, registry: Registry[Any] | None = None) -> bool | str:
    try:
        return accepts(schema, value, registry)
    except RecursionError:
        return "endless"


@pytest.mark.slow
@settings(deadline=None, derandomize=True, max_examples=60, phases=[Phase.generate])
@given(schemas())
def test_bundle_accepts_what_its_files_accept(files: dict[str, Any]) -> None:
    schema = bundled(files["root.json"], files)
    whole, registry = unbundled(files)
    for each in INSTANCES:
        verdicts = {verdict(schema, each), verdict(whole, each, registry)}
        # Whether an endless circle is entered depends on the order of keys, which a bundle does not keep.
        assert len(verdicts) == 1 or "endless" in verdicts
