"""`eval --list` and `compile --list`: what would run, before anything is asked."""

from __future__ import annotations

import json

import pytest

from tests.support.evals import tool
from tests.support.projects import GREETS, HELLO, Project

TWICE = {"id": "waves", "execution": {"target": "other", "repeat": 2}}
ALL = """\
place             case    target   trials
evals/x.yaml:1    greets  default       1
evals/x.yaml:1    waves   other         2
evals/y/z.yaml:1  parts   default       1
3 cases, 4 trials
"""


@pytest.fixture(autouse=True)
def documents(project: Project) -> None:
    touches = tool("touch ../asked; echo Hello")
    project.documents("parts", name="evals/y/z.yaml")
    project.documents("greets", TWICE, targets=(touches, {**GREETS, "name": "other"}))


def listed(project: Project, *arguments: str) -> list[tuple[str, str, int]]:
    """Return id, target and trials of the cases that would run."""
    done = project.run(*arguments, "--list", "--format", "json")
    assert done.code == 0, done
    return [(each["id"], each["target"], each["trials"]) for each in json.loads(done.out)["cases"]]


@pytest.mark.parametrize("command", ["eval", "compile"])
def test_cases_are_listed_and_nothing_is_asked_or_written(command: str, project: Project) -> None:
    before = project.files()
    done = project.run(command, "--list")
    assert (done.code, done.out, done.err) == (0, ALL, "")
    assert project.files() == before


@pytest.mark.parametrize(
    ("flags", "cases"),
    [
        (["--eval-id", "wav*"], [("waves", "other", 2)]),
        (
            ["--repeat", "3", "--target", "other"],
            [("greets", "other", 3), ("waves", "other", 3), ("parts", "other", 3)],
        ),
        (["--shard", "2/2", "evals/x.yaml"], [("greets", "default", 1)]),
        (["--only-changed", "plan.json"], [("waves", "other", 2)]),
        (["--resume", "r.jsonl"], [("waves", "other", 1), ("parts", "default", 1)]),
    ],
)
def test_list_has_what_is_selected(flags: list[str], cases: list[tuple[str, str, int]], project: Project) -> None:
    assert project.eval("--eval-id", "[gw]*").code == 0
    project.store("r.jsonl", *project.rows()[:2])
    plan = project.run("compile", "--eval-id", "[gp]*", "--out", "plan.json")
    assert plan.code == 0
    assert listed(project, "eval", *flags) == cases


def test_plan_is_listed_and_written_if_a_file_is_named(project: Project) -> None:
    assert listed(project, "compile", "--out", "plan.json", "--eval-id", "waves") == [("waves", "other", 2)]
    assert listed(project, "eval", "plan.json") == [("waves", "other", 2)]


def test_case_is_listed_at_its_row_and_without_what_it_does_not_have(project: Project) -> None:
    rows = {"id": "{{ n }}", "cases_from": {"file": "rows.jsonl"}, "skip": "later"}
    project.documents("greets", rows)
    project.write({"evals/rows.jsonl": '\n{"n": "one"}\n'})
    done = project.run("eval", "evals/x.yaml", "--list", "--format", "json")
    suite = "evals/x.yaml"
    greets = {"id": "greets", "suite": suite, "path": suite, "line": 1, "target": "default", "trials": 1}
    one = {**greets, "id": "one", "path": "evals/rows.jsonl", "line": 2, "trials": 0, "skip": "later"}
    assert json.loads(done.out) == {"cases": [greets, one]}


@pytest.mark.parametrize("named", [[], ["r.jsonl"]])
def test_only_cases_that_did_not_pass_run(named: list[str], project: Project) -> None:
    project.documents("greets", {"id": "leaves", "evaluators": [{**HELLO, "value": "Bye"}]}, "waves")
    assert project.run("eval", *(["--out", *named] if named else [])).code == 1
    failed = ["--failed", *named]
    assert [case for case, *_ in listed(project, "eval", "evals/x.yaml", *failed)] == ["leaves"]
    project.documents("greets", {"id": "leaves", "evaluators": [HELLO]}, "waves")
    done = project.run("eval", "evals/x.yaml", "--out", "again.jsonl", *failed)
    assert (done.code, [row["eval_id"] for row in project.rows("again.jsonl")]) == (0, ["leaves"])
    assert "2 of 3 cases skipped: passed, or not in " in done.out
    done = project.run("eval", "evals/x.yaml", "--failed", "again.jsonl")
    assert (done.code, "gate: nothing ran" in done.out) == (0, True)


def test_cases_that_a_stopped_run_did_not_begin_did_not_pass(project: Project) -> None:
    project.documents(
        {"id": "leaves", "evaluators": [{**HELLO, "value": "Bye"}]}, "greets", "waves", name="evals/x.yaml"
    )
    assert project.eval("--fail-fast").code == 1
    cases = listed(project, "eval", "evals/x.yaml", "--failed", "r.jsonl")
    assert [case for case, *_ in cases] == ["leaves", "greets", "waves"]


def test_other_targets_of_failed_cases_are_named(project: Project) -> None:
    project.documents("greets", {"id": "leaves", "evaluators": [{**HELLO, "value": "Bye"}]}, name="evals/x.yaml")
    project.targets(GREETS, {**GREETS, "name": "other"})
    assert project.run("eval", "evals/x.yaml", "--target", "other", "--out", "r.jsonl").code == 1
    again = ["eval", "evals/x.yaml", "--failed", "r.jsonl", "--list"]
    assert project.run(*again).err == "warning: in r.jsonl these cases failed for other; name it with --target\n"
    for named in ("other", "default"):
        assert project.run(*again, "--target", named).err == ""


def test_folder_is_not_results(project: Project) -> None:
    project.refuses("eval", "--failed", "evals/", error="is a directory put --failed last, or name a file")


@pytest.mark.parametrize(("named", "said"), [([], "there are no results in"), (["no.jsonl"], "No such file")])
def test_results_of_failed_cases_must_exist(named: list[str], said: str, project: Project) -> None:
    project.refuses("eval", "evals/x.yaml", "--failed", *named, error=said)
