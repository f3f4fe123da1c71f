"""Find the files that a command line names, and the documents that belong to an eval file."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.base.text import listed, nearest, quoted
from agentv_ci.contracts.source import normal
from agentv_ci.errors import UsageError

YAML_SUFFIXES = (".yaml", ".yml")
TARGETS_NAMES = ("targets.yaml", "targets.yml", ".agentv/targets.yaml", ".agentv/targets.yml")
NEVER_ENTERED = frozenset({"node_modules", "venv", "__pycache__"})


NO_EVALS_HINT = "create an example with `agentv-ci init`"


class DiscoveredFile(Struct, frozen=True):
    """A file that was found."""

    path: Path
    named: bool
    """Whether the user gave this exact path."""
    patterns: frozenset[str] = frozenset()
    """What the user gave that matches it."""


def discover(patterns: Sequence[str], cwd: Path) -> tuple[DiscoveredFile, ...]:
    """Return the files that paths, folders and globs match: in order, each once.

    Raises UsageError with every path that does not exist, and with those that match nothing
    although others do.
    """
    _refuse_missing(patterns, cwd)
    files: dict[Path, DiscoveredFile] = {}
    idle: list[str] = []
    for pattern in patterns:
        matched = list(_expand(pattern, cwd))
        for file in matched:
            known = files.get(file.path, file)
            is_named = file.named or known.named
            files[file.path] = replace(file, named=is_named, patterns=known.patterns | {pattern})
        if not matched:
            idle.append(pattern)
    if files and idle:
        raise UsageError(f"nothing matched {quoted(idle)}")
    return tuple(files.values())


def _refuse_missing(patterns: Sequence[str], cwd: Path) -> None:
    missing = [pattern for pattern in patterns if _is_missing(pattern, cwd)]
    if not missing:
        return
    hint = None
    if all(name.strip("/") == "evals" for name in missing):
        hint = _without_evals(cwd)
    named = listed(f"'{name}'{_meant(name, cwd)}" for name in missing)
    if len(missing) == 1:
        raise UsageError(f"path {named} does not exist", hint=hint)
    raise UsageError(f"paths {named} do not exist", hint=hint)


def _is_missing(pattern: str, cwd: Path) -> bool:
    return not glob.has_magic(pattern) and not _exists(normal(cwd / pattern))


def _meant(name: str, cwd: Path) -> str:
    """Return which file beside a missing one may be meant."""
    path = Path(name)
    try:
        # Suffixes make all names alike.
        beside = {file.name.partition(".")[0]: file.name for file in (cwd / path.parent).iterdir()}
    except (OSError, ValueError):
        return ""
    close = nearest(path.name.partition(".")[0], beside)
    if close is None:
        return ""
    return f" (did you mean '{path.with_name(beside[close])}'?)"


def _without_evals(cwd: Path) -> str:
    for folder in cwd.parents:
        is_ours = (folder / ".git").exists() or (folder / ".agentv").is_dir()
        if is_ours and (folder / "evals").is_dir():
            return f"they are in '{folder}': run the command there"
    return NO_EVALS_HINT


def _expand(pattern: str, cwd: Path) -> Iterator[DiscoveredFile]:
    path = normal(cwd / pattern)
    if not _exists(path):
        yield from _matches(pattern, cwd)
    elif not _is_folder(path):
        yield DiscoveredFile(path, named=True)
    else:
        for file in _walk(path):
            yield DiscoveredFile(file, named=file == path)


def _matches(pattern: str, cwd: Path) -> Iterator[DiscoveredFile]:
    from wcmatch import glob as wcglob  # few patterns are globs

    # Unlike the standard library's, it does not follow links, which can be circular.
    for name in sorted(wcglob.glob(pattern, flags=wcglob.GLOBSTAR, root_dir=str(cwd))):
        if any(part in NEVER_ENTERED and part not in pattern for part in Path(name).parts):
            continue
        match = normal(cwd / name)
        if _is_folder(match):
            for file in _walk(match):
                yield DiscoveredFile(file, named=False)
        elif match.suffix in (*YAML_SUFFIXES, ".json"):
            yield DiscoveredFile(match, named=False)


def _exists(path: Path) -> bool:
    try:
        return path.exists() or path.is_symlink()
    except PermissionError:
        return True  # reading it says so
    except (OSError, ValueError):  # too long, or with a NUL byte
        return False


# Unlike the methods of Path, these answer False in a folder that permissions close.
_is_folder, _is_file, _is_there = os.path.isdir, os.path.isfile, os.path.exists


def _walk(folder: Path) -> Iterator[Path]:
    """Yield YAML files, and at the end folders that cannot be read."""
    closed: list[Path] = []
    for current, folders, files in os.walk(
        folder, onerror=lambda error: closed.append(Path(error.filename))
    ):
        folders[:] = sorted(name for name in folders if _is_entered(Path(current, name)))
        for name in sorted(files):
            if name.endswith(YAML_SUFFIXES):
                yield Path(current, name)
    yield from closed


def _is_entered(folder: Path) -> bool:
    name = folder.name
    if name.startswith("."):
        return name == ".agentv"
    return name not in NEVER_ENTERED and not _is_there(folder / "pyvenv.cfg")


def find_root(path: Path, cwd: Path) -> Path:
    """Return the repository of a file.

    It is the nearest folder with `.git`, else the working directory.
    """
    return next((folder for folder in path.parents if _is_there(folder / ".git")), cwd)


def find_targets(path: Path, root: Path, cwd: Path) -> Path | None:
    """Return the targets file of an eval file.

    It is searched for from its folder up to `root`, then in the working directory.
    """
    return targets_in(*_upwards(path, root), cwd)


def targets_in(*folders: Path) -> Path | None:
    """Return the first targets file in these folders."""
    return _first_file(folder / name for folder, name in product(folders, TARGETS_NAMES))


def find_configs(path: Path, root: Path) -> tuple[Path, ...]:
    """Return the config files of an eval file, nearest first."""
    above = (folder / ".agentv" / "config.yaml" for folder in _upwards(path, root))
    return tuple(filter(_is_file, (path.parent / ".agentv.yaml", *above)))


def find_dotenv(path: Path, root: Path, cwd: Path) -> Path | None:
    """Return the first `.env` of an eval file.

    It is searched for from its folder up to `root`, then in the working directory.
    """
    return _first_file(folder / ".env" for folder in (*_upwards(path, root), cwd))


def _first_file(candidates: Iterable[Path]) -> Path | None:
    return next(filter(_is_file, candidates), None)


def _upwards(path: Path, root: Path) -> Iterator[Path]:
    for folder in path.parents:
        yield folder
        if folder == root:
            return
