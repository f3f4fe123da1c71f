"""Folders in which agents of an editor work, one session at a time.

They follow the file protocol of `subagent`.

A lock file marks a folder as taken; agents remove it when they are done. File names are those of
the npm package `subagent` 0.4, so that both tools can be used side by side.
"""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from pathlib import Path

from agentv_ci.base.json_access import read_json, text_at, value_at
from agentv_ci.base.left_files import read_left
from agentv_ci.contracts.base import JsonObject, JsonValue

STALE_S = 24 * 60 * 60
MAX_LOCK_BYTES = 64 * 1024
"""The age from which a lock is ignored."""

TOOL = "agentv-ci"

WAKEUP = """\
description: Shows that a window is awake
Do what the message says and nothing else.
"""


class Subagent:
    """A folder that is taken."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name
        """The folder's name, which is also that of its window."""
        self.workspace = folder / f"{folder.name}.code-workspace"
        """The file that an editor opens."""
        self.messages = folder / "messages"
        """The folder of requests and answers."""
        self.lock = folder / "subagent.lock"
        """Marks the folder as taken."""
        self.alive = folder / ".alive"
        """Created by the agent when the window is ready."""
        self.is_kept = False
        """Whether the lock stays after the session: the agent is still working and removes it
        itself.
        """

    def prepare(self, template: Path | None, chat_id: str, *, keeps_messages: bool) -> None:
        """Write the workspace and the chat modes.

        The folder of messages is emptied unless `keeps_messages`.

        Raises OSError, or ValueError for a template that is not a workspace.
        """
        self.workspace.write_text(
            json.dumps(_workspace(template), indent=2) + "\n", encoding="utf-8"
        )
        if not keeps_messages:
            shutil.rmtree(self.messages, ignore_errors=True)
        self.messages.mkdir(exist_ok=True)
        agents = self.folder / ".github" / "agents"
        shutil.rmtree(agents, ignore_errors=True)
        agents.mkdir(parents=True)
        for mode in ("wakeup", chat_id):
            (agents / f"{mode}.md").write_text(WAKEUP, encoding="utf-8")


@contextmanager
def take_subagent(root: Path, now: datetime) -> Iterator[Subagent]:
    """Take the first free folder, or create one; it is free again when the block ends.

    Raises OSError.
    """
    root.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        folder = root / f"subagent-{number}"
        folder.mkdir(exist_ok=True)
        with _held(folder / ".agentv-ci.lock") as is_held:
            if is_held and _is_free(place := Subagent(folder), now):
                with _locked(place):
                    yield place
                return


@contextmanager
def _held(path: Path) -> Iterator[bool]:
    """Hold a folder against other runs of this tool; the system releases it with the process."""
    with path.open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextmanager
def _locked(place: Subagent) -> Iterator[None]:
    """Lock a held folder for `subagent` and for agents.

    Agents remove the lock when they are done.
    """
    mine: JsonObject = {"tool": TOOL, "host": socket.gethostname(), "session": uuid.uuid4().hex}
    place.lock.write_text(json.dumps(mine), encoding="utf-8")
    try:
        yield
    finally:
        if _owner(place.lock) == mine:
            if place.is_kept:
                place.lock.write_text(
                    json.dumps({**mine, "tool": "an agent that still works"}), encoding="utf-8"
                )
            else:
                place.lock.unlink(missing_ok=True)


def _is_free(place: Subagent, now: datetime) -> bool:
    """Whether a held folder has no valid lock.

    A lock of this tool is left over from a killed run: a live one would hold the folder.
    """
    try:
        age_s = now.timestamp() - place.lock.stat().st_mtime
    except FileNotFoundError:
        return True
    owner = _owner(place.lock)
    is_left = text_at(owner, "tool") == TOOL and text_at(owner, "host") == socket.gethostname()
    return is_left or age_s > STALE_S


def _owner(lock: Path) -> JsonValue:
    try:
        return read_json(
            read_left(lock.parent, lock.name, MAX_LOCK_BYTES).decode("utf-8", "replace")
        )
    except (OSError, ValueError):
        return None


def _workspace(template: Path | None) -> JsonObject:
    """Return the workspace.

    It has the folder itself, then the template's folders, relative to the template.
    """
    given = read_template(template)
    base = template.parent.resolve() if template is not None else Path()
    listed = given.get("folders")
    folders = []
    if isinstance(listed, list):
        folders = [_absolute(folder, base) for folder in listed]
    settings = given.get("settings")
    return {
        **given,
        "folders": [{"path": "."}, *folders],
        "settings": _located(settings, base) if isinstance(settings, dict) else {},
    }


def read_template(template: Path | None) -> JsonObject:
    """Return the content of a workspace file; empty without one.

    Raises OSError, or ValueError for a file that is not a workspace.
    """
    if template is None:
        return {}
    import json5

    try:
        # Editors allow comments and trailing commas.
        value: JsonValue = json5.loads(template.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError(f"workspace_template '{template}' is nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError(f"workspace_template '{template}' is not a workspace")  # noqa: TRY004  # the user's value
    return value


def _absolute(folder: JsonValue, base: Path) -> JsonValue:
    path = value_at(folder, "path")
    if isinstance(folder, dict) and isinstance(path, str):
        return {**folder, "path": str(base / path)}
    return folder


def _located(settings: JsonObject, base: Path) -> JsonObject:
    """Return settings with absolute paths in `chat.*Locations`."""
    located = dict(settings)
    for name, value in settings.items():
        if re.fullmatch(r"chat\..*Locations", name) and isinstance(value, dict):
            located[name] = {_place(place, base): on for place, on in value.items()}
    return located


def _place(place: str, base: Path) -> str:
    if place.startswith(("/", "~", "$", "*")):
        return place
    return str(base / place)
