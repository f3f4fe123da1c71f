"""The validators that are built in: a module per key, with its `Settings` and its function `validate`."""

from __future__ import annotations

import importlib
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

BUILT_IN = (
    "determinism_check",
    "fairness_balance",
    "outlier_detection",
    "reproducibility_metadata",
    "schema_adherence",
    "structural_consistency",
)

AtLeastZero = Annotated[float, Field(ge=0)]


class BuiltInSettings(BaseModel):
    """The settings of a built-in validator, as authors write them."""

    # Built at first use, like the contracts.
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


class BuiltIn(Protocol):
    """What the module of a built-in validator has."""

    Settings: type[BuiltInSettings]

    def validate(self, report: dict[str, Any], context: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the issues that the validator finds in a scenario report, and a summary."""
        ...


def built_in(key: str) -> BuiltIn | None:
    """Return a built-in validator, imported when it is used; None for another key."""
    if key not in BUILT_IN:
        return None
    module: Any = importlib.import_module(f"{__name__}.{key}")
    return module  # type: ignore[no-any-return]  # the guard of families checks each
