"""The bundled examples, and plans, on real input."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from junitparser import JUnitXml

from agentv_ci.jsonschema.violations import violations
from tests.support import REPOSITORY
from tests.support.projects import Project

pytestmark = pytest.mark.slow

EXAMPLE = "evals/example.test.yaml"


def copied(name: str, folder: Path) -> Project:
    """Copy a bundled example into a repository of its own."""
    shutil.copytree(REPOSITORY / "docs" / "examples" / name, folder / name)
    (folder / name / ".git").mkdir()
    return Project(folder / name)


def edit(project: Project, name: str, old: str, new: str) -> None:
    assert old in project.text(name)
    project.write({name: project.text(name).replace(old, new)})


class TestBundledExample:
    def test_it_passes_and_all_files_are_valid(self, tmp_path: Path) -> None:
        example = copied("simple", tmp_path)
        done = example.process("eval", EXAMPLE, "--out", "r.jsonl", "--junit", "r.xml")
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith("4 cases: 4 passed, 0 failed, 0 errors\n")
        rows = {row["eval_id"]: row for row in example.rows()}
        cases = ["writes-a-function", "reviews-a-file", "remembers-the-conversation", "answers-with-json"]
        assert [*rows] == cases
        assert [violations("result-v1", row) for row in rows.values()] == [[]] * 4
        assert violations("report-v1", example.json("r.report.json")) == []
        junit = JUnitXml.fromfile(str(example.path("r.xml")))
        assert (junit.tests, junit.failures, junit.errors) == (4, 0, 0)
        # Guidelines and earlier turns reach the agent.
        written, remembered = rows["writes-a-function"], rows["remembers-the-conversation"]
        assert "Begin every function with a JSDoc comment" in json.loads(written["request"])["prompt"]
        assert written["candidate_answer"].startswith("```js\n/**")
        assert "@[Assistant]:" in json.loads(remembered["request"])["prompt"]
        assert remembered["candidate_answer"] == "Your name is Ada."


@pytest.mark.parametrize(
    ("name", "flags", "verdicts"),
    [
        ("support", (), {"pass": 3}),
        ("extraction", (), {"pass": 1}),
        ("rag", ("--replay", "recordings"), {"pass": 2}),
        ("side-by-side", (), {"pass": 5, "fail": 1}),
        ("rows", (), {"pass": 6}),
    ],
)
def test_examples_pass_without_keys(
    name: str, flags: tuple[str, ...], verdicts: dict[str, int], tmp_path: Path
) -> None:
    # The keys of recordings depend on the path in the repository.
    shutil.copytree(REPOSITORY / "docs" / "examples" / name, tmp_path / "docs" / "examples" / name)
    (tmp_path / ".git").mkdir()
    project = Project(tmp_path / "docs" / "examples" / name)
    assert project.run("validate", "--strict", ".").code == 0
    done = project.run("eval", "evals", "--out", "r.jsonl", *flags)
    assert done.code == 0, done
    assert Counter(row["verdict"] for row in project.rows()) == verdicts


def test_scripts_in_three_languages_score_alike(tmp_path: Path) -> None:
    project = copied("code-evaluators", tmp_path)
    assert project.eval().code == 0
    (good,) = project.rows()
    edit(project, "evals/targets.yaml", "30 days", "a month")
    assert project.eval().code == 1
    (bad,) = project.rows()
    found = [(each["name"], each["status"], each["score"]) for each in good["evaluator_results"]]
    assert found == [("python", "ok", 1.0), ("bash", "ok", 1.0), ("node", "ok", 1.0)]
    assert [(each["score"], each["misses"]) for each in bad["evaluator_results"]] == [
        (0.5, ["does not mention '30 days'"]),
        (0.0, ["does not mention 30 days"]),
        (0.5, ["does not mention '30 DAYS'"]),
    ]
