"""Runs that continue earlier ones: killed, damaged, linked, stopped by a budget or a failure."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.compile.overrides import Overrides
from agentv_ci.contracts.results import ResultRow
from agentv_ci.results.files import ResultsFormat, form
from tests.servers.chat_api import chat_api, says
from tests.support import clean_environment, write
from tests.support.evals import Run, gpt, mock, real_time, tool

CASES = [f"case-{number:02}" for number in range(12)]

KILLER = """
    import io, json, os, signal, sys
    from pathlib import Path
    from tests.support import clean_environment
    from tests.support.evals import Run, real_time

    repository, form, moments = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    opened = io.open

    class Deadly(io.FileIO):
        left = 0

        def write(self, data):
            data = bytes(data)
            if len(data) > Deadly.left:
                super().write(data[: Deadly.left])
                os.kill(os.getpid(), signal.SIGKILL)
            Deadly.left -= len(data)
            return super().write(data)

    def deadly(path, mode="r", buffering=-1, *rest, **named):
        # The results file, and the one that replaces it at the end of the run.
        if "r." + form in str(path) and mode in ("ab", "xb"):
            raw = Deadly(path, mode)
            return raw if buffering == 0 else io.BufferedWriter(raw, 512)
        return opened(path, mode, buffering, *rest, **named)

    def renamed(event, arguments):
        if event == "os.rename" and str(arguments[1]).endswith("r." + form):
            os.kill(os.getpid(), signal.SIGKILL)

    run = Run(repository, form, environment=real_time(clean_environment()))
    # Import everything once.
    run(out=repository / "warm.jsonl", workers=4)
    statuses = []
    for moment in moments:
        child = os.fork()
        if not child:
            if moment is None:
                sys.addaudithook(renamed)
            else:
                io.open, Deadly.left = deadly, moment
            try:
                run(resume=run.results, workers=4)
            finally:
                os._exit(0)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print(json.dumps(statuses))
"""


@pytest.fixture
def run(repository: Path) -> Run:
    return Run(repository)


def lasting(row: ResultRow) -> dict[str, Any]:
    """Return what is the same in every run."""
    return row.model_dump(exclude={"timestamp", "duration_ms"})


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seed"), [("jsonl", 1), ("yaml", 4)])
def test_a_run_that_is_killed_again_and_again_comes_to_the_same_rows(
    name: ResultsFormat, seed: int, repository: Path
) -> None:
    cases = [f"case-{number:02}" for number in range(20)]
    run = Run(repository, name, environment=real_time(clean_environment()))
    run.documents(cases, mock(delay_ms=1))
    whole = {row.eval_id: lasting(row) for row in run.rows(workers=4)}
    encode = form(name).encode
    other, first = (encode(row) for row in (run.written()[0].model_copy(update={"digest": "0" * 64}), run.written()[1]))
    # A row of another plan, so that the file is rewritten at the end.
    run.results.write_text(other + first, encoding="utf-8")
    chance = random.Random(seed)
    # The first ones inside the rows, later ones at the end of the run; `None` is the moment before the rename.
    moments = [*(chance.randrange(1, 3_000) for _ in range(4)), None, chance.randrange(10_000), None]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLER), repository, name, json.dumps(moments)],
        # Without coverage, which would make every fork slow.
        env={
            key: value
            for key, value in clean_environment({"PYTHONPATH": os.pathsep.join(sys.path)}).items()
            if not key.startswith("COV")
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [-signal.SIGKILL] * len(moments)
    rows = run.rows(resume=run.results, workers=4)
    assert sorted(row.eval_id for row in rows) == cases
    assert {row.eval_id: lasting(row) for row in rows} == whole
    assert not [path for path in repository.iterdir() if "tidied" in path.name]


def test_results_behind_a_link_are_rewritten_in_place_and_keep_their_permissions(run: Run) -> None:
    run.documents(CASES[:2], mock())
    run()
    behind = run.results.rename(run.repository / "behind.jsonl")
    behind.write_bytes(behind.read_bytes() * 2)
    behind.chmod(0o640)
    run.results.symlink_to(behind)
    run(resume=run.results)
    assert run.results.is_symlink()
    assert (len(behind.read_text(encoding="utf-8").splitlines()), behind.stat().st_mode & 0o777) == (2, 0o640)


def keep(run: Run, number: int) -> None:
    """Keep only the first rows of a JSONL file."""
    run.results.write_bytes(b"".join(run.results.read_bytes().splitlines(keepends=True)[:number]))


def test_rows_are_written_although_the_old_run_report_cannot_be_removed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.documents(CASES[:3], mock())
    run()
    unlink = Path.unlink

    def refuse(path: Path, *, missing_ok: bool = False) -> None:
        if path.name == "r.report.json":
            raise PermissionError(13, "Permission denied", str(path))
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    assert "r.report.json: Permission denied" in str(run())
    assert [row.eval_id for row in run.written()] == CASES[:3]


def test_earlier_rows_count_against_the_budget_and_a_larger_one_continues(run: Run) -> None:
    costs = {"prices": {"gpt-mock": {"input_per_mtok": 10_000, "output_per_mtok": 0}}}
    write(run.repository, {".agentv/config.yaml": json.dumps(costs)})
    with chat_api(says("42")) as api:
        run.documents(CASES, gpt(api.base_url))
        seen = []
        for most in (3.0, 3.0, 5.0, None):
            stopped = run(max_cost_usd=most, resume=run.results).report.stopped
            seen.append((stopped, len(run.written()), len(api.requests)))
    assert seen == [("budget", 3, 3), ("budget", 3, 3), ("budget", 5, 5), (None, 12, 12)]


def test_a_complete_run_needs_neither_its_target_nor_its_environment(run: Run) -> None:
    check = {"type": "command", "command_template": "test ! -e gone", "cwd": str(run.repository)}
    run.documents(CASES[:2], tool("echo 42", env={"MOCK_KEY": "${{ MOCK_KEY }}"}, healthcheck=check))
    run()
    (run.repository / "gone").touch()
    run.variables = clean_environment()
    assert run(resume=run.results).report.gate.verdict == "pass"


def test_earlier_trials_count_for_whether_a_case_can_still_pass(run: Run) -> None:
    run.documents(CASES[:2], mock(responses={CASES[0]: "no"}))
    run(overrides=Overrides(repeat=3))
    keep(run, 1)
    rows = run.rows(overrides=Overrides(repeat=3), resume=run.results, fail_fast=True)
    assert [(row.eval_id, row.trial) for row in rows] == [(CASES[0], 1), (CASES[0], 2)]
