"""`only: true` on a case: the other cases of its file are left out, and a run says so."""

from __future__ import annotations

import pytest

import agentv_ci
from tests.support.projects import GREETS, Project

SAYS = "2 cases did not run: 'only' is set on others of their files\n"


@pytest.fixture(autouse=True)
def documents(project: Project) -> None:
    project.documents("a", {"id": "b", "only": True}, {"id": "c", "only": False})
    project.documents("d", name="evals/y.yaml")


def ran(project: Project) -> list[str]:
    return sorted(row["eval_id"] for row in project.rows())


def test_only_these_cases_of_the_file_run(project: Project) -> None:
    done = project.eval()
    assert (done.code, ran(project)) == (0, ["b", "d"]), done
    assert done.out.endswith(SAYS)
    assert "'only' leaves out 2 other cases of the file [AV345]" in done.err
    assert project.json("r.report.json")["filtered"]


@pytest.mark.parametrize(
    ("env", "quiet"),
    [
        ({}, ""),
        ({"CI": "1"}, SAYS),
        ({"CI": "true", "GITHUB_ACTIONS": "true"}, f"{SAYS}::warning title=agentv-ci::{SAYS}"),
    ],
)
def test_a_ci_job_says_so_even_if_it_is_quiet(env: dict[str, str], quiet: str, project: Project) -> None:
    project.env.update(env)
    done = project.eval("--quiet")
    assert done.out == f"gate: passed; 2 cases: 2 passed, 0 failed, 0 errors\n{quiet}"


def test_case_that_is_left_out_cannot_be_selected(project: Project) -> None:
    project.refuses("eval", "--eval-id", "a", error="'only' on another case of the file leaves it out", code=3)
    assert project.eval("--tag", "none").code == 3


def test_cases_of_rows_and_of_each_target_are_counted(project: Project) -> None:
    others = [{**GREETS, "name": name} for name in ("one", "two")]
    rows = {"id": "{{ n }}", "vars": [{"n": "a"}, {"n": "b"}, {"n": "c"}]}
    project.documents(rows, {"id": "d", "only": True}, targets=(GREETS, *others))
    assert "\n3 cases did not run" in project.eval().out
    assert "\n6 cases did not run" in project.eval("--target", "one", "--target", "two").out
    assert "\n2 cases did not run" in project.eval("--eval-id", "[bcd]").out


def test_part_of_the_cases_is_no_whole_baseline(project: Project) -> None:
    project.write({"baseline.json": ""})
    project.documents("a", "b", "c")
    project.eval()
    assert project.run("baseline", "accept", "r.jsonl", "--out", "b.json").code == 0
    project.documents("a", {"id": "b", "only": True}, "c")
    project.eval()
    project.refuses("baseline", "accept", "r.jsonl", "--out", "b.json", error="would lose 2 cases")


def test_python_api_runs_only_these_and_warns(project: Project) -> None:
    found = agentv_ci.run("evals/x.yaml", cwd=project.folder)
    assert [each.id for each in found.cases] == ["b"]
    assert found.report.filtered
    assert "'only' leaves out 2 other cases of the file" in found.warnings[0]
