"""Answers on disk: the response cache, and recordings for runs without keys.

Both are folders of JSON files named by the SHA-256 of the whole question. A file is written under another name and
then renamed, so that several processes can share a folder; one that cannot be read counts as absent.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from agentv_ci.atomic import replacing
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Response
from agentv_ci.json_access import read_json

CACHE = Path(".agentv", "cache")
"""Where the cache lies, relative to the working directory."""
VERSION = 1
NAME = re.compile(r"[0-9a-f]{64}\.json")
FOLDER = re.compile(r"[0-9a-f]{2}")
SCRATCH = re.compile(r"\.[0-9a-f]{64}\.json\.[0-9]+\.new")
HEAD = b'{\n "version": '
"""What every file of ours begins with."""
TRIES = 3


@dataclass(frozen=True, slots=True)
class Contents:
    """What lies in a store."""

    files: int
    size_bytes: int


class Store:
    """A folder of answers; with `outside_git` it keeps itself out of commits."""

    def __init__(self, folder: Path, *, outside_git: bool = False) -> None:
        self.folder = folder
        self._outside_git = outside_git

    def find(self, key: str) -> Response | None:
        """Return the answer to a question, marked as a stored one; None when there is none that can be read."""
        try:
            entry = read_json(self._place(key).read_text("utf-8"), strict=True)
            if not isinstance(entry, dict) or entry.get("version") != VERSION:
                return None
            response = _responses().validate_python(entry.get("response"))
        except (OSError, ValueError):
            return None
        return replace(response, cached=True, requests=0) if _is_sound(response) else None

    def keep(self, key: str, asked: JsonObject, response: Response) -> None:
        """Write an answer, and for people what was asked; raises OSError."""
        entry = {"version": VERSION, "asked": asked, "response": _responses().dump_python(response, mode="json")}
        place = self._place(key)
        if self._outside_git:
            self._ignore()
        # ASCII: an answer may hold characters that no file can.
        text = json.dumps(entry, indent=1) + "\n"
        for _ in range(TRIES):
            # Another process may be clearing the folder.
            with suppress(FileNotFoundError):
                place.parent.mkdir(parents=True, exist_ok=True)
                with replacing(place) as file:
                    file.write(text.encode("ascii"))
                return
        raise FileNotFoundError(errno.ENOENT, "the folder is removed all the time", str(place))

    def contents(self) -> Contents:
        """Count what lies here; raises OSError."""
        sizes = [size for _, size in self._files()]
        return Contents(len(sizes), sum(sizes))

    def clear(self) -> Contents:
        """Remove all answers, and nothing else that may lie here; returns what was removed. Raises OSError."""
        removed: list[int] = []
        for path, size in tuple(self._files()):
            with suppress(FileNotFoundError):
                path.unlink()
                removed.append(size)
            with suppress(OSError):
                # It holds something else, or another process has removed it.
                path.parent.rmdir()
        self._sweep()
        return Contents(len(removed), sum(removed))

    def _sweep(self) -> None:
        """Remove what killed processes have left; one that writes just now begins again."""
        for folder in self._folders():
            for path in _listed(folder):
                is_ours = SCRATCH.fullmatch(path.name) is not None and path.name.startswith(f".{folder.name}")
                if is_ours and path.is_file() and not path.is_symlink():
                    path.unlink(missing_ok=True)
                    with suppress(OSError):
                        folder.rmdir()

    def _ignore(self) -> None:
        mark = self.folder / ".gitignore"
        if not mark.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            mark.write_text("# Answers of models, kept by agentv-ci.\n*\n", encoding="utf-8")

    def _place(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def _files(self) -> Iterator[tuple[Path, int]]:
        """Yield our files and their sizes; other processes may remove them meanwhile."""
        for folder in self._folders():
            for path in _listed(folder):
                with suppress(FileNotFoundError):
                    if _is_ours(path):
                        yield path, path.stat().st_size

    def _folders(self) -> Iterator[Path]:
        for folder in _listed(self.folder):
            if FOLDER.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink():
                yield folder


def _listed(folder: Path) -> Sequence[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return ()


def _is_ours(path: Path) -> bool:
    if not NAME.fullmatch(path.name) or not path.name.startswith(path.parent.name) or path.is_symlink():
        return False
    with path.open("rb") as file:
        return file.read(len(HEAD)) == HEAD


def _is_sound(response: Response) -> bool:
    """Whether figures of a file that anybody may have edited are figures at all."""
    usage = response.usage
    counts = [] if usage is None else [usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.cached_tokens]
    return all(figure is None or figure >= 0 for figure in (response.duration_ms, response.cost_usd, *counts))


@cache
def _responses() -> TypeAdapter[Response]:
    return TypeAdapter(Response)
