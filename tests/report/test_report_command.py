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

from agentv_ci.contracts.results import ResultRow
from agentv_ci.report.renderers import sarif
from agentv_ci.report.view import RunView
from agentv_ci.results.jsonl import encode
from tests.support import CommandResult, run_command, write
from tests.support.runs import case, row

COMMAND = re.compile(r"^\s*::", re.MULTILINE)
"""What the runner of GitHub Actions reads as a command, on both streams."""


def documents(
    folder: Path, *ids: str, suite: str = "evals/a.test.yaml", targets: Sequence[str] = ("default",), answer: str = "No"
) -> None:
    """Write an eval file whose cases expect "Yes", and targets that give an answer."""
    asked = {"expected_outcome": "x", "expected_messages": [], "input_messages": [{"role": "user", "content": "q"}]}
    checks = [{"name": "c", "type": "contains", "value": "Yes"}]
    evals = {
        "$schema": "agentv-eval-v2",
        "execution": {"target": targets[0], "evaluators": checks},
        "evalcases": [{**asked, "id": each} for each in ids or ("one",)],
    }
    listed = [{"name": name, "provider": "mock", "response": answer} for name in targets]
    mocks = {"$schema": "agentv-targets-v2.2", "targets": listed}
    write(folder, {suite: json.dumps(evals), ".agentv/targets.yaml": json.dumps(mocks)})


def results(folder: Path, *rows: ResultRow) -> Path:
    """Write rows without a run report."""
    write(folder, {"r.jsonl": "".join(map(encode, rows or [row()]))})
    return folder / "r.jsonl"


def report(folder: Path, *arguments: str, rows: str = "r.jsonl", **env: str) -> CommandResult:
    return run_command("report", rows, *arguments, cwd=folder, env=env)


def evaluated(folder: Path, *arguments: str, answer: str = "No") -> CommandResult:
    documents(folder, answer=answer)
    return run_command("eval", "evals", "--out", "r.jsonl", *arguments, cwd=folder)


class TestRows:
    @pytest.mark.parametrize(
        "given", [{"schema_version": 2}, {"new_field": 1}, {"verdict": "great"}, {"::set-output name=x::y": 1}]
    )
    @pytest.mark.parametrize("before", [0, 1])
    def test_invalid_row_is_refused(self, repository: Path, given: dict[str, Any], before: int) -> None:
        bad = {**given, **json.loads(encode(row())), **given}
        write(repository, {"r.jsonl": encode(row(of=case("first"))) * before + json.dumps(bad) + "\n"})
        done = report(repository)
        assert done.code == 2
        assert f"r.jsonl:{before + 1}" in done.err
        assert not re.search(r"pydantic|ResultRow|input_value", done.err)
        assert not COMMAND.search(done.err)

    def test_run_report_of_another_version_is_refused(self, repository: Path) -> None:
        assert evaluated(repository).code == 1
        path = repository / "r.report.json"
        path.write_text(path.read_text("utf-8").replace("report-v1", "report-v2"), "utf-8")
        assert report(repository).code == 2

    def test_rows_from_a_pipe(self, repository: Path) -> None:
        reading, writing = os.pipe()
        os.write(writing, b"".join(encode(row(of=case(each))).encode() for each in ("one", "two")))
        os.close(writing)
        try:
            done = report(repository, rows=f"/dev/fd/{reading}")
        finally:
            os.close(reading)
        assert done.code == 2 or "2 cases: 2 passed" in done.out

    @pytest.mark.parametrize("is_dry", [True, False])
    def test_dry_run_is_known_from_the_rows_or_the_report(self, repository: Path, is_dry: bool) -> None:
        texts = []
        for arguments in (["--dry-run"], []) if is_dry else ([], ["--dry-run"]):
            evaluated(repository, *arguments, answer="No" if is_dry else "Yes")
            texts.append((repository / "r.report.json").read_text("utf-8"))
        write(repository, {"r.report.json": texts[0]})
        assert "dry run" in report(repository).out.partition("gate: not passed")[2]


class TestRunnerCommands:
    @pytest.mark.parametrize("target", ["default", "missing"])
    def test_names_cannot_command_the_runner(self, repository: Path, target: str) -> None:
        documents(repository, "::add-mask::e", targets=("default", "a\n::add-mask::e"))
        arguments = ("eval", "evals", "--verbose", "--out", "r.jsonl", "--target", target)
        done = run_command(*arguments, cwd=repository)
        assert done.code == (1 if target == "default" else 2)
        assert not COMMAND.search(done.err)

    def test_repository_need_not_be_unicode(self, repository: Path) -> None:
        results(repository)
        known = {"GITHUB_SERVER_URL": "https://x", "GITHUB_REPOSITORY": "o/\udcff", "GITHUB_SHA": "a" * 40}
        done = report(repository, "--markdown", "m.md", GITHUB_ACTIONS="true", **known)
        assert done.code == 1
        assert "bug" not in done.err


