"""Ids of cases: different tests never get the same one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from agentv_ci.adopt.values import mark_of, name_of
from agentv_ci.contracts.adopted import AdoptedResult

MAX_QUALIFIER = 40


class Named(NamedTuple):
    """What a case is called."""

    suite: str
    id: str
    target: str


def case_keys(results: Sequence[tuple[str, AdoptedResult]]) -> list[Named]:
    """Return the key of the case of each result; each result comes with its suite.

    Ids of tests with one name get what differs between them, as little of it as suffices: `login [chromium]`.
    """
    names = [Named(suite, name_of(result.name), name_of(result.target)) for suite, result in results]
    tests: dict[Named, dict[tuple[str, ...], str]] = {}
    for name, (_, result) in zip(names, results, strict=True):
        tests.setdefault(name, {})[result.distinctions] = result.name
    taken: dict[Named, tuple[str, ...]] = {}
    keys: dict[tuple[Named, tuple[str, ...]], Named] = {}
    for name, distinctions in tests.items():
        deciding = _deciding([*distinctions])
        for test in distinctions:
            qualifiers = [_qualifier(test[place]) for place in deciding]
            key = name._replace(id=f"{name.id} [{', '.join(qualifiers)}]") if qualifiers else name
            if taken.setdefault(key, test) != test:
                key = key._replace(id=f"{key.id}-{mark_of(json.dumps([name, test]))}")
            keys[name, test] = key
    return [keys[name, result.distinctions] for name, (_, result) in zip(names, results, strict=True)]


def _deciding(tests: Sequence[tuple[str, ...]]) -> list[int]:
    """Return the first places whose values together tell tests apart."""
    places: list[int] = []
    groups = 1
    for place in range(len(tests[0])):
        distinct = len({tuple(test[each] for each in (*places, place)) for test in tests})
        if distinct > groups:
            places.append(place)
            groups = distinct
    return places


def _qualifier(value: str) -> str:
    """Return a value as a part of an id: a long one by its digest."""
    is_short = value.strip() == value and value.isprintable() and len(value) <= MAX_QUALIFIER
    return (value or "-") if is_short else mark_of(value)
