"""The command `report`: which rows it takes, and which files it writes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.report.renderers import sarif
from agentv_ci.report.view import RunView
from agentv_ci.results.jsonl import encode
from tests.support import CommandResult
from tests.support.projects import Project
from tests.support.runs import case, row

COMMAND = re.compile(r"^\s*::", re.MULTILINE)
"""What the runner of GitHub Actions reads as a command, on both streams."""


MISSES = {"name": "c", "type": "contains", "value": "Yes"}


@pytest.fixture
def project(repository: Path) -> Project:
    """A repository with rows of a case that passed, in `r.jsonl`, without a run report."""
    project = Project(repository)
    project.write({"r.jsonl": encode(row())})
    return project


def documents(project: Project, *ids: str, names: Sequence[str], suite: str = "evals/a.test.yaml") -> None:
    """Write an eval file whose cases fail, and targets with these names."""
    targets = tuple({"name": name, "provider": "mock", "response": "No"} for name in names)
    project.documents(*ids, targets=targets, name=suite, target=names[0], evaluators=[MISSES])


def report(project: Project, *arguments: str, rows: str = "r.jsonl", **env: str) -> CommandResult:
    project.env |= env
    return project.run("report", rows, *arguments)


def evaluated(project: Project, *arguments: str, answer: str = "No") -> int:
    """Run a case that passes when the answer is "Yes"."""
    project.documents(
        "one", targets=({"name": "default", "provider": "mock", "response": answer},), evaluators=[MISSES]
    )
    return project.eval(*arguments).code


class TestRows:
    @pytest.mark.parametrize(
        "given", [{"schema_version": 2}, {"new_field": 1}, {"verdict": "great"}, {"::set-output name=x::y": 1}]
    )
    @pytest.mark.parametrize("before", [0, 1])
    def test_invalid_row_is_refused(self, project: Project, given: dict[str, Any], before: int) -> None:
        bad = {**given, **json.loads(encode(row())), **given}
        project.write({"r.jsonl": encode(row(of=case("first"))) * before + json.dumps(bad) + "\n"})
        done = report(project)
        assert done.code == 2
        assert f"r.jsonl:{before + 1}" in done.err
        assert not re.search(r"pydantic|ResultRow|input_value", done.err)
        assert not COMMAND.search(done.err)

    def test_run_report_of_another_version_is_refused(self, project: Project) -> None:
        assert evaluated(project) == 1
        project.write({"r.report.json": project.text("r.report.json").replace("report-v1", "report-v2")})
        assert report(project).code == 2

    def test_rows_from_a_pipe(self, project: Project) -> None:
        reading, writing = os.pipe()
        os.write(writing, b"".join(encode(row(of=case(each))).encode() for each in ("one", "two")))
        os.close(writing)
        try:
            done = report(project, rows=f"/dev/fd/{reading}")
        finally:
            os.close(reading)
        assert done.code == 2 or "2 cases: 2 passed" in done.out

    @pytest.mark.parametrize("is_dry", [True, False])
    def test_dry_run_is_known_from_the_rows_or_the_report(self, project: Project, is_dry: bool) -> None:
        texts = []
        for arguments in (["--dry-run"], []) if is_dry else ([], ["--dry-run"]):
            evaluated(project, *arguments, answer="No" if is_dry else "Yes")
            texts.append(project.text("r.report.json"))
        project.write({"r.report.json": texts[0]})
        assert "dry run" in report(project).out.partition("gate: not passed")[2]


class TestRunnerCommands:
    @pytest.mark.parametrize("target", ["default", "missing"])
    def test_names_cannot_command_the_runner(self, project: Project, target: str) -> None:
        documents(project, "::add-mask::e", names=("default", "a\n::add-mask::e"))
        done = project.eval("--verbose", "--target", target)
        assert done.code == (1 if target == "default" else 2)
        assert not COMMAND.search(done.err)

    def test_repository_need_not_be_unicode(self, project: Project) -> None:
        known = {"GITHUB_SERVER_URL": "https://x", "GITHUB_REPOSITORY": "o/\udcff", "GITHUB_SHA": "a" * 40}
        done = report(project, "--markdown", "m.md", GITHUB_ACTIONS="true", **known)
        assert done.code == 1
        assert "bug" not in done.err


class TestFiles:
    def test_merging_into_a_hard_link_of_the_results_keeps_them(self, project: Project) -> None:
        project.path("all.jsonl").hardlink_to(project.path("r.jsonl"))
        report(project, "--out", "all.jsonl")
        assert project.text("r.jsonl") == encode(row())

    def test_failed_merge_keeps_the_earlier_one(self, project: Project) -> None:
        project.write({"r.jsonl": f"{encode(row())}{{bad\n", "all.jsonl": "merged before\n"})
        assert report(project, "--out", "all.jsonl").code == 2
        assert project.text("all.jsonl") == "merged before\n"

    def test_eval_file_is_not_overwritten(self, project: Project) -> None:
        assert evaluated(project) == 1
        before = project.text("evals/x.yaml")
        report(project, "--junit", "evals/x.yaml")
        assert project.text("evals/x.yaml") == before

    def test_link_in_place_of_the_scratch_file_is_not_followed(self, project: Project) -> None:
        project.write({"precious": "mine"})
        project.path(f".m.md.{os.getpid()}.new").symlink_to("precious")
        report(project, "--markdown", "m.md")
        assert project.text("precious") == "mine"

    def test_written_reports_are_listed(self, project: Project) -> None:
        done = report(project, "--junit", ".s.sarif.new", "--sarif", "s.sarif", "--markdown", "/proc/none/m.md")
        assert "junit: .s.sarif.new" in done.out
        assert (project.folder / ".s.sarif.new").is_file()
        assert "\nmarkdown: /proc/none/m.md" not in done.out

    def test_interrupted_report_leaves_nothing(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(_: RunView) -> Iterator[bytes]:
            yield b"half"
            raise KeyboardInterrupt

        monkeypatch.setattr(sarif, "render", interrupted)
        assert report(project, "--sarif", "s.sarif").code == 130
        assert not list(project.folder.glob(".s.sarif*"))

    def test_pipe_gets_only_the_last_report(self, project: Project) -> None:
        assert evaluated(project, answer="Yes") == 0
        os.mkfifo(project.folder / "pipe")
        read: list[str] = []

        def listen() -> None:
            while not read or not read[-1].endswith("end"):
                read.append((project.folder / "pipe").read_text("utf-8"))

        reader = threading.Thread(target=listen)
        reader.start()
        try:
            assert report(project, "--markdown", "pipe", "--junit", "/dev/full").code == 4
        finally:
            (project.folder / "pipe").write_text("end", "utf-8")
            reader.join(timeout=10)
        assert "Evaluations: passed" not in "".join(read)
        assert "Evaluations: no verdict" in "".join(read)

    def test_job_summary_is_appended_to(self, project: Project) -> None:
        project.write({"summary.md": "# Before\n"})
        report(project, "--markdown", "summary.md", GITHUB_STEP_SUMMARY=str(project.path("summary.md")))
        assert project.text("summary.md").startswith("# Before\n")

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--markdown", "x", "--sarif", "./x"],
            ["--markdown", "r.jsonl"],
            ["--out", "sym.jsonl"],
            ["--junit", "evals"],
            ["--markdown", "-"],
        ],
        ids=" ".join,
    )
    def test_impossible_outputs_are_refused(self, project: Project, arguments: list[str]) -> None:
        project.path("evals").mkdir()
        project.path("sym.jsonl").symlink_to("r.jsonl")
        assert report(project, *arguments).code == 2
        assert project.text("r.jsonl") == encode(row())
        assert not project.path("-").exists()


@pytest.mark.parametrize(
    ("ids", "suite", "target"),
    [
        (["it's [a] *?\\ $(x) {}"], "evals/a 'b' [c].test.yaml", "-x y"),
        (["one"], "-x.test.yaml", "default"),
        (["one"], "evals/a\n[b].test.yaml", "default"),
        (["a\xa0b", "a b"], "evals/a.test.yaml", "my\xa0model"),
    ],
    ids=["quotes", "dash", "line break", "no-break space"],
)
def test_command_in_a_report_reruns_that_case_alone(project: Project, ids: list[str], suite: str, target: str) -> None:
    documents(project, *ids, suite=suite, names=(target, "other"))
    assert project.run("eval", f"./{suite}", "--out", "r.jsonl", "--markdown", "m.md").code == 1
    command, *_ = re.findall(r"```sh\nagentv-ci (.*?)\n```", project.text("m.md"), re.DOTALL)
    words = subprocess.run(
        ["sh", "-c", f"printf '%s\\0' {command}"], cwd=project.folder, capture_output=True, check=True
    )
    arguments = words.stdout.decode().split("\0")[:-1]
    assert project.run(*arguments, "--out", "again.jsonl").code == 1
    assert [(each["eval_id"], each["target"]) for each in project.rows("again.jsonl")] == [(ids[0], target)]
