"""`github run` and `github publish`: what the two steps of the action do, as commands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.app.github_publish import FailOn, exit_code
from agentv_ci.app.github_run import action_run
from agentv_ci.cli import run
from tests.action import events
from tests.publish.workflows import HEAD
from tests.support import clean_environment, has_ended, run_process, write

EVALS = """\
$schema: agentv-eval-v2
evalcases:
  - id: greets
    expected_outcome: Greets
    input_messages: [{role: user, content: Hi}]
    expected_messages: []
    evaluators:
      - {name: says, type: contains, value: hello}
"""
FAILING = """\
  - id: leaves
    expected_outcome: Says goodbye
    input_messages: [{role: user, content: Bye}]
    expected_messages: []
    evaluators:
      - {name: says, type: contains, value: hello}
      - {name: leaves, type: contains, value: goodbye, required: true}
"""
TARGETS = "$schema: agentv-targets-v2.2\ntargets: [{name: default, provider: mock, response: hello}]\n"
KEYED = """\
$schema: agentv-targets-v2.2
targets: [{name: default, provider: openai, model: m, api_key: '${{ OPENAI_API_KEY }}'}]
"""


@dataclass(frozen=True, slots=True)
class Job:
    """A job of a workflow in a repository."""

    folder: Path
    patch: pytest.MonkeyPatch

    def on(self, event: str, payload: Any) -> None:
        """Be a job of this event."""
        path = self.folder / ".git" / "event.json"
        path.write_text(json.dumps(payload))
        for name, value in {
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_REPOSITORY": "acme/demo",
            "GITHUB_SHA": "3" * 40,
            "GITHUB_WORKFLOW": "Evals",
            "GITHUB_JOB": "evals",
            "GITHUB_RUN_ID": "5",
            "GITHUB_RUN_ATTEMPT": "1",
        }.items():
            self.patch.setenv(name, value)

    def publish(self, *options: str) -> int:
        """Publish, as a step that has the runner's files and no token."""
        git = self.folder / ".git"
        self.patch.setenv("GITHUB_OUTPUT", str(git / "outputs"))
        self.patch.setenv("GITHUB_STEP_SUMMARY", str(git / "summary"))
        try:
            return run(["github", "publish", *options])
        finally:
            self.patch.delenv("GITHUB_OUTPUT")
            self.patch.delenv("GITHUB_STEP_SUMMARY")

    @property
    def outputs(self) -> dict[str, str]:
        text = (self.folder / ".git" / "outputs").read_text()
        return {name: value for name, _, value in re.findall(r"^(\S+)<<(\S+)\n(.*)\n\2$", text, re.MULTILINE)}

    @property
    def summary(self) -> str:
        return (self.folder / ".git" / "summary").read_text("utf-8")

    def left(self, name: str) -> Any:
        """A JSON file of the results folder."""
        return json.loads((self.folder / "agentv-results" / name).read_text("utf-8"))


