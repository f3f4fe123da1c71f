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
        if isinstance(value, bool):
            return not self.types or "bool" in self.types
        return not self.types or any(isinstance(value, TYPES[name]) for name in self.types)


def validate(report: dict[str, Any], context: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return an issue per required field that is missing from the output of a successful run or has another type.

    Settings: `contract`, `{"required": {field: ...}}` with the name of a type, a list of alternative types, or
    `{"path": dot path, "type": ...}`; without `path` the field is the dot path. A field whose types are all unknown
    may have any type. A contract of an invalid form requires only an output.

    In the summary, `total_checked` counts the fields of all outputs, and `violations` all issues.
    """
    requirements = _requirements(settings_in(context).get("contract"))
    runs = [(index, run) for index, run in numbered_runs(report) if is_success(run)]
    issues = [found for index, run in runs for found in _check(index, run, requirements)]
    outputs = sum(isinstance(run.get("output"), dict) for _, run in runs)
    return findings(
        issues,
        {
            "required_fields": [each.path for each in requirements],
            "total_checked": outputs * len(requirements),
            "violations": len(issues),
        },
    )


def _requirements(contract: object) -> list[Requirement]:
    required = contract.get("required") if isinstance(contract, dict) else None
    fields = required.items() if isinstance(required, dict) else ()
    return [_requirement(field, demand) for field, demand in fields if isinstance(field, str)]


def _requirement(field: str, demand: object) -> Requirement:
    if not isinstance(demand, dict):
        return Requirement(field, _types(demand))
    path = demand.get("path")
    return Requirement(
        path if isinstance(path, str) and path else field, _types(demand.get("type"))
    )


def _types(demand: object) -> tuple[str, ...]:
    names = demand if isinstance(demand, list) else [demand]
    return tuple(name for name in names if isinstance(name, str) and name in TYPES)


def _check(index: int, run: Run, requirements: Sequence[Requirement]) -> Iterator[JsonObject]:
    output, place = run.get("output"), ("runs", index, "output")
    if not isinstance(output, dict):
        message = f"the output of {name_of(index, run)} must be an object, not {excerpt(output)}"
        yield issue("missing_output", "error", message, *place)
        return
    for each in requirements:
        steps = each.path.split(".")
        found = found_at(output, each.path)
        if not found:
            message = f"'{each.path}' is missing from the output of {name_of(index, run)}"
            yield issue("schema_missing_field", "error", message, *place, *steps)
        elif not each.accepts(found[0]):
            message = f"'{each.path}' of {name_of(index, run)} must be {' or '.join(each.types)}, not {excerpt(found[0])}"
            yield issue("schema_type_mismatch", "error", message, *place, *steps)
