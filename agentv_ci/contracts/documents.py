"""Checked documents, and their context."""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.config import ConfigDocument
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.evals import EvalCase, EvalDocument
from agentv_ci.contracts.experiment import ExperimentDocument
from agentv_ci.contracts.judge_evaluators import JudgeSetDocument
from agentv_ci.contracts.quarantine import QuarantineDocument
from agentv_ci.contracts.source import Source, relative
from agentv_ci.contracts.targets import Target, TargetsDocument

Document = (
    EvalDocument
    | TargetsDocument
    | ConfigDocument
    | JudgeSetDocument
    | QuarantineDocument
    | ExperimentDocument
)

ReadYaml = Callable[[str], JsonValue]
"""Parse YAML or JSON; raises ValueError."""


FileState = Literal[
    "text", "blank", "missing", "folder", "outside", "unreadable", "not UTF-8", "LFS pointer"
]


class ReferencedFile(Struct, frozen=True):
    """The file that a path refers to."""

    real: Path
    """The path with symbolic links resolved."""
    state: FileState
    """`outside`: not in an allowed folder, so it was not opened."""
    reason: str = ""
    """Why it is unreadable."""
    has_role_marker: bool = False
    media_type: str | None = None
    """By its first bytes; None for an unknown format."""
    size_bytes: int = 0


InspectFile = Callable[[Path, tuple[Path, ...]], ReferencedFile]
"""Inspect a path, cached; open it only inside one of the given folders. Never raises."""

ROLE_MARKER = re.compile(r"@\[(?:System|User|Assistant|Tool)\]:")
"""The marker of a turn in a conversation that is sent as one text."""


DATA_SUFFIXES = (".csv", ".jsonl", ".json", ".yaml", ".yml")
"""File formats of rows."""
ANY_LENGTH = 2**31 - 1
"""Characters of the longest field for `csv`, which refuses one of more than 128 KiB by default."""


class DataRow(NamedTuple):
    """A row, and its place; lines and columns count from 1."""

    values: JsonObject
    path: Path
    line: int
    column: int
    end_line: int
    header: int | None = None
    """The line with the names of the columns, if all rows share them."""


class DataProblem(NamedTuple):
    """A mistake in a row, or in the file from this place on."""

    rule: str
    message: str
    path: Path
    line: int
    column: int
    hint: str | None = None


ReadRows = Callable[[Path], Iterator[DataRow | DataProblem]]
"""Read the rows of a file one by one; after a mistake, it ends or goes on with the next row."""


class CheckedDocument(Struct, frozen=True):
    """A source, its document and its diagnostics."""

    source: Source
    document: Document | None
    """The valid parts of the document; None if there are none."""
    diagnostics: tuple[Diagnostic, ...]

    @property
    def valid(self) -> bool:
        """Whether there are no errors; warnings do not count."""
        return not any(diagnostic.severity == "error" for diagnostic in self.diagnostics)


class CaseFacts(NamedTuple):
    """What cases are selected by."""

    id: str
    suite: str
    """The eval file, relative to the repository."""
    tags: Collection[str]
    metadata: JsonObject


def facts_of(document: EvalDocument, case: EvalCase, source: Source) -> CaseFacts:
    """Return what a case of a document is selected by."""
    return CaseFacts(
        case.id, relative(source.path, source.root), document.tags_of(case), case.metadata
    )


ANY_TARGET = ""
"""The target of a case in a repository without a targets file."""


class DocumentContext(Struct, frozen=True, dict=True):
    """The context of a document; most of it is for eval files."""

    read_yaml: ReadYaml
    inspect_file: InspectFile
    path_exists: Callable[[str], bool] = os.path.exists
    """Whether a file or folder exists anywhere."""
    read_rows: ReadRows = lambda _: iter(())
    targets: CheckedDocument | None = None
    """None without a targets file; then rules about targets are skipped."""
    configs: tuple[CheckedDocument, ...] = ()
    """Nearest first; for each key the nearest file that has it wins."""
    target_names: tuple[str, ...] = ()
    """The command line's targets for all cases."""
    is_selected: Callable[[CaseFacts], bool] = lambda _: True
    """Whether a case will run; a judge that only others need may be missing."""
    plugin_validators: Callable[[], frozenset[str]] = frozenset
    """Return the validators of installed packages; called if a document uses one."""
    today: date | None = None
    """The day (UTC) on which a quarantine has expired or not; None: any day."""
    cases_around: Callable[[], Iterable[CaseKey]] = tuple
    """Return the cases of the repository, with a glob for the ids of cases made from rows; called
    for a quarantine.
    """

    @property
    def others(self) -> tuple[CheckedDocument, ...]:
        """The targets and config documents."""
        return (*((self.targets,) if self.targets else ()), *self.configs)

    @property
    def target_list(self) -> tuple[Target, ...]:
        """The valid targets."""
        document = self.targets.document if self.targets else None
        return document.targets if isinstance(document, TargetsDocument) else ()

    @cached_property
    def config(self) -> ConfigDocument:
        """The merged config documents."""
        given: dict[str, Any] = {}
        for config in reversed(self.configs):
            if isinstance(config.document, ConfigDocument):
                given |= {field: value for field, value in config.document if value is not None}
        # Already validated.
        return ConfigDocument.model_construct(**given)
