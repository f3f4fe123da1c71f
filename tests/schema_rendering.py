"""Rendering the published schemas from the contracts: `make schemas`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import getitem
from typing import TYPE_CHECKING, Any, get_args

from msgspec.json import schema as schema_of
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core.core_schema import any_schema, definition_reference_schema

from agentv_ci.contracts.base import NOT_SETTINGS, PLUGIN_NAME, Authored, JsonValue, spellings
from agentv_ci.contracts.cli_target import PROMPT_IN_TEMPLATE, CliTarget
from agentv_ci.contracts.command_output import DiagnosticsDocument, HealthReport
from agentv_ci.contracts.comparison import BaselineDocument
from agentv_ci.contracts.config import ConfigDocument
from agentv_ci.contracts.environment_references import ENVIRONMENT_REFERENCE, NO_REFERENCE
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.contracts.experiment import ExperimentDocument
from agentv_ci.contracts.experiment_report import ExperimentReport
from agentv_ci.contracts.judge_evaluators import JudgeSetDocument
from agentv_ci.contracts.ledger import LedgerLine
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.proof import Proof
from agentv_ci.contracts.quarantine import QuarantineDocument
from agentv_ci.contracts.report import RunReport
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.targets import TargetsDocument
from agentv_ci.jsonschema.schemas import TITLES, SchemaName, schema_id

if TYPE_CHECKING:
    from pydantic_core import core_schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"

CONTRACTS: Mapping[SchemaName, type[BaseModel]] = {
    "eval-v2": EvalDocument,
    "targets-v2": TargetsDocument,
    "config-v2": ConfigDocument,
    "plan-v1": Plan,
    "result-v1": ResultRow,
    "report-v1": RunReport,
    "diagnostics-v1": DiagnosticsDocument,
    "baseline-v1": BaselineDocument,
    "judge-set-v1": JudgeSetDocument,
    "quarantine-v1": QuarantineDocument,
    "proof-v1": Proof,
    "health-v1": HealthReport,
    "experiment-v1": ExperimentDocument,
    "experiment-report-v1": ExperimentReport,
}


def render(name: SchemaName, examples: Sequence[JsonValue]) -> str:
    """Return the text of a published schema; `examples` are documents that it accepts."""
    body = _lines() if name == "ledger-v1" else _document(name)
    schema = {"$schema": DIALECT, "$id": schema_id(name), "title": TITLES[name], **body, "examples": list(examples)}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _lines() -> JsonSchemaValue:
    """Return the schema of lines that are read by msgspec."""
    body = schema_of(LedgerLine)
    del body["discriminator"]
    for definition in body["$defs"].values():
        definition["description"], *_ = definition["description"].split("\n\n")
        for field in definition["properties"].values():
            if field.get("default", ...) is None:
                del field["default"]
    return body


def _document(name: SchemaName) -> JsonSchemaValue:
    model = CONTRACTS[name]
    mode: JsonSchemaMode = "validation" if issubclass(model, Authored) else "serialization"
    renderer = TargetsRenderer if name == "targets-v2" else Renderer
    body = model.model_json_schema(mode=mode, schema_generator=renderer)
    if name == "targets-v2":
        _state_rules_of_texts(body["$defs"])
    if mode == "validation":
        for title, definition in body.get("$defs", {}).items():
            if "properties" in definition:
                definition["title"] = _words(title)
        for union in list(_unions(body)):
            _describe_kinds(union, body["$defs"])
        for title, definition in [*body.get("$defs", {}).items()]:
            if any("if" in each for each in definition.get("allOf", [])):
                _show_before_the_kind(definition, body["$defs"])
                body["$defs"][title] = _with_short_forms(definition, body["$defs"])
        for definition in body.get("$defs", {}).values():
            definition.pop("short", None)
    _describe_values(body, shown=mode == "validation")
    for way, snippet in SNIPPETS.items() if name == "eval-v2" else ():
        reduce(getitem, way, body)["defaultSnippets"] = [snippet]
    return body


def _state_rules_of_texts(definitions: dict[str, JsonSchemaValue]) -> None:
    definitions["JsonValue"] = ANY_VALUE
    definitions["PluginTarget"]["additionalProperties"] = {"$ref": "#/$defs/JsonValue"}
    for part in ("TargetWorkspace", "FileSource", "WorkspaceLimits"):
        _refuse_references(definitions[part])


def _refuse_references(part: Any) -> None:
    """Refuse even whole references in a part of a schema: the settings of workspaces are in the plan."""
    if isinstance(part, dict) and part.items() >= WHOLE_REFERENCE.items():
        part["pattern"] = NO_REFERENCE
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        _refuse_references(inner)


def _unions(part: Any) -> Iterator[JsonSchemaValue]:
    """Yield every union by kind in a part of a schema."""
    if isinstance(part, dict) and any("if" in each for each in part.get("allOf", [])):
        yield part
    for each in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _unions(each)


def _describe_kinds(union: JsonSchemaValue, definitions: Mapping[str, JsonSchemaValue]) -> None:
    """Show editors what each kind is, and hide its older names: they offer what is listed, not what has a pattern."""
    (key,) = union["required"]
    meanings: dict[str, str] = {}
    hidden: list[str] = []
    for each in union["allOf"]:
        kind = definitions[each["then"]["$ref"].rpartition("/")[2]]["properties"][key]
        if kind.get("pattern") == PLUGIN_NAME:
            continue
        names = kind.get("enum") or [kind["const"]]
        older = kind.pop("older", [])
        meanings |= {name: kind["description"] for name in names if name not in older} | kind.pop("meanings", {})
        if older:
            hidden += older
            del kind["enum"]
            kind["pattern"] = _one_of(names)
            each["if"]["properties"][key] = {"type": "string", "pattern": _one_of(names)}
    shown = {"enum": [*meanings], "enumDescriptions": [*meanings.values()]}
    accepted = {"type": "string", "pattern": _one_of(hidden), "deprecated": True}
    is_open = "anyOf" in union["properties"][key]
    others = ([accepted] if hidden else []) + ([NAME_OF_PLUGIN] if is_open else [])
    union["properties"][key] = {"description": KIND} | ({"anyOf": [shown, *others]} if others else shown)


def _describe_values(part: Any, *, shown: bool) -> None:
    """Describe the values of fields beside them, where editors look; unless `shown`, drop what is for editors."""
    for each in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        _describe_values(each, shown=shown)
    if isinstance(part, dict) and isinstance(part.get("examples"), list) and not shown:
        del part["examples"]
    if isinstance(part, dict) and isinstance(part.get("meanings"), dict):
        meanings = part.pop("meanings")
        (values,) = [each for each in (part, *part.get("anyOf", [])) if "enum" in each]
        if shown:
            assert {*values["enum"]} == meanings.keys(), f"each of {values['enum']} has a meaning"
            values["enumDescriptions"] = [meanings[each] for each in values["enum"]]


def _words(title: str) -> str:
    """What editors call a part: `EvalCase` is an eval case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", title.removeprefix("Authored")).lower()