@pytest.fixture
def job(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job for a pull request of the same repository."""
    monkeypatch.chdir(repository)
    write(repository, {"evals/a.yaml": EVALS, "targets.yaml": TARGETS})
    found = Job(repository, monkeypatch)
    found.on("pull_request", events.pull_request(HEAD))
    return found


class TestRun:
    def test_leaves_everything_in_one_folder(self, job: Job) -> None:
        assert run(["github", "run"]) == 0
        found = {path.name for path in (job.folder / "agentv-results").iterdir()}
        assert found == {"results.jsonl", "results.report.json", "junit.xml", "report.html", "plan.json", "run.json"}
        assert (job.left("run.json")["exit_code"], job.left("run.json")["verdict"]) == (0, "pass")

    def test_ends_as_eval_does_unless_publishing_has_the_last_word(self, job: Job) -> None:
        write(job.folder, {"evals/a.yaml": EVALS + FAILING})
        assert run(["github", "run"]) == 1
        assert run(["github", "run", "--exit-zero"]) == 0
        assert (job.left("run.json")["exit_code"], job.left("run.json")["verdict"]) == (1, "fail")

    def test_what_is_printed_is_no_command(self, job: Job, capsys: pytest.CaptureFixture[str]) -> None:
        run(["github", "run"])
        first, *_, last = capsys.readouterr().out.splitlines()
        assert re.fullmatch(r"::stop-commands::[0-9a-f]{32}", first)
        assert last == f"::{first.rpartition('::')[2]}::"

    def test_paths_stand_on_lines_of_their_own(self, job: Job) -> None:
        write(job.folder, {"more evals/b.yaml": EVALS.replace("greets", "b")})
        assert run(["github", "run", "--evals", "evals/a.yaml\r\n  more evals\n\n"]) == 0
        assert len((job.folder / "agentv-results/results.jsonl").read_text().splitlines()) == 2

    def test_inputs_come_by_the_environment_too(self, job: Job) -> None:
        write(job.folder, {"evals/b.yaml": EVALS.replace("greets", "b")})
        for name, value in {
            "EVALS": "evals/*.yaml",
            "SHARD": "1/2",
            "DRY_RUN": "false",
            "ARGS": "",
            "WORKERS": "",
        }.items():
            job.patch.setenv(f"AGENTV_{name}", value)
        assert run(["github", "run"]) == 0
        assert job.left("results.report.json")["shard"]["total"] == 2

    @pytest.mark.parametrize(
        ("option", "said"),
        [
            ("--workers=0", "'--workers'"),
            ("--threshold=high", "'--threshold'"),
            ("--shard=3/2", "'--shard'"),
            ("--target=nobody", "unknown target 'nobody'"),
            ("--args=--what", "--what"),
            ("--args='", "No closing quotation"),
            ("--args=--out x.jsonl", "--out is set by the action"),
            ("--args=--junit=x", "--junit is set by the action"),
            ("--evals= \n ", "evals is empty"),
            ("--evals=none/", "none"),
            ("--env-file=none.env", "does not exist"),
            ("--baseline=none.json", "none.json"),
        ],
    )
    def test_wrong_inputs_are_said_and_kept(
        self, job: Job, option: str, said: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["github", "run", option]) in (2, 3)
        assert said in capsys.readouterr().err
        assert said in job.left("run.json")["reason"]
        assert job.left("run.json")["verdict"] in ("invalid", "nothing")

    def test_args_are_words_as_in_a_shell(self, job: Job) -> None:
        write(job.folder, {"evals/a.yaml": EVALS + FAILING})
        assert run(["github", "run", "--args", "--eval-id 'gree*' --include-trace"]) == 0

    def test_variables_of_a_file_lose_against_those_that_are_set(self, job: Job) -> None:
        script = '#!/bin/sh\necho "hello $A $B"\n'
        write(job.folder, {"agent.sh": script, ".ci.env": "A=file\nB=file\n", "evals/a.yaml": EVALS})
        target = "{name: default, provider: cli, command_template: 'sh ../agent.sh {PROMPT_FILE}'}"
        write(job.folder, {"targets.yaml": f"$schema: agentv-targets-v2.2\ntargets: [{target}]\n"})
        job.patch.setenv("A", "set")
        job.patch.delenv("B", raising=False)
        try:
            run(["github", "run", "--env-file", ".ci.env"])
        finally:
            os.environ.pop("B", None)
        rows = (job.folder / "agentv-results/results.jsonl").read_text()
        assert "hello set file" in rows

    def test_crash_is_a_bug_and_kept(self, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
        def crash(*_: object, **__: object) -> None:
            raise ZeroDivisionError("by zero")

        monkeypatch.setattr("agentv_ci.app.compile.compile_paths", crash)
        assert run(["github", "run"]) == 70
        assert job.left("run.json")["reason"] == "ZeroDivisionError: by zero"
        assert job.left("run.json")["verdict"] == "error"


class TestFolder:
    def test_earlier_run_makes_room(self, job: Job) -> None:
        run(["github", "run"])
        write(job.folder, {"agentv-results/notes.txt": "mine"})
        assert run(["github", "run", "--validate-only"]) == 0
        assert not (job.folder / "agentv-results/results.jsonl").exists()
        assert (job.folder / "agentv-results/notes.txt").read_text() == "mine"

    def test_results_that_were_there_before_are_not_taken_for_new_ones(self, job: Job) -> None:
        """Else a pull request could bring the verdict along."""
        write(job.folder, {"agentv-results/results.report.json": "{}"})
        assert run(["github", "run", "--exit-zero"]) == 2
        assert not (job.folder / "agentv-results/run.json").exists()

    def test_only_what_this_use_of_the_action_left_is_published(self, job: Job) -> None:
        """Also where the step that runs never came to clearing its folder."""
        job.patch.setenv("AGENTV_CI", "/tmp/agentv-ci.Xy12/bin/agentv-ci")
        run(["github", "run"])
        assert job.publish("--comment=never") == 0
        job.patch.setenv("AGENTV_CI", "/tmp/agentv-ci.Zz99/bin/agentv-ci")
        assert job.publish("--comment=never") == 70
        assert "no results in" in job.summary

    def test_run_that_is_killed_says_so(self, job: Job) -> None:
        write(
            job.folder, {"evals/a.yaml": EVALS, "targets.yaml": TARGETS.replace("response: hello", "delay_ms: 60000")}
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "agentv_ci", "github", "run"],
            cwd=job.folder,
            env=clean_environment(),
            stdout=subprocess.DEVNULL,
        )
        while not (job.folder / "agentv-results/plan.json").exists():
            assert process.poll() is None
        process.kill()
        process.wait()
        assert job.publish() == 70
        assert "the run was killed" in job.summary
        assert run(["github", "run", "--validate-only"]) == 0

    def test_link_is_not_followed(self, job: Job) -> None:
        (job.folder / "elsewhere").mkdir()
        (job.folder / "agentv-results").symlink_to("elsewhere")
        assert run(["github", "run", "--exit-zero"]) == 2
        assert job.publish() == 2
        assert [*(job.folder / "elsewhere").iterdir()] == []

    def test_input_is_not_removed(self, job: Job, capsys: pytest.CaptureFixture[str]) -> None:
        run(["github", "run", "--validate-only"])
        assert run(["github", "run", "--evals", "agentv-results/plan.json"]) == 2
        assert "it is an input" in capsys.readouterr().err
        assert (job.folder / "agentv-results/plan.json").exists()
        assert run(["github", "run", "--evals", "agentv-results/plan.json", "--results-dir", "other"]) == 0


class TestPublish:
    def test_passing_run(self, job: Job, capsys: pytest.CaptureFixture[str]) -> None:
        run(["github", "run"])
        capsys.readouterr()
        assert job.publish("--comment=never") == 0
        assert capsys.readouterr().out == "agentv-ci: pass\n"
        folder = job.folder / "agentv-results"
        assert job.outputs == {
            "verdict": "pass",
            "passed": "1",
            "failed": "0",
            "errored": "0",
            "total": "1",
            "pass-rate": "1.0",
            "mean-score": "1.0",
            "cost-usd": job.outputs["cost-usd"],
            "results": str(folder / "results.jsonl"),
            "report": str(folder / "results.report.json"),
            "junit": str(folder / "junit.xml"),
            "html": str(folder / "report.html"),
            "plan": str(folder / "plan.json"),
        }
        assert job.summary.startswith("## ✅ Evaluations: passed")
        assert (folder / "comment.md").read_text("utf-8").startswith("<!-- agentv-ci:Evals/evals -->\n## ✅")

    def test_failing_case_is_shown_on_its_evaluators_line(self, job: Job, capsys: pytest.CaptureFixture[str]) -> None:
        write(job.folder, {"evals/a.yaml": EVALS + FAILING})
        run(["github", "run", "--exit-zero"])
        capsys.readouterr()
        assert job.publish() == 1
        out = capsys.readouterr().out
        assert "::error file=evals/a.yaml,line=15,title=leaves%3A fail 0.500::leaves (required): does not" in out
        assert "::notice title=No comment on the pull request::GITHUB_TOKEN is not set" in out
        assert f"https://github.com/acme/demo/blob/{HEAD}/evals/a.yaml#L9" in job.summary

    def test_errors_of_documents_are_shown_on_their_lines(self, job: Job, capsys: pytest.CaptureFixture[str]) -> None:
        write(job.folder, {"evals/a.yaml": EVALS.replace("evaluators:", "evalutors:")})
        assert run(["github", "run"]) == 2
        capsys.readouterr()
        assert job.publish() == 2
        out = capsys.readouterr().out
        assert "::error file=evals/a.yaml,line=7," in out
        assert out.count("::error") == 1
        assert job.outputs["verdict"] == "invalid"
        assert "did you mean 'evaluators'?" in job.summary

    def test_only_validated(self, job: Job) -> None:
        assert run(["github", "run", "--validate-only", "--workers=4"]) == 0
        assert job.publish() == 0
        assert (job.outputs["verdict"], job.outputs["total"]) == ("pass", "0")
        assert job.outputs["plan"].endswith("plan.json")
        assert job.outputs["results"] == ""
        assert job.summary.startswith("## ✅ Documents: valid\n\n**1 file checked")

    def test_only_validated_and_invalid(self, job: Job) -> None:
        write(job.folder, {"evals/a.yaml": EVALS.replace("evaluators:", "evalutors:")})
        assert run(["github", "run", "--validate-only"]) == 1
        assert job.publish() == 1
        assert job.outputs["verdict"] == "invalid"
        assert job.summary.startswith("## ❌ Documents: invalid")

    def test_only_validated_beside_invalid_targets(self, job: Job, capsys: pytest.CaptureFixture[str]) -> None:
        write(job.folder, {"targets.yaml": TARGETS.replace("response", "respones")})
        assert run(["github", "run", "--validate-only"]) == 1
        assert job.publish() == 1
        assert "::error file=targets.yaml,line=2," in capsys.readouterr().out

    def test_only_validated_without_targets(self, job: Job, capsys: pytest.CaptureFixture[str]) -> None:
        (job.folder / "targets.yaml").unlink()
        assert run(["github", "run", "--validate-only"]) == 0
        assert "no plan: no targets.yaml" in capsys.readouterr().out
        assert job.publish() == 0
        assert job.outputs["plan"] == ""

    def test_what_changed_since_a_plan(self, job: Job) -> None:
        run(["github", "run", "--validate-only", "--results-dir", "base"])
        write(job.folder, {"evals/a.yaml": EVALS + FAILING})
        assert run(["github", "run", "--only-changed", "base/plan.json"]) == 1
        job.publish()
        assert "Since the older plan: 0 cases changed, 1 added, 0 removed" in job.summary
        assert job.outputs["total"] == "1"
        assert len(job.left("plan.json")["cases"]) == 2

    def test_nothing_has_changed(self, job: Job) -> None:
        run(["github", "run", "--validate-only", "--results-dir", "base"])
        assert run(["github", "run", "--only-changed", "base/plan.json"]) == 0
        assert job.publish() == 0
        assert job.outputs["verdict"] == "nothing"

    def test_shard_leaves_the_gate_to_the_whole(self, job: Job) -> None:
        write(job.folder, {"evals/a.yaml": EVALS + FAILING})
        for part in (1, 2):
            assert run(["github", "run", f"--shard={part}/2", "--results-dir", f"part-{part}"]) == 0
        parts = [f"part-{part}/results.jsonl" for part in (1, 2)]
        assert run(["report", *parts, "--expect-shards=2", "--out=agentv-results/results.jsonl"]) == 1
        assert job.publish("--comment=never") == 1
        assert (job.outputs["verdict"], job.outputs["total"]) == ("fail", "2")

    def test_dry_run_passes_and_says_so(self, job: Job, capsys: pytest.CaptureFixture[str]) -> None:
        write(job.folder, {"targets.yaml": KEYED})
        assert run(["github", "run", "--dry-run"]) == 0
        capsys.readouterr()
        assert job.publish("--comment=never") == 0
        assert job.outputs["verdict"] == "pass"
        assert "::notice title=Dry run::" in capsys.readouterr().out

    def test_nothing_was_left(self, job: Job) -> None:
        assert job.publish() == 70
        assert job.outputs["verdict"] == "error"
        assert "the run ended too early" in job.summary

    @pytest.mark.parametrize("name", ["run.json", "results.report.json", "plan-diff.json", "diagnostics.json"])
    def test_link_of_an_agent_leads_nowhere(self, job: Job, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        run(["github", "run"])
        write(job.folder, {"secret": '{"token": "ghs_secret"}'})
        (job.folder / "agentv-results" / name).unlink(missing_ok=True)
        (job.folder / "agentv-results" / name).symlink_to("../secret")
        assert job.publish() == 2
        assert "ghs_secret" not in str(capsys.readouterr())

    def test_outside_of_a_workflow(self, job: Job, capsys: pytest.CaptureFixture[str]) -> None:
        run(["github", "run"])
        job.patch.delenv("GITHUB_ACTIONS")
        assert run(["github", "publish"]) == 2
        assert "not running in GitHub Actions" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fail_on", "codes"),
    [
        ("gate", {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 70: 70, 130: 130}),
        ("errors", {0: 0, 1: 0, 2: 2, 3: 3, 4: 4, 5: 5, 70: 70, 130: 130}),
        ("never", {0: 0, 1: 0, 2: 2, 3: 0, 4: 0, 5: 0, 70: 70, 130: 130}),
    ],
)
def test_what_a_workflow_fails_on(fail_on: FailOn, codes: dict[int, int]) -> None:
    assert {code: exit_code(action_run(code, root=Path("/")), fail_on) for code in codes} == codes


class TestForks:
    @pytest.mark.parametrize(("fork", "author"), [(True, "mallory"), (False, "dependabot[bot]")])
    def test_missing_secrets_are_a_notice(
        self, job: Job, fork: bool, author: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        job.on("pull_request", events.pull_request(HEAD, fork=fork, author=author))
        write(job.folder, {"targets.yaml": KEYED})
        assert run(["github", "run"]) == 0
        capsys.readouterr()
        assert job.publish() == 0
        assert job.outputs["verdict"] == "nothing"
        out = capsys.readouterr().out
        assert (
            "::notice title=Nothing ran::GitHub provides no secrets to pull requests from forks and Dependabot" in out
        )
        assert "::error" not in out
        assert "OPENAI_API_KEY" in job.summary

    def test_missing_secrets_of_others_are_an_error(self, job: Job) -> None:
        write(job.folder, {"targets.yaml": KEYED})
        assert run(["github", "run"]) == 2
        assert job.publish() == 2
        assert job.outputs["verdict"] == "invalid"

    def test_documents_of_a_fork_are_checked_all_the_same(self, job: Job) -> None:
        job.on("pull_request", events.pull_request(HEAD, fork=True))
        write(job.folder, {"targets.yaml": KEYED, "evals/a.yaml": EVALS.replace("evaluators:", "evalutors:")})
        assert run(["github", "run"]) == 2

    @pytest.mark.parametrize("event", ["pull_request_target", "workflow_run"])
    def test_code_of_a_fork_is_refused_where_secrets_are(
        self, job: Job, event: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        payload = events.workflow_run(HEAD) if event == "workflow_run" else events.pull_request(HEAD, fork=True)
        job.on(event, payload)
        assert run(["github", "run"]) == 2
        assert "may be a fork's code" in capsys.readouterr().err
        assert not (job.folder / "agentv-results/results.jsonl").exists()


def test_agents_see_nothing_of_the_runner(job: Job) -> None:
    """Neither in their own environment nor, as the same user, in that of the process that started them."""
    look = "cat /proc/$PPID/environ | tr '\\0' '\\n'; env; echo hello"
    write(job.folder, {"agent.sh": look})
    target = "{name: default, provider: cli, command_template: 'sh ../agent.sh {PROMPT_FILE}'}"
    write(job.folder, {"targets.yaml": f"$schema: agentv-targets-v2.2\ntargets: [{target}]\n"})
    runner = {
        "GITHUB_TOKEN": "ghs_token_of_the_job",
        "GH_TOKEN": "ghs_token_of_the_job",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "oidc_token_of_the_job",
        "ACTIONS_ID_TOKEN_REQUEST_URL": "https://oidc.of.the.job",
        "ACTIONS_RUNTIME_TOKEN": "runtime_token_of_the_job",
        **dict.fromkeys(("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE"), "/file/of/the/job"),
        "GITHUB_STEP_SUMMARY": "/file/of/the/job",
    }
    assert (
        run_process("github", "run", "--args=--include-trace", cwd=job.folder, env={**runner, "KEPT": "is-kept"}).code
        == 0
    )
    left = "".join(path.read_text("utf-8") for path in (job.folder / "agentv-results").iterdir())
    assert "is-kept" in left
    assert "of_the_job" not in left
    assert "of.the.job" not in left
    assert "/file/of/the/job" not in left


def test_agents_do_not_command_the_runner_by_its_files(job: Job) -> None:
    """They lie in a folder that everybody knows."""
    known = job.folder / "_runner_file_commands"
    write(known, {"set_env": "", "add_path": "", "set_output": "mine=1\n"})
    (known / "add_path").unlink()
    (known / "add_path").symlink_to("elsewhere")
    agent = "for file in ../_runner_file_commands/*; do echo LD_PRELOAD=x > $file; done; echo hello"
    target = f"{{name: default, provider: cli, command_template: '{agent} {{PROMPT_FILE}}'}}"
    write(job.folder, {"targets.yaml": f"$schema: agentv-targets-v2.2\ntargets: [{target}]\n"})
    files = {"GITHUB_ENV": "set_env", "GITHUB_PATH": "add_path", "GITHUB_OUTPUT": "set_output"}
    env = {"GITHUB_ACTIONS": "true", **{name: str(known / file) for name, file in files.items()}}
    assert run_process("github", "run", cwd=job.folder, env=env).code == 0
    assert [path.name for path in known.iterdir() if path.is_symlink()] == []
    found = {path.name: path.read_text() for path in known.iterdir() if path.name != "elsewhere"}
    assert found == {"set_env": "", "set_output": "mine=1\n", "add_path": ""}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has what finds processes in sessions of their own")
def test_agents_leave_nothing_running(job: Job) -> None:
    """It would read the token of the step that comes next."""
    stays = "setsid sh -c 'setsid sleep 300 > /dev/null 2>&1 & echo $! > stays' > /dev/null 2>&1; echo hello"
    write(job.folder, {"agent.sh": stays})
    target = "{name: default, provider: cli, command_template: 'sh ../agent.sh {PROMPT_FILE}'}"
    write(job.folder, {"targets.yaml": f"$schema: agentv-targets-v2.2\ntargets: [{target}]\n"})
    env = {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(job.folder / "outputs")}
    assert run_process("github", "run", cwd=job.folder, env=env).code == 0
    assert has_ended(int((job.folder / "evals/stays").read_text()))


def test_job_that_is_cancelled_keeps_what_is_finished(job: Job) -> None:
    write(job.folder, {"agent.sh": "sleep 60", "evals/b.yaml": EVALS.replace("greets", "b")})
    slow = "{name: slow, provider: cli, command_template: 'sh ../agent.sh {PROMPT_FILE}'}"
    write(
        job.folder,
        {
            "targets.yaml": f"{TARGETS.rstrip()[:-1]}, {slow}]\n",
            "evals/b.yaml": EVALS.replace("evalcases", "execution: {target: slow}\nevalcases"),
        },
    )
    command = [sys.executable, "-m", "agentv_ci", "github", "run", "--exit-zero"]
    process = subprocess.Popen(command, cwd=job.folder, env=clean_environment(), stdout=subprocess.DEVNULL)
    try:
        rows = job.folder / "agentv-results/results.jsonl"
        while not (rows.exists() and rows.read_text()):
            assert process.poll() is None
        process.terminate()
        process.wait(timeout=60)
    finally:
        process.kill()
    assert job.left("run.json")["exit_code"] == 130
    assert job.publish() == 130
    assert job.outputs["passed"] == "1"
    assert "interrupted" in job.summary
