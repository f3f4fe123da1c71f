"""What is read of other tools.

An import makes documents of their files; their results become rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from agentv_ci.contracts.base import ErrorKind, JsonObject, Require
from agentv_ci.contracts.source import Source

ImportKind = Literal["promptfoo", "agentv", "prompt-yml", "inspect", "deepeval", "openai-evals"]
"""The tool whose file is imported."""
Fate = Literal["kept", "approximated", "dropped"]
"""What became of a construct: the same, something near it, or nothing."""

CaseFate = Literal["kept", "changed", "skipped"]
"""What became of a case: it runs as it did, or nearly so, or not."""


@dataclass(frozen=True, slots=True)
class ImportNote:
    """What became of one construct of a file."""

    fate: Fate
    construct: str
    """What it is called in the file, such as `tests.assert.icontains`."""
    how: str
    """How it is approximated, or why it is dropped; may be empty if it is kept."""
    path: Path
    line: int


@dataclass(frozen=True, slots=True)
class ImportedFiles:
    """What an import writes."""

    texts: Mapping[str, str]
    """Path in the output folder → content."""
    notes: tuple[ImportNote, ...]
    cases: Mapping[CaseFate, int] = field(default_factory=dict)
    placeholders: Mapping[str, str] = field(default_factory=dict)
    """Targets that fail until they are configured → their file and line."""

    def count(self, fate: Fate) -> int:
        """Return the number of places with a fate."""
        return sum(note.fate == fate for note in self.notes)


class ReadImports(Protocol):
    """Access to the files of another tool."""

    def document(self, path: Path) -> Source | None:
        """Return a YAML or JSON file; None if it cannot be read."""

    def text(self, path: Path) -> str | None:
        """Return a text; None if it cannot be read."""

    def matching(self, pattern: Path) -> list[Path]:
        """Return the files that a path or a glob names, in order."""

    def filled(self, text: str, variables: JsonObject, env: Mapping[str, str]) -> str | None:
        """Return a template that Nunjucks has filled in; None if it cannot."""


AdoptKind = Literal["promptfoo", "inspect", "junit", "openai-evals", "pydantic-evals", "jsonl"]
"""The tool whose results are adopted; `jsonl` is any table of lines, with a map of its columns."""


class Scale(NamedTuple):
    """The worst and the best value of a score; the worst may be the larger one."""

    worst: float
    best: float

    def __str__(self) -> str:
        return f"{self.worst:g}:{self.best:g}"


@dataclass(frozen=True, slots=True)
class HowToRead:
    """What the user says about the results of a tool."""

    threshold: float = 0.8
    """The score that passes where the tool has no verdict."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Field → path of its column, of `jsonl`."""
    grades: Mapping[str, float] = field(default_factory=dict)
    """Text in place of a score → score from 0 to 1."""
    scales: Mapping[str, Scale] = field(default_factory=dict)
    """Name of a score → its scale; an empty name is that of all others."""
    ignored: frozenset[str] = frozenset()
    """Names of scores that do not count, and of columns of `jsonl` that differ between trials of
    one case.
    """


@dataclass(frozen=True, slots=True)
class AdoptedCheck:
    """The result of one check of an answer."""

    name: str
    type: str
    score: float
    """From 0 to 1."""
    passed: bool
    reasoning: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class AdoptedResult:
    """One answer that another tool has judged."""

    name: str
    """What the tool calls the test."""
    passed: bool | None
    """None if it could not be judged, or was skipped."""
    distinctions: tuple[str, ...] = ()
    """Whatever else is in the definition of the test, the plainest first.

    It is the same for all trials: results with equal names, targets and distinctions are trials of
    one case.
    """
    score: float | None = None
    """From 0 to 1; by default 1 if it passed, else 0."""
    answer: str = ""
    question: tuple[tuple[str, str], ...] = ()
    """Role and text of each message."""
    expected: str | None = None
    outcome: str | None = None
    """What a good answer achieves."""
    suite: str | None = None
    """The file of the case, relative to the repository; None for the results themselves."""
    line: int = 1
    target: str = "default"
    """What the tool calls the configuration that answered."""
    model: str | None = None
    require: Require = "majority"
    """Trials that must pass."""
    checks: tuple[AdoptedCheck, ...] = ()
    reasoning: str = ""
    error: str | None = None
    error_kind: ErrorKind = "evaluator"
    skip: str | None = None
    duration_ms: int = 0
    cost_usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    tags: tuple[str, ...] = ()
    metadata: JsonObject = field(default_factory=dict)
    definition: Mapping[str, object] = field(default_factory=dict)
    """What else defines the case, besides its question and expected answer: part of its digest."""


@dataclass(frozen=True, slots=True)
class AdoptedFile:
    """The results in a file."""

    results: tuple[AdoptedResult, ...]
    lost: tuple[str, ...] = ()
    """What went wrong beside these results, as sentences: missing results, suites and runs that
    broke off.
    """
    scores: frozenset[str] = frozenset()
    """The names of all scores."""
    columns: frozenset[str] = frozenset()
    """The columns that the user ignores, of `jsonl`."""
