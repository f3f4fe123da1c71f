"""Rows as JSON lines hold them, read by msgspec: four times faster than by pydantic.

The structs are made from the contracts of rows. They have the same fields, bounds and properties,
and free data as text. They accept no row that the contracts refuse; a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from operator import or_
from types import GenericAlias, UnionType
from typing import Annotated, Any, ClassVar, ForwardRef, Union, cast, get_args, get_origin

from msgspec import Meta, Struct, defstruct
from msgspec.json import Decoder
from pydantic.fields import FieldInfo

from agentv_ci.contracts.base import JsonValue, Recorded, fields_of
from agentv_ci.contracts.results import EvaluatorResult, InLines, ResultRow

BOUNDS = ("ge", "le", "min_length", "pattern")
"""What contracts may require of a number or a text; pydantic and msgspec name them alike."""

_read_data = Decoder().decode


class _Stored(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What a contract describes."""


class _StoredWithData(_Stored, frozen=True):
    data: ClassVar[tuple[tuple[str, type], ...]]
    """The fields with free data, and what it must be."""

    def __post_init__(self) -> None:
        """Refuse texts that do not hold such data."""
        for name, kind in self.data:
            text = getattr(self, name)
            if isinstance(text, str) and text != "{}" and not isinstance(_read_data(text), kind):
                raise ValueError(f"{name} is no {kind.__name__}")


@cache
def row_reader() -> Callable[[bytes], ResultRow]:
    """Return what reads a line.

    Of its rows, only fields and properties can be used. Raises DecodeError, UnicodeError and
    RecursionError.
    """
    reader: Any = Decoder(_struct_of(ResultRow))
    return cast("Callable[[bytes], ResultRow]", reader.decode)


@cache
def _struct_of(contract: type[Recorded]) -> type[Struct]:
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    data = []
    for name, field in fields_of(contract).items():
        kind = _stored_type(field, contract)
        # Every stored row has the fields whose defaults are made by a function.
        is_required = field.is_required() or field.default_factory is not None
        fields.append((name, kind) if is_required else (name, kind, field.default))
        if (in_lines := _in_lines(field)) is not None:
            data.append((name, in_lines.data))
    properties = {name: part for name, part in vars(contract).items() if isinstance(part, property)}
    return defstruct(
        f"Stored{contract.__name__}",
        fields,
        bases=(_StoredWithData if data else _Stored,),
        namespace={"data": tuple(data), **properties},
        module=__name__,
        frozen=True,
        kw_only=True,
    )


def _stored_type(field: FieldInfo, contract: type[Recorded]) -> object:
    """Return the type as which msgspec reads a field of a contract, or a part of a field."""
    if (in_lines := _in_lines(field)) is not None:
        return _stored_type(FieldInfo.from_annotation(in_lines.kind), contract)
    kind: Any = field.annotation
    if get_origin(kind) is tuple:
        item, _ = get_args(kind)
        return GenericAlias(tuple, (_stored_type(FieldInfo.from_annotation(item), contract), ...))
    if get_origin(kind) in (Union, UnionType):
        members = map(FieldInfo.from_annotation, get_args(kind))
        return reduce(or_, (_stored_type(member, contract) for member in members))
    if kind is contract:
        return ForwardRef(f"Stored{contract.__name__}")
    if isinstance(kind, type) and issubclass(kind, Recorded):
        return _struct_of(kind)
    if kind is JsonValue:
        return str | None  # any other content is rare, and read by pydantic
    bounds = _bounds(field)
    return Annotated[kind, Meta(**bounds)] if bounds else kind


def _in_lines(field: FieldInfo) -> InLines | None:
    return next((mark for mark in field.metadata if isinstance(mark, InLines)), None)


def _bounds(field: FieldInfo) -> dict[str, Any]:
    bounds: dict[str, Any] = {}
    for mark in field.metadata:
        bounds |= {name: getattr(mark, name) for name in BOUNDS if hasattr(mark, name)}
    return bounds


StoredEvaluatorResult = _struct_of(EvaluatorResult)
"""Named because its members are such results, too."""