KINDS = {"type", "provider"}
KIND = "The kind; the other keys follow from it."
NAME_OF_PLUGIN = {"type": "string", "pattern": PLUGIN_NAME}

CASE: JsonValue = {
    "id": "${1:name}",
    "expected_outcome": "${2:What a good answer achieves}",
    "input_messages": [{"role": "user", "content": "${3:Question}"}],
    "expected_messages": "[]",
    "evaluators": [{"type": "contains", "value": "${4:Text}"}],
}

SNIPPETS: Mapping[tuple[str, ...], JsonValue] = {
    (): {"label": "eval file", "description": "A file with one case.", "body": {"evalcases": [CASE]}},
    ("$defs", "EvalCase"): {"label": "case", "description": "A case with what is required.", "body": CASE},
}
"""Part of the schema of eval files → what editors insert as a whole."""

PUBLISHED_NAMES: Mapping[str, str] = {
    "AuthoredToolCall": "ToolCall",
    "OutputMessage": "OutputMessageRecord",
    "PrintedOutput": "PrintedRecord",
    "ToolCall": "ToolCallRecord",
    "Usage": "UsageRecord",
}
"""Definitions that have other names than their classes."""


class Renderer(GenerateJsonSchema):
    """Writes into the schemas what the base contract tolerates, so that both reach the same verdict."""

    _unions: frozenset[str] = frozenset()
    """Those by kind that are rendered already, or just now."""

    def normalize_name(self, name: str) -> str:
        return super().normalize_name(PUBLISHED_NAMES.get(name, name))

    def field_title_should_be_set(self, schema: object) -> bool:  # pydantic asks for each schema
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        rendered = super().default_schema(schema)
        if rendered.get("default", ...) is None:
            del rendered["default"]
        return rendered

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        rendered = super().dict_schema(schema)
        if "patternProperties" in rendered:
            rendered["additionalProperties"] = False
        return rendered

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        rendered = super().model_schema(schema)
        rendered.pop("title", None)
        model = schema["cls"]
        for field in getattr(model, "filled_in", ()):
            del rendered["properties"][field]["default"]
            if self.mode == "serialization":
                rendered["required"] = [field, *rendered.get("required", [])]
        if self.mode == "validation" and issubclass(model, Authored):
            self.state_rules(model, rendered)
            return _tolerant(model, rendered)
        return rendered

    def state_rules(self, model: type[Authored], rendered: JsonSchemaValue) -> None:
        """State the rules of a model that JSON Schema can express, with their ids as comments."""

    def function_plain_schema(self, schema: core_schema.PlainValidatorFunctionSchema) -> JsonSchemaValue:
        """What validation builds when it occurs is rendered whole; a union once."""
        if "contract" in schema["metadata"]:
            contract: type[BaseModel] = schema["metadata"]["contract"].contract
            return self.generate_inner(TypeAdapter(contract).core_schema)
        whole = TypeAdapter(schema["metadata"]["union"]).core_schema
        named = whole["schema"] if whole["type"] == "definitions" else whole
        if named["ref"] in self._unions:
            # A member that holds others of the union is inside of it.
            return self.generate_inner(definition_reference_schema(named["ref"]))
        self._unions |= {named["ref"]}
        return self.generate_inner(whole)

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        """A union by kind as `if`/`then` per kind: every validator then blames the branch the author named."""
        rendered = super().tagged_union_schema(schema)
        key = rendered["discriminator"]["propertyName"]
        kinds: dict[str, list[str]] = {}
        for kind, reference in rendered["discriminator"]["mapping"].items():
            kinds.setdefault(reference, []).append(kind)
        everything = [kind for names in kinds.values() for kind in names]
        return {
            "type": "object",
            "required": [key],
            "properties": {key: {"enum": everything}},
            "allOf": [_when(key, names, everything, {"$ref": reference}) for reference, names in kinds.items()],
        }

    def union_schema(self, schema: core_schema.UnionSchema) -> JsonSchemaValue:
        """A union by kind whose last member is for plugins, as one more `if`/`then`."""
        rendered = super().union_schema(schema)
        own, *others = rendered.get("anyOf", [{}])
        if "if" not in next(iter(own.get("allOf", [])), {}):
            return rendered
        (key,), (plugin,) = own["required"], others
        own["properties"][key] = {"description": KIND, "anyOf": [own["properties"][key], NAME_OF_PLUGIN]}
        named = {"type": "object", "required": [key], "properties": {key: NAME_OF_PLUGIN}}
        own["allOf"].append({"if": named, "then": plugin})
        return dict(own)


