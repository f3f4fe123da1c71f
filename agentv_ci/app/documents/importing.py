"""Files of other tools → eval files, targets and MIGRATION.md in a folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from glob import has_magic
from itertools import chain
from operator import methodcaller
from pathlib import Path
from typing import cast, get_args

from agentv_ci.app.documents.nunjucks import Nunjucks
from agentv_ci.app.documents.validate import check_paths
from agentv_ci.base.atomic import write_whole
from agentv_ci.base.left_files import read_regular
from agentv_ci.base.text import counted, listed
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.other_tools import ImportedFiles, ImportKind
from agentv_ci.contracts.source import CONFIG_SCHEMA, NOWHERE, Source, normal
from agentv_ci.errors import UsageError
from agentv_ci.load.discover import discover, find_root
from agentv_ci.load.document import load
from agentv_ci.load.files import MAX_BYTES
from agentv_ci.other_tools.imports.converting import converted
from agentv_ci.other_tools.imports.recognition import kind_of
from agentv_ci.other_tools.imports.report import closing_lines, migration_report
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
    summary: tuple[str, ...]
    """What became of cases, in lines."""


def imported(wish: ImportWish, *, cwd: Path, environ: Mapping[str, str]) -> Written:
    """Write what files of other tools become.

    Raises UsageError when one cannot be read, or before overwriting any.
    """
    out = normal(cwd / wish.out)
    named: list[tuple[ImportKind, Source]] = []
    unknown: list[str] = []
    for file in discover(wish.paths, cwd):
        kind, source = _source(file.path, wish.kind, cwd)
        if kind is None and isinstance(source.data, dict) and "skill_name" in source.data:
            raise UsageError(
                f"{source.path.name} has evaluations of an agent skill, which import does not read",
                hint="write each of them as a case of an eval file",
            )
        if kind is None:
            unknown.append(source.path.name)
        else:
            named.append((kind, source))
    if unknown:
        raise UsageError(
            f"cannot tell which tool {listed(unknown)} is from",
            hint=f"add --from {'|'.join(KINDS)}",
        )
    if not named:
        raise UsageError("no file to import")
    root = find_root(out / "x", cwd)
    with closing(Nunjucks(environ)) as nunjucks:
        files = converted(
            named,
            reads=_Reads(cwd, [source.path for _, source in named], nunjucks),
            out=out,
            root=root,
            columns=wish.columns,
        )
    if not wish.overwrite:
        _refuse_existing(out, (*files.texts, REPORT, CONFIG))
    _write(out, files.texts)
    documents = [str(out / name) for name in files.texts if name.endswith(".yaml")]
    checks = check_paths(documents, targets=None, cwd=cwd)
    diagnostics = list(chain.from_iterable(file.diagnostics for file in checks.files))
    more = {REPORT: migration_report(files.notes, files.texts, diagnostics, root, wish.command)}
    warnings = (found for found in diagnostics if found.severity == "warning")
    if quiet := sorted({warning.rule for warning in warnings}):
        more[CONFIG] = yaml_text(
            {"$schema": CONFIG_SCHEMA, "rules": dict.fromkeys(quiet, "off")}, (OLD_WARNINGS,)
        )
    _write(out, more)
    errors = sum(found.severity == "error" for found in diagnostics)
    return Written(
        replace(files, texts={**files.texts, **more}), errors, tuple(closing_lines(files, root))
    )


def _refuse_existing(out: Path, names: Iterable[str]) -> None:
    there = [name for name in names if (out / name).exists() or (out / name).is_symlink()]
    if not there:
        return
    message = f"'{out / there[0]}' exists"
    if len(there) > 1:
        message += f", and {counted(len(there) - 1, 'more file')}"
    raise UsageError(message, hint="choose another --out, or add --overwrite")


def _write(out: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        write = methodcaller("write", text.encode())
        try:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            write_whole(out / name, write)
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

    def __init__(self, cwd: Path, named: Iterable[Path], nunjucks: Nunjucks | None = None) -> None:
        self._cwd = cwd
        self._nunjucks = nunjucks
        self._homes: set[Path] = set()
        for path in named:
            self._homes |= {path.parent.resolve(), find_root(path, cwd).resolve()}
        self._documents: dict[Path, Source | None] = {}

    def document(self, path: Path) -> Source | None:
        """Return a YAML or JSON file; None if it cannot be read."""
        if path not in self._documents:
            self._documents[path] = self._loaded(path)
        return self._documents[path]

    def _loaded(self, path: Path) -> Source | None:
        if not (self._is_inside(path) and path.is_file()):
            return None
        source = load(path, find_root(path, self._cwd), named=True)
        return source if source.readable else None

    def filled(self, text: str, variables: JsonObject, env: Mapping[str, str]) -> str | None:
        """Return a template that Nunjucks has filled in; None if it cannot."""
        return self._nunjucks.filled(text, variables, env) if self._nunjucks else None

    def text(self, path: Path) -> str | None:
        """Return a text; None if it cannot be read."""
        try:
            if not self._is_inside(path):
                return None
            return read_regular(path, MAX_BYTES).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            return None

    def matching(self, pattern: Path) -> list[Path]:
        """Return the files that a path or a glob names, in order."""
        paths = self._globbed(normal(pattern)) if has_magic(str(pattern)) else [pattern]
        return [path for path in paths if path.is_file() and self._is_inside(path)]

    def _globbed(self, pattern: Path) -> list[Path]:
        """Return what a glob names.

        It neither leaves the repository nor follows links: both may have no end.
        """
        from wcmatch import glob  # few files name globs

        start = next(folder for folder in pattern.parents if not has_magic(str(folder)))
        if not self._is_inside(start):
            return []
        names = glob.glob(str(pattern), flags=glob.GLOBSTAR)
        return list(map(Path, sorted(names)))

    def _is_inside(self, path: Path) -> bool:
        """Whether a file is of the repository of what is imported.

        Its text becomes part of documents.
        """
        real = path.resolve()
        return any(map(real.is_relative_to, self._homes))


def checked_kind(name: str) -> ImportKind | None:
    """Return a kind by its name; None for `auto`."""
    return None if name == "auto" else cast("ImportKind", name)
