"""Files of other tools → eval files, targets and MIGRATION.md in a folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from glob import has_magic
from pathlib import Path
from typing import cast, get_args

from agentv_ci.app.documents.validate import check_paths
from agentv_ci.base.atomic import write_whole
from agentv_ci.base.left_files import read_regular
from agentv_ci.base.text import counted, listed
from agentv_ci.contracts.other_tools import ImportedFiles, ImportKind
from agentv_ci.contracts.source import CONFIG_SCHEMA, NOWHERE, Source, normal
from agentv_ci.errors import UsageError
from agentv_ci.load.discover import discover, find_root
from agentv_ci.load.document import load
from agentv_ci.load.files import MAX_BYTES
from agentv_ci.other_tools.imports.converting import converted
from agentv_ci.other_tools.imports.recognition import kind_of
from agentv_ci.other_tools.imports.report import migration_report
from agentv_ci.other_tools.imports.yaml_text import yaml_text

KINDS: tuple[ImportKind, ...] = get_args(ImportKind)
REPORT = "MIGRATION.md"
CONFIG = ".agentv.yaml"
OLD_WARNINGS = "What these rules warn of was so before the import; remove them to see it."
LINES = (".jsonl", ".csv")
"""Suffixes of files that are not one document."""


@dataclass(frozen=True, slots=True)
class ImportWish:
    """What to import, and where to."""

    paths: Sequence[str]
    kind: ImportKind | None
    """The tool; None to recognize it."""
    out: Path
    columns: Mapping[str, str] = field(default_factory=dict)
    command: str = "agentv-ci import"
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """What an import wrote."""

    files: ImportedFiles
    errors: int
    """Errors that `validate` finds in it."""


def imported(wish: ImportWish, *, cwd: Path) -> Written:
    """Write what files of other tools become.

    Raises UsageError when one cannot be read, or before overwriting any.
    """
    out = normal(cwd / wish.out)
    sources = [_source(each.path, wish.kind, cwd) for each in discover(wish.paths, cwd)]
    named = [(kind, source) for kind, source in sources if kind is not None]
    if unknown := [source.path.name for kind, source in sources if kind is None]:
        raise UsageError(
            f"cannot tell which tool {listed(unknown)} is from",
            hint=f"add --from {'|'.join(KINDS)}",
        )
    if not named:
        raise UsageError("no file to import")
    root = find_root(out / "x", cwd)
    files = converted(
        named,
        reads=_Reads(cwd, [source.path for _, source in named]),
        out=out,
        root=root,
        columns=wish.columns,
    )
    there = [name for name in (*files.texts, REPORT, CONFIG) if (out / name).exists()]
    if there and not wish.overwrite:
        raise UsageError(
            f"'{out / there[0]}' exists"
            + (f", and {counted(len(there) - 1, 'more file')}" if len(there) > 1 else ""),
            hint="choose another --out, or add --overwrite",
        )
    _write(out, files.texts)
    found = check_paths(
        [str(out / name) for name in files.texts if name.endswith(".yaml")], targets=None, cwd=cwd
    )
    diagnostics = [each for file in found.files for each in file.diagnostics]
    more = {REPORT: migration_report(files.notes, files.texts, diagnostics, root, wish.command)}
    if quiet := sorted({each.rule for each in diagnostics if each.severity == "warning"}):
        more[CONFIG] = yaml_text(
            {"$schema": CONFIG_SCHEMA, "rules": dict.fromkeys(quiet, "off")}, (OLD_WARNINGS,)
        )
    _write(out, more)
    errors = sum(each.severity == "error" for each in diagnostics)
    return Written(ImportedFiles({**files.texts, **more}, files.notes), errors)


def _write(out: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        try:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            write_whole(out / name, lambda file, text=text: file.write(text.encode()))  # type: ignore[misc]
        except OSError as error:
            raise UsageError(f"cannot write '{out / name}': {error.strerror}") from error


def _source(path: Path, kind: ImportKind | None, cwd: Path) -> tuple[ImportKind | None, Source]:
    reads = _Reads(cwd, [path])
    if path.suffix in LINES:
        text = reads.text(path) or ""
        return kind or kind_of(path, None, text), Source(
            path, find_root(path, cwd), None, None, lambda: NOWHERE, text=text
        )
    source = load(path, find_root(path, cwd), named=True)
    if not source.readable:
        refused = source.diagnostics[0]
        raise UsageError(f"{path}:{refused.line}: {refused.message}")
    return kind or kind_of(path, source.data, source.text), source


class _Reads:
    """Access to files; see ReadImports."""

    def __init__(self, cwd: Path, named: Iterable[Path]) -> None:
        self._cwd = cwd
        places = [folder for path in named for folder in (path.parent, find_root(path, cwd))]
        self._homes = {folder.resolve() for folder in places}
        self._documents: dict[Path, Source | None] = {}

    def document(self, path: Path) -> Source | None:
        """Return a YAML or JSON file; None if it cannot be read."""
        if path not in self._documents:
            is_there = self._is_inside(path) and path.is_file()
            source = load(path, find_root(path, self._cwd), named=True) if is_there else None
            self._documents[path] = source if source and source.readable else None
        return self._documents[path]

    def text(self, path: Path) -> str | None:
        """Return a text; None if it cannot be read."""
        try:
            return (
                read_regular(path, MAX_BYTES).decode("utf-8-sig") if self._is_inside(path) else None
            )
        except (OSError, UnicodeDecodeError):
            return None

    def matching(self, pattern: Path) -> list[Path]:
        """Return the files that a path or a glob names, in order."""
        paths = self._globbed(normal(pattern)) if has_magic(str(pattern)) else [pattern]
        return [path for path in paths if path.is_file() and self._is_inside(path)]

    def _globbed(self, pattern: Path) -> list[Path]:
        """Return what a glob names, without leaving the repository or following links: both may have no end."""
        from wcmatch import glob  # few files name globs

        start = next(each for each in pattern.parents if not has_magic(str(each)))
        names = glob.glob(str(pattern), flags=glob.GLOBSTAR) if self._is_inside(start) else []
        return [Path(name) for name in sorted(names)]

    def _is_inside(self, path: Path) -> bool:
        """Whether a file is of the repository of what is imported: its text becomes part of documents."""
        real = path.resolve()
        return any(real.is_relative_to(home) for home in self._homes)


def checked_kind(name: str) -> ImportKind | None:
    """Return a kind by its name; None for `auto`."""
    return None if name == "auto" else cast("ImportKind", name)
