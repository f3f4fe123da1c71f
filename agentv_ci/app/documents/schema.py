"""Published schemas with the plugins that are installed."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentv_ci.base.installed_plugins import (
    Plugin,
    PluginKind,
    error_line,
    find_plugin,
    plugin_names,
)
from agentv_ci.contracts.base import PLUGIN_NAME, JsonObject
from agentv_ci.contracts.environment_references import ENVIRONMENT_REFERENCE
from agentv_ci.jsonschema.schemas import SchemaName, text

PLUGINS: Mapping[SchemaName, tuple[PluginKind, str, str]] = {
    "eval-v2": ("evaluator", "PluginEvaluator", "type"),
    "targets-v2": ("provider", "PluginTarget", "provider"),
}
"""Schema → the kind of plugins in it, their definition, and the key with their names."""
REFERENCE = {"type": "string", "pattern": ENVIRONMENT_REFERENCE}


def schema_with_plugins(name: SchemaName) -> tuple[str, Sequence[str]]:
    """Return the text of a schema in which installed plugins have their settings, and why some are not in it."""
    kind, definition, key = PLUGINS[name]
    schema: dict[str, Any] = json.loads(text(name))
    del schema["$id"]  # it is not the published one
    problems: list[str] = []
    for each in plugin_names(kind):
        plugin = find_plugin(kind, each)
        if not isinstance(plugin, Plugin):
            problems.append(plugin.message)
            continue
        try:
            own, definitions = _model_schema(plugin)
        except Exception as error:  # noqa: BLE001  # models of a package may raise anything
            problems.append(
                f"{plugin.label} has settings without a JSON Schema: {error_line(error)}"
            )
            continue
        schema["$defs"] |= definitions
        title = _definition(each)
        schema["$defs"][title] = _branch(schema["$defs"][definition], own, plugin, key)
        _add(schema, plugin, f"#/$defs/{definition}", key)
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n", problems


def _definition(name: str) -> str:
    return name.replace("/", ".")


def _model_schema(plugin: Plugin) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of a plugin's settings, and the definitions that it refers to."""
    prefix = _definition(plugin.name)
    own = plugin.settings.model_json_schema(ref_template=f"#/$defs/{prefix}.{{model}}")
    return own, {f"{prefix}.{title}": each for title, each in own.pop("$defs", {}).items()}


def _branch(common: JsonObject, own: dict[str, Any], plugin: Plugin, key: str) -> JsonObject:
    """Return the definition of a plugin: the common fields and its own, which may also stand under `settings`."""
    branch = json.loads(json.dumps(common))
    fields = {
        field: _or_reference(each) if plugin.kind == "provider" else each
        for field, each in own.get("properties", {}).items()
    }
    is_open = plugin.settings.model_config.get("extra") == "allow"
    settings = branch["properties"]["settings"]
    settings |= {"properties": fields, "additionalProperties": is_open}
    branch["properties"] = {**branch["properties"], **fields}
    branch["properties"][key] = {"description": _about(plugin), "const": plugin.name}
    choices = [
        {
            "anyOf": [
                {"required": [each]},
                {"required": ["settings"], "properties": {"settings": {"required": [each]}}},
            ]
        }
        for each in own.get("required", ())
    ]
    return {
        **branch,
        "title": f"{plugin.kind} {plugin.name}",
        "description": _about(plugin),
        "additionalProperties": is_open,
        **({"allOf": choices} if choices else {}),
    }


def _or_reference(field: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a setting that may also be an environment reference."""
    shown: dict[str, Any] = {
        word: field[word]
        for word in ("title", "description", "default", "examples")
        if word in field
    }
    return {
        **shown,
        "anyOf": [{word: each for word, each in field.items() if word not in shown}, REFERENCE],
    }


def _about(plugin: Plugin) -> str:
    said = inspect.getdoc(plugin.implementation) or ""
    return said.partition("\n")[0] or f"The {plugin.label}."


def _add(part: Any, plugin: Plugin, reference: str, key: str) -> None:  # noqa: ANN401  # any part of a schema
    """Offer a plugin where plugins are accepted: among the kinds, and as a branch of the union."""
    if isinstance(part, dict):
        kinds, *others = part.get("anyOf", [{}])
        if "enum" in kinds and any(each.get("pattern") == PLUGIN_NAME for each in others):
            kinds["enum"].append(plugin.name)
            kinds["enumDescriptions"].append(_about(plugin))
        others = [each for each in part.get("allOf", []) if each.get("then") == {"$ref": reference}]
        for each in others:
            # Otherwise editors would offer the common fields twice.
            each["if"]["properties"][key].setdefault("not", {"enum": []})["enum"].append(
                plugin.name
            )
            named = {
                "type": "object",
                "required": [key],
                "properties": {key: {"const": plugin.name}},
            }
            part["allOf"].append(
                {"if": named, "then": {"$ref": f"#/$defs/{_definition(plugin.name)}"}}
            )
    inner = part.values() if isinstance(part, dict) else part
    if isinstance(part, (dict, list)):
        for value in inner:
            _add(value, plugin, reference, key)
