"""Folders in which agents of an editor work, one session at a time: the file protocol of `subagent`.

A folder is taken by its lock, which agents that are done remove as well. Names and places are those of the npm package
`subagent` 0.4, so that both can work beside each other.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.outside import count_at, dig, read_json, text_at

STALE_S = 24 * 60 * 60
"""From this age on, a lock is one that somebody forgot."""

WAKEUP = """\
---
description: Shows that a window is awake
---
Do what the message says and nothing else.
"""


@dataclass(slots=True)
class Subagent:
    """A folder that is taken."""

    folder: Path
    is_kept: bool = False
    """Whether the lock stays when the session ends: the agent still works, and removes it itself."""

    @property
    def name(self) -> str:
        """The folder's name, which is also that of its window."""
        return self.folder.name

    @property
    def workspace(self) -> Path:
        """The file that an editor opens."""
        return self.folder / f"{self.name}.code-workspace"

    @property
    def messages(self) -> Path:
        """Where requests and answers lie."""
        return self.folder / "messages"

    @property
    def lock(self) -> Path:
        """Says that the folder is taken."""
        return self.folder / "subagent.lock"

    @property
    def alive(self) -> Path:
        """Says that the window is awake."""
        return self.folder / ".alive"

    def prepare(self, template: Path | None, chat_id: str) -> None:
        """Write what a window of its own needs, and empty the folder of messages.

        Raises OSError, or ValueError for a template that is no workspace.
        """
        self.workspace.write_text(json.dumps(_workspace(template), indent=2) + "\n", encoding="utf-8")
        shutil.rmtree(self.messages, ignore_errors=True)
        self.messages.mkdir()
        agents = self.folder / ".github" / "agents"
        shutil.rmtree(agents, ignore_errors=True)
        agents.mkdir(parents=True)
        for mode in ("wakeup", chat_id):
            (agents / f"{mode}.md").write_text(WAKEUP, encoding="utf-8")


@contextmanager
def take_subagent(root: Path, now: datetime) -> Iterator[Subagent]:
    """Take the first folder that is free, or make one; it is free again when the block ends, however it ends.

    Raises OSError when there can be no folder.
    """
    root.mkdir(parents=True, exist_ok=True)
    taken = next(place for number in count(1) if _lock(place := Subagent(root / f"subagent-{number}"), now))
    try:
        yield taken
    finally:
        if not taken.is_kept:
            taken.lock.unlink(missing_ok=True)


def _lock(place: Subagent, now: datetime) -> bool:
    """Take a folder; False when somebody else has it."""
    place.folder.mkdir(exist_ok=True)
    owner = json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
    for _ in range(2):
        try:
            with place.lock.open("x", encoding="utf-8") as file:
                file.write(owner)
        except FileExistsError:
            if not _is_stale(place.lock, now):
                return False
            place.lock.unlink(missing_ok=True)
        else:
            return True
    return False


def _is_stale(lock: Path, now: datetime) -> bool:
    """Whether nobody is behind a lock any more: its process has ended, or it is very old."""
    try:
        written = lock.read_text(encoding="utf-8", errors="replace")
        age_s = now.timestamp() - lock.stat().st_mtime
    except OSError:
        return False
    try:
        owner = read_json(written)
    except ValueError:
        owner = None
    pid = count_at(owner, "pid")
    if pid is not None and text_at(owner, "host") == socket.gethostname():
        return not _runs(pid)
    return age_s > STALE_S


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _workspace(template: Path | None) -> JsonObject:
    """The workspace that an editor opens: the folder itself first, then the template's, from where the template is."""
    given = _read_template(template) if template is not None else {}
    base = template.parent.resolve() if template is not None else Path()
    listed = given.get("folders")
    folders = [_absolute(folder, base) for folder in listed] if isinstance(listed, list) else []
    settings = given.get("settings")
    return {
        **given,
        "folders": [{"path": "."}, *folders],
        "settings": _located(settings, base) if isinstance(settings, dict) else {},
    }


def _read_template(template: Path) -> JsonObject:
    import json5

    # Editors allow comments and trailing commas in it.
    value: JsonValue = json5.loads(template.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise ProviderError("process", f"workspace_template '{template}' is no workspace")
    return value


def _absolute(folder: JsonValue, base: Path) -> JsonValue:
    path = dig(folder, "path")
    return {**folder, "path": str(base / path)} if isinstance(folder, dict) and isinstance(path, str) else folder


def _located(settings: JsonObject, base: Path) -> JsonObject:
    """Settings with absolute places in `chat.*Locations`."""
    return {
        name: {_place(place, base): on for place, on in value.items()}
        if re.fullmatch(r"chat\..*Locations", name) and isinstance(value, dict)
        else value
        for name, value in settings.items()
    }


def _place(place: str, base: Path) -> str:
    return place if place.startswith(("/", "~", "$", "*")) else str(base / place)
