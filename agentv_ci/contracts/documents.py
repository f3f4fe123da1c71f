"""A document that was checked, and the documents it is read with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.config import DEFAULT_GUIDELINE_PATTERNS, ConfigDocument
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.contracts.source import Source
from agentv_ci.contracts.targets import Target, TargetsDocument

Document = EvalDocument | TargetsDocument | ConfigDocument

ReadYaml = Callable[[str], JsonValue]
"""Read a YAML (or JSON) text; raises ValueError."""


@dataclass(frozen=True, slots=True)
class Checked:
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
class Surroundings:
    """What an eval file is read with."""

    read_yaml: ReadYaml
    targets: Checked | None = None
    """None: there is no targets file, and nothing about targets is checked."""
    configs: tuple[Checked, ...] = ()
    """Nearest first; per key the nearest that has it wins."""
    target_override: str | None = None
    """The command line's target for all cases."""

    @property
    def target_list(self) -> tuple[Target, ...]:
        """The targets that exist."""
        document = self.targets.document if self.targets else None
        return document.targets if isinstance(document, TargetsDocument) else ()

    @property
    def guideline_patterns(self) -> tuple[str, ...]:
        """Globs of guideline files, matched against the path from the repository."""
        for config in self.configs:
            if isinstance(config.document, ConfigDocument) and config.document.guideline_patterns is not None:
                return config.document.guideline_patterns
        return DEFAULT_GUIDELINE_PATTERNS
