"""Runs that signals end: rows are kept, the report is written, and no process is left."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.app.run.files import RunOutcome
from agentv_ci.results.files import read_rows
from tests.servers.chat_api import chat_api, fails, says
from tests.servers.http import Reply
from tests.support import clean_environment, has_ended
from tests.support.evals import KEY, Run, documents, gpt, mock, real_time, tool

CASES = [f"case-{number:02}" for number in range(3)]
IGNORES_SIGNALS = (
    "trap '' TERM INT HUP; echo $$ > {EVAL_ID}.pid; (sleep 60; sleep 60) & echo $! > {EVAL_ID}.child.pid; "
)
MODULE = (sys.executable, "-m", "agentv_ci")


@dataclass(slots=True)
class Started:
    """`agentv-ci eval` in a process of its own."""

    repository: Path
    process: subprocess.Popen[str]

    @property
    def results(self) -> Path:
        return self.repository / "r.jsonl"

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so; fails instead of hanging."""
        deadline = time.monotonic() + 60
        while not is_so():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def pids(self) -> list[int]:
        """Return the process ids that commands have left in files."""
        texts = [path.read_text(encoding="utf-8") for path in (self.repository / "evals").glob("*.pid")]
        return [int(text) for text in texts if text.strip()]

    def end(self, *numbers: signal.Signals, pause_s: float = 0.02) -> tuple[int, str, str]:
        """Send signals; return the exit status and what the run printed."""
        for number in numbers:
            self.process.send_signal(number)
            time.sleep(pause_s)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@contextmanager
def started(repository: Path, *arguments: str, program: Sequence[str] = MODULE) -> Iterator[Started]:
    """Start a run; its commands end with the block."""
    # Tests may have been started with `nohup`, which their processes would inherit.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    process = subprocess.Popen(
        [*program, "eval", "evals", *([] if "--resume" in arguments else ["--out", "r.jsonl"]), *arguments],
        cwd=repository,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    signal.signal(signal.SIGHUP, before)
    run = Started(repository, process)
    try:
        yield run
    finally:
        for pid in (process.pid, *run.pids()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()


HANGING = {
    "ignores-signals": f"{IGNORES_SIGNALS}wait; sleep 60",
    "timeout": "timeout 60 sh -c 'echo $$ > timeout.pid; exec sleep 60' | cat",
    "job-control": "bash -c 'set -m; sleep 60 & echo $! > job.pid; wait'",
    "session": "setsid sh -c 'echo $$ > stays.pid; exec sleep 60' & sleep 60",
}
"""Commands with processes that ignore signals, or are in other groups and sessions."""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("setsid") is None, reason="needs setsid")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_a_signal_keeps_rows_writes_the_report_and_leaves_no_process(number: signal.Signals, repository: Path) -> None:
    hanging = [{"id": name, "execution": {"target": name}} for name in HANGING]
    documents(repository, [*CASES, *hanging], mock(), *(tool(each, name=name) for name, each in HANGING.items()))
    with started(repository, "--workers", "5") as run:
        run.wait_until(lambda: len(run.pids()) == 5 and run.results.read_bytes().count(b"\n") == 3)
        pids = run.pids()
        code, out, err = run.end(number)
        assert (code, err) == (130, "error: interrupted; finished rows are kept\n")
        assert all(map(has_ended, pids))
    assert [row.eval_id for row in read_rows(run.results, "jsonl")] == CASES
    report = json.loads((repository / "r.report.json").read_text(encoding="utf-8"))
    assert (report["stopped"], report["gate"]["exit_code"]) == ("interrupted", 130)
    assert "interrupted: 4 of 7 cases not run" in out


@pytest.mark.slow
def test_a_second_signal_leaves_no_process_either(repository: Path) -> None:
    documents(repository, CASES[:2], tool(HANGING["ignores-signals"]))
    with started(repository, "--workers", "2") as run:
        run.wait_until(lambda: len(run.pids()) == 4)
        pids = run.pids()
        code, _, err = run.end(signal.SIGTERM, signal.SIGTERM, pause_s=0.7)
        # The process may be ending already when the second one comes.
        assert (code in (130, -signal.SIGTERM), "Traceback" in err) == (True, False)
        assert all(map(has_ended, pids))


