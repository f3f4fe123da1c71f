"""`agentv-ci rescore`: stored answers, today's evaluators, and no target asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.cli import run
from tests.support import write

CASE = {
    "expected_outcome": "A greeting",
    "input_messages": [{"role": "user", "content": "Greet me"}],
    "expected_messages": [],
}
SAYS_HELLO = {"name": "hello", "type": "contains", "value": "Hello"}
SAYS_ADA = {"name": "ada", "type": "contains", "value": "Ada"}
JUDGED = {"name": "judged", "type": "llm_judge", "judge_target": "judge"}
CALLS = {"name": "calls", "type": "tool_trajectory", "mode": "any_order", "minimums": {"greet": 1}}

ANSWERS = {"name": "default", "provider": "mock", "response": "Hello!", "tool_calls": [{"tool": "greet"}]}
GONE = {"name": "default", "provider": "openai", "model": "m", "api_key": "${{ NO_SUCH_KEY }}"}
JUDGE = {"name": "judge", "provider": "mock", "response": '{"score": 0.9, "reasoning": "kind"}'}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def documents(
    folder: Path,
    *cases: dict[str, Any],
    target: dict[str, Any] = ANSWERS,
    more: tuple[dict[str, Any], ...] = (),
    **execution: Any,
) -> None:
    evals = {
        "$schema": "agentv-eval-v2",
        "execution": execution,
        "evalcases": [{**CASE, "id": f"case-{number}", **case} for number, case in enumerate(cases, 1)],
    }
    targets = {"$schema": "agentv-targets-v2.2", "targets": [target, JUDGE, *more]}
    write(folder, {"evals/x.yaml": json.dumps(evals), "targets.yaml": json.dumps(targets)})


def rows(folder: Path, name: str = "r.rescored.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines()]


def test_todays_evaluators_score_and_no_target_is_asked(folder: Path) -> None:
    documents(folder, {"evaluators": [SAYS_ADA]}, {"evaluators": [SAYS_HELLO]})
    assert run(["eval", "evals", "--out", "r.jsonl"]) == 1
    documents(folder, {"evaluators": [SAYS_HELLO, JUDGED]}, {"evaluators": [SAYS_HELLO]}, target=GONE)
    assert run(["rescore", "r.jsonl"]) == 0
    before, after = rows(folder, "r.jsonl"), rows(folder)
    assert [row["score"] for row in before] == [0.0, 1.0]
    assert [row["score"] for row in after] == [0.95, 1.0]
    assert [each["name"] for each in after[0]["evaluator_results"]] == ["hello", "judged"]
    kept = (
        "eval_id",
        "candidate_answer",
        "target",
        "provider",
        "trial",
        "attempts",
        "requests",
        "duration_ms",
        "request",
    )
    assert [[row[key] for key in kept] for row in after] == [[row[key] for key in kept] for row in before]
    assert after[0]["digest"] == before[0]["digest"], "the answer is one to the case of then"


def test_nothing_changes_when_the_evaluators_are_the_same(folder: Path) -> None:
    documents(folder, {"evaluators": [SAYS_HELLO, CALLS, JUDGED]}, repeat=2)
    assert run(["eval", "evals", "--out", "r.jsonl", "--include-trace"]) == 0
    assert run(["rescore", "r.jsonl"]) == 0
    before, after = rows(folder, "r.jsonl"), rows(folder)
    assert [row | {"timestamp": ""} for row in after] == [row | {"timestamp": ""} for row in before]


def test_tool_calls_that_were_not_kept_are_an_error_that_says_what_to_do(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(folder, {"evaluators": [SAYS_HELLO, CALLS]})
    assert run(["eval", "evals", "--out", "r.jsonl"]) == 0
    assert run(["rescore", "r.jsonl"]) == 4
    assert "tool calls are unknown in 1 row without messages; run the targets with --include-trace" in (
        capsys.readouterr().err
    )
    assert [each["status"] for each in rows(folder)[0]["evaluator_results"]] == ["ok", "error"]


def test_row_without_an_answer_stays_an_error(folder: Path) -> None:
    broken = {**ANSWERS, "error": {"kind": "server", "message": "too busy"}}
    documents(folder, {"evaluators": [SAYS_HELLO]}, target=broken)
    assert run(["eval", "evals", "--out", "r.jsonl"]) == 4
    documents(folder, {"evaluators": [SAYS_ADA]})
    assert run(["rescore", "r.jsonl"]) == 4
    assert rows(folder) == rows(folder, "r.jsonl")


def test_evaluator_that_broke_can_be_mended(folder: Path) -> None:
    documents(folder, {"evaluators": [{"name": "hello", "type": "code", "script": "exit 3"}]})
    assert run(["eval", "evals", "--out", "r.jsonl"]) == 4
    documents(folder, {"evaluators": [SAYS_HELLO]})
    assert run(["rescore", "r.jsonl"]) == 0
    assert (rows(folder)[0]["status"], rows(folder)[0].get("error")) == ("ok", None)


def test_every_trial_is_scored(folder: Path) -> None:
    documents(folder, {"evaluators": [SAYS_HELLO]})
    assert run(["eval", "evals", "--out", "r.jsonl", "--repeat", "3", "--seed", "7"]) == 0
    assert run(["rescore", "r.jsonl", "--workers", "2"]) == 0
    assert sorted((row["trial"], row["seed"]) for row in rows(folder)) == [(1, 7), (2, 8), (3, 9)]


def test_trial_that_never_ran_counts_as_an_error(folder: Path) -> None:
    documents(folder, {"evaluators": [SAYS_HELLO]})
    assert run(["eval", "evals", "--out", "r.jsonl", "--repeat", "3"]) == 0
    kept = [line for line in (folder / "r.jsonl").read_text("utf-8").splitlines() if '"trial":2' not in line]
    (folder / "r.jsonl").write_text("\n".join(kept) + "\n", "utf-8")
    assert run(["rescore", "r.jsonl"]) == 4


def test_what_is_left_out_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = {"evaluators": [SAYS_HELLO]}
    documents(folder, one, {**one, "id": "goes"}, {**one, "id": "moves"})
    assert run(["eval", "evals", "--out", "r.jsonl"]) == 0
    other = {**ANSWERS, "name": "other"}
    moved = {**one, "id": "moves", "execution": {"target": "other"}}
    documents(folder, one, {**one, "id": "comes"}, moved, more=(other,))
    capsys.readouterr()
    assert run(["rescore", "r.jsonl", "--target", "default"]) == 0
    told = capsys.readouterr().err
    assert "warning: skipped, no longer a case: goes" in told
    assert "warning: skipped, answered by another target: moves" in told
    assert "warning: skipped, no stored answer: comes" in told
    assert [row["eval_id"] for row in rows(folder)] == ["case-1"]


def test_documents_are_compiled_for_the_target_that_answered(folder: Path) -> None:
    documents(folder, {"evaluators": [SAYS_HELLO]}, more=({**ANSWERS, "name": "other"},))
    assert run(["eval", "evals", "--target", "other", "--out", "r.jsonl"]) == 0
    assert run(["rescore", "r.jsonl"]) == 0
    assert rows(folder)[0]["target"] == "other"


def test_a_plan_scores_too_and_yaml_is_read_and_written(folder: Path) -> None:
    documents(folder, {"evaluators": [SAYS_HELLO]})
    assert run(["compile", "evals", "--out", "plan.json"]) == 0
    assert run(["eval", "plan.json", "--out", "r.yaml", "--output-format", "yaml"]) == 0
    assert run(["rescore", "r.yaml", "plan.json", "--output-format", "yaml", "--junit", "j.xml"]) == 0
    assert (folder / "r.rescored.yaml").read_text("utf-8").startswith("- schema_version: 1\n")
    assert (folder / "j.xml").exists()


@pytest.mark.parametrize("flag", [["eval", "evals", "--dry-run"], ["eval", "evals"]])
def test_dry_run_stays_one(folder: Path, flag: list[str]) -> None:
    documents(folder, {"evaluators": [JUDGED]})
    run([*flag, "--out", "r.jsonl"])
    again = [] if "--dry-run" in flag else ["--dry-run"]
    assert run(["rescore", "r.jsonl", *again]) == 0
    assert json.loads((folder / "r.rescored.report.json").read_text("utf-8"))["dry_run"] is True


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["nope.jsonl"], 2, "cannot read"),
        (["empty.jsonl"], 3, "is empty"),
        (["half.jsonl"], 2, "half.jsonl:1: not a result row"),
        (["twice.jsonl"], 2, "contains trial 1 of case 'case-1' twice"),
        (["foreign.jsonl"], 2, "cannot find evals/gone.yaml"),
        (["foreign.jsonl", "evals"], 3, "no row of"),
        (["r.jsonl", "--out", "r.jsonl"], 2, "is an input of this run and would be overwritten"),
        (["r.jsonl", "--eval-id", "none"], 3, "no case matches"),
        (["r.jsonl", "--target", "nobody"], 2, "unknown target 'nobody'"),
    ],
)
def test_results_that_cannot_be_scored_are_told(
    folder: Path, arguments: list[str], code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    documents(folder, {"evaluators": [SAYS_HELLO]})
    assert run(["eval", "evals", "--out", "r.jsonl"]) == 0
    row = (folder / "r.jsonl").read_text("utf-8")
    foreign = row.replace("evals/x.yaml", "evals/gone.yaml")
    write(folder, {"empty.jsonl": "", "half.jsonl": row[:40], "twice.jsonl": row * 2, "foreign.jsonl": foreign})
    capsys.readouterr()
    assert run(["rescore", *arguments]) == code
    assert sentence in capsys.readouterr().err
