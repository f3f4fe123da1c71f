"""A document that was checked, and the documents it is read with."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.config import ConfigDocument
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.contracts.judge_set import JudgeSetDocument
from agentv_ci.contracts.source import Kind, Source
from agentv_ci.contracts.targets import Target, TargetsDocument

Document = EvalDocument | TargetsDocument | ConfigDocument | JudgeSetDocument

ReadYaml = Callable[[str], JsonValue]
"""Read a YAML (or JSON) text; raises ValueError."""


FileState = Literal["text", "blank", "missing", "folder", "outside", "unreadable", "not UTF-8"]


@dataclass(frozen=True, slots=True)
class ReferencedFile:
    """What a path of the machine leads to."""

    real: Path
    """Where it leads when symbolic links are followed."""
    state: FileState
    """`outside` of where it may lie: then it was not opened."""
    reason: str = ""
    """Why it is unreadable."""
    has_role_marker: bool = False


InspectFile = Callable[[Path, tuple[Path, ...]], ReferencedFile]
"""Inspect a path, most likely from memory, and open it only inside one of some folders; never raises."""

ROLE_MARKER = re.compile(r"@\[(?:System|User|Assistant|Tool)\]:")
"""How turns of a conversation are marked in a prompt that is one text."""


@dataclass(frozen=True, slots=True)
class CheckedDocument:
    """A source, what it means, and what is wrong with it."""

    source: Source
    document: Document | None
    """What could be understood: wrong parts are left out. None when nothing could."""
    diagnostics: tuple[Diagnostic, ...]

    @property
    def valid(self) -> bool:
        """Whether there are no errors; warnings do not count."""
        return not any(each.severity == "error" for each in self.diagnostics)


@dataclass(frozen=True, slots=True)
class FileDiagnostics:
    """What is to be said of one file, without its content."""

    path: Path
    root: Path
    """The repository it belongs to."""
    kind: Kind | None
    diagnostics: tuple[Diagnostic, ...]
    without_targets: bool
    """Whether it is an eval file that had no targets file to be checked against."""
    beside: tuple[FileDiagnostics, ...] = ()
    """The documents it is read with that cannot be read."""

    def is_valid(self, *, strict: bool) -> bool:
        """Whether there are no errors; with `strict`, no warnings either."""
        return not any(strict or found.severity == "error" for found in self.diagnostics)


@dataclass(frozen=True, slots=True)
class DocumentContext:
    """What an eval file is read with."""

    read_yaml: ReadYaml
    inspect_file: InspectFile
    targets: CheckedDocument | None = None
    """None: there is no targets file, and nothing about targets is checked."""
    configs: tuple[CheckedDocument, ...] = ()
    """Nearest first; per key the nearest that has it wins."""
    target_override: str | None = None
    """The command line's target for all cases."""
    plugin_validators: Callable[[], frozenset[str]] = frozenset
    """The run validators that are installed beside the built-in ones; asked for when a document names one of them."""

    @property
    def others(self) -> tuple[CheckedDocument, ...]:
        """The documents themselves."""
        return (*((self.targets,) if self.targets else ()), *self.configs)

    @property
    def target_list(self) -> tuple[Target, ...]:
        """The targets that exist."""
        document = self.targets.document if self.targets else None
        return document.targets if isinstance(document, TargetsDocument) else ()

    @property
    def config(self) -> ConfigDocument:
        """The config documents as one."""
        documents = [each.document for each in reversed(self.configs) if isinstance(each.document, ConfigDocument)]
        given = {field: value for document in documents for field, value in document if value is not None}
        # All of it was validated where it was read.
        return ConfigDocument.model_construct(**given)
