"""What schedules, gates and reports need of a case: little enough to keep it of every case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from agentv_ci.contracts.base import Require


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


# There are as many as cases: 16 bytes less each, and nothing for the collector to visit, since they hold no cycles.
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

    @property
    def source(self) -> RowPlace:
        """Its place in the eval file."""
        return RowPlace(self.path, self.line)

    @property
    def demand(self) -> tuple[int, bool, str, str, int]:
        """A sort key for rows that describe the case differently: the largest counts."""
        return self.trials, self.stop_when is None, self.require, self.digest, self.line
