"""The corpus: what people write, and what they get. A folder that is dropped in is a test.

    valid/<case>/             eval and target files → expected/: the plan, the rows, the reports, the summary
    checked/<case>/           documents that this version compiles and does not run → expected/: the plan
    compared/<case>/          base/ and head/: documents of two runs → expected/: the baseline, what has changed
    judged/<case>/            a judge set and its judge → expected/: the summary, the agreement
    invalid/<rule>-<slug>/    documents → diagnostics.txt

`make golden` rewrites what is expected; the diff is the review.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentv_ci import __version__
from agentv_ci.cli import run
from agentv_ci.contracts.diagnostics import RULES

CORPUS = Path(__file__).parent / "corpus"
VALID = sorted(path for path in (CORPUS / "valid").iterdir() if path.is_dir())
CHECKED = sorted(path for path in (CORPUS / "checked").iterdir() if path.is_dir())
INVALID = sorted(path for path in (CORPUS / "invalid").iterdir() if path.is_dir())


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


def check_golden(path: Path, text: str, *, update: bool) -> None:
    """Compare with the expected text, or write it."""
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    assert path.exists(), f"{path} is missing; run: make golden"
    assert text == path.read_text(encoding="utf-8"), "if this is meant, run: make golden"


def work_in_a_copy(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy a corpus case into a repository of its own and go there."""
    copy = tmp_path / "repository"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("expected", "diagnostics.txt"))
    (copy / ".git").mkdir()
    monkeypatch.chdir(copy)
    return copy


@pytest.mark.parametrize("folder", INVALID, ids=lambda folder: folder.name)
def test_invalid_document_is_diagnosed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], update: bool
) -> None:
    copy = work_in_a_copy(folder, tmp_path, monkeypatch)
    named = sorted(str(path.name) for path in copy.iterdir() if path.suffix in (".yaml", ".yml"))
    code = run(["validate", *(name for name in named if name != "wrong.yaml")])
    printed = capsys.readouterr()
    assert printed.err == ""
    rule = folder.name.split("-")[0]
    assert f"[{rule}]" in printed.out
    assert code == (1 if ": error: " in printed.out else 0)
    check_golden(folder / "diagnostics.txt", printed.out.replace(str(copy), "<repository>"), update=update)


def test_every_rule_has_a_case_in_the_corpus() -> None:
    missing = RULES.keys() - {folder.name.split("-")[0] for folder in INVALID}
    assert not missing, f"add tests/corpus/invalid/<rule>-<slug>/ for {sorted(missing)}"


@pytest.mark.parametrize("folder", CHECKED, ids=lambda folder: folder.name)
def test_document_that_does_not_run_yet_is_compiled(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], update: bool
) -> None:
    copy = work_in_a_copy(folder, tmp_path, monkeypatch)
    code = run(["validate", "--strict", "."])
    assert (capsys.readouterr().out.count("\n"), code) == (1, 0)
    assert run(["compile", ".", "--out", "plan.json"]) == 0
    check_golden(folder / "expected" / "plan.json", (copy / "plan.json").read_text("utf-8"), update=update)
    assert run(["compile", "plan.json", "--out", "again.json"]) == 0
    assert (copy / "again.json").read_bytes() == (copy / "plan.json").read_bytes()


@pytest.mark.parametrize("folder", VALID, ids=lambda folder: folder.name)
def test_valid_document_runs_as_expected(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], update: bool
) -> None:
    copy = work_in_a_copy(folder, tmp_path, monkeypatch)
    expected = folder / "expected"

    assert run(["validate", "."]) == 0
    capsys.readouterr()
    assert run(["compile", ".", "--out", "plan.json"]) == 0
    capsys.readouterr()
    check_golden(expected / "plan.json", (copy / "plan.json").read_text("utf-8"), update=update)

    wanted = ["--junit", "out/junit.xml", "--markdown", "out/summary.md", "--sarif", "out/results.sarif"]
    code = run(["eval", ".", "--out", "out/results.jsonl", "--include-trace", *wanted])
    summary = capsys.readouterr().out
    check_golden(expected / "summary.txt", f"{summary}exit code: {code}\n", update=update)
    rows = _rows(copy / "out/results.jsonl")
    check_golden(expected / "results.jsonl", "".join(json.dumps(row) + "\n" for row in rows), update=update)
    check_golden(expected / "report.json", (copy / "out/results.report.json").read_text("utf-8"), update=update)
    junit = re.sub(r' time="[\d.]+"', ' time="0.001"', (copy / "out/junit.xml").read_text("utf-8"))
    junit = re.sub(r' timestamp="[\dT:-]{19}"', ' timestamp="2030-01-02T03:04:05"', junit)
    check_golden(expected / "junit.xml", junit, update=update)
    markdown = _steady((copy / "out/summary.md").read_text("utf-8"), copy)
    check_golden(expected / "summary.md", markdown, update=update)
    sarif = _steady((copy / "out/results.sarif").read_text("utf-8"), copy).replace(__version__, "<version>")
    check_golden(expected / "results.sarif", sarif, update=update)

    assert run(["compile", "plan.json", "--out", "again.json"]) == 0
    assert (copy / "again.json").read_bytes() == (copy / "plan.json").read_bytes()
    assert run(["eval", "plan.json", "--out", "again.jsonl", "--include-trace"]) == code
    capsys.readouterr()
    assert _rows(copy / "again.jsonl") == rows, "a plan runs like the documents it was compiled from"


