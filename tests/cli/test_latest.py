"""The latest results: where runs leave them, and commands that read them by default."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from agentv_ci.app.run.latest import latest_results, link_latest
from tests.support import write
from tests.support.evals import tool
from tests.support.projects import Project

RESULTS = ".agentv/results"
LATEST, REPORT = f"{RESULTS}/latest.jsonl", f"{RESULTS}/latest.report.json"


@pytest.fixture(autouse=True)
def documents(project: Project) -> None:
    project.documents("greets", "waves")
    project.write({"deep/down/x": ""})


def files_of_runs(project: Project) -> list[Path]:
    return sorted(path for path in project.path(RESULTS).glob("eval_*") if ".report" not in path.name)


@pytest.mark.parametrize("cwd", [".", "deep/down"])
@pytest.mark.parametrize("form", ["jsonl", "yaml"])
def test_runs_anywhere_in_a_repository_leave_the_latest_results_at_its_root(
    cwd: str, form: str, project: Project
) -> None:
    up = "../../" if cwd != "." else ""
    for _ in range(2):
        assert project.run("eval", f"{up}evals", "--output-format", form, cwd=cwd).code == 0
    _, last = files_of_runs(project)
    assert project.path(f"{RESULTS}/latest.{form}").resolve() == last
    assert project.path(REPORT).resolve() == last.with_suffix(".report.json")
    for command in (["report"], ["check", "--validator", "outlier_detection"], ["baseline", "accept"], ["compare"]):
        done = project.run(*command, cwd=cwd)
        assert (done.code, f"{RESULTS}/{last.name}" in done.err) == (0, True), done
    assert project.json(".agentv/baseline.json")["cases"][0]["id"] == "greets"
    assert project.run("rescore", cwd=cwd).code == 0
    assert last.with_suffix(f".rescored.{'jsonl'}").exists()
    assert project.path(f"{RESULTS}/latest.{form}").resolve() == last


def test_a_run_in_another_format_replaces_the_latest_results(project: Project) -> None:
    for form in ("yaml", "jsonl", "yaml"):
        assert project.run("eval", "--output-format", form).code == 0
    assert {path.name for path in project.path(RESULTS).glob("latest*")} == {"latest.yaml", "latest.report.json"}


def test_results_that_are_named_elsewhere_are_not_the_latest(project: Project) -> None:
    assert project.eval().code == 0
    assert not project.path(".agentv").exists()
    error = f"there are no results in '{RESULTS}' run `agentv-ci eval`, or name a results file"
    for command in (["report"], ["check", "--validator", "outlier_detection"], ["baseline", "accept"], ["rescore"]):
        project.refuses(*command, error=error)
    project.refuses("compare", "r.jsonl", error=error)


def test_part_of_the_cases_does_not_shrink_a_baseline(project: Project) -> None:
    assert project.run("eval").code == project.run("baseline", "accept").code == 0
    before = project.text(".agentv/baseline.json")
    assert project.run("eval", "--eval-id", "greets").code == 0
    error = "'.agentv/baseline.json' would lose 1 case run all cases, or write another file with --out and --partial"
    project.refuses("baseline", "accept", error=error)
    assert project.text(".agentv/baseline.json") == before
    assert project.run("baseline", "accept", "--out", "greets.json", "--partial").code == 0
    assert project.run("baseline", "accept", "--out", "greets.json").code == 0


def test_a_dry_run_leaves_no_latest_results(project: Project) -> None:
    assert project.run("eval", "--dry-run").code == 0
    assert not project.path(LATEST).is_symlink()


@pytest.mark.parametrize("skips", [["--failed"], ["--only-changed", "plan.json"]])
def test_a_run_without_cases_leaves_the_latest_results(skips: list[str], project: Project) -> None:
    assert project.run("compile", "--out", "plan.json").code == 0
    assert project.run("eval").code == 0
    latest = project.path(LATEST).resolve()
    project.run("eval", *skips)
    assert project.path(LATEST).resolve() == latest


def test_results_that_cannot_be_linked_leave_the_latest_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError

    for name in ("eval_1.jsonl", "eval_2.jsonl"):
        write(tmp_path, {f"{RESULTS}/{name}": "{}"})
    link_latest(tmp_path / RESULTS / "eval_1.jsonl")
    monkeypatch.setattr(Path, "symlink_to", fail)
    link_latest(tmp_path / RESULTS / "eval_2.jsonl")
    assert latest_results(tmp_path) == tmp_path / RESULTS / "eval_1.jsonl"
    monkeypatch.setattr(Path, "readlink", fail)
    assert latest_results(tmp_path) is None


def test_a_file_that_is_called_like_the_latest_results_stays(project: Project) -> None:
    assert project.run("eval", "--out", LATEST).code == 0
    before = project.files()
    assert project.run("eval").code == 0
    assert before.items() <= project.files().items()
    assert project.run("report").err == f"latest results: {LATEST}\n"


def test_results_are_the_latest_from_their_first_row_on(project: Project) -> None:
    copies = f"cat ../{LATEST} > ../seen.jsonl 2> ../none; echo Hello"
    project.documents({"id": "greets"}, {"id": "waves"}, targets=(tool(copies),))
    assert project.run("eval").code == 0
    assert [row["eval_id"] for row in project.rows("seen.jsonl")] == ["greets"]


class TestResume:
    def test_the_latest_results_are_the_default(self, project: Project) -> None:
        assert project.run("eval").code == 0
        (results,) = files_of_runs(project)
        results.write_text(json.dumps(project.rows(LATEST)[0]) + "\n")
        done = project.run("eval", "evals", "--resume")
        assert (done.code, f"1 of 2 trials already in '{results}'" in done.err) == (0, True)
        assert files_of_runs(project) == [results]
        assert [row["eval_id"] for row in project.rows(LATEST)] == ["greets", "waves"]

    @pytest.mark.parametrize("flag", ["--resume", "--resume=r.jsonl"])
    def test_a_run_begins_anew_where_there_is_nothing_to_resume(self, flag: str, project: Project) -> None:
        done = project.run("eval", flag)
        missing = LATEST if flag == "--resume" else "r.jsonl"
        assert done.err.splitlines()[0] == f"'{project.path(missing)}' does not exist yet: everything runs"
        assert len(project.rows(missing)) == 2

    def test_a_folder_after_the_option_is_no_results_file(self, project: Project) -> None:
        project.refuses(
            "eval", "--resume", "evals", error="--resume: 'evals' is a directory put --resume last, or name a file"
        )


@pytest.mark.parametrize("flags", [(), ("--dry-run",), ("--resume",)])
def test_default_results_are_kept_out_of_git(flags: tuple[str, ...], project: Project) -> None:
    git = ("git", "-C", str(project.folder))
    subprocess.run([*git, "init", "--quiet"], check=True)
    project.run("eval", *flags)
    subprocess.run([*git, "add", "--all"], check=True)
    staged = subprocess.run([*git, "ls-files"], check=True, capture_output=True, text=True).stdout
    assert ("evals/" in staged, ".agentv/results" in staged) == (True, False)
