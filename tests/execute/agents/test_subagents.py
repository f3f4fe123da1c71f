"""Folders that agents of an editor work in: who has which, and when one is free again."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentv_ci.execute.agents.subagents import TOOL, Subagent, take_subagent
from tests.support import REPOSITORY

HERE = socket.gethostname()


def now() -> datetime:
    """Locks are as old as their files: the clock has to be that of the disk."""
    return datetime.now(UTC)


def locked(root: Path, written: object, *, age: timedelta = timedelta()) -> Path:
    """Somebody's lock in the first folder."""
    lock = root / "subagent-1" / "subagent.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps(written), encoding="utf-8")
    moment = (now() - age).timestamp()
    os.utime(lock, (moment, moment))
    return lock


def taken(root: Path) -> str:
    with take_subagent(root, now()) as place:
        return place.name


def test_folders_that_are_held_at_once_are_different_ones(tmp_path: Path) -> None:
    with take_subagent(tmp_path, now()) as first, take_subagent(tmp_path, now()) as second:
        assert (first.name, second.name) == ("subagent-1", "subagent-2")
    assert taken(tmp_path) == "subagent-1"


def test_folder_stays_ours_when_its_agent_has_removed_the_lock(tmp_path: Path) -> None:
    with take_subagent(tmp_path, now()) as first:
        first.lock.unlink()
        assert taken(tmp_path) == "subagent-2"


def test_lock_is_gone_however_the_session_ends(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), take_subagent(tmp_path, now()) as place:
        raise KeyboardInterrupt
    assert not place.lock.exists()


def test_folder_of_an_agent_that_still_works_is_not_taken(tmp_path: Path) -> None:
    with take_subagent(tmp_path, now()) as place:
        place.is_kept = True
    assert place.lock.exists()
    assert taken(tmp_path) == "subagent-2"
    place.lock.unlink()
    assert taken(tmp_path) == "subagent-1"


@pytest.mark.parametrize(
    ("written", "folder"),
    [
        ("", "subagent-2"),
        ({"tool": "another"}, "subagent-2"),
        ({"tool": TOOL, "host": "elsewhere"}, "subagent-2"),
        ({"tool": TOOL, "host": HERE}, "subagent-1"),
    ],
    ids=["of-subagent", "of-another-tool", "of-another-machine", "left-by-a-run-that-was-killed"],
)
def test_fresh_lock_counts_unless_its_run_is_gone(written: object, folder: str, tmp_path: Path) -> None:
    locked(tmp_path, written)
    assert taken(tmp_path) == folder


@pytest.mark.parametrize("written", ["", [], {"tool": "another"}, {"tool": TOOL, "host": "elsewhere"}])
def test_lock_older_than_a_day_is_forgotten(written: object, tmp_path: Path) -> None:
    locked(tmp_path, written, age=timedelta(hours=25))
    assert taken(tmp_path) == "subagent-1"


def test_lock_that_somebody_else_has_put_there_stays(tmp_path: Path) -> None:
    with take_subagent(tmp_path, now()) as place:
        place.lock.write_text("another's", encoding="utf-8")
    assert place.lock.read_text("utf-8") == "another's"


def test_run_that_is_killed_gives_its_folder_back(tmp_path: Path) -> None:
    program = f"""
import os, sys
sys.path.insert(0, {str(REPOSITORY)!r})
from datetime import UTC, datetime
from pathlib import Path
from agentv_ci.execute.agents.subagents import take_subagent
with take_subagent(Path({str(tmp_path)!r}), datetime.now(UTC)) as place:
    os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == -9
    assert (tmp_path / "subagent-1" / "subagent.lock").exists()
    assert taken(tmp_path) == "subagent-1"


def test_workspace_has_the_folder_itself_and_what_the_template_names(tmp_path: Path) -> None:
    template = tmp_path / "there" / "ours.code-workspace"
    template.parent.mkdir()
    template.write_text(
        """{
          // comments and trailing commas, as editors allow them
          "folders": [{"path": "sub"}, {"path": "/absolute"}, {"uri": "vscode-remote://x"}],
          "settings": {
            "editor.tabSize": 2,
            "chat.promptFilesLocations": {"prompts": true, "/p": true, "~/p": false, "**/p": true, "${here}": true},
          },
        }""",
        encoding="utf-8",
    )
    place = Subagent(tmp_path / "subagent-1")
    place.folder.mkdir()
    place.prepare(template, "0123abcd", keeps_messages=False)
    assert json.loads(place.workspace.read_text("utf-8")) == {
        "folders": [
            {"path": "."},
            {"path": str(template.parent / "sub")},
            {"path": "/absolute"},
            {"uri": "vscode-remote://x"},
        ],
        "settings": {
            "editor.tabSize": 2,
            "chat.promptFilesLocations": {
                str(template.parent / "prompts"): True,
                "/p": True,
                "~/p": False,
                "**/p": True,
                "${here}": True,
            },
        },
    }
    assert {path.name for path in (place.folder / ".github" / "agents").iterdir()} == {"wakeup.md", "0123abcd.md"}


def test_messages_of_earlier_questions_are_removed_unless_they_are_to_be_kept(tmp_path: Path) -> None:
    place = Subagent(tmp_path)
    for keeps in (True, False):
        place.messages.mkdir(exist_ok=True)
        (place.messages / "old").write_text("", encoding="utf-8")
        place.prepare(None, "x", keeps_messages=keeps)
        assert (place.messages / "old").exists() is keeps
