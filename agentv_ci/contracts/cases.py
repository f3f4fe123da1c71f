"""Cases without their content: their identity, and what schedules, gates and reports need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from agentv_ci.contracts.base import Require

CaseKey = tuple[str, str, str]
"""Suite, case id and the name of the target that answers; in an experiment, that of the arm."""


def case_name(key: CaseKey, *, names_target: bool) -> str:
    """Return the name of a case for people."""
    _, case_id, target = key
    return f"{case_id} [{target}]" if names_target else case_id


def in_matrix(keys: Iterable[CaseKey]) -> AbstractSet[tuple[str, str]]:
    """Return suite and id of the cases that several targets answer."""
    targets: dict[tuple[str, str], str] = {}
    return {
        (suite, case)
        for suite, case, target in keys
        if targets.setdefault((suite, case), target) != target
    }


def matching(*sides: Iterable[CaseKey]) -> Callable[[CaseKey], tuple[str, ...]]:
    """Return what the cases of several runs are matched by.

    The target counts only where a run asks several targets the same case; otherwise two targets are
    compared.
    """
    several = set(chain.from_iterable(map(in_matrix, sides)))
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


class Place(Protocol):
    """The place of a case in its eval file."""

    @property
    def path(self) -> str:
        """The eval file."""

    @property
    def line(self) -> int:
        """The first line."""


class NamedFile(Protocol):
    """A file of a plan."""

    @property
    def path(self) -> str:
        """Path relative to the repository."""

    @property
    def sha256(self) -> str:
        """Its key in the plan."""


class Case(Protocol):
    """A case as rows describe it: in a plan, or without one."""

    @property
    def id(self) -> str:
        """Unique in the suite for each target."""

    @property
    def suite(self) -> str:
        """The eval file."""

    @property
    def digest(self) -> str:
        """Changes with what can affect a result."""

    @property
    def source(self) -> Place:
        """Its place in the eval file."""

    @property
    def arm(self) -> str | None:
        """Its arm in an experiment."""

    @property
    def trials(self) -> int:
        """The number of trials."""

    @property
    def require(self) -> Require:
        """Trials that must pass."""

    @property
    def stop_when(self) -> Literal["decided"] | None:
        """Whether trials that cannot change whether it passes are left out."""

    @property
    def tags(self) -> tuple[str, ...] | None:
        """Labels."""


class CaseHead(Case, Protocol):
    """The head of a case of a plan."""

    @property
    def target(self) -> str:
        """Key of the target that answers."""

    @property
    def arm(self) -> str | None:
        """Arm of an experiment that it belongs to."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of its trials."""

    @property
    def skip(self) -> str | None:
        """Why it is not run."""

    @property
    def judges(self) -> Sequence[str]:
        """Keys of the targets that judge its answers."""

    @property
    def guidelines(self) -> Sequence[NamedFile]:
        """Guideline files."""


class RowPlace(NamedTuple):
    """The place of a case in its eval file."""

    path: str
    line: int


# There are as many as cases: 16 bytes less each, and nothing for the collector to visit, since they
# hold no cycles.
class StoredHead(Struct, frozen=True, gc=False):
    """The head of a case whose other parts are compressed."""

    id: str
    suite: str
    sha256: bytes
    path: str
    line: int
    trials: int
    require: Require
    stop_when: Literal["decided"] | None
    tags: tuple[str, ...] | None
    target: str
    arm: str | None
    seeds: tuple[int, ...]
    skip: str | None
    judges: tuple[str, ...]
    guidelines: tuple[NamedFile, ...]

    @property
    def digest(self) -> str:
        """Changes with what can affect a result."""
        return self.sha256.hex()

    @property
    def source(self) -> RowPlace:
        """Its place in the eval file."""
        return RowPlace(self.path, self.line)


class RowCase(Struct, frozen=True, gc=False):
    """A case as described by its rows."""

    id: str
    suite: str
    digest: str
    path: str
    line: int
    trials: int
    require: Require
    stop_when: Literal["decided"] | None
    tags: tuple[str, ...] = ()
    arm: str | None = None
    """Of an experiment."""
    threshold: float | None = None
    """Minimum score to pass; None in rows of earlier versions."""

    @property
    def source(self) -> RowPlace:
        """Its place in the eval file."""
        return RowPlace(self.path, self.line)

    @property
    def demand(self) -> tuple[int, bool, str, str, int]:
        """A sort key for rows that describe the case differently: the largest counts."""
        return self.trials, self.stop_when is None, self.require, self.digest, self.line
