"""Mappings: items grouped by what they have in common, duplicates, and some of their entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def grouped(items: Iterable[V], key: Callable[[V], K]) -> dict[K, list[V]]:
    """Return the items of each key, in the order of the first of each."""
    groups: dict[K, list[V]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def gathered(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key, in the order of the first of each."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def known(values: Mapping[K, V | None]) -> dict[K, V]:
    """Return the entries that have a value."""
    return {key: value for key, value in values.items() if value is not None}


def duplicates(items: Iterable[K]) -> list[K]:
    """Return what occurs more than once, in the order of the first of each."""
    return [item for item, number in Counter(items).items() if number > 1]


def without(values: Mapping[K, V], keys: Container[object]) -> dict[K, V]:
    """Return the entries with other keys."""
    return {key: value for key, value in values.items() if key not in keys}


def picked(values: Mapping[K, V], keys: Iterable[K]) -> dict[K, V]:
    """Return the entries of these keys, in the order of the keys."""
    return {key: values[key] for key in keys}


def only(values: Mapping[K, V], keys: Container[object]) -> dict[K, V]:
    """Return the entries of these keys, as far as there are any."""
    return {key: value for key, value in values.items() if key in keys}


def present(values: Iterable[V | None]) -> Iterator[V]:
    """Yield the values that are not None."""
    return (value for value in values if value is not None)
