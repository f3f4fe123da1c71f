"""The two steps of the action as commands, against agents, pull requests and inputs that mean harm."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentv_ci.cli import run
from tests.action import events
from tests.cli.test_github import EVALS, FAILING, TARGETS, Job
from tests.publish.test_checkout import git
from tests.publish.workflows import HEAD
from tests.support import REPOSITORY, clean_environment, has_ended, run_process, write

COMMAND = re.compile(
    r"^\s*::(?!(error|warning|notice) |stop-commands::[0-9a-f]{32}$|[0-9a-f]{32}::$)|##\[", re.MULTILINE
)
"""What the runner would take for a command, except what is meant so."""
KEPT = ("run.json", "results.report.json", "results.jsonl", "plan-diff.json", "diagnostics.json")

NONSENSE = ("[]", "null", "\n", "NaN", "[" * 100_000, '{"$schema": 5}', '{"$schema": "\\ud800"}', '{"$schema": 1e999}')


@pytest.fixture
def job(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job for a pull request of the same repository, one of whose two cases fails."""
    monkeypatch.chdir(repository)
    write(repository, {"evals/a.yaml": EVALS + FAILING, "targets.yaml": TARGETS})
    found = Job(repository, monkeypatch)
    found.on("pull_request", events.pull_request(HEAD))
    return found


def agent(script: str) -> str:
    """Targets whose agent is a script."""
    target = {"name": "default", "provider": "cli", "command_template": f"{script} {{PROMPT_FILE}}"}
    return json.dumps({"$schema": "agentv-targets-v2.2", "targets": [target]})


def left(job: Job, name: str) -> Path:
    return job.folder / "agentv-results" / name


def edit(path: Path, change: Callable[[Any], Any]) -> None:
    """Change a file as an agent could that outlives its step."""
    said = (
        [json.dumps(change(json.loads(line))) for line in path.read_text("utf-8").splitlines()]
        if (path.suffix == ".jsonl")
        else [json.dumps(change(json.loads(path.read_text("utf-8"))))]
    )
    path.write_text("\n".join(said) + "\n", "utf-8")


