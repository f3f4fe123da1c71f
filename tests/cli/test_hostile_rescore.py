"""What results files, documents and people can do to `agentv-ci rescore`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.cli import run
from agentv_ci.contracts.results import ResultRow
from tests.cli.test_rescore import ANSWERS, CALLS, CASE, JUDGE, JUDGED, SAYS_ADA, SAYS_HELLO, documents, folder, rows
from tests.support import clean_environment, write

__all__ = ["folder"]

ENDS_S = 60
"""A command that takes so long would never end."""


def answered(folder: Path, *flags: str) -> dict[str, Any]:
    """Run one case, and return its row."""
    documents(folder, {"evaluators": [SAYS_HELLO]})
    assert run(["eval", "evals", "--out", "r.jsonl", *flags]) == 0
    return rows(folder, "r.jsonl")[0]


def store(folder: Path, *stored: dict[str, Any], name: str = "r.jsonl") -> None:
    write(folder, {name: "".join(json.dumps(row) + "\n" for row in stored)})


def suite(*ids: str, **given: Any) -> str:
    evals = {"$schema": "agentv-eval-v2", "evalcases": [{**CASE, "id": each, **given} for each in ids]}
    return json.dumps(evals)


def report(folder: Path, name: str = "r.rescored.report.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name).read_text("utf-8"))
    return found


# --- Results files ---


@pytest.mark.parametrize(
    ("damage", "place"),
    [
        pytest.param(lambda row: row + row[: len(row) // 2], "r.jsonl:2:", id="torn-end"),
        pytest.param(lambda row: "\n" + row, "r.jsonl:1:", id="blank-line-first"),
        pytest.param(lambda row: row + "null\n", "r.jsonl:2:", id="null"),
        pytest.param(lambda row: row + "[]\n", "r.jsonl:2:", id="list"),
        pytest.param(lambda row: row + "[" * 50_000 + "\n", "r.jsonl:2:", id="deep"),
        pytest.param(lambda row: row.replace('"schema_version":1', '"schema_version":2'), "r.jsonl:1:", id="later"),
        pytest.param(lambda row: row.replace('"score":1.0', '"score":NaN'), "r.jsonl:1:", id="nan"),
        pytest.param(lambda row: row.replace('"trial":1', '"trial":0'), "r.jsonl:1:", id="trial-0"),
    ],
)
def test_damaged_line_is_named_and_nothing_is_written(
    folder: Path, damage: Any, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answered(folder)
    path = folder / "r.jsonl"
    path.write_text(damage(path.read_text("utf-8")), "utf-8")
    capsys.readouterr()
    assert run(["rescore", "r.jsonl"]) == 2
    assert place in capsys.readouterr().err
    assert not (folder / "r.rescored.jsonl").exists()


@pytest.mark.parametrize("data", [b"\xff\xfe\n", b"\x00" * 100, b"\x1f\x8b\x08\x00"])
@pytest.mark.parametrize("name", ["b.jsonl", "b.yaml"])
def test_bytes_that_are_no_text_are_a_usage_error(folder: Path, name: str, data: bytes) -> None:
    answered(folder)
    (folder / name).write_bytes(data)
    assert run(["rescore", name]) == 2


def test_folder_is_no_results_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answered(folder)
    assert run(["rescore", "evals"]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_rows_of_older_versions_may_lack_what_is_optional(folder: Path) -> None:
    row = answered(folder)
    needed = {name for name, field in ResultRow.model_fields.items() if field.is_required()}
    store(folder, {key: value for key, value in row.items() if key in needed})
    assert run(["rescore", "r.jsonl"]) == 0
    assert rows(folder)[0]["score"] == 1.0


@pytest.mark.parametrize("error_kind", [None, "evaluator"])
def test_errored_row_whose_kind_says_that_there_is_an_answer_is_scored(folder: Path, error_kind: str | None) -> None:
    row = answered(folder)
    store(folder, {**row, "status": "error", "verdict": "error", "error": "old", "error_kind": error_kind})
    assert run(["rescore", "r.jsonl"]) == 0
    assert "error" not in rows(folder)[0]


def test_windows_line_ends_are_read(folder: Path) -> None:
    answered(folder)
    path = folder / "r.jsonl"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert run(["rescore", "r.jsonl"]) == 0


def test_empty_answer_is_an_answer(folder: Path) -> None:
    row = answered(folder)
    store(folder, {**row, "candidate_answer": ""})
    assert run(["rescore", "r.jsonl"]) == 1
    assert rows(folder)[0]["verdict"] == "fail"


@pytest.mark.parametrize("form", ["jsonl", "yaml"])
@pytest.mark.parametrize(
    "answer",
    [
        "Hello \u2028 \x85 \x00 \x1b[31m 😀",
        "Hello {{ candidate_answer }} ${{ HOME }} ::error::x",
        "Hello\r\n- a: 1\n---\n",
        "  Hello: |\n   x\n",
        "- Hello\n- schema_version: 1",
        "Hello" * 100_000,
    ],
)
def test_answer_comes_back_as_it_was(folder: Path, answer: str, form: str) -> None:
    row = answered(folder)
    store(folder, {**row, "candidate_answer": answer})
    assert run(["rescore", "r.jsonl", "--output-format", form, "--out", f"once.{form}"]) == 0
    assert run(["rescore", f"once.{form}", "--out", "again.jsonl"]) == 0
    assert rows(folder, "again.jsonl")[0]["candidate_answer"] == answer


def test_many_rows_are_scored_in_order(folder: Path) -> None:
    row = answered(folder, "--repeat", "1")
    store(folder, *({**row, "trial": number} for number in range(1, 2_001)))
    assert run(["rescore", "r.jsonl", "--workers", "8"]) == 0
    assert sorted(each["trial"] for each in rows(folder)) == list(range(1, 2_001))
    assert report(folder)["counts"]["rows"] == 2_000


def test_rows_of_several_suites_with_the_same_ids_are_told_apart(folder: Path) -> None:
    documents(folder, {"evaluators": [SAYS_HELLO]})
    write(folder, {"evals/y.yaml": suite("case-1", evaluators=[SAYS_HELLO])})
    assert run(["eval", "evals", "--out", "r.jsonl"]) == 0
    write(folder, {"evals/y.yaml": suite("case-1", evaluators=[SAYS_ADA])})
    assert run(["rescore", "r.jsonl"]) == 1
    assert {row["suite"]: row["score"] for row in rows(folder)} == {"evals/x.yaml": 1.0, "evals/y.yaml": 0.0}


def test_several_suites_can_be_narrowed_to_one(folder: Path) -> None:
    documents(folder, {"evaluators": [SAYS_HELLO]})
    write(folder, {"evals/y.yaml": suite("case-1", evaluators=[SAYS_HELLO])})
    assert run(["eval", "evals", "--out", "r.jsonl"]) == 0
    assert run(["rescore", "r.jsonl", "evals/y.yaml"]) == 0
    assert [row["suite"] for row in rows(folder)] == ["evals/y.yaml"]


def test_cases_of_several_targets_keep_theirs(folder: Path) -> None:
    other = {**ANSWERS, "name": "other"}
    documents(
        folder,
        {"evaluators": [SAYS_HELLO]},
        {"evaluators": [SAYS_HELLO], "execution": {"target": "other"}},
        more=(other,),
    )
    assert run(["eval", "evals", "--out", "r.jsonl"]) == 0
    assert run(["rescore", "r.jsonl"]) == 0
    assert [row["target"] for row in rows(folder)] == ["default", "other"]


def test_trials_of_one_case_by_two_targets_are_not_taken_for_one_targets(folder: Path) -> None:
    row = answered(folder)
    store(folder, row, {**row, "trial": 2, "target": "other"})
    documents(folder, {"evaluators": [SAYS_HELLO]}, more=({**ANSWERS, "name": "other"},))
    code = run(["rescore", "r.jsonl", "--target", "other"])
    assert code == 2 or {each["target"] for each in rows(folder)} == {"other"}


def test_order_of_rows_does_not_decide_which_are_scored(folder: Path) -> None:
    row = answered(folder)
    documents(folder, {"evaluators": [SAYS_HELLO]}, more=({**ANSWERS, "name": "other"},))
    mixed = [row, {**row, "trial": 2, "target": "other"}]
    codes = []
    for stored in (mixed, mixed[::-1]):
        store(folder, *stored)
        codes.append(run(["rescore", "r.jsonl", "--target", "default"]))
    assert codes[0] == codes[1]


def test_rows_may_lie_outside_the_working_directory(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(folder)
    away = tmp_path_factory.mktemp("away")
    (folder / "r.jsonl").rename(away / "r.jsonl")
    assert run(["rescore", str(away / "r.jsonl")]) == 0
    assert [row["score"] for row in rows(away)] == [1.0]
    monkeypatch.chdir(folder / "evals")
    assert run(["rescore", str(away / "r.jsonl"), "--out", "here.jsonl"]) == 0
    assert (folder / "evals" / "here.jsonl").exists()


def test_unicode_ids_and_names_are_found_again(folder: Path) -> None:
    documents(folder)
    ids = ["größe/😀", "e\u0301", "é", "a b\u2028c", "*", "[x]", "İ", "-- help"]
    write(folder, {"evals/x.yaml": suite(*ids, evaluators=[SAYS_HELLO]), "evals/ünï cödé.yaml": suite("é")})
    write(folder, {"evals/ünï cödé.yaml": suite("é", evaluators=[SAYS_HELLO])})
    assert run(["eval", "evals", "--out", "r.jsonl"]) == 0
    assert run(["rescore", "r.jsonl", "--junit", "j.xml"]) == 0
    assert [row["eval_id"] for row in rows(folder)] == [row["eval_id"] for row in rows(folder, "r.jsonl")]


@pytest.mark.parametrize("name", ["evals/[a].yaml", "evals/a*b.yaml", "evals/q?.yaml"])
def test_eval_file_whose_name_looks_like_a_pattern_is_found_again(folder: Path, name: str) -> None:
    documents(folder, {"evaluators": [SAYS_HELLO]})
    (folder / "evals/x.yaml").rename(folder / name)
    assert run(["eval", "evals", "--out", "r.jsonl"]) == 0
    assert run(["rescore", "r.jsonl"]) == 0
    assert rows(folder)[0]["suite"] == name


@pytest.mark.parametrize("name", ["../outside.yaml", "/etc/hostname", "evals/../evals/x.yaml", "", ".", "evals"])
def test_suite_that_leads_elsewhere_is_refused(folder: Path, name: str) -> None:
    row = answered(folder)
    store(folder, {**row, "suite": name})
    assert run(["rescore", "r.jsonl"]) in (2, 3)


def test_deleted_eval_file_does_not_stop_the_others_that_are_named(folder: Path) -> None:
    documents(folder, {"evaluators": [SAYS_HELLO]})
    write(folder, {"evals/y.yaml": suite("y", evaluators=[SAYS_HELLO])})
    assert run(["eval", "evals", "--out", "r.jsonl"]) == 0
    (folder / "evals/y.yaml").unlink()
    assert run(["rescore", "r.jsonl"]) == 2
    assert run(["rescore", "r.jsonl", "evals"]) == 0
    assert [row["eval_id"] for row in rows(folder)] == ["case-1"]


def test_plan_as_path_needs_no_eval_file(folder: Path) -> None:
    answered(folder)
    assert run(["compile", "evals", "--out", "plan.json"]) == 0
    (folder / "evals/x.yaml").unlink()
    (folder / "targets.yaml").unlink()
    assert run(["rescore", "r.jsonl", "plan.json"]) == 0


def test_plan_for_another_target_scores_nothing(folder: Path) -> None:
    answered(folder)
    documents(folder, {"evaluators": [SAYS_HELLO]}, more=({**ANSWERS, "name": "other"},))
    assert run(["compile", "evals", "--target", "other", "--out", "plan.json"]) == 0
    assert run(["rescore", "r.jsonl", "plan.json"]) == 3


def test_results_take_no_place_of_an_input(folder: Path) -> None:
    answered(folder)
    before = (folder / "r.jsonl").read_bytes()
    (folder / "link.jsonl").symlink_to(folder / "r.jsonl")
    for out in ("r.jsonl", "./evals/../r.jsonl", "link.jsonl", "evals/x.yaml", "targets.yaml"):
        assert run(["rescore", "r.jsonl", "--out", out]) == 2
    assert run(["rescore", "link.jsonl", "--out", "r.jsonl"]) == 2
    assert run(["rescore", "r.jsonl", "--junit", "r.jsonl"]) == 2
    assert (folder / "r.jsonl").read_bytes() == before


def test_report_of_the_run_is_not_taken_for_one_of_the_rescoring(folder: Path) -> None:
    answered(folder)
    before = (folder / "r.report.json").read_bytes()
    assert run(["rescore", "r.jsonl"]) == 0
    assert (folder / "r.report.json").read_bytes() == before


def test_rescored_rows_can_be_rescored(folder: Path) -> None:
    answered(folder)
    assert run(["rescore", "r.jsonl"]) == 0
    assert run(["rescore", "r.rescored.jsonl"]) == 0
    once, twice = rows(folder), rows(folder, "r.rescored.rescored.jsonl")
    assert [row | {"timestamp": ""} for row in once] == [row | {"timestamp": ""} for row in twice]


# --- Figures ---


@pytest.mark.parametrize("workers", ["1", "3", "16"])
def test_figures_do_not_depend_on_workers(folder: Path, workers: str) -> None:
    cases = [{"evaluators": [SAYS_HELLO if number % 3 else SAYS_ADA, JUDGED]} for number in range(12)]
    documents(folder, *cases)
    assert run(["eval", "evals", "--out", "r.jsonl", "--repeat", "2"]) == 1
    before = report(folder, "r.report.json")
    assert run(["rescore", "r.jsonl", "--workers", workers]) == 1
    after = report(folder)
    assert after["statistics"] == before["statistics"]
    assert after["counts"] == before["counts"]


def test_cost_and_tokens_of_the_answer_stay(folder: Path) -> None:
    row = answered(folder)
    usage = {"input_tokens": 10, "output_tokens": 20, "total_tokens": 30}
    store(folder, {**row, "usage": usage, "cost_usd": 0.5, "judge_cost_usd": 9.0, "judge_usage": usage})
    documents(folder, {"evaluators": [{"name": "c", "type": "cost", "max_usd": 0.4}]})
    assert run(["rescore", "r.jsonl"]) == 1
    (after,) = rows(folder)
    assert (after["cost_usd"], after["usage"], after.get("judge_cost_usd")) == (0.5, usage, None)


def test_trace_that_is_there_is_scored_and_one_that_was_never_there_is_an_error(folder: Path) -> None:
    documents(folder, {"evaluators": [CALLS]})
    assert run(["eval", "evals", "--out", "r.jsonl", "--include-trace"]) == 0
    (row,) = rows(folder, "r.jsonl")
    assert run(["rescore", "r.jsonl"]) == 0
    store(folder, {key: value for key, value in row.items() if key != "trace_summary"})
    assert run(["rescore", "r.jsonl"]) == 4


def test_secret_of_today_is_taken_out_of_answers_of_yesterday(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = answered(folder)
    secret = "sk-live-abcdefghijklmnop"
    request = {"prompt": secret, secret: [{"x": secret}]}
    store(folder, {**row, "candidate_answer": f"Hello {secret}", "request": request, "model": secret})
    monkeypatch.setenv("MY_API_KEY", secret)
    assert run(["rescore", "r.jsonl", "--verbose", "--junit", "j.xml"]) == 0
    for name in ("r.rescored.jsonl", "r.rescored.report.json", "j.xml"):
        assert secret not in (folder / name).read_text("utf-8")
    assert rows(folder)[0]["masked"] is True


def test_secret_of_dotenv_is_taken_out_too(folder: Path) -> None:
    row = answered(folder)
    secret = "sk-dotenv-abcdefghijklmnop"
    write(folder, {"evals/.env": f"SOME_TOKEN={secret}\n"})
    failed = {"candidate_answer": "", "status": "error", "verdict": "error", "error_kind": "process", "score": 0}
    store(folder, {**row, **failed, "error": f"x {secret}", "printed": {"stdout": secret, "stderr": ""}})
    assert run(["rescore", "r.jsonl"]) == 4
    assert secret not in (folder / "r.rescored.jsonl").read_text("utf-8")


def test_answer_that_sounds_like_a_command_commands_no_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = answered(folder)
    store(folder, {**row, "candidate_answer": "\x1b]0;x\x07\n::error::owned\n##[error]"})
    documents(folder, {"evaluators": [{"name": "e", "type": "equals", "value": "x"}]})
    capsys.readouterr()
    assert run(["rescore", "r.jsonl", "--verbose"]) == 1
    told = capsys.readouterr()
    assert "\x1b" not in told.out + told.err
    assert not [line for line in (told.out + told.err).splitlines() if line.startswith("::")]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_rows_that_are_scored_are_kept_when_somebody_stops_it(folder: Path, stop: signal.Signals) -> None:
    row = answered(folder)
    documents(folder, {"evaluators": [{"name": "s", "type": "code", "script": "sh wait.sh"}]})
    script = "if [ -e once ]; then touch waits; sleep 60; fi; touch once; echo '{\"score\": 1}'\n"
    write(folder, {"evals/wait.sh": script})
    store(folder, row, {**row, "trial": 2})
    command = [sys.executable, "-m", "agentv_ci", "rescore", "r.jsonl"]
    with subprocess.Popen(command, cwd=folder, env=clean_environment(), stderr=subprocess.PIPE, text=True) as process:
        until(folder / "evals" / "waits")
        os.kill(process.pid, stop)
        _, told = process.communicate(timeout=ENDS_S)
    assert process.returncode == 130
    assert "interrupted; finished rows are kept" in told
    assert [each["trial"] for each in rows(folder)] == [1]


def until(path: Path) -> None:
    """Wait until a file is there."""
    end = time.monotonic() + ENDS_S
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert path.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--workers", "0"],
        ["--workers", "x"],
        ["--output-format", "xml"],
        ["--threshold", "2"],
        ["--out", "-"],
        ["--out", "evals"],
        ["evals", "plan.json"],
        ["nope.yaml"],
        ["--targets", "nope.yaml"],
    ],
)
def test_wrong_use_is_told_as_such(folder: Path, arguments: list[str]) -> None:
    answered(folder)
    assert run(["compile", "evals", "--out", "plan.json"]) == 0
    assert run(["rescore", "r.jsonl", *arguments]) == 2


def test_targets_file_that_is_named_is_taken(folder: Path) -> None:
    answered(folder)
    documents(folder, {"evaluators": [JUDGED]})
    poor = {**JUDGE, "response": '{"score": 0.1}'}
    write(folder, {"other/t.yaml": json.dumps({"$schema": "agentv-targets-v2.2", "targets": [ANSWERS, poor]})})
    assert run(["rescore", "r.jsonl", "--targets", "other/t.yaml"]) == 1
    assert rows(folder)[0]["score"] == 0.1


def test_target_that_was_renamed_is_told_by_its_old_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answered(folder)
    documents(folder, {"evaluators": [SAYS_HELLO]}, target={**ANSWERS, "name": "renamed"})
    capsys.readouterr()
    assert run(["rescore", "r.jsonl"]) == 2
    assert "'default'" in capsys.readouterr().err


def test_gate_of_the_command_line_counts(folder: Path) -> None:
    answered(folder)
    documents(folder, {"evaluators": [SAYS_ADA]})
    assert run(["rescore", "r.jsonl"]) == 1
    assert run(["rescore", "r.jsonl", "--min-pass-rate", "0"]) == 0
    assert run(["rescore", "r.jsonl", "--min-pass-rate", "0", "--min-mean-score", "0.1"]) == 1
