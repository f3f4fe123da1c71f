"""`eval` where terminals are narrow or dumb, nobody listens, and what it is given is broken."""

from __future__ import annotations

import asyncio
import io
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentv_ci.cli import run, running
from agentv_ci.cli.running import show_progress
from agentv_ci.execute.run_services import Progress
from tests.support import clean_environment, run_process
from tests.support.evals import documents, mock, tool

# --- Progress ---------------------------------------------------------------------------------------------------------

FAR = Progress(10_000, done=1_234, running=64, passed=1_100, failed=100, errored=34, retries=250, cost_usd=12.34)
COMMANDS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(io.StringIO):
    """A terminal that remembers."""

    def isatty(self) -> bool:
        return True


def seen(monkeypatch: pytest.MonkeyPatch, **environ: str) -> str:
    """Return what a terminal shows of a run, without what commands it."""
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(running, "PLAIN_INTERVAL_S", 0.02)
    monkeypatch.setattr(running, "LIVE_INTERVAL_S", 0.02)

    async def main() -> None:
        async with show_progress(live=True) as watch:
            watch(FAR)
            await asyncio.sleep(0.3)

    asyncio.run(main())
    return COMMANDS.sub("", terminal.getvalue())


def test_terminal_of_80_columns_shows_how_many_cases_are_done_and_how_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = seen(monkeypatch, TERM="xterm", COLUMNS="80")
    assert "64 running" in text
    assert "1234/10000" in text
    assert "ETA 0:" in text


def test_terminal_that_takes_no_commands_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "64 running" in seen(monkeypatch, TERM="dumb", COLUMNS="80")


@pytest.mark.parametrize("columns", [1, 2, 20, 80, 500])
def test_progress_fits_a_terminal_of_any_width(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = seen(monkeypatch, TERM="xterm", COLUMNS=str(columns)).splitlines()
    assert max(map(len, lines), default=0) <= columns


def test_commands_run_in_threads_too() -> None:
    # Where signals cannot be heard.
    with ThreadPoolExecutor() as threads:
        assert threads.submit(run, ["schema"]).result() == 0


def test_earlier_results_that_are_not_there_are_none_also_into_another_file(repository: Path) -> None:
    documents(repository, ["a"], mock())
    done = run_process("eval", "evals", "--resume", "gone.jsonl", "--out", "r.jsonl", cwd=repository)
    assert (done.code, (repository / "r.jsonl").read_bytes().count(b"\n")) == (0, 1)
    assert not (repository / "gone.jsonl").exists()


# --- Nobody listens ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("listener", ["a full disk", "nobody"])
def test_warning_that_nobody_can_be_told_of_does_not_keep_a_run_from_beginning(listener: str, repository: Path) -> None:
    documents(repository, ["a", "b"], mock())
    path = repository / "evals" / "a.yaml"
    path.write_text(path.read_text("utf-8").replace('"$schema": "agentv-eval-v2", ', ""), "utf-8")
    command = [sys.executable, "-m", "agentv_ci", "eval", "evals", "--out", "r.jsonl"]
    place = Path("/dev/full" if listener == "a full disk" else "/dev/null")
    with place.open("wb") as full, subprocess.Popen(["true"], stdin=subprocess.PIPE) as gone:
        gone.wait()
        done = subprocess.run(
            command,
            cwd=repository,
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=full if listener == "a full disk" else gone.stdin,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0
    assert (repository / "r.jsonl").read_bytes().count(b"\n") == 2


# --- What it is given -------------------------------------------------------------------------------------------------


def test_workers_that_are_no_number_are_refused_with_the_least_that_there_can_be(repository: Path) -> None:
    documents(repository, ["a"], mock())
    done = run_process("eval", "evals", "--workers", "many", cwd=repository)
    assert done.code == 2
    assert re.search(r"\b1\b", done.err.splitlines()[-1])


@pytest.mark.parametrize("name", ["earlier.jsonl", "earlier.yaml"])
def test_results_whose_last_row_was_torn_balance_shards_by_the_others(name: str, repository: Path) -> None:
    documents(repository, ["a", "b", "c"], mock())
    assert run_process("eval", "evals", "--out", name, cwd=repository).code == 0
    path = repository / name
    path.write_bytes(path.read_bytes()[:-100])
    done = run_process("eval", "evals", "--shard", "1/2", "--balance", name, "--out", "p.jsonl", cwd=repository)
    assert (done.code, done.err) == (0, "")


def test_replay_that_lacks_one_of_two_trials_is_no_lack_of_quality(repository: Path) -> None:
    documents(repository, ["a"], tool("echo 42"), repeat=2)
    assert run_process("eval", "evals", "--out", "r.jsonl", "--record", "recorded", cwd=repository).code == 0
    found = list((repository / "recorded").rglob("*.json"))
    assert len(found) == 2
    found[0].unlink()
    done = run_process("eval", "evals", "--out", "r.jsonl", "--replay", "recorded", cwd=repository)
    kinds = [json.loads(line)["status"] for line in (repository / "r.jsonl").read_text("utf-8").splitlines()]
    assert sorted(kinds) == ["error", "ok"]
    assert done.code == 4
