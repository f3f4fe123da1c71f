"""`compare`, `baseline` and `--baseline` as people use them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentv_ci.cli import run
from tests.support import write

EVALS = """\
$schema: agentv-eval-v2
execution: {gate: {min_pass_rate: 0, max_errors: 9}}
evalcases:
"""
CASE = """\
  - id: ID
    expected_outcome: Says yes
    input_messages: [{role: user, content: May I?}]
    expected_messages: []
    evaluators: [{name: agrees, type: contains, value: 'yes'}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(folder: Path, out: str, answers: dict[str, str], *flags: str, suite: str = "desk.test.yaml") -> int:
    """Run cases that are answered like this, `-` with an error."""
    target = {"name": "default", "provider": "cli", "command_template": f"case {{EVAL_ID}} in {_arms(answers)} esac"}
    documents = {suite: EVALS + "".join(CASE.replace("ID", each) for each in answers)}
    write(folder, {**documents, "targets.yaml": json.dumps({"$schema": "agentv-targets-v2.2", "targets": [target]})})
    return run(["eval", suite, "--out", out, "--max-retries", "0", *flags])


def _arms(answers: dict[str, str]) -> str:
    return " ".join(f"{name}) {'exit 3' if said == '-' else f'echo {said}'};;" for name, said in answers.items())


def test_a_run_that_did_not_end_is_no_side(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(folder, "base.jsonl", {"a": "yes", "b": "yes"})
    ran(folder, "part.jsonl", {"a": "yes", "b": "yes"}, "--shard", "1/2")
    ran(folder, "stopped.jsonl", {"a": "-", "b": "yes"}, "--fail-fast", "--max-errors", "0")
    capsys.readouterr()
    assert run(["compare", "base.jsonl", "part.jsonl"]) == 2
    assert "'part.jsonl' is shard 1 of 2; merge the shards with `report --out`" in capsys.readouterr().err
    assert run(["compare", "base.jsonl", "stopped.jsonl"]) == 2
    assert "'stopped.jsonl' is from a run that was stopped (fail-fast)" in capsys.readouterr().err
    (folder / "base.jsonl").write_text((folder / "base.jsonl").read_text("utf-8").splitlines(keepends=True)[0], "utf-8")
    assert run(["compare", "base.jsonl", "base.jsonl"]) == 2
    assert run(["baseline", "accept", "base.jsonl"]) == 2
    said = capsys.readouterr().err
    assert said.count("base.jsonl' has 1 row; its run report expects 2") == 2


def test_a_verdict_that_is_lost_is_not_green(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(folder, "base.jsonl", {"a": "yes", "b": "yes", "c": "-"})
    ran(folder, "head.jsonl", {"a": "yes", "b": "-", "c": "-"})
    capsys.readouterr()
    assert run(["compare", "base.jsonl", "head.jsonl"]) == 4
    assert "compare: verdict lost for 1 case" in capsys.readouterr().out


def test_a_baseline_of_other_cases_does_not_pass(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(folder, "base.jsonl", {"a": "yes"})
    assert run(["baseline", "accept", "base.jsonl", "--out", "base.json"]) == 0
    assert ran(folder, "head.jsonl", {"a": "yes"}, "--baseline", "base.json", suite="renamed.test.yaml") == 1
    assert "against base.json: no case of this run is in it" in capsys.readouterr().out
    # What is filtered may well be new.
    flags = ["--baseline", "base.json", "--eval-id", "b"]
    assert ran(folder, "head.jsonl", {"a": "yes", "b": "yes"}, *flags) == 0
    assert "no case of this run is in base.json: nothing was compared" in capsys.readouterr().out


def test_trials_too_few_to_show_a_fall_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(folder, "base.jsonl", {"a": "yes", "b": "no"}, "--repeat", "2")
    ran(folder, "head.jsonl", {"a": "no", "b": "no"}, "--repeat", "2")
    capsys.readouterr()
    assert run(["compare", "base.jsonl", "head.jsonl"]) == 0
    printed = capsys.readouterr().out
    assert "not enough evidence  a: 2/2 passed → 0/2 passed" in printed
    assert "warning: 2 cases with too few trials to show any drop: a, b; use --repeat 5" in printed
    assert run(["compare", "base.jsonl", "head.jsonl", "--confidence", "0.9"]) == 1


def test_shards_are_compared_as_parts_and_then_together(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(folder, "base.jsonl", {"a": "yes", "b": "yes"})
    assert run(["baseline", "accept", "base.jsonl", "--out", "base.json"]) == 0
    for index in (1, 2):
        flags = ["--shard", f"{index}/2", "--baseline", "base.json"]
        assert ran(folder, f"{index}.jsonl", {"a": "no", "b": "yes"}, *flags) == 0
        assert "removed" not in capsys.readouterr().out
    assert run(["report", "1.jsonl", "2.jsonl", "--expect-shards", "2"]) == 1
    assert "set --baseline" in " ".join(capsys.readouterr().out.split())
    assert run(["report", "1.jsonl", "2.jsonl", "--expect-shards", "2", "--baseline", "base.json"]) == 1
    assert "against base.json: 1 case regressed (one trial per side: possibly noise): a" in capsys.readouterr().out


def test_a_repeated_report_says_the_same_of_the_baseline(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(folder, "base.jsonl", {"a": "yes"})
    assert run(["baseline", "accept", "base.jsonl", "--out", "base.json"]) == 0
    assert ran(folder, "head.jsonl", {"a": "yes"}, "--baseline", "base.json") == 0
    capsys.readouterr()
    assert run(["report", "head.jsonl"]) == 0
    assert "against base.json: 1 unchanged" in capsys.readouterr().out
