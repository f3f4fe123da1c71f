"""The built-in validators: one module per key, with its `Settings` and its function `validate`.

Invalid settings in documents are reported before a run.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Annotated, Any, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentv_ci.base.model_errors import Refusal, refusals
from agentv_ci.base.text import did_you_mean
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.source import Pointer

BUILT_IN = (
    "determinism_check",
    "fairness_balance",
    "outlier_detection",
    "reproducibility_metadata",
    "schema_adherence",
    "structural_consistency",
)

AtLeastZero = Annotated[float, Field(ge=0, allow_inf_nan=False)]
MoreThanZero = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class BuiltInSettings(BaseModel):
    """The settings of a built-in validator, as in documents."""

    # Built on first use, like the contracts.
    model_config = ConfigDict(
        extra="forbid", strict=True, defer_build=True, validate_assignment=True
    )

    @classmethod
    def lenient(cls, context: object) -> Self:
        """Return settings, with defaults for those of an invalid form."""
        settings: Self = cls.model_construct()  # type: ignore[assignment]  # the plugin takes it for the base
        for name in cls.model_fields:
            if isinstance(context, dict) and name in context:
                with suppress(ValidationError):
                    setattr(settings, name, context[name])
        return settings


class BuiltIn(Protocol):
    """The module of a built-in validator."""

    Settings: type[BuiltInSettings]

    def validate(
        self, report: dict[str, Any], context: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the issues that the validator finds in a scenario report, and a summary."""
        ...


def built_in(key: str) -> BuiltIn | None:
    """Import and return a built-in validator; None for another key."""
    if key not in BUILT_IN:
        return None
    module: Any = importlib.import_module(f"{__name__}.{key}")
    return module  # type: ignore[no-any-return]  # checked by the guard of families


def setting_names(key: str) -> list[str] | None:
    """Return the names of a built-in validator's settings; None for other validators."""
    validator = built_in(key)
    return None if validator is None else list(validator.Settings.model_fields)


def wrong_settings(key: str, context: JsonObject) -> Iterator[tuple[Pointer, str]]:
    """Yield the errors in the settings of a built-in validator, each with its place.

    None for other validators.
    """
    validator = built_in(key)
    if validator is None:
        return
    try:
        validator.Settings.model_validate(context)
    except ValidationError as error:
        for refusal in refusals(error):
            yield refusal.place, _sentence(key, list(validator.Settings.model_fields), refusal)


def unknown_settings(keys: Iterable[str], context: JsonObject) -> list[str]:
    """Return the settings that none of these built-in validators has."""
    known: set[str] = set()
    for key in keys:
        known.update(setting_names(key) or ())
    return [name for name in context if name not in known]


def own_settings(key: str, context: JsonObject) -> JsonObject:
    """Return the settings that a validator has; all of them for one that is not built in."""
    known = setting_names(key)
    if known is None:
        return context
    return {name: context[name] for name in context if name in known}


def _sentence(key: str, known: list[str], refusal: Refusal) -> str:
    name = ".".join(map(str, refusal.place))
    match refusal.kind:
        case "missing":
            return f"validator '{key}' requires the setting '{name}'"
        case "extra_forbidden" if len(refusal.place) == 1:
            settings = f"its settings are {', '.join(known)}" if known else "it has no settings"
            close = did_you_mean(name, known)
            return f"unknown setting '{name}' of validator '{key}'{close}; {settings}"
        case "model_type":
            return f"setting '{name}' of validator '{key}' must be a mapping"
        case "sentence":
            return f"setting '{name}' of validator '{key}' {refusal.message}"
        case _:
            reason = refusal.message.removeprefix("Input ").lower()
            return f"setting '{name}' of validator '{key}': {reason}"
