"""`agentv-ci check`: validators over results that exist."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.cli import run
from agentv_ci.results.jsonl import encode
from tests.report.builders import case, row


@pytest.fixture(autouse=True)
def _results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [row(of=case(f"case-{number}", line=number + 1), seed=7) for number in range(3)]
    Path("r.jsonl").write_text("".join(map(encode, rows)), "utf-8")


def ended(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(["check", "r.jsonl", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_what_is_in_order_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    said = "validator outlier_detection: nothing found\ncheck: passed\n"
    assert ended(capsys, "--validator", "outlier_detection") == (0, said, "")


def test_errors_are_told_and_end_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    settings = json.dumps({"contract": {"required": {"answer": "int"}}, "k": 3})
    keys = ["--validator", "schema_adherence", "--validator", "outlier_detection"]
    code, out, err = ended(capsys, *keys, "--context", settings)
    assert (code, err) == (1, "")
    missing = "error: 'answer' is missing from the output of run 0 (\"case-0\")"
    assert f"validator schema_adherence: 3 errors\n  {missing}\n" in out
    assert out.endswith("validator outlier_detection: nothing found\ncheck: not passed\n")


def test_a_validator_that_breaks_ends_with_four(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(report: Any, context: Any) -> dict[str, Any]:
        raise RuntimeError("no")

    monkeypatch.setattr("agentv_ci.validators._registered", {"breaks": breaks})
    code, out, _ = ended(capsys, "--validator", "breaks")
    assert (code, out.splitlines()[-1]) == (4, "check: a validator could not run")
    assert "validator breaks could not run: unexpected RuntimeError: no" in out


@pytest.mark.parametrize(
    ("key", "context", "said"),
    [
        ("outlier_detection", "{", "--context is not valid JSON"),
        ("outlier_detection", "[]", "--context must be a JSON object"),
        ("outlier_detection", '{"kk": 1}', "no such setting: kk; these validators have k"),
        ("outlier_detection", '{"k": "five"}', "setting 'k' of validator 'outlier_detection'"),
        ("fairness_balance", "{}", "validator 'fairness_balance' requires the setting 'metric_path'"),
        ("outlier_detecton", "{}", "did you mean 'outlier_detection'?"),
    ],
)
def test_mistakes_are_said_before_anything_is_read(
    key: str, context: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ended(capsys, "--validator", key, "--context", context)
    assert (code, out) == (2, "")
    assert said in err
