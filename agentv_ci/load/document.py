"""Read a file into a Source."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from agentv_ci.contracts.attachments import LFS_POINTER, is_lfs_pointer
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.source import NOWHERE, Mark, Source, diagnostic_at
from agentv_ci.load.events import Problem, Unparsable
from agentv_ci.load.files import MAX_BYTES
from agentv_ci.load.parse import parse_yaml
from agentv_ci.load.recognition import (
    bears_our_mark,
    has_eval_name,
    is_ours_by_name,
    kind_by_name,
    recognize,
)

MOST_SHOWN = 1_000
"""Problems of a text that are shown; one with more is not ours with mistakes."""


def load(path: Path, root: Path, *, named: bool) -> Source:
    """Read one YAML document.

    `root` is its repository. With `named`, the user gave this exact path, and a file of another
    kind is an error. Never raises: a file that cannot be read is a Source with diagnostics.
    """
    content = b""
    try:
        content = _read(path)
        text = _decoded(content)
        parsed = parse_yaml(text)
    except Unparsable as error:
        reported = tuple(_reported(path, content, error, named=named))
        return Source(
            path, root, kind_by_name(path), None, lambda: NOWHERE, reported, readable=False
        )
    kind, problem = recognize(path, parsed, named=named)
    problems: list[Problem] = []
    # Problems in files of other programs do not matter, but an unknown kind of ours does.
    if named or kind is not None:
        problems += parsed.problems
    if problem is not None:
        problems.append(problem)
    if kind == "eval" and not _is_text(str(path)) and not _is_text(os.path.relpath(path, root)):
        message = "the path is not valid UTF-8"
        problems.append(Problem("AV105", message, (0, 0), (0, 0), hint="rename the file"))
    found = tuple(_diagnostic(path, problem) for problem in problems[:MOST_SHOWN])
    data = {} if kind == "config" and parsed.data is None else parsed.data
    return Source(
        path,
        root,
        kind,
        data,
        parsed.find_mark,
        found,
        keys=parsed.keys,
        text=text,
        find_items=parsed.find_items,
    )


def _reported(
    path: Path, content: bytes, error: Unparsable, *, named: bool
) -> Iterator[Diagnostic]:
    """Yield why a file cannot be read, unless it is of another program."""
    refused = _diagnostic(path, error.problem)
    is_closed = isinstance(error.__cause__, PermissionError)
    # What is behind a pointer is unknown.
    is_marked = bears_our_mark(content) or is_lfs_pointer(content)
    if named or is_ours_by_name(path) or is_marked or (is_closed and has_eval_name(path)):
        yield refused
    elif is_closed:
        # What is closed may be ours, but does not hold up the rest.
        yield replace(refused, severity="warning")


def in_memory(data: JsonObject, path: Path, root: Path) -> Source:
    """Return an eval document that is not in a file.

    `path` is what it is called, and where its paths begin.
    """
    cases = data.get("evalcases")
    places = [NOWHERE] * len(cases) if isinstance(cases, list) else []
    return Source(path, root, "eval", data, lambda: NOWHERE, find_items=lambda _: places)


def _read(path: Path) -> bytes:
    if "\0" in str(path):
        # Results may name any path.
        raise Unparsable("cannot be read: its name contains a NUL byte", rule="AV105")
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            next(path.iterdir(), None)  # a walk yields folders that it cannot enter
        if not stat.S_ISREG(status.st_mode):
            raise Unparsable("not a regular file", rule="AV105")
        if status.st_size > MAX_BYTES:
            raise Unparsable(f"larger than {MAX_BYTES // 1024 // 1024} MiB", rule="AV101")
        return path.read_bytes()
    except OSError as error:
        raise Unparsable(f"cannot be read: {error.strerror}", rule="AV105") from error


def _decoded(content: bytes) -> str:
    if is_lfs_pointer(content):
        raise Unparsable(LFS_POINTER, rule="AV105")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig")
        point = before.count("\n"), len(before) - (before.rfind("\n") + 1)
        message = f"not UTF-8: byte 0x{content[error.start]:02x}"
        hint = "save the file as UTF-8"
        raise Unparsable(message, point, rule="AV105", hint=hint) from error


def _is_text(path: str) -> bool:
    """Whether a path is valid UTF-8: other bytes are lone surrogates."""
    return path.isprintable() or path == path.encode("utf-8", "ignore").decode("utf-8")


def _diagnostic(path: Path, problem: Problem) -> Diagnostic:
    mark = Mark(problem.start, problem.end, None)
    return diagnostic_at(mark, problem.rule, problem.message, path, hint=problem.hint)
