"""Answers on disk: the response cache, and recordings for runs without keys.

Both are folders of JSON files named by the SHA-256 of the whole question. A file is written under another name and
then renamed, so that several processes can share a folder; one that cannot be read counts as absent.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from agentv_ci.canonical import digest_of, exact
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import Request, Response
from agentv_ci.contracts.targets import Target

CACHE = Path(".agentv", "cache")
"""Where the cache lies, relative to the working directory."""
VERSION = 1
NAME = re.compile(r"[0-9a-f]{64}\.json")
FOLDER = re.compile(r"[0-9a-f]{2}")
UNASKED = ("timeout_s", "attempt", "sample", "files", "cwd", "case_id")
"""What of a request does not stand in its key as it is."""


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
            entry = json.loads(self._place(key).read_bytes())
            if entry["version"] != VERSION:
                return None
            response = _RESPONSE.validate_python(entry["response"])
        except (OSError, ValueError, ValidationError, KeyError, TypeError, RecursionError):
            return None
        return replace(response, cached=True, requests=0)

    def keep(self, key: str, asked: JsonObject, response: Response) -> None:
        """Write an answer, and for people what was asked; raises OSError."""
        entry = {"version": VERSION, "asked": asked, "response": _RESPONSE.dump_python(response, mode="json")}
        place = self._place(key)
        if self._outside_git:
            self._ignore()
        place.parent.mkdir(parents=True, exist_ok=True)
        # ASCII: an answer may hold characters that no file can.
        text = json.dumps(entry, indent=1) + "\n"
        with tempfile.NamedTemporaryFile("w", dir=place.parent, suffix=".new", delete=False) as file:
            try:
                file.write(text)
                file.close()
                Path(file.name).replace(place)
            except BaseException:
                with suppress(OSError):
                    Path(file.name).unlink()
                raise

    def contents(self) -> Contents:
        """Count what lies here; raises OSError."""
        sizes = [path.stat().st_size for path in self._files()]
        return Contents(len(sizes), sum(sizes))

    def clear(self) -> Contents:
        """Remove all answers, and nothing else that may lie here; returns what was removed. Raises OSError."""
        removed = self.contents()
        for path in tuple(self._files()):
            path.unlink(missing_ok=True)
            with suppress(OSError):
                # It holds something else, or another process has removed it.
                path.parent.rmdir()
        return removed

    def _ignore(self) -> None:
        mark = self.folder / ".gitignore"
        if not mark.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            mark.write_text("# Answers of models, kept by agentv-ci.\n*\n", encoding="utf-8")

    def _place(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def _files(self) -> Iterator[Path]:
        if not self.folder.is_dir():
            return
        for folder in sorted(self.folder.iterdir()):
            if FOLDER.fullmatch(folder.name) and folder.is_dir():
                yield from (path for path in sorted(folder.iterdir()) if NAME.fullmatch(path.name))


_RESPONSE = TypeAdapter(Response)


def key_of(target: JsonObject, request: Request, trial: int, *, root: Path, knows_case: bool) -> str:
    """Return the key of a question to a target with these settings; raises OSError for files that cannot be read.

    With `knows_case` the target may see the case's id and the folder of its eval file, as commands do.
    """
    question = {name: value for name, value in asdict(request).items() if name not in UNASKED}
    files: list[JsonValue] = [
        [file.path.name, file.is_guideline, hashlib.sha256(file.path.read_bytes()).hexdigest()]
        for file in request.files
    ]
    key: JsonObject = {"version": VERSION, "target": target, "question": _json(question), "files": files}
    key["trial"] = trial
    if knows_case:
        key["case"] = [request.case_id, os.path.relpath(request.cwd, root)]
    return digest_of(json.dumps(exact(key)))


def _json(value: object) -> JsonValue:
    loaded: JsonValue = json.loads(json.dumps(value))
    return loaded


def settings_of(authored: Target, resolved: Target | None) -> JsonObject:
    """Return those settings of a target that can change an answer; secrets as they are written, never their values.

    Without `resolved` all settings are those that are written: the environment plays no part.
    """
    unasked = set(authored.outside_digest)
    written: JsonObject = authored.model_dump(mode="json", exclude_none=True, exclude=unasked)
    if resolved is None:
        return written
    known = resolved.model_dump(mode="json", exclude_none=True, exclude=unasked | set(authored.secrets))
    return known | {name: value for name, value in written.items() if name in authored.secrets}
