"""Check, compile, run and score evaluations of AI agents described in YAML."""

from __future__ import annotations

from agentv_ci.version import __version__

TYPE_CHECKING = False
"""Importing `typing` would make every command slower."""
if TYPE_CHECKING:
    from agentv_ci.api import run, run_async

__all__ = ["__version__", "run", "run_async"]


def __dir__() -> list[str]:
    """Return what this package offers, including what loads at first use."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    """Load the Python API at first use.

    Commands need none of it, and the stages below it import this package.
    """
    if name in ("run", "run_async"):
        from importlib import import_module

        return getattr(import_module("agentv_ci.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
