"""`agentv-ci github run`: inputs of the action, and the folder that it leaves."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pytest

from tests.cli.builders import GREETS, LEAVES, PASSES, Job, stopped
from tests.support import clean_environment
from tests.support.evals import tool

COMMAND = re.compile(r"^\s*::|##\[", re.MULTILINE)
"""What the runner would take for a command."""


class TestResults:
    def test_folder_has_all_results(self, job: Job) -> None:
        done = job.step()
        assert done.code == 0
        found = {path.name for path in job.path("agentv-results").iterdir()}
        assert found == {"results.jsonl", "results.report.json", "junit.xml", "report.html", "plan.json", "run.json"}
        assert (job.ended["exit_code"], job.ended["verdict"]) == (0, "pass")

    def test_exit_code_is_that_of_the_run_unless_publishing_decides(self, job: Job) -> None:
        job.documents(GREETS, LEAVES, targets=(PASSES,))
        assert job.step().code == 1
        assert job.step("--exit-zero").code == 0
        assert (job.ended["exit_code"], job.ended["verdict"]) == (1, "fail")

    def test_bug_is_recorded(self, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
        def crash(*_: object, **__: object) -> None:
            raise ZeroDivisionError("by zero")

        monkeypatch.setattr("agentv_ci.app.documents.compile.compile_paths", crash)
        done = job.step()
        assert (done.code, "ZeroDivisionError" in done.out) == (70, False)
        assert "this is a bug in agentv-ci; please report it with the traceback below\n" in done.err
        assert "ZeroDivisionError: by zero\n" in done.err
        assert (job.ended["reason"], job.ended["verdict"]) == ("ZeroDivisionError: by zero", "error")

    def test_results_of_an_earlier_run_are_removed(self, job: Job) -> None:
        job.step()
        job.write({"agentv-results/notes.txt": "mine"})
        assert job.step("--validate-only").code == 0
        assert not job.left("results.jsonl").exists()
        assert job.left("notes.txt").read_text() == "mine"

    @pytest.mark.parametrize("name", ["results.report.json", "comment.md"])
    def test_files_that_are_not_from_a_run_are_kept(self, name: str, job: Job) -> None:
        """Otherwise a pull request could bring its own verdict."""
        job.write({f"agentv-results/{name}": "{}"})
        assert job.step("--exit-zero").code == 2
        assert not job.left("run.json").exists()

    @pytest.mark.parametrize("name", ["run.json", "results.report.json", "comment.md"])
    def test_folder_in_place_of_a_file_is_an_error(self, name: str, job: Job) -> None:
        job.write({"agentv-results/run.json": "{}"})
        job.left(name).unlink(missing_ok=True)
        job.left(name).mkdir()
        assert job.step("--exit-zero").code != 0

    @pytest.mark.parametrize("name", ["agentv-results", "agentv-results/part/1"])
    def test_link_is_not_followed(self, name: str, job: Job) -> None:
        job.path("elsewhere").mkdir()
        job.path("agentv-results").symlink_to("elsewhere")
        option = f"--results-dir={name}"
        assert (job.step("--exit-zero", option).code, job.publish(option).code) == (2, 2)
        assert [*job.path("elsewhere").iterdir()] == []

    @pytest.mark.parametrize(
        "option",
        [
            "--evals=agentv-results/plan.json",
            "--only-changed=evals/../agentv-results/plan.json",
            "--args=--only-changed agentv-results/plan.json",
            "--args=--resume agentv-results/results.jsonl",
            "--args=--baseline agentv-results/results.jsonl",
        ],
    )
    def test_inputs_are_never_removed(self, option: str, job: Job) -> None:
        job.step()
        before = {name: job.left(name).read_bytes() for name in ("plan.json", "results.jsonl")}
        done = job.step(option)
        assert (done.code, "it is an input" in done.err) == (2, True)
        assert {name: job.left(name).read_bytes() for name in before} == before
        assert job.step("--evals=agentv-results/plan.json", "--results-dir", "other").code == 0


class TestInputs:
    def test_paths_are_separated_by_lines(self, job: Job) -> None:
        job.documents({**GREETS, "id": "b"}, targets=(PASSES,), name="more evals/b.yaml")
        assert job.step("--evals", "evals/x.yaml\r\n  more evals\n\n").code == 0
        assert len(job.rows("agentv-results/results.jsonl")) == 2

    def test_environment_variables_set_inputs(self, job: Job) -> None:
        job.documents({**GREETS, "id": "b"}, targets=(PASSES,), name="evals/b.yaml")
        job.env |= {"AGENTV_EVALS": "evals/*.yaml", "AGENTV_SHARD": "1/2", "AGENTV_DRY_RUN": "false"}
        job.env |= {"AGENTV_ARGS": "", "AGENTV_WORKERS": ""}
        assert job.step().code == 0
        assert job.json("agentv-results/results.report.json")["shard"]["total"] == 2

    def test_targets_are_separated_by_lines(self, job: Job) -> None:
        job.targets(*({**PASSES, "name": name} for name in ("one", "two")))
        job.env |= {"AGENTV_TARGET": "one\n  two\n"}
        assert job.step().code == 0
        assert [row["target"] for row in job.rows("agentv-results/results.jsonl")] == ["one", "two"]

    @pytest.mark.parametrize(
        ("option", "error"),
        [
            ("--workers=0", "'--workers'"),
            ("--threshold=high", "'--threshold'"),
            ("--shard=3/2", "'--shard'"),
            ("--target=none", "unknown target 'none'"),
            ("--args=--what", "--what"),
            ("--args='", "No closing quotation"),
            ("--args=--out x.jsonl", "--out is set by the action"),
            ("--args=--junit=x", "--junit is set by the action"),
            ("--args=--markdown agentv-results/run.json", "--markdown would overwrite a file of the action"),
            ("--args=--report acme/csv=agentv-results/run.json", "--report would overwrite a file of the action"),
            ("--args=--help", "args: --help is not supported"),
            ("--args=--list", "args: --list is not supported"),
            ("--args=x -- y", "x"),
            ("--args=--", "--"),
            ("--args=--resume=agentv-results", "agentv-results"),
            ("--args=--shard 1/2 --shard=9/2", "'--shard'"),
            ("--args=--targets=\0", "--targets"),
            ("--evals= \n ", "evals is empty"),
            ("--evals=none/", "none"),
            (f"--evals={'x' * 5_000}", "xxx"),
            ("--env-file=none.env", "does not exist"),
            ("--baseline=none.json", "none.json"),
        ],
        ids=lambda value: value[:30],
    )
    def test_invalid_input_is_recorded(self, option: str, error: str, job: Job) -> None:
        done = job.step(option)
        assert done.code in (2, 3)
        assert error.replace("\0", "") in done.err
        assert error in job.ended["reason"] or "\0" in option
        assert job.ended["verdict"] in ("invalid", "nothing")
        assert not COMMAND.search(done.out + done.err)

    def test_args_are_split_as_in_a_shell(self, job: Job) -> None:
        job.documents(GREETS, LEAVES, targets=(PASSES,))
        assert job.step("--args", "--eval-id 'gree*' --include-trace").code == 0

    def test_existing_variables_take_precedence_over_a_file(self, job: Job) -> None:
        job.write({".ci.env": "A=file\nB=file\n"})
        job.targets(tool("echo Hello $A $B"))
        job.env["A"] = "set"
        assert job.step("--env-file", ".ci.env").code == 0
        assert job.rows("agentv-results/results.jsonl")[0]["candidate_answer"] == "Hello set file"

    @pytest.mark.parametrize(
        "content", [b"'A=B'=x\n", b"A=x\0y\n", b"\xff\xfe=\n", b"\0", b"A" * 1_000_000, b"export A='\n"]
    )
    def test_invalid_file_of_variables_is_not_a_bug(self, content: bytes, job: Job) -> None:
        job.path("x.env").write_bytes(content)
        assert job.step("--env-file", "x.env").code in (0, 1, 2)

    def test_input_that_is_not_utf_8_is_published(self, job: Job) -> None:
        job.step("--target=\udcff")
        assert job.publish().code == 2
        assert "unknown target" in job.summary

    @pytest.mark.skipif(sys.platform == "darwin", reason="file names are UTF-8 there")
    def test_file_name_that_is_not_utf_8_is_published(self, job: Job) -> None:
        job.path(f"evals/{os.fsdecode(bytes([255]))}.yaml").write_text(job.text("evals/x.yaml"))
        assert (job.step("--validate-only").code, job.publish().code) == (1, 1)
        assert "AV105" in job.summary


@pytest.mark.slow
class TestSignals:
    def test_killed_run_is_recorded(self, job: Job) -> None:
        job.targets({**PASSES, "delay_ms": 60000})
        stopped(job, "github", "run", when=job.left("plan.json").exists, by=signal.SIGKILL)
        assert job.publish().code == 70
        assert "the run was killed" in job.summary
        assert job.step("--validate-only").code == 0

    def test_terminated_run_keeps_finished_rows(self, job: Job) -> None:
        job.documents({**GREETS, "id": "b"}, name="evals/y.yaml", target="slow")
        job.targets(PASSES, tool("sleep 60", name="slow"))
        rows = job.left("results.jsonl")
        arguments = ["github", "run", "--exit-zero"]
        stopped(job, *arguments, when=lambda: rows.exists() and bool(rows.read_text()), by=signal.SIGTERM)
        assert job.ended["exit_code"] == 130
        assert (job.publish().code, job.outputs["passed"], "interrupted" in job.summary) == (130, "1", True)

    def test_signal_before_the_run_is_recorded(self, job: Job) -> None:
        script = (
            "import os; import agentv_ci.app.documents.compile as compiling; from agentv_ci.cli import run\n"
            f"compiling.compile_paths = lambda *_, **__: os.kill(os.getpid(), {int(signal.SIGTERM)})\n"
            "raise SystemExit(run(['github', 'run', '--exit-zero']))\n"
        )
        command = [sys.executable, "-c", script]
        subprocess.run(command, cwd=job.folder, env=clean_environment(), capture_output=True, check=False)
        assert job.publish().code == 130


class TestResultsOfAnotherTool:
    LINES = '{"id": "a", "passed": true}\n{"id": "b", "passed": false}\n'

    def test_they_are_judged_and_nothing_runs(self, job: Job) -> None:
        job.write({"theirs.jsonl": self.LINES})
        done = job.step("--results", "theirs.jsonl", "--results-from", "jsonl")
        found = {path.name for path in job.path("agentv-results").iterdir()}
        assert found == {"results.jsonl", "results.report.json", "junit.xml", "report.html", "run.json"}
        assert (done.code, job.ended["verdict"]) == (1, "fail")
        assert [row["eval_id"] for row in job.rows("agentv-results/results.jsonl")] == ["a", "b"]

    def test_inputs_of_the_gate_apply(self, job: Job) -> None:
        job.write({"theirs.jsonl": self.LINES})
        flags = ["--results", "theirs.jsonl", "--results-from", "jsonl", "--min-pass-rate", "0.5", "--workers", "4"]
        assert job.step(*flags).code == 0

    @pytest.mark.parametrize(
        ("flags", "error"),
        [
            (["--results-from", ""], "'' is not one of"),
            (["--results-from", "jsonl", "--validate-only"], "cannot be combined with validate-only"),
            (["--results-from", "jsonl", "--args", "--out x.jsonl"], "--out is set by the action"),
            (["--results-from", "junit"], "not XML"),
        ],
    )
    def test_wrong_inputs_are_recorded(self, flags: list[str], error: str, job: Job) -> None:
        job.write({"theirs.jsonl": self.LINES})
        done = job.step("--results", "theirs.jsonl", *flags)
        assert (done.code, job.ended["verdict"]) == (2, "invalid"), done
        assert error in job.ended["reason"]