WHOLE_REFERENCE = {"$comment": "AV315", "pattern": f"{ENVIRONMENT_REFERENCE}|{NO_REFERENCE}"}
ANY_VALUE = {
    "if": {"type": "string"},
    "then": WHOLE_REFERENCE,
    "items": {"$ref": "#/$defs/JsonValue"},
    "additionalProperties": {"$ref": "#/$defs/JsonValue"},
}
"""Any value, with environment references only as whole values."""
TEMPLATE = "(command_template|commandTemplate)"
GETS_PROMPT = {"type": "string", "pattern": f"{PROMPT_IN_TEMPLATE}|{ENVIRONMENT_REFERENCE}"}


class TargetsRenderer(Renderer):
    """States rules of targets, for tools that only have the schema."""

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        rendered = super().str_schema(schema)
        return rendered if "pattern" in rendered else rendered | WHOLE_REFERENCE

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        # References are values, not keys.
        return super().dict_schema({**schema, "keys_schema": any_schema()})

    def state_rules(self, model: type[Authored], rendered: JsonSchemaValue) -> None:
        if "api_key" in rendered["properties"]:
            key = {"$comment": "AV313", "pattern": f"{ENVIRONMENT_REFERENCE}|^$"}
            rendered["properties"]["api_key"].update(key)
        if model is CliTarget:
            rendered["allOf"] = [{"$comment": "AV329", "anyOf": [*_prompt_from_elsewhere(), _prompt_in_template()]}]


