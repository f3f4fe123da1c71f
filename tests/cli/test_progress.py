"""How far a run is, in words."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentv_ci.cli import running
from agentv_ci.cli.running import show_progress
from agentv_ci.execute.run_services import Progress
from tests.support import clean_environment, write

CASES = "".join(
    f"""
  - id: case-{number}
    expected_outcome: x
    input_messages: [{{role: user, content: hi}}]
    expected_messages: []
    evaluators: [{{name: e, type: contains, value: '42'}}]"""
    for number in range(4)
)


@pytest.mark.parametrize(
    ("progress", "elapsed_s", "line"),
    [
        (Progress(40), 0, "0/40 done in 0:00, 0 running, 0 passed, 0 failed, 0 errors, 0.0/s"),
        (
            Progress(40, done=10, running=4, passed=7, failed=2, errored=1, retries=1, cost_usd=0.125),
            5,
            "10/40 done in 0:05, ETA 0:15, 4 running, 7 passed, 2 failed, 1 error, 1 retry, $0.12, 2.0/s",
        ),
        (
            Progress(100_000, done=10, passed=10, retries=12, cost_usd=31.5),
            10,
            "10/100000 done in 0:10, ETA 27:46:30, 0 running, 10 passed, 0 failed, 0 errors, 12 retries, $31.50, 1.0/s",
        ),
        (Progress(4, done=4, passed=4), 2, "4/4 done in 0:02, 0 running, 4 passed, 0 failed, 0 errors, 2.0/s"),
    ],
)
def test_a_plain_line_says_what_there_is_to_say(
    progress: Progress, elapsed_s: float, line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, elapsed_s])
    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: next(clock, elapsed_s)))
    monkeypatch.setattr(running, "PLAIN_INTERVAL_S", 0.001)

    async def main() -> None:
        async with show_progress(live=False) as watch:
            watch(progress)
            await asyncio.sleep(0.05)

    asyncio.run(main())
    told = capsys.readouterr()
    assert (told.out, told.err.splitlines()[0]) == ("", line)


def test_a_terminal_has_a_bar_that_goes_away_and_standard_output_only_the_summary(repository: Path) -> None:
    target = "{name: default, provider: cli, command_template: 'sleep 0.3; echo 42'}"
    write(
        repository,
        {
            "a.yaml": f"$schema: agentv-eval-v2\nevalcases:{CASES}\n",
            "targets.yaml": f"$schema: agentv-targets-v2.2\ntargets:\n  - {target}\n",
        },
    )
    main, terminal = pty.openpty()
    command = [sys.executable, "-m", "agentv_ci", "eval", "a.yaml", "--out", "r.jsonl"]
    env = clean_environment({"TERM": "xterm", "COLUMNS": "120"})
    with subprocess.Popen(command, cwd=repository, env=env, stdout=subprocess.PIPE, stderr=terminal) as process:
        os.close(terminal)
        seen = b""
        try:
            while piece := os.read(main, 4096):
                seen += piece
        except OSError:
            pass  # what reading a terminal says whose other end has gone
        out, _ = process.communicate(timeout=60)
    os.close(main)
    assert process.returncode == 0
    assert b"1 running" in seen
    assert b"4 cases: 4 passed" in out
    assert b"running" not in out