class TestForgedFiles:
    @pytest.mark.parametrize("name", KEPT)
    def test_nonsense_is_refused(self, job: Job, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        run(["github", "run"])
        for said in NONSENSE:
            left(job, name).write_text(said)
            capsys.readouterr()
            assert job.publish("--comment=never") == 2
            assert not COMMAND.search("".join(capsys.readouterr()))

    def test_report_without_a_schema_is_refused(self, job: Job) -> None:
        run(["github", "run"])
        left(job, "results.report.json").write_text("{}")
        assert job.publish() == 2

    @pytest.mark.parametrize("name", KEPT)
    def test_what_is_no_file_of_ours_is_not_read(self, job: Job, name: str) -> None:
        run(["github", "run"])
        path = left(job, name)
        path.unlink(missing_ok=True)
        path.symlink_to("/proc/self/environ")
        assert job.publish() == 2
        path.unlink()
        os.mkfifo(path)
        assert job.publish() == 2
        path.unlink()
        path.mkdir()
        assert job.publish() == 2

    def test_giant_is_not_read(self, job: Job) -> None:
        run(["github", "run"])
        with left(job, "run.json").open("r+b") as file:
            file.truncate(65 * 1024 * 1024)
        assert job.publish() == 2

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("results.report.json", {"cost_usd": 1e308}),
            ("results.report.json", {"unpriced_models": ["m" * 100_000] * 20}),
            ("results.jsonl", {"suite": "/proc/self/environ"}),
            ("results.jsonl", {"source": {"path": "/etc/passwd\n::error::x", "line": 10**18}}),
            ("run.json", {"root": "/proc/self"}),
            ("run.json", {"root": "", "reason": "x" * 1_000_000, "hint": "##[error]x"}),
        ],
    )
    def test_strange_values_are_only_told(
        self, job: Job, name: str, change: dict[str, Any], capsys: pytest.CaptureFixture[str]
    ) -> None:
        run(["github", "run"])
        edit(left(job, name), lambda data: {**data, **change})
        capsys.readouterr()
        assert job.publish("--comment=never") == 1
        assert not COMMAND.search("".join(capsys.readouterr()))
        assert (job.folder / ".git/summary").stat().st_size < 1_000_000

    def test_output_names_no_link(self, job: Job) -> None:
        run(["github", "run"])
        left(job, "plan.json").unlink()
        left(job, "plan.json").symlink_to("/proc/self/environ")
        job.publish("--comment=never")
        assert job.outputs["plan"] == ""

    def test_two_words_are_not_a_pass(self, job: Job) -> None:
        run(["github", "run"])
        edit(left(job, "run.json"), lambda data: {**data, "exit_code": 0, "verdict": "pass"})
        assert job.publish() != 0

    def test_comment_that_cannot_be_kept_hides_no_annotation(
        self, job: Job, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(job.folder, {"targets.yaml": agent("mkdir -p ../agentv-results/comment.md; echo hello")})
        run(["github", "run"])
        capsys.readouterr()
        job.publish("--comment=never")
        assert "::error file=evals/a.yaml" in capsys.readouterr().out


class TestPlanted:
    """What lies in a checkout was written by the pull request's author."""

    def test_results_of_a_pull_request_are_removed(self, job: Job) -> None:
        write(job.folder, {"evals/a.yaml": EVALS})
        run(["github", "run"])
        write(job.folder, {"evals/a.yaml": EVALS.replace("evaluators:", "evalutors:")})
        assert run(["github", "run", "--exit-zero"]) == 0
        assert job.publish() == 2
        assert job.outputs["verdict"] == "invalid"

    @pytest.mark.parametrize("name", ["run.json", "results.report.json", "comment.md"])
    def test_folder_in_place_of_a_file_stops_the_step(self, job: Job, name: str) -> None:
        write(job.folder, {"agentv-results/run.json": "{}"})
        left(job, name).unlink(missing_ok=True)
        left(job, name).mkdir()
        assert run(["github", "run", "--exit-zero"]) != 0

    def test_nothing_is_published_when_nothing_ran(self) -> None:
        action = yaml.safe_load((REPOSITORY / "action.yml").read_text("utf-8"))
        (condition,) = (step["if"] for step in action["runs"]["steps"] if step.get("id") == "publish")
        assert "skipped" in condition or "steps.run.outcome == 'success'" in condition

    def test_results_of_another_run_are_not_published(self, job: Job) -> None:
        write(job.folder, {"evals/a.yaml": EVALS})
        run(["github", "run"])
        job.patch.setenv("GITHUB_RUN_ID", "6")
        assert job.publish() != 0


class TestInputs:
    @pytest.mark.parametrize("said", [b"'A=B'=x\n", b"A=x\0y\n"])
    def test_file_with_variables_that_are_none(self, job: Job, said: bytes) -> None:
        (job.folder / "x.env").write_bytes(said)
        assert run(["github", "run", "--env-file", "x.env"]) in (1, 2)

    @pytest.mark.parametrize("said", [b"\xff\xfe=\n", b"\0", b"A" * 1_000_000, b"export A='\n"])
    def test_file_that_is_hardly_one(self, job: Job, said: bytes) -> None:
        (job.folder / "x.env").write_bytes(said)
        assert run(["github", "run", "--env-file", "x.env"]) in (1, 2)

    def test_help_is_no_bug(self, job: Job) -> None:
        assert run(["github", "run", "--args=--help"]) != 70

    def test_endless_path_is_said(self, job: Job) -> None:
        run(["github", "run", f"--evals={'x' * 5_000}", "--exit-zero"])
        assert job.left("run.json")["verdict"] == "invalid"

    @pytest.mark.parametrize(
        "words", ["x -- y", "--", "--resume=agentv-results", "--targets=\0", "--shard 1/2 --shard=9/2"]
    )
    def test_args_that_mean_harm_are_said(self, job: Job, words: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["github", "run", f"--args={words}", "--exit-zero"]) == 0
        assert job.left("run.json")["exit_code"] == 2
        assert not COMMAND.search("".join(capsys.readouterr()))

    @pytest.mark.parametrize(
        "option",
        [
            "--only-changed=evals/../agentv-results/plan.json",
            "--args=--only-changed agentv-results/plan.json",
            "--args=--resume agentv-results/results.jsonl",
            "--args=--baseline agentv-results/results.jsonl",
        ],
    )
    def test_input_is_not_removed_however_it_is_named(self, job: Job, option: str) -> None:
        run(["github", "run"])
        before = {name: left(job, name).read_bytes() for name in ("plan.json", "results.jsonl")}
        run(["github", "run", option])
        assert before["plan.json"] == left(job, "plan.json").read_bytes()
        assert before["results.jsonl"] == left(job, "results.jsonl").read_bytes()

    def test_value_that_is_no_text_is_told(self, job: Job) -> None:
        run(["github", "run", "--target=\udcff"])
        assert job.publish() == 2
        assert "unknown target" in job.summary

    @pytest.mark.skipif(sys.platform == "darwin", reason="names are UTF-8 there")
    def test_name_that_is_no_text_is_told(self, job: Job) -> None:
        (job.folder / "evals" / os.fsdecode(b"\xff.yaml")).write_text(EVALS)
        assert run(["github", "run", "--validate-only"]) == 0
        assert job.publish() == 0

    @pytest.mark.parametrize("name", ["COMMENT", "FAIL_ON", "ANNOTATIONS"])
    def test_wrong_choice_is_no_command(self, job: Job, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        run(["github", "run"])
        capsys.readouterr()
        job.patch.setenv(f"AGENTV_{name}", "x\n::set-output name=verdict::pass\n##[error]x")
        assert job.publish() == 2
        assert not re.search(r"^\s*::", capsys.readouterr().err, re.MULTILINE)

    def test_last_line_says_what_the_output_says(self, job: Job, capsys: pytest.CaptureFixture[str]) -> None:
        run(["github", "run", "--shard=1/1"])
        capsys.readouterr()
        job.publish("--comment=never")
        assert capsys.readouterr().out.endswith(f"agentv-ci: {job.outputs['verdict']}\n")


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """What a fork's agent makes where it runs."""
    return tmp_path / "ran"


@pytest.fixture
def guarded(tmp_path: Path, ran: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job with secrets in the base's checkout, which holds that of a fork in `pr`."""
    base, fork = tmp_path / "base", tmp_path / "base" / "pr"
    bad = agent(f"touch {ran}; echo hello")
    for folder, repository, targets in ((base, "acme/demo", TARGETS), (fork, "stranger/demo", bad)):
        write(folder, {"evals/a.yaml": EVALS, "targets.yaml": targets})
        git(folder, "init", "-q", "-b", "main")
        git(folder, "remote", "add", "origin", f"https://github.com/{repository}")
        git(folder, "add", "evals", "targets.yaml")
        git(folder, "commit", "-q", "-m", repository)
    monkeypatch.chdir(base)
    found = Job(base, monkeypatch)
    found.on("pull_request_target", events.pull_request(git(fork, "rev-parse", "HEAD"), fork=True))
    monkeypatch.setenv("GITHUB_SHA", git(base, "rev-parse", "HEAD"))
    return found


class TestGuard:
    def test_base_runs(self, guarded: Job, ran: Path) -> None:
        shutil.rmtree(guarded.folder / "pr")
        assert run(["github", "run"]) == 0
        assert not ran.exists()

    @pytest.mark.parametrize(
        "words", [["--evals=evals\npr/evals"], ["--evals=evals/../pr/evals"], ["--targets=pr/targets.yaml"]]
    )
    def test_fork_in_another_folder(self, guarded: Job, ran: Path, words: list[str]) -> None:
        assert run(["github", "run", *words]) == 2
        assert not ran.exists()

    @pytest.mark.parametrize(
        "words",
        [
            ["--evals=p*/evals/a.yaml"],
            ["--evals=*/evals"],
            ["--args=--targets pr/targets.yaml"],
            ["--evals=linked"],
            ["--evals=nowhere/../pr/evals"],
        ],
        ids=["glob of files", "glob of folders", "args", "link", "way round"],
    )
    def test_fork_by_another_name(self, guarded: Job, ran: Path, words: list[str]) -> None:
        (guarded.folder / "linked").symlink_to("pr/evals")
        if words[0].startswith("--evals"):
            # Targets beside the fork's eval files win over those of the base.
            shutil.copy(guarded.folder / "pr/targets.yaml", guarded.folder / "pr/evals/targets.yaml")
        run(["github", "run", *words])
        assert not ran.exists()

    def test_linked_targets(self, guarded: Job, ran: Path) -> None:
        (guarded.folder / "targets.yaml").unlink()
        (guarded.folder / "targets.yaml").symlink_to("pr/targets.yaml")
        run(["github", "run"])
        assert not ran.exists()

    def test_step_in_the_forks_folder(self, guarded: Job, ran: Path) -> None:
        (guarded.folder / "targets.yaml").unlink()
        guarded.patch.chdir(guarded.folder / "pr")
        run(["github", "run", "--evals=../evals"])
        assert not ran.exists()

    def test_lost_event(self, guarded: Job, ran: Path) -> None:
        guarded.patch.setenv("GITHUB_EVENT_PATH", "/nowhere")
        run(["github", "run", "--evals=pr/evals"])
        assert not ran.exists()


class TestProcesses:
    def test_no_ancestor_of_an_agent_has_the_token(self, job: Job) -> None:
        look = """
            pid=$$
            while [ "$pid" -gt 1 ]; do
              tr '\\0' '\\n' < /proc/$pid/environ >> ../seen 2>> ../seen
              pid=$(sed 's/.*) . \\([0-9]*\\).*/\\1/' /proc/$pid/stat)
            done
            echo hello
        """
        write(job.folder, {"agent.sh": look, "targets.yaml": agent("sh ../agent.sh"), "evals/a.yaml": EVALS})
        step = {"GITHUB_TOKEN": "ghs_of_the_job", "ACTIONS_RUNTIME_TOKEN": "of_the_job", "AGENTV_CI": sys.executable}
        shell = ["bash", "-e", "-c", 'exec "$AGENTV_CI" -m agentv_ci github run --exit-zero']
        subprocess.run(shell, cwd=job.folder, env=clean_environment(step), check=True, capture_output=True, timeout=60)
        seen = (job.folder / "seen").read_text("utf-8", "replace")
        assert "AGENTV_CI=" in seen
        assert "of_the_job" not in seen

    def test_nothing_of_an_agent_lives_on(self, job: Job) -> None:
        lasting = "setsid sh -c 'setsid sleep 30 & echo $! > ../pid' < /dev/null > /dev/null 2>&1\necho hello\n"
        write(job.folder, {"agent.sh": lasting, "targets.yaml": agent("sh ../agent.sh"), "evals/a.yaml": EVALS})
        step = {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(job.folder / "output")}
        run_process("github", "run", cwd=job.folder, env=step)
        pid = int((job.folder / "pid").read_text())
        assert has_ended(pid)

    def test_what_the_step_said_before_is_kept(self, job: Job) -> None:
        write(job.folder, {"output": "mine=1\n"})
        step = {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(job.folder / "output")}
        run_process("github", "run", "--validate-only", cwd=job.folder, env=step)
        assert (job.folder / "output").read_text() == "mine=1\n"

    def test_step_that_is_ended_early_says_so(self, job: Job) -> None:
        script = f"""
import os
import agentv_ci.app.compile as compiling
compiling.compile_paths = lambda *_, **__: os.kill(os.getpid(), {int(signal.SIGTERM)})
from agentv_ci.cli import run
raise SystemExit(run(["github", "run", "--exit-zero"]))
"""
        subprocess.run(
            [sys.executable, "-c", script], cwd=job.folder, env=clean_environment(), capture_output=True, check=False
        )
        assert job.publish() == 130
