"""Base classes of all contracts: frozen and strict, except for alternative spellings."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, ClassVar, Literal, TypeVar, get_args

import pydantic
from pydantic import (
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_plain_validator_function
from typing_extensions import TypeAliasType

GradedVerdict = Literal["pass", "borderline", "fail"]
Verdict = Literal["pass", "borderline", "fail", "error", "skipped"]
"""Of an answer or a case; `error` and `skipped` are neither pass nor fail."""
UNGRADED: frozenset[Verdict] = frozenset({"error", "skipped"})
"""Verdicts without a score."""
EvaluatorVerdict = Literal["pass", "borderline", "fail", "error", "skipped"]
Require = Literal["majority", "all", "any"]
"""Trials of a case that must pass."""
ErrorKind = Literal[
    "timeout",
    "rate_limit",
    "auth",
    "network",
    "server",
    "request",
    "malformed",
    "process",
    "evaluator",
    "cancelled",
]
"""What failed."""

T = TypeVar("T")

JsonValue = pydantic.JsonValue
JsonObject = dict[str, JsonValue]


class _RefusesNull:
    """Make a field optional but not nullable: `key:` without a value is a mistake."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        nullable = handler(source)
        inner: CoreSchema = nullable["schema"]
        return inner


@cache
def members_of(union: TypeAliasType, key: str) -> Mapping[str, type[BaseModel]]:
    """Return value of `key` → member of a named union; without the one for plugins."""
    own, _ = _own_and_plugin(union)
    members: dict[str, type[BaseModel]] = {}
    for member in own:
        members |= dict.fromkeys(get_args(member.model_fields[key].annotation), member)
    return members


def _own_and_plugin(union: TypeAliasType) -> tuple[tuple[type[BaseModel], ...], type[BaseModel]]:
    (own, plugin), *_ = map(get_args, get_args(union.__value__)[:1])
    return get_args(get_args(own)[0]), plugin


def short_fields(union: TypeAliasType, key: str) -> Mapping[str, str]:
    """Return kind → the field whose value may be written under the kind itself.

    Kinds without such a field are left out.
    """
    fields = ((kind, short_field(union, key, kind)) for kind in members_of(union, key))
    return {kind: field for kind, field in fields if field is not None}


def short_field(union: TypeAliasType, key: str, kind: str) -> str | None:
    """Return the field whose value may be written under this kind itself, if it has one."""
    member = member_of(union, key, kind) if kind in members_of(union, key) else None
    if member is None or not issubclass(member, Authored) or kind in member.older_kinds:
        return None
    return member.short_field


def kind_in_short(item: object, union: TypeAliasType, key: str) -> str | None:
    """Return the kind that an item names as a key, or as a text of its own.

    Of several, it is the one that has the others as settings, such as `file` with `contains`. None
    for any other item.
    """
    if isinstance(item, str):
        member = member_of(union, key, item)
        return (
            item
            if member is not None and issubclass(member, Authored) and member.stands_alone
            else None
        )
    if not isinstance(item, dict) or key in item:
        return None
    # Of the kinds, which are few: documents may have any number of keys.
    named = [
        kind
        for kind in members_of(union, key)
        if kind in item and short_field(union, key, kind) is not None
    ]
    if len(named) > 1:
        named = [kind for kind in named if _takes(union, key, kind, named)]
    return named[0] if len(named) == 1 else None


def _takes(union: TypeAliasType, key: str, kind: str, names: Iterable[str]) -> bool:
    """Whether a kind has settings of these names, but for its own."""
    member = members_of(union, key)[kind]
    known = spellings(member) if issubclass(member, Authored) else {}
    return all(name in known for name in names if name != kind)


def _in_full(item: object, union: TypeAliasType, key: str) -> dict[str, object] | None:
    """Return an item in short with its kind and main field apart; None for any other item."""
    kind = kind_in_short(item, union, key)
    if kind is None or not isinstance(item, dict):
        return None if kind is None else {key: kind}
    field, member = short_field(union, key, kind), member_of(union, key, kind)
    names = spellings(member) if member is not None and issubclass(member, Authored) else {}
    if field is None or any(names[name][0] == field for name in item if name in names):
        return None
    return {key: kind} | {field if name == kind else name: value for name, value in item.items()}


