"""What the built-in run validators can be told, so that a mistake is found before a run and not after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentv_ci.contracts.base import Integer, JsonObject, Name, NonNegative, Positive
from agentv_ci.contracts.source import Pointer
from agentv_ci.model_errors import refusals
from agentv_ci.text import did_you_mean

TypeName = Literal["str", "int", "float", "bool", "list", "dict", "number"]
TYPES = ", ".join(get_args(TypeName))
AtLeastZero = Annotated[float, Field(ge=0)]


class _Settings(BaseModel):
    # Built at first use, like the contracts.
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


class _NoSettings(_Settings):
    pass


class _Determinism(_Settings):
    tolerance: AtLeastZero = 0.0
    fields: list[Name] | None = None


class _Reproducibility(_Settings):
    expected_seeds: list[Integer] | None = None
    config_digest: Name | None = None


class _PathAndType(_Settings):
    path: Name
    type: TypeName | list[TypeName]


class _Contract(_Settings):
    required: dict[Name, TypeName | list[TypeName] | _PathAndType]


class _SchemaAdherence(_Settings):
    contract: _Contract


class _Outliers(_Settings):
    k: Positive = 5.0


class _Fairness(_Settings):
    metric_path: Name
    group: Name = "runner_key"
    threshold: AtLeastZero = 0.1
    min_group_size: NonNegative = 1


SETTINGS: dict[str, type[_Settings]] = {
    "determinism_check": _Determinism,
    "fairness_balance": _Fairness,
    "outlier_detection": _Outliers,
    "reproducibility_metadata": _Reproducibility,
    "schema_adherence": _SchemaAdherence,
    "structural_consistency": _NoSettings,
}


def wrong_settings(key: str, context: JsonObject) -> Iterator[tuple[Pointer, str]]:
    """Yield what is wrong with the settings of a built-in validator, and where; of others nothing is known."""
    contract = SETTINGS.get(key)
    if contract is None:
        return
    try:
        contract.model_validate(context)
    except ValidationError as error:
        told: set[Pointer] = set()
        for each in refusals(error):
            place = _place(each.place)
            # A setting that has several forms is refused once for each of them.
            if not any(place[:length] in told for length in range(1, len(place) + 1)):
                told.add(place)
                yield place, _sentence(key, contract, each.kind, place, each.message)


def unknown_settings(keys: Iterable[str], context: JsonObject) -> list[str]:
    """Return settings that none of several built-in validators has."""
    contracts = [SETTINGS[key] for key in keys if key in SETTINGS]
    return [name for name in context if not any(name in each.model_fields for each in contracts)]


def own_settings(key: str, context: JsonObject) -> JsonObject:
    """Return those of several validators' settings that one of them has; all of them for one that is not built in."""
    contract = SETTINGS.get(key)
    return context if contract is None else {name: context[name] for name in context if name in contract.model_fields}


def _place(steps: tuple[str | int, ...]) -> Pointer:
    """Return a place without pydantic's names of forms, at most down to a field of a contract."""
    if steps[:2] == ("contract", "required"):
        return steps[:3]
    return steps


def _sentence(key: str, contract: type[_Settings], kind: str, place: Pointer, message: str) -> str:
    name = ".".join(map(str, place))
    match kind:
        case "missing" if place[:2] != ("contract", "required") or len(place) == 2:
            return f"validator '{key}' needs the setting '{name}'"
        case "extra_forbidden" if len(place) == 1:
            known = list(contract.model_fields)
            has = f"it has {', '.join(known)}" if known else "it has none"
            return f"validator '{key}' has no setting '{name}'{did_you_mean(name, known)}; {has}"
        case "model_type":
            return f"setting '{name}' of validator '{key}' is a mapping"
        case _ if len(place) == 3:
            return f"setting '{name}' of validator '{key}' is a type ({TYPES}), a list of types, or {{path, type}}"
        case _:
            return f"setting '{name}' of validator '{key}': {message.removeprefix('Input ').lower()}"
