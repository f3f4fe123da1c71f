"""Outputs of a step (GitHub Docs, "Workflow commands", "Setting an output parameter")."""

from __future__ import annotations

from collections.abc import Mapping


def encoded(outputs: Mapping[str, str], delimiter: str) -> str:
    """Return what is appended to the file of outputs; `delimiter` is one that nobody can guess."""
    return "".join(f"{name}<<{delimiter}\n{value}\n{delimiter}\n" for name, value in outputs.items())