def _steady(text: str, repository: Path) -> str:
    """A text without places and times of this run, such as the repository, scratch folders and measured time."""
    text = re.sub(r"\b[\d,]+ ms, at most", "0 ms, at most", text)
    text = re.sub(r"/[^\s\"()]*/agentv-([a-z-]+)-\w{8}/", r"<scratch of \1>/", text.replace(str(repository), "…"))
    return re.sub(r"\b20\d{12}(?=_)", "<second>", text)


def _rows(path: Path) -> list[dict[str, Any]]:
    """Read rows without what differs from run to run: times, places, and the order in which parallel cases end."""
    text = _steady(path.read_text("utf-8"), path.parent.parent if path.parent.name == "out" else path.parent)
    rows = [json.loads(line) for line in text.splitlines()]
    for row in rows:
        row |= {"timestamp": "2030-01-02T03:04:05.000Z", "duration_ms": 0}
    return sorted(rows, key=lambda row: (row["suite"], row["source"]["line"], row["trial"]))


COMPARED = sorted(path for path in (CORPUS / "compared").iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", COMPARED, ids=lambda folder: folder.name)
def test_two_runs_are_compared_as_expected(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], update: bool
) -> None:
    copy = work_in_a_copy(folder, tmp_path, monkeypatch)
    expected = folder / "expected"
    # The path of the file identifies a case on both sides.
    for side in ("base", "head"):
        for path in (copy / side).iterdir():
            (copy / path.name).write_bytes(path.read_bytes())
        assert run(["eval", "desk.test.yaml", "--out", f"{side}.jsonl"]) == 0
        for rolls in copy.glob("rolls-*"):
            rolls.unlink()
    assert run(["baseline", "accept", "base.jsonl", "--out", "baseline.json"]) == 0
    baseline = re.sub(r'"20[^"]*Z"', '"<then>"', (copy / "baseline.json").read_text("utf-8"))
    check_golden(expected / "baseline.json", baseline, update=update)
    capsys.readouterr()

    code = run(["compare", "base.jsonl", "head.jsonl"])
    printed = capsys.readouterr().out
    check_golden(expected / "comparison.txt", f"{printed}exit code: {code}\n", update=update)
    assert run(["compare", "base.jsonl", "head.jsonl", "--format", "json"]) == code
    check_golden(expected / "comparison.json", capsys.readouterr().out, update=update)
    assert run(["compare", "baseline.json", "head.jsonl"]) == code
    assert capsys.readouterr().out == printed.replace("base.jsonl", "baseline.json")
    assert run(["eval", "desk.test.yaml", "--out", "again.jsonl", "--baseline", "baseline.json"]) == code
    found = json.loads((copy / "again.report.json").read_text("utf-8"))
    assert found["comparison"]["reasons"] == json.loads((expected / "comparison.json").read_text("utf-8"))["reasons"]


@pytest.mark.parametrize("folder", sorted((CORPUS / "judged").iterdir()), ids=lambda folder: folder.name)
def test_judge_set_is_checked(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], update: bool
) -> None:
    copy = work_in_a_copy(folder, tmp_path, monkeypatch)
    assert run(["validate", "--strict", "."]) == 0
    capsys.readouterr()
    check = ["judge-check", "judge-set.yaml", "--repeat", "2", "--out", "rows.jsonl"]
    code = run(check)
    check_golden(folder / "expected" / "summary.txt", f"{capsys.readouterr().out}exit code: {code}\n", update=update)
    assert run([*check, "--format", "json"]) == code
    check_golden(folder / "expected" / "agreement.json", capsys.readouterr().out, update=update)
    rows = [json.loads(line) for line in (copy / "rows.jsonl").read_text("utf-8").splitlines()]
    assert {row["target"] for row in rows} == {"labelled answers"}
    assert [row["trial"] for row in rows].count(2) == len(rows) / 2
