"""`agentv-ci judge-check`: a judge against people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.cli import run
from tests.support import REPOSITORY, write
from tests.test_corpus import check_golden, update, work_in_a_copy

__all__ = ["update"]

JUDGED = sorted((REPOSITORY / "tests" / "corpus" / "judged").iterdir())

ITEM = {"question": "My parcel is late.", "expected_outcome": "An apology", "answer": "Sorry!"}
KIND = '{"score": 1.0, "reasoning": "kind"}'


@pytest.mark.parametrize("folder", JUDGED, ids=lambda folder: folder.name)
def test_judge_set_is_checked_as_expected(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], update: bool
) -> None:
    copy = work_in_a_copy(folder, tmp_path, monkeypatch)
    assert run(["validate", "--strict", "."]) == 0
    capsys.readouterr()
    code = run(["judge-check", "judge-set.yaml", "--repeat", "2", "--out", "rows.jsonl"])
    check_golden(folder / "expected" / "summary.txt", f"{capsys.readouterr().out}exit code: {code}\n", update=update)
    assert run(["judge-check", "judge-set.yaml", "--repeat", "2", "--out", "rows.jsonl", "--format", "json"]) == code
    check_golden(folder / "expected" / "agreement.json", capsys.readouterr().out, update=update)
    rows = [json.loads(line) for line in (copy / "rows.jsonl").read_text("utf-8").splitlines()]
    assert {row["target"] for row in rows} == {"labelled answers"}
    assert [row["trial"] for row in rows].count(2) == len(rows) / 2


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def judge_set(folder: Path, *labels: dict[str, Any], judge: dict[str, Any] | None = None, **document: Any) -> None:
    items = [{"id": f"item-{number}", **ITEM, **label} for number, label in enumerate(labels, 1)]
    answers = {"$schema": "agentv-judge-set-v1", "judge_target": "judge", "items": items, **document}
    target = {"name": "judge", "provider": "mock", **({"response": KIND} if judge is None else judge)}
    targets = {"$schema": "agentv-targets-v2.2", "targets": [target, {"name": "labelled answers", "provider": "mock"}]}
    write(folder, {"set.yaml": json.dumps(answers), "targets.yaml": json.dumps(targets)})


@pytest.mark.parametrize(
    ("labels", "flags", "code", "sentence"),
    [
        ([{"verdict": "pass"}], [], 0, "check: passed"),
        ([{"score": 0.9}], [], 0, "mean absolute error 0.100"),
        ([{"score": 0.7}], [], 1, "item-1  (set.yaml:1)  expected fail: judged pass 1.000"),
        ([{"score": 0.7}], ["--threshold", "0.5"], 0, "agreement 1.000"),
        ([{"score": 0.7}], ["--min-agreement", "0"], 0, "1 false pass, 0 false fails"),
        ([{"verdict": "borderline"}], [], 1, "agreement 0 is below 0.8"),
        ([{"verdict": "pass", "score": 0.4}], ["--max-error", "0.5"], 1, "mean absolute error 0.6 is above 0.5"),
        ([{"verdict": "pass"}], ["--min-kappa", "0.5"], 1, "kappa cannot be measured"),
        ([{"verdict": "pass"}], ["--max-flip-rate", "0", "--repeat", "2"], 0, "flip rate 0.000"),
        ([{"verdict": "pass"}] * 4 + [{"verdict": "fail"}], ["--min-kappa", "0"], 0, "kappa 0.000"),
    ],
)
def test_limits_decide(
    folder: Path,
    labels: list[dict[str, Any]],
    flags: list[str],
    code: int,
    sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    judge_set(folder, *labels)
    assert run(["judge-check", "set.yaml", *flags]) == code
    assert sentence in capsys.readouterr().out


def test_judge_that_cannot_be_understood_is_infrastructure_and_no_disagreement(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge_set(folder, {"verdict": "pass"}, judge={"response": "9 out of 10"})
    assert run(["judge-check", "set.yaml"]) == 4
    told = capsys.readouterr().out
    assert "did not reply in the required form in 3 tries" in told
    assert "nothing was judged" in told


def test_errors_alone_are_told_apart_from_quality(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fails_once = {"response": KIND, "error": {"kind": "server", "message": "busy", "attempts": 1}}
    judge_set(folder, {"verdict": "pass"}, judge=fails_once)
    assert run(["judge-check", "set.yaml", "--repeat", "2"]) == 4
    assert "1 error, at most 0 allowed" in capsys.readouterr().out
    assert run(["judge-check", "set.yaml", "--repeat", "2", "--max-errors", "1"]) == 0


def test_another_judge_can_be_tried(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judge_set(folder, {"verdict": "pass"})
    assert run(["judge-check", "set.yaml", "--judge-target", "labelled answers"]) == 0
    assert "judged once by 'labelled answers' (mock)" in capsys.readouterr().out


def test_inputs_of_the_set_reach_the_judge(folder: Path) -> None:
    item = {**ITEM, "reference_answer": "I am sorry.", "verdict": "pass"}
    prompt = "{{ question }}|{{ expected_outcome }}|{{ reference_answer }}|{{ candidate_answer }}"
    wanted = "late.|An apology|I am sorry.|<candidate_answer"
    echo = "tr '\\n' ' ' < {PROMPT_FILE} | grep -q '" + wanted + "' && echo '" + KIND + "'"
    judge_set(folder, item, judge={"provider": "cli", "command_template": echo}, prompt=prompt)
    assert run(["judge-check", "set.yaml"]) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nope.yaml"], "does not exist"),
        (["targets.yaml"], "is not a judge set"),
        (["."], "expected one judge set"),
        (["set.yaml", "--judge-target", "jugde"], "unknown judge target 'jugde' (did you mean 'judge'?)"),
        (["broken.yaml"], "give 'verdict' or 'score'; neither is given [AV320]"),
        (["set.yaml", "--out", "set.yaml"], "is an input of this run"),
        (["set.yaml", "--out", "-"], "cannot write results to standard output"),
        (["set.yaml", "--max-flip-rate", "0"], "--max-flip-rate requires --repeat 2 or more"),
        (["set.yaml", "--max-error", "0"], "--max-error requires labels with a score"),
        (["set.yaml", "--targets", "broken-targets.yaml"], "[AV202]"),
    ],
)
def test_what_cannot_be_checked_is_told(
    folder: Path, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    judge_set(folder, {})
    (folder / "set.yaml").rename(folder / "broken.yaml")
    judge_set(folder, {"verdict": "pass"})
    targets = (folder / "targets.yaml").read_text("utf-8")
    (folder / "broken-targets.yaml").write_text(targets.replace('"provider"', '"x": 1, "provider"', 1), "utf-8")
    assert run(["judge-check", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_targets_are_needed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judge_set(folder, {"verdict": "pass"})
    (folder / "targets.yaml").unlink()
    assert run(["judge-check", "set.yaml"]) == 2
    assert "no targets.yaml found for" in capsys.readouterr().err


def test_folder_without_documents_has_nothing_to_judge(folder: Path) -> None:
    (folder / "empty").mkdir()
    assert run(["judge-check", "empty"]) == 3


def test_nothing_judged_within_the_allowed_errors_is_a_no(folder: Path) -> None:
    judge_set(folder, {"verdict": "pass"}, judge={"response": "9 out of 10"})
    assert run(["judge-check", "set.yaml", "--max-errors", "5"]) == 1


def test_answer_that_looks_like_a_reference_is_text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_LEAK", "value-of-the-environment")
    judge_set(folder, {"verdict": "pass", "answer": "${{ MY_LEAK }}"})
    assert run(["judge-check", "set.yaml", "--out", "rows.jsonl"]) == 0
    (row,) = (json.loads(line) for line in (folder / "rows.jsonl").read_text("utf-8").splitlines())
    assert row["candidate_answer"] == "${{ MY_LEAK }}"
