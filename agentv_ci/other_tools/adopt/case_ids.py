"""Ids of cases: different tests never get the same one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from agentv_ci.contracts.other_tools import AdoptedResult
from agentv_ci.other_tools.adopt.values import mark_of, name_of

MAX_QUALIFIER = 40


class Named(NamedTuple):
    """What a case is called."""

    suite: str
    id: str
    target: str


class _Test(NamedTuple):
    """What makes a test the same one: results with all of it are trials of one case."""

    suite: str
    name: str
    target: str
    distinctions: tuple[str, ...]
    """Those of the tool, then the file of the results."""


def case_keys(results: Sequence[tuple[str, AdoptedResult]]) -> list[Named]:
    """Return the key of the case of each result; each result comes with its file.

    Ids of tests with one name get what differs between them, as little of it as suffices: `login
    [chromium]`. A key is only a label: it is unique, and what it is made of never decides which
    results belong together.
    """
    most = max((len(result.distinctions) for _, result in results), default=0)
    tests = [_test(file, result, most) for file, result in results]
    groups: dict[Named, list[_Test]] = {}
    for test in dict.fromkeys(tests):
        groups.setdefault(Named(test.suite, name_of(test.name), name_of(test.target)), []).append(
            test
        )
    keys = {group[0]: name for name, group in groups.items() if len(group) == 1}
    taken = set(keys.values())
    for name, group in groups.items():
        deciding = _deciding(list(map(_differing, group)))
        for test in sorted(group) if len(group) > 1 else ():
            values = _differing(test)
            key = name._replace(
                id=f"{name.id} [{', '.join(_qualifier(values[place]) for place in deciding)}]"
            )
            while key in taken:
                key = key._replace(id=f"{key.id}-{mark_of(json.dumps(test))}")
            keys[test] = key
            taken.add(key)
    return [keys[test] for test in tests]


def _test(file: str, result: AdoptedResult, most: int) -> _Test:
    """Return the test of a result, with as many distinctions as any has."""
    padding = ("",) * (most - len(result.distinctions))
    return _Test(
        result.suite or file, result.name, result.target, (*result.distinctions, *padding, file)
    )


def _differing(test: _Test) -> tuple[str, ...]:
    """Return what distinguishes a test from others, the plainest first.

    Ids, which have names already, come last.
    """
    return (*test.distinctions, test.name, test.target)


def _deciding(tests: Sequence[tuple[str, ...]]) -> list[int]:
    """Return the first places whose values together tell tests apart."""
    places: list[int] = []
    groups = 1
    for place in range(len(tests[0])):
        distinct = len({tuple(test[index] for index in (*places, place)) for test in tests})
        if distinct > groups:
            places.append(place)
            groups = distinct
    return places


def _qualifier(value: str) -> str:
    """Return a value as a part of an id: a long one by its digest."""
    is_short = value.strip() == value and value.isprintable() and len(value) <= MAX_QUALIFIER
    if is_short:
        return value or "-"
    return mark_of(value)
