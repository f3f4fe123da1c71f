"""The family of run validators: what is checked in the report of a finished scenario.

A validator is a function of a scenario report and of its settings. It returns `{"issues": [{"id", "severity",
"message", "path"}], "summary": {...}}`, the same for the same input, leaves its input as it is, and never raises.
Besides the built-in ones there are those that a program registers, and those that packages bring as entry points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agentv_ci.text import did_you_mean, listed, shortened, well_formed_text
from agentv_ci.validators.builtin import BUILT_IN, built_in
from agentv_ci.validators.runs import normalized

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "agentv_ci.validators"
LONGEST_ERROR = 2000
"""Characters that are kept of what an exception says."""

Validator = Callable[[dict[str, Any], dict[str, Any] | None], dict[str, Any]]

_registered: dict[str, Validator] = {}


class UnknownValidator(KeyError):
    """No validator has this key."""

    def __str__(self) -> str:
        return str(self.args[0])


def register_validator(key: str, fn: Validator) -> None:
    """Make a validator known in this process; it replaces what had the key, built-in ones too.

    Raises TypeError for a key that is no text or a validator that cannot be called, ValueError for an empty key.
    """
    if not isinstance(key, str):
        raise TypeError(f"the key of a validator is a text, not {type(key).__name__}")
    if not key:
        raise ValueError("the key of a validator is empty")
    _registered[key] = _callable(fn)


def get_validator(key: str) -> Validator:
    """Return a validator: a registered one, else a built-in one, else that of a package.

    Raises UnknownValidator, a KeyError, where there is none, TypeError where a package brings what cannot be called,
    and whatever its import raises.
    """
    if key in _registered:
        return _registered[key]
    if (own := built_in(key)) is not None:
        return own.validate
    plugin = next((each for each in _plugins() if each.name == key), None)
    if plugin is None:
        known = list_validators()
        raise UnknownValidator(f"unknown validator '{key}'{did_you_mean(key, known)}; validators are {listed(known)}")
    return _callable(plugin.load())


def list_validators() -> list[str]:
    """Return the keys of all validators, sorted."""
    return sorted({*BUILT_IN, *_registered, *(each.name for each in _plugins())})


def apply_validator(key: str, report: dict[str, Any], context: dict[str, Any] | None) -> dict[str, Any]:
    """Return `{"validator", "issues", "summary"}`, or `{"validator", "error"}`: one that breaks stops nothing else."""
    try:
        validator = get_validator(key)
    except UnknownValidator as error:
        return _failed(key, str(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a package may do anything while it is imported
        return _failed(key, f"it cannot be loaded: {type(error).__name__}: {error}")
    try:
        returned = validator(report, context)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever breaks one validator, the others still count
        return _failed(key, f"it broke: {type(error).__name__}: {error}")
    try:
        return {"validator": key, **normalized(returned)}
    except ValueError as error:
        return _failed(key, f"what it returned cannot be read: {error}")


def _plugins() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points  # takes as long as all else that is imported here

    return tuple(entry_points(group=ENTRY_POINTS))


def _callable(fn: Validator) -> Validator:
    if not callable(fn):
        raise TypeError(f"a validator is a function, not {type(fn).__name__}")
    return fn


def _failed(key: str, error: str) -> dict[str, Any]:
    return {"validator": key, "error": shortened(well_formed_text(error), LONGEST_ERROR)}
