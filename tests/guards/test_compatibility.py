"""Files of earlier versions are valid, and their plans give the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.app.compile import read_plan
from agentv_ci.cli import run
from agentv_ci.jsonschema.violations import violations
from agentv_ci.results.files import read_rows
from tests.support import REPOSITORY

VERSIONS = sorted(path for path in (REPOSITORY / "tests" / "corpus" / "compat").iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_documents_of_an_earlier_version_are_valid(folder: Path) -> None:
    for plan in ("plan.json", "plan-only-read.json"):
        assert violations("plan-v1", json.loads((folder / plan).read_text("utf-8"))) == []
    assert violations("report-v1", json.loads((folder / "results.report.json").read_text("utf-8"))) == []
    for line in (folder / "results.jsonl").read_text("utf-8").splitlines():
        assert violations("result-v1", json.loads(line)) == []
    assert list(read_rows(folder / "results.jsonl", "jsonl"))


@pytest.mark.parametrize("plan", ["plan.json", "plan-only-read.json"])
@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_digests_of_an_earlier_version(folder: Path, plan: str) -> None:
    # Reading a plan computes its digests again.
    assert read_plan(folder / plan).cases


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_plan_of_an_earlier_version_gives_the_same_rows(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    report = json.loads((folder / "results.report.json").read_text("utf-8"))
    assert run(["eval", str(folder / "plan.json"), "--out", "results.jsonl"]) == report["gate"]["exit_code"]
    then = [verdict(json.loads(line)) for line in (folder / "results.jsonl").read_text("utf-8").splitlines()]
    now = [verdict(json.loads(line)) for line in Path("results.jsonl").read_text("utf-8").splitlines()]
    assert now == then


def verdict(row: dict[str, Any]) -> dict[str, Any]:
    """The fields that a later version must not change."""
    return {key: row[key] for key in ("eval_id", "suite", "trial", "verdict", "score", "digest", "candidate_answer")}
