"""Published schemas with the plugins that are installed."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
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
    """Return the text of a schema in which installed plugins have their settings.

    The second value says why some are not in it.
    """
    kind, definition, key = PLUGINS[name]
    schema: dict[str, Any] = json.loads(text(name))
    del schema["$id"]  # it is not the published one
    problems: list[str] = []
    for plugin_name in plugin_names(kind):
        plugin = find_plugin(kind, plugin_name)
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
        title = _definition(plugin_name)
        schema["$defs"][title] = _branch(schema["$defs"][definition], own, plugin, key)
        _add(schema, plugin, f"#/$defs/{definition}", key)
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n", problems


def _definition(name: str) -> str:
    return name.replace("/", ".")


def _model_schema(plugin: Plugin) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of a plugin's settings, and the definitions that it refers to."""
    prefix = _definition(plugin.name)
    own = plugin.settings.model_json_schema(ref_template=f"#/$defs/{prefix}.{{model}}")
    return own, {f"{prefix}.{title}": schema for title, schema in own.pop("$defs", {}).items()}


def _branch(common: JsonObject, own: dict[str, Any], plugin: Plugin, key: str) -> JsonObject:
    """Return the definition of a plugin: the common fields and its own.

    Its own may also stand under `settings`.
    """
    branch = json.loads(json.dumps(common))
    fields = dict(own.get("properties", {}))
    if plugin.kind == "provider":
        fields = {name: _or_reference(field) for name, field in fields.items()}
    is_open = plugin.settings.model_config.get("extra") == "allow"
    settings = branch["properties"]["settings"]
    settings |= {"properties": fields, "additionalProperties": is_open}
    branch["properties"] = {**branch["properties"], **fields}
    branch["properties"][key] = {"description": _about(plugin), "const": plugin.name}
    branch |= {
        "title": f"{plugin.kind} {plugin.name}",
        "description": _about(plugin),
        "additionalProperties": is_open,
    }
    if required := own.get("required"):
        branch["allOf"] = list(map(_required, required))
    return branch  # type: ignore[no-any-return]


def _required(name: str) -> JsonObject:
    """Return a schema that requires a setting, also if it stands under `settings`."""
    inner: JsonObject = {"required": ["settings"], "properties": {"settings": {"required": [name]}}}
    return {"anyOf": [{"required": [name]}, inner]}


def _or_reference(field: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a setting that may also be an environment reference."""
    shown: dict[str, Any] = {}
    own = dict(field)
    for word in ("title", "description", "default", "examples"):
        if word in own:
            shown[word] = own.pop(word)
    return {**shown, "anyOf": [own, REFERENCE]}


def _about(plugin: Plugin) -> str:
    said = inspect.getdoc(plugin.implementation) or ""
    return said.partition("\n")[0] or f"The {plugin.label}."


def _add(part: object, plugin: Plugin, reference: str, key: str) -> None:
    """Offer a plugin where plugins are accepted: among the kinds, and as a branch of the union."""
    inner: Iterable[object] = ()
    if isinstance(part, dict):
        _add_to(part, plugin, reference, key)
        inner = part.values()
    elif isinstance(part, list):
        inner = part
    for value in inner:
        _add(value, plugin, reference, key)


def _add_to(part: dict[str, Any], plugin: Plugin, reference: str, key: str) -> None:
    kinds, *others = part.get("anyOf", [{}])
    if "enum" in kinds and any(schema.get("pattern") == PLUGIN_NAME for schema in others):
        kinds["enum"].append(plugin.name)
        kinds["enumDescriptions"].append(_about(plugin))
    for branch in list(part.get("allOf", ())):
        if branch.get("then") != {"$ref": reference}:
            continue
        # Otherwise editors would offer the common fields twice.
        excluded = branch["if"]["properties"][key].setdefault("not", {"enum": []})
        excluded["enum"].append(plugin.name)
        named = {
            "type": "object",
            "required": [key],
            "properties": {key: {"const": plugin.name}},
        }
        own = {"$ref": f"#/$defs/{_definition(plugin.name)}"}
        part["allOf"].append({"if": named, "then": own})
