"""The documents of a working directory, and what each of them is read with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.documents import CheckedDocument, DocumentContext, FileDiagnostics
from agentv_ci.contracts.source import NOWHERE, Kind, Source
from agentv_ci.contracts.targets import Target, TargetsDocument
from agentv_ci.errors import InvalidInput, UsageError
from agentv_ci.json_access import read_json
from agentv_ci.load.discover import find_configs, find_root, find_targets, targets_in
from agentv_ci.load.document import load
from agentv_ci.load.files import file_inspector
from agentv_ci.load.parse import parse_yaml
from agentv_ci.validate.document import validate

NEED_TARGETS: frozenset[Kind | None] = frozenset({"eval", "judge-set"})
"""Documents that are checked against the targets they name."""


class Documents:
    """Loads and checks documents, each once, with the others they belong to."""

    def __init__(
        self,
        cwd: Path,
        targets: str | None,
        target_override: str | None = None,
        more_targets: tuple[Target, ...] = (),
    ) -> None:
        self._cwd = cwd
        self._more_targets = more_targets
        self._targets = _named_targets(targets, cwd) if targets is not None else None
        self._target_override = None if target_override == "default" else target_override
        self._inspect_file = file_inspector()
        self._checked: dict[tuple[Path, bool], CheckedDocument] = {}
        self._contexts: dict[Path, DocumentContext] = {}
        self._roots: dict[Path, Path] = {}

    def check(self, path: Path, *, named: bool) -> CheckedDocument:
        """Return a document with everything that is wrong with it; those that others are read with are remembered."""
        return self._checked.get((path, named)) or self._validated(
            load(path, self.root(path), named=named), named=named
        )

    def _validated(self, source: Source, *, named: bool) -> CheckedDocument:
        if source.kind in NEED_TARGETS:
            return validate(source, self.context(source.path))
        configs = self._configs(source.path) if source.kind == "targets" else ()
        context = DocumentContext(read_yaml, self._inspect_file, configs=configs)
        checked = self._checked[source.path, named] = validate(source, context)
        return checked

    def check_file(self, path: Path, *, named: bool) -> FileDiagnostics | None:
        """Return what is to be said of a file; None for a YAML file that is none of ours."""
        checked = self.check(path, named=named)
        kind = checked.source.kind
        if kind is None and not checked.diagnostics:
            return None
        file = _checked_file(checked)
        if kind not in NEED_TARGETS:
            return file
        context = self.context(path)
        unreadable = (other for other in context.others if not other.source.readable)
        return replace(file, without_targets=context.targets is None, beside=tuple(map(_checked_file, unreadable)))

    def root(self, path: Path) -> Path:
        """Return the repository a file belongs to."""
        folder = path.parent
        if folder not in self._roots:
            self._roots[folder] = find_root(path, self._cwd)
        return self._roots[folder]

    def context(self, path: Path) -> DocumentContext:
        """Return what an eval file is read with; for all files of a folder it is the same."""
        folder = path.parent
        if folder not in self._contexts:
            root = self.root(path)
            targets = self._targets or find_targets(path, root, self._cwd)
            self._contexts[folder] = DocumentContext(
                read_yaml=read_yaml,
                inspect_file=self._inspect_file,
                targets=self._extended(self._targets_at(targets) if targets else None, path),
                configs=self._configs(path),
                target_override=self._target_override,
                plugin_validators=_known_validators,
            )
        return self._contexts[folder]

    def valid_context(self, path: Path) -> DocumentContext:
        """Return what an eval file is read with; raises InvalidInput where that has errors."""
        context = self.context(path)
        require_valid(context.others)
        return context

    def _extended(self, checked: CheckedDocument | None, path: Path) -> CheckedDocument | None:
        """Return a targets document with the targets that stand in no document; alone they are one beside the file."""
        if not self._more_targets:
            return checked
        if checked is None:
            nowhere = Source(path.with_name("targets"), self.root(path), "targets", {}, lambda: NOWHERE)
            return CheckedDocument(nowhere, TargetsDocument(targets=self._more_targets), ())
        document = checked.document
        if not isinstance(document, TargetsDocument):
            return checked
        both = (*document.targets, *self._more_targets)
        return replace(checked, document=document.model_copy(update={"targets": both}))

    def _configs(self, path: Path) -> tuple[CheckedDocument, ...]:
        configs = (self._beside(config, "config", named=True) for config in find_configs(path, self.root(path)))
        return tuple(config for config in configs if config is not None)

    def _targets_at(self, path: Path) -> CheckedDocument | None:
        named = path == self._targets
        checked = self._beside(path, "targets", named=named)
        if named and (checked is None or not checked.source.readable):
            source = load(path, self.root(path), named=True)
            reason = source.diagnostics[0].message if source.diagnostics else f"its kind is '{source.kind}'"
            raise UsageError(f"'{path}' is no targets document: {reason}")
        return checked

    def _beside(self, path: Path, kind: Kind, *, named: bool) -> CheckedDocument | None:
        """Return a document that others are read with; None when it is only called like one of that kind."""
        checked = self._checked.get((path, named))
        if checked is None:
            source = load(path, self.root(path), named=named)
            # What is of another kind has a context of its own, perhaps these very ones.
            checked = self._validated(source, named=named) if source.kind == kind else None
        return checked if checked is not None and checked.source.kind == kind else None


def _checked_file(checked: CheckedDocument) -> FileDiagnostics:
    source = checked.source
    return FileDiagnostics(source.path, source.root, source.kind, checked.diagnostics, without_targets=False)


def require_valid(documents: Sequence[CheckedDocument]) -> None:
    """Raise InvalidInput, with all diagnostics of all documents, where one of them has errors."""
    if not all(each.valid for each in documents):
        raise InvalidInput([found for each in documents for found in each.diagnostics])


def no_targets(path: Path) -> UsageError:
    """Return what is to be raised for a document that has no targets file."""
    return UsageError(
        f"no targets.yaml for {path}: looked in its folder, above it and in the working directory",
        hint="write a targets.yaml, or name one with --targets",
    )


def read_yaml(text: str) -> JsonValue:
    """Return the data of a YAML or JSON text; raises ValueError."""
    try:
        # Not all JSON is YAML to every parser, and JSON is read much faster.
        return read_json(text, strict=True)
    except ValueError:
        parsed = parse_yaml(text)
    if parsed.problems:
        raise ValueError(parsed.problems[0].message)
    return parsed.data


def _known_validators() -> frozenset[str]:
    from agentv_ci.validators import list_validators

    return frozenset(list_validators())


def _named_targets(name: str, cwd: Path) -> Path:
    path = cwd / name
    try:
        file = targets_in(path) if path.is_dir() else path if path.exists() else None
    except (OSError, ValueError):  # longer than the system allows, or with a NUL
        file = None
    if file is None:
        raise UsageError(f"--targets: no targets file at '{name}'")
    return file
