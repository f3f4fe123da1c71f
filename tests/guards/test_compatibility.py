"""Files of earlier versions are valid, and their plans give the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.app.documents.compile import read_plan
from agentv_ci.jsonschema.violations import violations
from agentv_ci.results.files import read_rows
from tests.support import REPOSITORY, run_command

VERSIONS = sorted(path for path in (REPOSITORY / "tests" / "corpus" / "compat").iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_files_of_an_earlier_version_are_valid(folder: Path) -> None:
    for plan in ("plan.json", "plan-only-read.json"):
        assert violations("plan-v1", json.loads((folder / plan).read_text("utf-8"))) == []
        # Reading a plan computes its digests again.
        assert read_plan(folder / plan).cases
    assert violations("report-v1", json.loads((folder / "results.report.json").read_text("utf-8"))) == []
    assert list(read_rows(folder / "results.jsonl", "jsonl"))
    for row in rows(folder):
        assert violations("result-v1", row) == []


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_plan_of_an_earlier_version_gives_the_same_rows(folder: Path, tmp_path: Path) -> None:
    report = json.loads((folder / "results.report.json").read_text("utf-8"))
    done = run_command("eval", folder / "plan.json", "--out", "results.jsonl", cwd=tmp_path)
    assert done.code == report["gate"]["exit_code"]
    # A later version may add fields.
    kept = ("eval_id", "suite", "trial", "verdict", "score", "digest", "candidate_answer")
    then, now = ([{key: row[key] for key in kept} for row in rows(each)] for each in (folder, tmp_path))
    assert now == then


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text("utf-8").splitlines()]
