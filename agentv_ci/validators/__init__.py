"""The family of run validators: each checks the report of a finished scenario.

A validator is a function of a scenario report and its settings. It returns `{"issues": [{"id",
"severity", "message", "path"}], "summary": {...}}`. It is deterministic, does not modify its input,
and does not raise. Validators are built in, registered with `register_validator`, or provided by
packages as entry points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agentv_ci.base.text import did_you_mean, listed, shortened, well_formed_text
from agentv_ci.validators.builtin import BUILT_IN, built_in
from agentv_ci.validators.runs import normalized

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "agentv_ci.validators"
LONGEST_ERROR = 2000
"""Most characters that are kept of an exception's message."""

Validator = Callable[[dict[str, Any], dict[str, Any] | None], dict[str, Any]]

_registered: dict[str, Validator] = {}


class UnknownValidator(KeyError):
    """The key of a validator is unknown."""

    def __str__(self) -> str:
        return str(self.args[0])


def register_validator(key: str, fn: Validator) -> None:
    """Register a validator in this process.

    It replaces a validator with the same key, also a built-in one.

    Raises TypeError for a key that is not a string or a validator that is not callable, ValueError
    for an empty key.
    """
    if not isinstance(key, str):
        raise TypeError(f"the key of a validator must be a string, not {type(key).__name__}")
    if not key:
        raise ValueError("the key of a validator must not be empty")
    _registered[key] = _callable(fn)


def get_validator(key: str) -> Validator:
    """Return a validator: a registered one, else a built-in one, else one of a package.

    Raises UnknownValidator, a KeyError, for an unknown key, TypeError when a package provides
    something that is not callable, and any exception of its import.
    """
    if key in _registered:
        return _registered[key]
    if (own := built_in(key)) is not None:
        return own.validate
    plugin = next((each for each in _plugins() if each.name == key), None)
    if plugin is None:
        known = list_validators()
        raise UnknownValidator(
            f"unknown validator '{key}'{did_you_mean(key, known)}; validators are {listed(known)}"
        )
    return _callable(plugin.load())


def list_validators() -> list[str]:
    """Return the keys of all validators, sorted."""
    plugins = (plugin.name for plugin in _plugins())
    return sorted({*BUILT_IN, *_registered, *plugins})


def apply_validator(
    key: str, report: dict[str, Any], context: dict[str, Any] | None
) -> dict[str, Any]:
    """Return `{"validator", "issues", "summary"}`.

    `{"validator", "error"}` when the validator fails.
    """
    try:
        validator = get_validator(key)
    except UnknownValidator as error:
        return _failed(key, str(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001  # the import of a package may raise anything
        return _failed(key, f"cannot be loaded: {type(error).__name__}: {error}")
    try:
        returned = validator(report, context)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # one that fails must not stop the others
        return _failed(key, f"unexpected {type(error).__name__}: {error}")
    try:
        return {"validator": key, **normalized(returned)}
    except ValueError as error:
        return _failed(key, f"invalid result: {error}")


def _plugins() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points  # slow to import

    return tuple(entry_points(group=ENTRY_POINTS))


def _callable(fn: Validator) -> Validator:
    if not callable(fn):
        raise TypeError(f"a validator must be callable, not {type(fn).__name__}")
    return fn


def _failed(key: str, error: str) -> dict[str, Any]:
    return {"validator": key, "error": shortened(well_formed_text(error), LONGEST_ERROR)}