@pytest.mark.slow
def test_a_signal_that_comes_twice_is_one(repository: Path) -> None:
    # As from coreutils' `timeout`, which signals its command and the group.
    documents(repository, CASES[:2], tool(HANGING["ignores-signals"]))
    with started(repository, "--workers", "2") as run:
        run.wait_until(lambda: len(run.pids()) == 4)
        code, _, err = run.end(signal.SIGTERM, signal.SIGTERM, pause_s=0.001)
    # The process may be ending already when the second one comes; it has said so.
    assert code in (130, -signal.SIGTERM)
    assert err == "error: interrupted before the first row; nothing was written\n"


@pytest.mark.slow
def test_a_signal_ends_a_run_whose_target_answers_without_waiting(repository: Path) -> None:
    documents(repository, CASES[:1], mock(), repeat=100_000_000)
    with started(repository) as run:
        run.wait_until(lambda: run.results.exists() and bool(run.results.read_bytes()))
        code, out, _ = run.end(signal.SIGTERM)
    assert (code, "interrupted: every case ran, but not every trial" in out) == (130, True)
    (repeated,) = json.loads((repository / "r.report.json").read_text(encoding="utf-8"))["repeated"]
    assert len(repeated["pass_at_k"]) == min(repeated["trials"], 20)


@pytest.mark.slow
def test_a_signal_that_is_ignored_from_the_start_stays_ignored(repository: Path) -> None:
    documents(repository, CASES[:2], tool("while ! test -e go; do sleep 0.05; done; echo 42"))
    with started(repository, program=["nohup", *MODULE]) as run:
        run.wait_until(run.results.exists)
        run.process.send_signal(signal.SIGHUP)
        (repository / "evals" / "go").touch()
        assert run.end()[0] == 0
    assert len(list(read_rows(run.results, "jsonl"))) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["jsonl", "yaml"])
def test_a_run_that_is_killed_again_and_again_comes_to_one_row_per_case(name: str, repository: Path) -> None:
    cases = [f"case-{number:02}" for number in range(20)]
    documents(repository, cases, mock(delay_ms=10))
    results, resumed = repository / f"r.{name}", ("--resume", f"r.{name}", "--output-format", name)
    for rows in (1, 4, 8):
        with started(repository, *resumed) as run:
            run.wait_until(lambda: results.exists() and results.read_bytes().count(b"schema_version") > rows)  # noqa: B023  # it is waited for here
            assert run.end(signal.SIGKILL)[0] == -signal.SIGKILL
    # A row of another plan, so that the file is rewritten at the end.
    results.write_text(results.read_text("utf-8").replace("case-00", "other"), encoding="utf-8")
    with started(repository, *resumed) as run:
        assert run.end()[0] == 0
    assert sorted(row.eval_id for row in read_rows(results)) == cases


EARLY = """
    import os, signal, sys
    from agentv_ci.__main__ import main

    def end(event, arguments):
        if event == "open" and str(arguments[0]).endswith("a.yaml"):
            os.kill(os.getpid(), signal.SIGINT)

    sys.addaudithook(end)
    main()
"""


@pytest.mark.slow
def test_a_signal_while_documents_are_read_is_an_interruption(repository: Path) -> None:
    documents(repository, CASES[:1], mock())
    with started(repository, program=[sys.executable, "-c", textwrap.dedent(EARLY)]) as run:
        code, _, err = run.end()
    assert (code, err.strip()) == (130, "error: interrupted")


def test_a_run_that_waits_for_a_server_ends_at_once_when_it_is_cancelled(repository: Path) -> None:
    run = Run(repository, environment=real_time(clean_environment({"MOCK_KEY": KEY})))
    replies = iter([says("42")])

    def reply(_: dict[str, Any]) -> Reply:
        return next(replies, fails(429, retry_after="50"))

    async def main() -> RunOutcome:
        running = asyncio.ensure_future(run.start(workers=3))
        async with asyncio.timeout(60):
            while not (run.results.exists() and run.results.read_bytes() and len(api.requests) >= 3):  # noqa: ASYNC110  # threads and files
                await asyncio.sleep(0.01)
            running.cancel()
            return await running

    with chat_api(reply) as api:
        run.documents(CASES, gpt(api.base_url))
        report = asyncio.run(main()).report
    assert (report.stopped, report.gate.exit_code, len(run.written())) == ("interrupted", 130, 1)
