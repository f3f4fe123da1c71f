"""Runs whose files go away under them, and commands that do their best to outlive them."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from agentv_ci.execute.stores import Store
from tests.execute.test_hostile_running import CASES, Command, Run, documents, kill, mock, tool
from tests.support import clean_environment


@pytest.fixture
def run(repository: Path) -> Run:
    return Run(repository)


# --- What an earlier run left -----------------------------------------------------------------------------------------


def test_results_from_a_pipe_are_refused_before_anybody_is_asked(run: Run) -> None:
    documents(run.repository, CASES[:3], tool("echo >> ../asked; echo 42"))
    run()
    run.keep(2)
    asked, out = run.repository / "asked", run.repository / "out.jsonl"
    asked.unlink()
    done = subprocess.run(
        [sys.executable, "-m", "agentv_ci", "eval", "evals", "--resume", "/dev/stdin", "--out", out],
        cwd=run.repository,
        env=clean_environment(),
        input=run.results.read_bytes(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, b"is not a regular file" in done.stderr) == (2, True)
    assert not out.exists()
    assert not asked.exists()


@pytest.mark.parametrize("away", ["rm -f ../earlier.jsonl", ": > ../earlier.jsonl"], ids=["removed", "emptied"])
def test_new_rows_are_written_though_the_earlier_ones_are_not_there_any_more(away: str, run: Run) -> None:
    documents(run.repository, CASES[:3], tool(f"test -e ../calm || {{ {away}; }}; echo 42"))
    (run.repository / "calm").touch()
    run()
    run.keep(1)
    (run.repository / "calm").unlink()
    earlier = run.results.rename(run.repository / "earlier.jsonl")
    run(resume=earlier)
    assert {row.eval_id for row in run.rows()} >= {*CASES[1:3]}


def test_rows_are_written_though_the_old_run_report_cannot_be_removed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents(run.repository, CASES[:3], mock())
    run()
    unlink = Path.unlink

    def refuse(path: Path, *, missing_ok: bool = False) -> None:
        # As in a folder that nobody may write to, or in /tmp where the report is somebody else's.
        if path.name == "r.report.json":
            raise PermissionError(13, "Permission denied", str(path))
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    done = run()
    assert [row.eval_id for row in run.rows()] == CASES[:3]
    assert "r.report.json: Permission denied" in str(done)


# --- What outlives a run ----------------------------------------------------------------------------------------------

LEAVES = "setsid sh -c 'echo $$ > stays.pid; exec sleep 60' & sleep 60"


def alive(pids: Sequence[int]) -> list[int]:
    """Return which processes have not ended a moment later."""
    deadline = time.monotonic() + 1
    while (left := [pid for pid in pids if _runs(pid)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _runs(pid: int) -> bool:
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(shown.stdout.strip()) and not shown.stdout.startswith("Z")


@pytest.mark.skipif(shutil.which("setsid") is None, reason="needs setsid")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, "time-out"], ids=str)
def test_child_in_a_session_of_its_own_does_not_survive_the_run(end: signal.Signals | str, repository: Path) -> None:
    documents(repository, CASES[:1], tool(LEAVES))
    is_late = end == "time-out"
    command = Command(repository, ["--agent-timeout", "0.5", "--max-retries", "0"] if is_late else [])
    command.start()
    command.when(lambda: bool(command.pids("pid")))
    pids = command.pids("pid")
    try:
        code = command.signal(*([] if isinstance(end, str) else [end]))[0]
        assert code == (4 if is_late else 130)
        assert alive(pids) == []
    finally:
        kill(pids)


def test_clearing_the_cache_removes_what_a_killed_run_left(tmp_path: Path) -> None:
    key = "ab" + "0" * 62
    scratch = tmp_path / "ab" / f".{key}.json.4711.new"
    scratch.parent.mkdir()
    scratch.write_text('{\n "version": 1,\n "asked": {', encoding="utf-8")
    Store(tmp_path).clear()
    assert not scratch.exists()
