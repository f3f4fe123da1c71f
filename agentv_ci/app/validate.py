"""Files → load → validate: every document with what is wrong with it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.documents import Checked, CheckedFile, Surroundings
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.contracts.source import NOWHERE, Kind, Source
from agentv_ci.contracts.targets import Target, TargetsDocument
from agentv_ci.errors import UsageError
from agentv_ci.json_access import read_json
from agentv_ci.load import load
from agentv_ci.load.discover import Found, discover, find_configs, find_root, find_targets, targets_in
from agentv_ci.load.files import looker
from agentv_ci.load.parse import parse_yaml
from agentv_ci.validate import validate

WORTH_A_PROCESS = 50
"""Files from which on a second process saves more time than it takes."""
NEED_TARGETS: frozenset[Kind | None] = frozenset({"eval", "judge-set"})
"""Documents that are checked against the targets they name."""
CHUNKS_A_PROCESS = 4
"""Small enough that no process idles long while another one is at work, large enough to send little."""


@dataclass(frozen=True, slots=True)
class Checks:
    """What `validate` says of all files."""

    files: tuple[CheckedFile, ...]
    skipped: int
    """YAML files that are none of ours."""


def check_paths(patterns: Sequence[str], *, targets: str | None, cwd: Path, jobs: int = 1) -> Checks:
    """Check every document that `patterns` mean, in up to `jobs` processes.

    Only what is to be said of a file is kept. Raises UsageError for a path that does not exist.
    """
    found = discover(patterns, cwd)
    processes = min(jobs, len(found) // WORTH_A_PROCESS + 1)
    checked = _check_in_processes(found, targets, cwd, processes) if processes > 1 else _check(found, targets, cwd)
    files = {each.path: each for each in checked if each is not None}
    skipped = len(found) - len(files)
    for each in tuple(files.values()):
        for other in each.beside:
            files.setdefault(other.path, other)
    return Checks(tuple(files.values()), skipped)


def _check(found: Sequence[Found], targets: str | None, cwd: Path) -> list[CheckedFile | None]:
    documents = Documents(cwd, targets)
    return [documents.check_file(each.path, named=each.named) for each in found]


def _check_in_processes(
    found: Sequence[Found], targets: str | None, cwd: Path, processes: int
) -> list[CheckedFile | None]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    for contract in (EvalDocument, TargetsDocument):
        # What is built now is shared by all forked processes; else each would build it again.
        contract.model_rebuild()
    size = -(-len(found) // (processes * CHUNKS_A_PROCESS))
    chunks = [found[start : start + size] for start in range(0, len(found), size)]
    pool = ProcessPoolExecutor(processes, get_context(start_method()), initializer=_leave_interrupts_to_the_parent)
    try:
        parts = pool.map(_check, chunks, [targets] * len(chunks), [cwd] * len(chunks))
        return [each for part in parts for each in part]
    finally:
        pool.shutdown(cancel_futures=True)


def start_method() -> str:
    """Return how processes begin: a forked one has everything imported already, but forking is not safe everywhere."""
    return "fork" if sys.platform == "linux" else "spawn"


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


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
        self._look = looker()
        self._alone = Surroundings(read_yaml, self._look)
        self._checked: dict[tuple[Path, bool], Checked] = {}
        self._around: dict[Path, Surroundings] = {}
        self._roots: dict[Path, Path] = {}

    def check(self, path: Path, *, named: bool) -> Checked:
        """Return a document with everything that is wrong with it; those that others are read with are remembered."""
        return self._checked.get((path, named)) or self._validated(
            load(path, self.root(path), named=named), named=named
        )

    def _validated(self, source: Source, *, named: bool) -> Checked:
        if source.kind in NEED_TARGETS:
            return validate(source, self.surroundings(source.path))
        around = self._configured(source.path) if source.kind == "targets" else self._alone
        checked = self._checked[source.path, named] = validate(source, around)
        return checked

    def check_file(self, path: Path, *, named: bool) -> CheckedFile | None:
        """Return what is to be said of a file; None for a YAML file that is none of ours."""
        checked = self.check(path, named=named)
        kind = checked.source.kind
        if kind is None and not checked.diagnostics:
            return None
        around = self.surroundings(path) if kind in NEED_TARGETS else None
        return CheckedFile(
            path,
            checked.source.root,
            kind,
            checked.diagnostics,
            without_targets=around is not None and around.targets is None,
            beside=tuple(map(_unread, _unreadable(around))) if around is not None else (),
        )

    def root(self, path: Path) -> Path:
        """Return the repository a file belongs to."""
        folder = path.parent
        if folder not in self._roots:
            self._roots[folder] = find_root(path, self._cwd)
        return self._roots[folder]

    def surroundings(self, path: Path) -> Surroundings:
        """Return what an eval file is read with; for all files of a folder it is the same."""
        folder = path.parent
        if folder not in self._around:
            root = self.root(path)
            targets = self._targets or find_targets(path, root, self._cwd)
            self._around[folder] = Surroundings(
                read_yaml=read_yaml,
                look=self._look,
                targets=self._extended(self._targets_at(targets) if targets else None, path),
                configs=self._configs(path),
                target_override=self._target_override,
                plugin_validators=_known_validators,
            )
        return self._around[folder]

    def _extended(self, checked: Checked | None, path: Path) -> Checked | None:
        """Return a targets document with the targets that stand in no document; alone they are one beside the file."""
        if not self._more_targets:
            return checked
        if checked is None:
            nowhere = Source(path.with_name("targets"), self.root(path), "targets", {}, lambda: NOWHERE)
            return Checked(nowhere, TargetsDocument(targets=self._more_targets), ())
        document = checked.document
        if not isinstance(document, TargetsDocument):
            return checked
        both = (*document.targets, *self._more_targets)
        return replace(checked, document=document.model_copy(update={"targets": both}))

    def _configured(self, path: Path) -> Surroundings:
        """Return what a document is read with that needs no other one but the config."""
        return Surroundings(read_yaml, self._look, configs=self._configs(path))

    def _configs(self, path: Path) -> tuple[Checked, ...]:
        found = (self._beside(config, "config", named=True) for config in find_configs(path, self.root(path)))
        return tuple(config for config in found if config is not None)

    def _targets_at(self, path: Path) -> Checked | None:
        named = path == self._targets
        checked = self._beside(path, "targets", named=named)
        if named and (checked is None or not checked.source.readable):
            source = load(path, self.root(path), named=True)
            reason = source.diagnostics[0].message if source.diagnostics else f"its kind is '{source.kind}'"
            raise UsageError(f"'{path}' is no targets document: {reason}")
        return checked

    def _beside(self, path: Path, kind: Kind, *, named: bool) -> Checked | None:
        """Return a document that others are read with; None when it is only called like one of that kind."""
        checked = self._checked.get((path, named))
        if checked is None:
            source = load(path, self.root(path), named=named)
            # What is of another kind has surroundings of its own, perhaps these very ones.
            checked = self._validated(source, named=named) if source.kind == kind else None
        return checked if checked is not None and checked.source.kind == kind else None


def _unreadable(around: Surroundings) -> list[Checked]:
    return [each for each in around.others if not each.source.readable]


def _unread(checked: Checked) -> CheckedFile:
    source = checked.source
    return CheckedFile(source.path, source.root, source.kind, checked.diagnostics, without_targets=False)


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
        found = targets_in(path) if path.is_dir() else path if path.exists() else None
    except (OSError, ValueError):  # longer than the system allows, or with a NUL
        found = None
    if found is None:
        raise UsageError(f"--targets: no targets file at '{name}'")
    return found