def member_of(union: TypeAliasType, key: str, kind: object) -> type[BaseModel] | None:
    """Return the member of a named union with this value of `key`; None if there is none."""
    if isinstance(kind, str) and (known := members_of(union, key).get(kind)) is not None:
        return known
    return _own_and_plugin(union)[1] if is_plugin(kind) else None


class ByKind:
    """Validates a named union by a key, and builds only the members that occur in documents.

    Annotates a field. The union is in the metadata of the schema, for rendering.
    """

    def __init__(self, key: str, *, authored: bool = True) -> None:
        """`authored`: whether people write it, so that the kind may be the key of a setting."""
        self._key = key
        self._authored = authored

    def __get_pydantic_core_schema__(
        self, source: TypeAliasType, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        def validate(value: object) -> BaseModel:
            kind = (
                value.get(self._key) if isinstance(value, dict) else getattr(value, self._key, None)
            )
            if (member := member_of(source, self._key, kind)) is not None:
                if isinstance(value, member):
                    return value  # checked when it was made
                # A plan has the names of its schema alone.
                return member.model_validate(value, by_alias=True, by_name=self._authored)
            if self._authored and (full := _in_full(value, source, self._key)) is not None:
                return validate(full)
            raise PydanticCustomError("kind", "Input has an unknown kind")

        return no_info_plain_validator_function(validate, metadata={"union": source})


class Resolved:
    """Validates a field by the contract with this name.

    Annotates a field that few documents have: the contract is imported and built when there is a
    value. It is in the metadata of the schema, for rendering.
    """

    def __init__(self, contract: str) -> None:
        """`contract`: its module beside this one and its name, such as `comparison:Comparison`."""
        self._contract = contract

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        def validate(value: object) -> BaseModel:
            return self.contract.model_validate(value, by_alias=True, by_name=False)

        return no_info_plain_validator_function(validate, metadata={"contract": self})

    @property
    def contract(self) -> type[BaseModel]:
        """The contract itself."""
        module, _, name = self._contract.partition(":")
        contract: type[BaseModel] = getattr(import_module(f"{__package__}.{module}"), name)
        return contract


def meanings(**values: str) -> JsonDict:
    """Describe the values of a field for editors, each in one sentence.

    They are those of a Literal, or of one branch of a union.
    """
    return {"meanings": {**values}}


def _whole(value: object) -> object:
    """Accept 2.0 as an integer, like JSON Schema."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Maybe = Annotated[T | None, _RefusesNull()]
Items = Annotated[tuple[T, ...], Field(strict=False, fail_fast=True)]
"""Items of a list. The first wrong one is enough: the published schema explains all, and errors
take much memory.
"""
# The validator is last: pydantic renders bounds correctly only before it.
WHOLE = BeforeValidator(_whole)
Integer = Annotated[int, WHOLE]
NonNegative = Annotated[int, Field(ge=0), WHOLE]
AtLeastOne = Annotated[int, Field(ge=1), WHOLE]
Name = Annotated[str, Field(min_length=1)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]

PLUGIN_NAME = r"^[a-z0-9][a-z0-9_-]*/[a-z0-9][a-z0-9_-]*$"
"""Pattern of the names of plugins, which have a prefix, in the published schemas."""
PluginName = Annotated[str, Field(pattern=PLUGIN_NAME)]

_PLUGIN = re.compile(PLUGIN_NAME[1:-1])


def is_plugin(kind: object) -> bool:
    """Whether a kind of evaluator, target or report is provided by a plugin."""
    return isinstance(kind, str) and "/" in kind and _PLUGIN.fullmatch(kind) is not None


NOT_SETTINGS = frozenset({"name", "provider", "settings"})
"""Keys that are not allowed in a target's `settings`."""


class _Contract(BaseModel):
    # Built at first use: most commands use few contracts.
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True
    )