def _prompt_from_elsewhere() -> Iterator[JsonSchemaValue]:
    """Yield the ways in which a command gets the prompt, or needs none, whatever its template is."""
    for field in ("stdin", "prompt"):
        yield {"required": [field]}
        yield {"required": ["settings"], "properties": {"settings": {"required": [field]}}}


def _prompt_in_template() -> JsonSchemaValue:
    template = {f"^{TEMPLATE}$": GETS_PROMPT}
    return {"patternProperties": {**template, "^settings$": {"patternProperties": template}}}


def _when(key: str, names: list[str], kinds: Iterable[str], then: JsonSchemaValue) -> JsonSchemaValue:
    kind: JsonSchemaValue = {"enum": names}
    if any(name.startswith(other) for name in names for other in kinds if other not in names):
        # NOTE: while they complete, editors take `contains` for the beginning of `contains_any`, but not in a pattern.
        kind["pattern"] = _one_of(names)
    return {"if": {"type": "object", "required": [key], "properties": {key: kind}}, "then": then}


def _show_before_the_kind(union: JsonSchemaValue, definitions: Mapping[str, JsonSchemaValue]) -> None:
    """Let editors offer and explain what all kinds have while the kind is not written yet."""
    (key,) = union["required"]
    first, *rest = [definitions[each["then"]["$ref"].rpartition("/")[2]]["properties"] for each in union["allOf"]]
    shared = {field: about for field, about in first.items() if all(other.get(field) == about for other in rest)}
    kind = union["properties"][key]
    union["allOf"].append({"if": {"type": "object", "required": [key]}, "else": {"properties": {key: kind} | shared}})


def _with_short_forms(union: JsonSchemaValue, definitions: dict[str, JsonSchemaValue]) -> JsonSchemaValue:
    """Accept the kind as a key for its main field, or as the whole item."""
    (key,) = union["required"]
    references = [each["then"]["$ref"] for each in union["allOf"] if "$ref" in each.get("then", {})]
    kinds = {each: definitions[each.rpartition("/")[2]] for each in references}
    kinds = {reference: each for reference, each in kinds.items() if "short" in each}
    if not kinds:
        return union
    alone = {each["short"]["kind"]: each["properties"][key] for each in kinds.values() if each["short"]["alone"]}
    shorts = {reference: each for reference, each in kinds.items() if each["short"]["field"]}
    before = union["allOf"].pop()
    for reference, each in shorts.items():
        kind, field = each["short"]["kind"], each["short"]["field"]
        definitions[f"{reference.rpartition('/')[2]}InShort"] = _in_short(each, key, kind, field)
        # `file` beside `contains` is the kind `file` with a setting.
        owners = [other["short"]["kind"] for other in shorts.values() if kind in other["properties"]]
        others = {owner: False for owner in owners if owner != kind}
        condition = {"type": "object", "required": [kind], "properties": {key: False, **others}}
        union["allOf"].append({"if": condition, "then": {"$ref": f"{reference}InShort"}})
        about = each["properties"][key]["description"] + " " + each["properties"][field]["description"]
        before["else"]["properties"][kind] = {"description": about}
    known = [{"required": [each]} for each in (key, *(each["short"]["kind"] for each in shorts.values()))]
    union["allOf"].append({"if": {"anyOf": known}, "else": before["else"] | {"required": [key]}})
    title = union.pop("title")
    del union["required"]
    descriptions = [each["description"] for each in alone.values()]
    text = {"type": "string", "enum": [*alone], "enumDescriptions": descriptions}
    return {"title": title, "anyOf": [text, union]}


