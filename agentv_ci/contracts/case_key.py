"""The identity of a case in a plan, in rows and in reports, and the globs that select it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

CaseKey = tuple[str, str, str]
"""Suite, case id and the name of the target that answers; in an experiment, that of the arm."""


def case_name(key: CaseKey, *, names_target: bool) -> str:
    """Return the name of a case for people."""
    _, case_id, target = key
    return f"{case_id} [{target}]" if names_target else case_id


def in_matrix(keys: Iterable[CaseKey]) -> AbstractSet[tuple[str, str]]:
    """Return suite and id of the cases that several targets answer."""
    targets: dict[tuple[str, str], str] = {}
    return {(suite, case) for suite, case, target in keys if targets.setdefault((suite, case), target) != target}


def matching(*sides: Iterable[CaseKey]) -> Callable[[CaseKey], tuple[str, ...]]:
    """Return what the cases of several runs are matched by.

    The target counts only where a run asks several targets the same case; otherwise two targets are compared.
    """
    several = {case for keys in sides for case in in_matrix(keys)}
    return lambda key: key if key[:2] in several else key[:2]


def matches(text: str, pattern: str) -> bool:
    """Whether a text is this one or matches this glob: `[wip]` is a glob, too."""
    return text == pattern or fnmatchcase(text, pattern)


def is_suite(path: str, pattern: str) -> bool:
    """Whether a pattern matches the path of an eval file, or its name without suffixes."""
    return matches(path, pattern) or matches(PurePosixPath(path).name.split(".")[0], pattern)


def fits(key: CaseKey, case_id: str, suite: str | None, target: str | None) -> bool:
    """Whether a case matches these globs; None matches everything."""
    return (
        matches(key[1], case_id)
        and (suite is None or is_suite(key[0], suite))
        and (target is None or matches(key[2], target))
    )
