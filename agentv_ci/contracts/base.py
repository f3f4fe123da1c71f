"""The base of all contracts: frozen, closed, and tolerant only of spelling."""

from collections.abc import Mapping
from functools import cache
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
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_plain_validator_function
from typing_extensions import TypeAliasType

GradedVerdict = Literal["pass", "borderline", "fail"]
Verdict = Literal["pass", "borderline", "fail", "error"]
"""Of an answer or a case; `error` is neither pass nor fail."""
EvaluatorVerdict = Literal["pass", "borderline", "fail", "error", "skipped"]
Require = Literal["majority", "all", "any"]
"""How many trials of a case must pass."""
ErrorKind = Literal[
    "timeout", "rate_limit", "auth", "network", "server", "request", "malformed", "process", "evaluator", "cancelled"
]
"""What failed."""

T = TypeVar("T")

JsonValue = pydantic.JsonValue
JsonObject = dict[str, JsonValue]


class _RefusesNull:
    """Let a field be left out without letting it be null: `key:` with nothing behind it is a mistake."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        nullable = handler(source)
        inner: CoreSchema = nullable["schema"]
        return inner


@cache
def members_of(union: TypeAliasType, key: str) -> Mapping[str, type[BaseModel]]:
    """Return, by the kinds that it has for the key, the members of a named union."""
    members, *_ = get_args(union.__value__)
    kinds = ((each, each.model_fields[key].annotation) for each in get_args(members))
    return {kind: each for each, literal in kinds for kind in get_args(literal)}


class ByKind:
    """Of a named union whose members a key tells apart, builds those that occur: a document names few of many.

    It stands around the union, at a field. The schema that pydantic makes of it has the union in its metadata.
    """

    def __init__(self, key: str) -> None:
        self._key = key

    def __get_pydantic_core_schema__(self, source: TypeAliasType, handler: GetCoreSchemaHandler) -> CoreSchema:
        def validate(value: object) -> BaseModel:
            kind = value.get(self._key) if isinstance(value, dict) else getattr(value, self._key, None)
            members = members_of(source, self._key)
            if not isinstance(kind, str) or kind not in members:
                raise PydanticCustomError("kind", "Input is of no known kind")
            return members[kind].model_validate(value)

        return no_info_plain_validator_function(validate, metadata={"union": source})


def _whole(value: object) -> object:
    """JSON Schema counts 2.0 as an integer; so do we."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Maybe = Annotated[T | None, _RefusesNull()]
Items = Annotated[tuple[T, ...], Field(strict=False)]
# The validator stands last: pydantic renders bounds correctly only where they stand before it.
WHOLE = BeforeValidator(_whole)
Integer = Annotated[int, WHOLE]
NonNegative = Annotated[int, Field(ge=0), WHOLE]
AtLeastOne = Annotated[int, Field(ge=1), WHOLE]
Name = Annotated[str, Field(min_length=1)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]

NOT_SETTINGS = frozenset({"name", "provider", "settings"})
"""Keys that cannot stand in a target's `settings`."""


class _Contract(BaseModel):
    # Built at first use: most commands use few contracts, and what is used is then built once, not part by part.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class Authored(_Contract):
    """What people write: snake_case keys, their camelCase twins accepted, older names still read.

    Serialised with `by_alias=True` it comes out in camelCase, which is how the plan embeds it.
    """

    model_config = ConfigDict(alias_generator=AliasGenerator(serialization_alias=to_camel))

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Field name → names it had before; read like spelling twins."""
    free_keys: ClassVar[bool] = False
    """Whether `x-*` keys are ignored (top level of a document: a place for YAML anchors)."""
    hoists_settings: ClassVar[bool] = False
    """Whether fields may also stand in a `settings` mapping."""

    @model_validator(mode="before")
    @classmethod
    def _settle_spelling(cls, data: object) -> object:
        """Give every accepted spelling its field's name; snake_case wins over twins, the outside over `settings`."""
        if not isinstance(data, dict) or data.keys() <= cls.__pydantic_fields__.keys():
            return data
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


def fields_of(contract: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """Return a contract's fields with types that are all known, also of a contract that refers to itself."""
    if not contract.__pydantic_fields_complete__:
        contract.model_rebuild()
    return contract.model_fields


@cache
def spellings(contract: type[Authored]) -> Mapping[str, tuple[str, int]]:
    """Accepted key → (field name, rank); the spelling of lowest rank wins where several are given."""
    accepted: dict[str, tuple[str, int]] = {}
    for field, info in contract.model_fields.items():
        if info.validation_alias is not None:
            continue
        others = (to_camel(field), *contract.older_names.get(field, ()))
        twins = (*others, *(to_camel(older) for older in contract.older_names.get(field, ())))
        for rank, spelling in enumerate((field, *twins)):
            accepted.setdefault(spelling, (field, rank))
    return accepted


class Compiled(_Contract):
    """What the compiler writes: camelCase on disk, snake_case in Python."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Recorded(_Contract):
    """What a run writes: snake_case on disk and in Python."""

    model_config = ConfigDict(populate_by_name=True)