def _in_short(long: JsonSchemaValue, key: str, kind: str, field: str) -> JsonSchemaValue:
    fields = long["properties"]
    about = f"{fields[key]['description']} {fields[field]['description']}"
    twins = {
        each: twin for each, twin in long.get("patternProperties", {}).items() if twin != _twin(field, fields[field])
    }
    rest = {name: value for name, value in fields.items() if name not in (key, field)}
    return {
        "additionalProperties": False,
        "description": long["description"],
        "patternProperties": twins,
        "properties": {kind: fields[field] | {"description": about}} | rest,
        "required": [kind],
        "type": "object",
        "title": f"{long['title']}, in short",
    }


def _one_of(names: list[str]) -> str:
    return f"^{names[0]}$" if len(names) == 1 else f"^({'|'.join(names)})$"


def _tolerant(model: type[Authored], rendered: JsonSchemaValue) -> JsonSchemaValue:
    fields: dict[str, JsonSchemaValue] = rendered["properties"]
    others: dict[str, list[str]] = {}
    for spelling, (field, _) in spellings(model).items():
        if spelling != field:
            others.setdefault(field, []).append(spelling)
    # NOTE: editors offer `properties`; what is a pattern they accept and explain, but do not offer.
    twins = {_one_of(names): _twin(field, fields[field]) for field, names in others.items()}
    rendered["properties"] = dict(fields)
    hoisted = [field for field in fields if field not in NOT_SETTINGS] if model.hoists_settings else []
    if hoisted:
        rendered["properties"]["settings"] = {
            "type": "object",
            "description": "Any of the other fields may also stand here.",
            "properties": {key: fields[key] for key in hoisted},
            "patternProperties": twins,
            "additionalProperties": False,
        }
    for key in KINDS & fields.keys() if model.older_kinds else ():
        fields[key]["older"] = sorted(model.older_kinds)
    if model.short_field or model.stands_alone:
        kind, *_ = get_args(model.model_fields["type"].annotation)
        rendered["short"] = {"kind": kind, "field": model.short_field, "alone": model.stands_alone}
    free = {"^x-": {"description": "Free: a place for YAML anchors."}} if model.free_keys else {}
    if twins or free:
        rendered["patternProperties"] = free | twins
    _require_any_spelling(rendered, others, hoisted)
    return rendered


def _twin(field: str, about: JsonSchemaValue) -> JsonSchemaValue:
    # Without what editors would offer.
    return {key: value for key, value in about.items() if key not in ("default", "examples")} | {
        "description": f"Same as `{field}`."
    }


def _require_any_spelling(rendered: JsonSchemaValue, others: Mapping[str, list[str]], hoisted: list[str]) -> None:
    plain: list[str] = []
    choices: list[JsonSchemaValue] = []
    for field in rendered.pop("required", []):
        names = [field, *others.get(field, [])]
        branches: list[JsonSchemaValue] = [{"required": [name]} for name in names]
        if field in hoisted:
            branches += [
                {"required": ["settings"], "patternProperties": {"^settings$": {"type": "object", "required": [name]}}}
                for name in names
            ]
        if len(branches) == 1:
            plain.append(field)
        else:
            choices.append({"anyOf": branches})
    if plain:
        rendered["required"] = plain
    if choices:
        rendered["allOf"] = [*rendered.get("allOf", []), *choices]
