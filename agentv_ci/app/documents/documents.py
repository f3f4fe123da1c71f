"""The documents of a working directory, each with its context."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from functools import partial
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from agentv_ci.base.case_rows import ids_of_rows, is_template
from agentv_ci.base.json_access import objects_at, read_json, text_at
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.diagnostics import FileDiagnostics, Kind
from agentv_ci.contracts.documents import ANY_TARGET, CaseFacts, CheckedDocument, DocumentContext
from agentv_ci.contracts.source import NOWHERE, Source, relative
from agentv_ci.contracts.targets import Target, TargetsDocument
from agentv_ci.errors import InvalidInput, UsageError
from agentv_ci.load.data_rows import read_rows
from agentv_ci.load.discover import (
    YAML_SUFFIXES,
    DiscoveredFile,
    discover,
    find_configs,
    find_root,
    find_targets,
    targets_in,
)
from agentv_ci.load.document import load
from agentv_ci.load.files import file_inspector
from agentv_ci.load.parse import parse_yaml
from agentv_ci.validate.document import validate

NEED_TARGETS: frozenset[Kind | None] = frozenset({"eval", "judge-set", "experiment"})
"""Kinds of documents that are checked against their targets."""


class Documents:
    """Loads and checks each document once, together with its targets and configs."""

    def __init__(
        self,
        cwd: Path,
        targets: str | None,
        target_names: tuple[str, ...] = (),
        more_targets: tuple[Target, ...] = (),
        given: Sequence[Source] = (),
        is_selected: Callable[[CaseFacts], bool] = lambda _: True,
        today: date | None = None,
        cases: Iterable[CaseKey] = (),
    ) -> None:
        """`is_selected` returns whether a case will run.

        `cases` are known cases, which need not be looked for.
        """
        self._cwd = cwd
        self._is_selected = is_selected
        self._today = today
        self._known_cases = cases
        self._cases: dict[Path, tuple[CaseKey, ...]] = {}
        """Those of repositories."""
        self._more_targets = more_targets
        self._targets = _named_targets(targets, cwd) if targets is not None else None
        self._target_names = target_names
        self._inspector = file_inspector()
        self._given = {source.path: source for source in given}
        """Documents that are not in files, by their paths."""
        self._checked: dict[tuple[Path, bool], CheckedDocument] = {}
        self._contexts: dict[Path, DocumentContext] = {}
        self._roots: dict[Path, Path] = {}

    def check(self, path: Path, *, named: bool) -> CheckedDocument:
        """Return a document with its diagnostics; targets and configs are cached."""
        if (known := self._checked.get((path, named))) is not None:
            return known
        return self._validated(
            self._given.get(path) or load(path, self.root(path), named=named), named=named
        )

    def _validated(self, source: Source, *, named: bool) -> CheckedDocument:
        if source.kind in NEED_TARGETS:
            return validate(source, self.context_of(source))
        configs = self._configs(source.path) if source.kind in ("targets", "quarantine") else ()
        context = DocumentContext(
            read_yaml,
            self._inspector,
            configs=configs,
            today=self._today,
            cases_around=partial(self._cases_around, source.root),
        )
        checked = self._checked[source.path, named] = validate(source, context)
        return checked

    def _cases_around(self, root: Path) -> Iterator[CaseKey]:
        """Yield the known cases, then all of a repository."""
        yield from self._known_cases
        if root not in self._cases:
            self._cases[root] = tuple(self._cases_in(root))
        yield from self._cases[root]

    def _cases_in(self, root: Path) -> Iterator[CaseKey]:
        """Yield the cases of all eval files of a repository, for each target that may answer."""
        for file in discover([str(root)], self._cwd):
            source = load(file.path, root, named=False)
            if source.kind != "eval":
                continue
            suite = relative(file.path, root)
            for case in objects_at(source.data, "evalcases"):
                case_id = text_at(case, "id") or ""
                if is_template(case):
                    case_id = ids_of_rows(case_id)
                targets = [target.name for target in self.context(file.path).target_list]
                for name in targets or [ANY_TARGET]:
                    yield (
                        suite,
                        case_id,
                        name,
                    )

    def diagnostics(self, file: DiscoveredFile) -> FileDiagnostics | None:
        """Return the diagnostics of a file.

        None for a YAML file that is not a document of agentv-ci.
        """
        checked = self.check(file.path, named=file.named)
        kind = checked.source.kind
        if kind is None and not checked.diagnostics:
            return None
        checked_file = _checked_file(checked)
        if kind not in NEED_TARGETS:
            return checked_file
        context = self.context_of(checked.source)
        wrong = (other for other in context.others if other.diagnostics)
        return replace(
            checked_file,
            without_targets=context.targets is None,
            beside=tuple(map(_checked_file, wrong)),
        )

    def root(self, path: Path) -> Path:
        """Return the repository of a file."""
        folder = path.parent
        if folder not in self._roots:
            self._roots[folder] = find_root(path, self._cwd)
        return self._roots[folder]

    def context(self, path: Path) -> DocumentContext:
        """Return the context of an eval file, which all files of a folder share."""
        folder = path.parent
        if folder not in self._contexts:
            root = self.root(path)
            targets = self._targets or find_targets(path, root, self._cwd)
            checked = self._targets_at(targets) if targets else None
            self._contexts[folder] = DocumentContext(
                read_yaml=read_yaml,
                inspect_file=self._inspector,
                read_rows=read_rows,
                targets=self._extended(checked, path),
                configs=self._configs(path),
                target_names=self._target_names,
                is_selected=self._is_selected,
                plugin_validators=_known_validators,
            )
        return self._contexts[folder]

    def context_of(self, source: Source) -> DocumentContext:
        """Return the context of a document.

        That of an experiment is that of its first eval file.
        """
        if source.kind != "experiment":
            return self.context(source.path)
        first = text_at(source.data, "evals", 0)
        if not first:
            return self.context(source.path)
        path = source.resolve(first)
        return self.context(path if path.suffix in YAML_SUFFIXES else path / "any")

    def valid_context(self, path: Path) -> DocumentContext:
        """Return the context of an eval file; raises InvalidInput if it has errors."""
        context = self.context(path)
        require_valid(context.others)
        return context

    def _extended(self, checked: CheckedDocument | None, path: Path) -> CheckedDocument | None:
        """Return a targets document with the additional targets, or one of these alone."""
        if not self._more_targets:
            return checked
        if checked is None:
            nowhere = Source(
                path.with_name("targets"), self.root(path), "targets", {}, lambda: NOWHERE
            )
            return CheckedDocument(nowhere, TargetsDocument(targets=self._more_targets), ())
        document = checked.document
        if not isinstance(document, TargetsDocument):
            return checked
        both = (*document.targets, *self._more_targets)
        return replace(checked, document=document.model_copy(update={"targets": both}))

    def _configs(self, path: Path) -> tuple[CheckedDocument, ...]:
        configs: list[CheckedDocument] = []
        for file in find_configs(path, self.root(path)):
            config = self._beside(file, "config", named=False)
            if config is not None:
                configs.append(config)
        return tuple(configs)

    def _targets_at(self, path: Path) -> CheckedDocument | None:
        named = path == self._targets
        checked = self._beside(path, "targets", named=named)
        if named and (checked is None or not checked.source.readable):
            source = load(path, self.root(path), named=True)
            reason = f"its kind is '{source.kind}'"
            if source.diagnostics:
                reason = source.diagnostics[0].message
            raise UsageError(f"'{path}' is not a targets file: {reason}")
        return checked

    def _beside(self, path: Path, kind: Kind, *, named: bool) -> CheckedDocument | None:
        """Return a targets or config document; None if only its name suggests that kind."""
        checked = self._checked.get((path, named))
        if checked is None:
            source = load(path, self.root(path), named=named)
            if source.kind != kind:
                # It has a context of its own, perhaps this very one.
                return None
            checked = self._validated(source, named=named)
        return checked if checked.source.kind == kind else None


def _checked_file(checked: CheckedDocument) -> FileDiagnostics:
    source = checked.source
    return FileDiagnostics(
        source.path, source.root, source.kind, checked.diagnostics, without_targets=False
    )


def require_valid(documents: Sequence[CheckedDocument]) -> None:
    """Raise InvalidInput with the diagnostics of all documents if one of them has errors."""
    if not all(document.valid for document in documents):
        found = chain.from_iterable(document.diagnostics for document in documents)
        raise InvalidInput(list(found))


def no_targets(path: Path) -> UsageError:
    """Return the error for a document without a targets file."""
    return UsageError(
        f"no targets.yaml found for '{path}', in its folder, above it or in the working directory",
        hint="create one with `agentv-ci init`, or use --targets FILE",
    )


def read_yaml(text: str) -> JsonValue:
    """Return the data of a YAML or JSON text; raises ValueError."""
    try:
        # JSON is parsed much faster, and not all of it is YAML to every parser.
        return read_json(text.removeprefix("\ufeff"), strict=True)
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
        file = targets_in(path) if path.is_dir() else path
        exists = file is not None and file.exists()
    except (OSError, ValueError):  # the name may be too long or contain a NUL
        file, exists = None, False
    if file is None or not exists:
        raise UsageError(f"--targets: '{name}' is not a targets file or a folder with one")
    return file
