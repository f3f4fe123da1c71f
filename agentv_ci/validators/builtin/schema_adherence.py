"""Check that outputs have the fields that a contract requires."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from msgspec import Struct
from pydantic import ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError

from agentv_ci.contracts.base import JsonObject, Name
from agentv_ci.validators.builtin import BuiltInSettings
from agentv_ci.validators.runs import (
    Run,
    excerpt,
    findings,
    found_at,
    is_success,
    issue,
    name_of,
    numbered_runs,
    settings_in,
)

TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (float,),
    "bool": (bool,),
    "list": (list, tuple),
    "dict": (dict,),
    "number": (int, float),
}


TypeName = Literal["str", "int", "float", "bool", "list", "dict", "number"]


class _PathAndType(BuiltInSettings):
    path: Name
    type: TypeName | list[TypeName]


def _in_one_sentence(value: object, validate: ValidatorFunctionWrapHandler) -> object:
    """Report a value that matches no form once, not once per form."""
    try:
        return validate(value)
    except ValidationError as error:
        message = "must be a type ({types}), a list of types, or {path, type}"
        raise PydanticCustomError("sentence", message, {"types": ", ".join(TYPES)}) from error


Demand = Annotated[TypeName | list[TypeName] | _PathAndType, WrapValidator(_in_one_sentence)]


class _Contract(BuiltInSettings):
    required: dict[Name, Demand]


class Settings(BuiltInSettings):
    """The fields that every output must have."""

    contract: _Contract


class Requirement(Struct, frozen=True):
    """A field that every output must have."""

    path: str
    types: tuple[str, ...]
    """Names of accepted types; empty: any."""

    def accepts(self, value: object) -> bool:
        """Whether a value has one of the types; a boolean is not a number, and 1 is not a float."""
        if not self.types:
            return True
        if isinstance(value, bool):
            return "bool" in self.types
        return any(isinstance(value, TYPES[name]) for name in self.types)


def validate(report: dict[str, Any], context: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return an issue per required field that the output of a successful run lacks.

    A field with another type is lacking, too.

    Settings: `contract`, `{"required": {field: ...}}` with the name of a type, a list of
    alternative types, or `{"path": dot path, "type": ...}`; without `path` the field is the dot
    path. A field whose types are all unknown may have any type. A contract of an invalid form
    requires only an output.

    In the summary, `total_checked` counts the fields of all outputs, and `violations` all issues.
    """
    requirements = _requirements(settings_in(context).get("contract"))
    issues: list[JsonObject] = []
    outputs = 0
    for index, run in numbered_runs(report):
        if is_success(run):
            issues += _check(index, run, requirements)
            outputs += isinstance(run.get("output"), dict)
    return findings(
        issues,
        {
            "required_fields": [requirement.path for requirement in requirements],
            "total_checked": outputs * len(requirements),
            "violations": len(issues),
        },
    )


def _requirements(contract: object) -> list[Requirement]:
    match contract:
        case {"required": dict(required)}:
            fields = required.items()
        case _:
            return []
    return [_requirement(field, demand) for field, demand in fields if isinstance(field, str)]


def _requirement(field: str, demand: object) -> Requirement:
    if not isinstance(demand, dict):
        return Requirement(field, _types(demand))
    path = demand.get("path")
    if not isinstance(path, str) or not path:
        path = field
    return Requirement(path, _types(demand.get("type")))


def _types(demand: object) -> tuple[str, ...]:
    names = demand if isinstance(demand, list) else [demand]
    return tuple(name for name in names if isinstance(name, str) and name in TYPES)


def _check(index: int, run: Run, requirements: Sequence[Requirement]) -> Iterator[JsonObject]:
    output, place = run.get("output"), ("runs", index, "output")
    if not isinstance(output, dict):
        message = f"the output of {name_of(index, run)} must be an object, not {excerpt(output)}"
        yield issue("missing_output", "error", message, *place)
        return
    for requirement in requirements:
        path = requirement.path
        steps = path.split(".")
        found = found_at(output, path)
        if not found:
            message = f"'{path}' is missing from the output of {name_of(index, run)}"
            yield issue("schema_missing_field", "error", message, *place, *steps)
        elif not requirement.accepts(found[0]):
            types = " or ".join(requirement.types)
            message = f"'{path}' of {name_of(index, run)} must be {types}, not {excerpt(found[0])}"
            yield issue("schema_type_mismatch", "error", message, *place, *steps)
