"""JSON Schemas inside eval documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.evaluators import SchemaEvaluator
from agentv_ci.contracts.source import Pointer
from agentv_ci.text import listed
from agentv_ci.validate.findings import Finder

SCHEMA_SUFFIXES = (".json", ".yaml", ".yml")


def check_schema(pointer: Pointer, evaluator: SchemaEvaluator, find: Finder) -> Iterator[Diagnostic]:
    """AV309 and AV320 for an evaluator that holds, or names, a JSON Schema."""
    file, inline = evaluator.schema_file, evaluator.schema_inline
    if file is None and inline is None and not find.lost_something(pointer):
        message = "give either 'schema_file' or 'schema_inline'; neither is given"
        yield find.at("AV320", message, (*pointer, "type"))
    if file is not None and inline is not None:
        message = "give either 'schema_file' or 'schema_inline'; both are given"
        yield find.at("AV320", message, (*pointer, "schema_inline"), key=True)
    if inline is not None:
        yield from _check((*pointer, "schema_inline"), inline, find.source.path, find)
    if file is not None:
        yield from _check_file((*pointer, "schema_file"), file, find)


def _check_file(pointer: Pointer, reference: str, find: Finder) -> Iterator[Diagnostic]:
    path, file = find.file(reference)
    if file.state not in ("text", "blank"):
        return  # said where files are checked
    if path.suffix not in SCHEMA_SUFFIXES:
        message = f"a schema file ends in {listed(SCHEMA_SUFFIXES)}, not '{path.suffix or path.name}'"
        yield find.at("AV309", message, pointer)
        return
    if file.state == "blank":
        yield find.at("AV309", f"the schema file is empty: {path}", pointer)
        return
    try:
        schema = find.context.read_yaml(path.read_text("utf-8"))
    except ValueError as error:
        yield find.at("AV309", f"'{path.name}' cannot be read: {error}", pointer)
        return
    yield from _check(pointer, schema, path, find)


def _check(pointer: Pointer, schema: JsonValue, path: Path, find: Finder) -> Iterator[Diagnostic]:
    # Few documents hold a schema, and jsonschema takes long to import.
    from agentv_ci.jsonschema.refs import bad_ref
    from agentv_ci.jsonschema.violations import invalid_schema

    def read(other: Path) -> JsonValue:
        if find.inspect(other).state != "text":
            raise FileNotFoundError(other)
        contents = find.context.read_yaml(other.read_text("utf-8"))
        if reason := invalid_schema(contents, schema):
            raise ValueError(f"not a JSON Schema: {reason}")
        return contents

    if reason := invalid_schema(schema):
        yield find.at("AV309", f"not a JSON Schema: {reason}", pointer)
    elif reason := bad_ref(schema, path, read):
        hint = "a reference is '#…' inside the schema, or a file relative to it; nothing is fetched"
        yield find.at("AV309", reason, pointer, hint=hint)
