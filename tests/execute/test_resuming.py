"""Runs that continue earlier ones: killed, damaged, linked, stopped by a budget or a failure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentv_ci.compile.overrides import Overrides
from tests.servers.chat_api import chat_api, says
from tests.support import clean_environment, write
from tests.support.evals import Run, gpt, mock, tool

CASES = [f"case-{number:02}" for number in range(12)]


@pytest.fixture
def run(repository: Path) -> Run:
    return Run(repository)


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
