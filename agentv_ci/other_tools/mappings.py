"""Parts of mappings: without some of their names, or with only these."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TypeVar

T = TypeVar("T")


def without(mapping: Mapping[str, T], names: Container[object]) -> dict[str, T]:
    """Return a mapping without these names."""
    return {name: value for name, value in mapping.items() if name not in names}


def only(mapping: Mapping[str, T], names: Container[object]) -> dict[str, T]:
    """Return a mapping with only these names."""
    return {name: value for name, value in mapping.items() if name in names}