class TestFiles:
    def test_merging_into_a_hard_link_of_the_results_keeps_them(self, repository: Path) -> None:
        path = results(repository, row(of=case("one")), row(of=case("two")))
        before = path.read_bytes()
        (repository / "all.jsonl").hardlink_to(path)
        report(repository, "--out", "all.jsonl")
        assert path.read_bytes() == before

    def test_failed_merge_keeps_the_earlier_one(self, repository: Path) -> None:
        write(repository, {"r.jsonl": f"{encode(row())}{{bad\n", "all.jsonl": "merged before\n"})
        assert report(repository, "--out", "all.jsonl").code == 2
        assert (repository / "all.jsonl").read_text("utf-8") == "merged before\n"

    def test_eval_file_is_not_overwritten(self, repository: Path) -> None:
        assert evaluated(repository).code == 1
        before = (repository / "evals/a.test.yaml").read_bytes()
        report(repository, "--junit", "evals/a.test.yaml")
        assert (repository / "evals/a.test.yaml").read_bytes() == before

    def test_link_in_place_of_the_scratch_file_is_not_followed(self, repository: Path) -> None:
        results(repository)
        write(repository, {"precious": "mine"})
        (repository / f".m.md.{os.getpid()}.new").symlink_to("precious")
        report(repository, "--markdown", "m.md")
        assert (repository / "precious").read_text("utf-8") == "mine"

    def test_written_reports_are_listed(self, repository: Path) -> None:
        results(repository)
        done = report(repository, "--junit", ".s.sarif.new", "--sarif", "s.sarif", "--markdown", "r.jsonl/m.md")
        assert "junit: .s.sarif.new" in done.out
        assert (repository / ".s.sarif.new").is_file()
        assert "\nmarkdown: r.jsonl/m.md" not in done.out

    def test_interrupted_report_leaves_nothing(self, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(_: RunView) -> Iterator[bytes]:
            yield b"half"
            raise KeyboardInterrupt

        results(repository)
        monkeypatch.setattr(sarif, "render", interrupted)
        assert report(repository, "--sarif", "s.sarif").code == 130
        assert not list(repository.glob(".s.sarif*"))

    def test_pipe_gets_only_the_last_report(self, repository: Path) -> None:
        assert evaluated(repository, answer="Yes").code == 0
        os.mkfifo(repository / "pipe")
        read: list[str] = []

        def listen() -> None:
            while not read or not read[-1].endswith("end"):
                read.append((repository / "pipe").read_text("utf-8"))

        reader = threading.Thread(target=listen)
        reader.start()
        try:
            assert report(repository, "--markdown", "pipe", "--junit", "/dev/full").code == 4
        finally:
            (repository / "pipe").write_text("end", "utf-8")
            reader.join(timeout=10)
        assert "Evaluations: passed" not in "".join(read)
        assert "Evaluations: no verdict" in "".join(read)

    def test_job_summary_is_appended_to(self, repository: Path) -> None:
        results(repository)
        write(repository, {"summary.md": "# Before\n"})
        report(repository, "--markdown", "summary.md", GITHUB_STEP_SUMMARY=str(repository / "summary.md"))
        assert (repository / "summary.md").read_text("utf-8").startswith("# Before\n")

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
    def test_impossible_outputs_are_refused(self, repository: Path, arguments: list[str]) -> None:
        before = results(repository).read_bytes()
        (repository / "evals").mkdir()
        (repository / "sym.jsonl").symlink_to("r.jsonl")
        assert report(repository, *arguments).code == 2
        assert (repository / "r.jsonl").read_bytes() == before
        assert not (repository / "-").exists()


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
def test_command_in_a_report_reruns_that_case_alone(repository: Path, ids: list[str], suite: str, target: str) -> None:
    documents(repository, *ids, suite=suite, targets=(target, "other"))
    assert run_command("eval", f"./{suite}", "--out", "r.jsonl", "--markdown", "m.md", cwd=repository).code == 1
    command, *_ = re.findall(r"```sh\nagentv-ci (.*?)\n```", (repository / "m.md").read_text("utf-8"), re.DOTALL)
    words = subprocess.run(["sh", "-c", f"printf '%s\\0' {command}"], cwd=repository, capture_output=True, check=True)
    arguments = words.stdout.decode().split("\0")[:-1]
    assert run_command(*arguments, "--out", "again.jsonl", cwd=repository).code == 1
    rows = [json.loads(line) for line in (repository / "again.jsonl").read_text("utf-8").splitlines()]
    assert [(each["eval_id"], each["target"]) for each in rows] == [(ids[0], target)]