class Authored(_Contract):
    """What people write: snake_case keys, also accepted in camelCase and by their older names.

    `by_alias=True` serialises it in camelCase, as in the plan.
    """

    model_config = ConfigDict(alias_generator=AliasGenerator(serialization_alias=to_camel))

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Field → its older names, which are still accepted."""
    free_keys: ClassVar[bool] = False
    """Whether `x-*` keys are ignored: top-level keys for YAML anchors."""
    filled_in: ClassVar[frozenset[str]] = frozenset()
    """Fields that may be absent in documents and are always in plans."""
    older_kinds: ClassVar[frozenset[str]] = frozenset()
    """Names of its kind that are still accepted, but not offered."""
    short_field: ClassVar[str | None] = None
    """The field whose value may be written under the kind: `contains: Ada` is `type: contains` with
    that `value`.
    """
    stands_alone: ClassVar[bool] = False
    """Whether the kind as a text, without any field, is enough."""
    hoists_settings: ClassVar[bool] = False
    """Whether fields may also be in a `settings` mapping."""
    gathers_settings: ClassVar[bool] = False
    """Whether all other keys belong to its field `settings`, where they may also be written."""

    @model_validator(mode="before")
    @classmethod
    def _settle_spelling(cls, data: object) -> object:
        """Rename every spelling to its field.

        Snake_case wins over camelCase, the target over its `settings`.
        """
        if not isinstance(data, dict) or data.keys() <= cls.__pydantic_fields__.keys():
            return data
        if cls.gathers_settings:
            return _gathered(cls, data)
        settings = data.get("settings") if cls.hoists_settings else None
        if not isinstance(settings, dict) or settings.keys() & NOT_SETTINGS:
            return _respell(cls, data)
        rest = {key: value for key, value in data.items() if key != "settings"}
        return _respell(cls, settings) | _respell(cls, rest)


def _respell(contract: type[Authored], data: Mapping[str, object]) -> dict[str, object]:
    """Return `data` with every accepted spelling replaced by the contract's field names."""
    names = spellings(contract)
    settled: dict[str, object] = {}
    ranks: dict[str, int] = {}
    for key, value in data.items():
        if contract.free_keys and key.startswith("x-"):
            continue
        name, rank = names.get(key, (key, 0))
        if rank <= ranks.get(name, rank):
            settled[name] = value
            ranks[name] = rank
    return settled


def _gathered(contract: type[Authored], data: Mapping[str, object]) -> dict[str, object]:
    """Return `data` with the keys that are no fields in `settings`.

    They win over those written there.
    """
    known = _respell(contract, data)
    own = {key: known.pop(key) for key in [*known] if key not in contract.__pydantic_fields__}
    settings = known.get("settings", {})
    return (
        {**known, "settings": {**settings, **own}}
        if isinstance(settings, dict)
        else {**known, **own}
    )


def fields_of(contract: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """Return a contract's fields with resolved types, even if it is recursive."""
    if not contract.__pydantic_fields_complete__:
        contract.model_rebuild()
    return contract.model_fields


@cache
def spellings(contract: type[Authored]) -> Mapping[str, tuple[str, int]]:
    """Return accepted key → (field, rank).

    Of several spellings the one with the lowest rank wins.
    """
    accepted: dict[str, tuple[str, int]] = {}
    for field, info in contract.model_fields.items():
        if info.validation_alias is not None:
            continue
        others = (to_camel(field), *contract.older_names.get(field, ()))
        twins = (*others, *map(to_camel, contract.older_names.get(field, ())))
        for rank, spelling in enumerate((field, *twins)):
            accepted.setdefault(spelling, (field, rank))
    return accepted


class Compiled(_Contract):
    """What the compiler writes: camelCase on disk, snake_case in Python."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Recorded(_Contract):
    """What a run writes: snake_case on disk and in Python."""

    model_config = ConfigDict(populate_by_name=True)
