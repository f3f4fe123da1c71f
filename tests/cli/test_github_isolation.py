"""The step in which agents run: code of forks, missing secrets, and what agents can reach."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.action import events
from tests.cli.builders import GREETS, KEYED, PASSES, Job
from tests.github.workflows import HEAD
from tests.support import CommandResult, clean_environment, has_ended
from tests.support.evals import tool
from tests.support.processes import commands

TOOL = "tool=$PPID; until grep -q python /proc/$tool/comm; do tool=$(ps -o ppid= -p $tool | tr -d ' '); done"
"""Lines of an agent that find the process that runs the evals."""


class TestMissingSecrets:
    @pytest.fixture(autouse=True)
    def keyed(self, job: Job) -> None:
        job.targets(KEYED)

    @pytest.mark.parametrize(("fork", "author"), [(True, "mallory"), (False, "dependabot[bot]")])
    def test_missing_secrets_are_a_notice(self, fork: bool, author: str, job: Job) -> None:
        job.on("pull_request", events.pull_request(HEAD, fork=fork, author=author))
        assert job.step().code == 0
        done = job.publish()
        assert (done.code, job.outputs["verdict"], "::error" in done.out) == (0, "nothing", False)
        notice = "::notice title=Nothing ran::GitHub provides no secrets to pull requests from forks and Dependabot"
        assert notice in done.out
        assert "OPENAI_API_KEY" in job.summary

    def test_missing_secrets_of_others_are_an_error(self, job: Job) -> None:
        step, done = job.step(), job.publish()
        assert (step.code, done.code, job.outputs["verdict"]) == (2, 2, "invalid")
        needs = (
            "targets.yaml:1: target 'default' needs environment variables that are not set: OPENAI_API_KEY (api_key)"
        )
        assert needs in step.err
        assert "::error file=targets.yaml,line=1,title=agentv-ci::targets.yaml:1: target 'default' needs" in done.out
        assert "```yaml\nenv:\n  OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY }}\n```" in job.summary

    def test_documents_of_a_fork_are_checked(self, job: Job) -> None:
        job.on("pull_request", events.pull_request(HEAD, fork=True))
        job.write({"evals/x.yaml": job.text("evals/x.yaml").replace("evaluators", "evalutors")})
        assert job.step().code == 2


def git(folder: Path, *words: str) -> str:
    author = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *author, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


class TestForks:
    """Events with access to secrets."""

    @pytest.mark.parametrize("event", ["pull_request_target", "workflow_run"])
    def test_unknown_checkout_is_rejected(self, event: str, job: Job) -> None:
        payload = events.workflow_run(HEAD) if event == "workflow_run" else events.pull_request(HEAD, fork=True)
        job.on(event, payload)
        done = job.step()
        assert (done.code, "fork" in done.err) == (2, True)
        assert not job.left("results.jsonl").exists()

    @pytest.fixture
    def ran(self, tmp_path: Path) -> Path:
        """A file that the agent of the fork creates."""
        return tmp_path / "ran"

    @pytest.fixture
    def guarded(self, tmp_path: Path, ran: Path) -> Job:
        """A job in the checkout of the base, which has that of a fork in `pr`."""
        base, fork = Job(tmp_path / "base"), Job(tmp_path / "base" / "pr")
        agents = (PASSES, tool(f"touch {ran}; echo Hello"))
        for checkout, name, agent in zip((base, fork), ("acme/demo", "stranger/demo"), agents, strict=True):
            checkout.documents(GREETS, targets=(agent,))
            git(checkout.folder, "init", "-q", "-b", "main")
            git(checkout.folder, "remote", "add", "origin", f"https://github.com/{name}")
            git(checkout.folder, "add", "evals", "targets.yaml")
            git(checkout.folder, "commit", "-q", "-m", name)
        base.on("pull_request_target", events.pull_request(git(fork.folder, "rev-parse", "HEAD"), fork=True))
        base.env["GITHUB_SHA"] = git(base.folder, "rev-parse", "HEAD")
        return base

    def test_base_runs(self, guarded: Job) -> None:
        shutil.rmtree(guarded.path("pr"))
        assert guarded.step().code == 0

    @pytest.mark.parametrize(
        "option",
        [
            *("--evals=evals\npr/evals", "--evals=evals/../pr/evals", "--evals=p*/evals/x.yaml", "--evals=*/evals"),
            *("--evals=linked", "--evals=nowhere/../pr/evals", "--targets=pr/targets.yaml"),
            "--args=--targets pr/targets.yaml",
        ],
    )
    def test_code_of_a_fork_does_not_run_by_any_name(self, option: str, guarded: Job, ran: Path) -> None:
        guarded.path("linked").symlink_to("pr/evals")
        if option.startswith("--evals"):
            # Targets beside the eval files of the fork win over those of the base.
            shutil.copy(guarded.path("pr/targets.yaml"), guarded.path("pr/evals/targets.yaml"))
        assert guarded.step(option).code == 2
        assert not ran.exists()

    def test_linked_targets_of_a_fork_do_not_run(self, guarded: Job, ran: Path) -> None:
        guarded.path("targets.yaml").unlink()
        guarded.path("targets.yaml").symlink_to("pr/targets.yaml")
        guarded.step()
        assert not ran.exists()

    def test_targets_in_the_working_directory_do_not_run(self, guarded: Job, ran: Path) -> None:
        guarded.path("targets.yaml").unlink()
        guarded.step("--evals=../evals", cwd="pr")
        assert not ran.exists()

    def test_missing_event_runs_nothing(self, guarded: Job, ran: Path) -> None:
        guarded.env["GITHUB_EVENT_PATH"] = "/nowhere"
        guarded.step("--evals=pr/evals")
        assert not ran.exists()


@pytest.mark.slow
class TestAgents:
    def test_neither_agents_nor_their_ancestors_have_variables_of_the_runner(self, job: Job) -> None:
        look = """
            env >> ../seen
            pid=$$
            while [ "$pid" -gt 1 ]; do
              tr '\\0' '\\n' < /proc/$pid/environ >> ../seen 2>> ../seen
              pid=$(sed 's/.*) . \\([0-9]*\\).*/\\1/' /proc/$pid/stat)
            done
            echo Hello
        """
        job.agent(look)
        names = [*("GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL")]
        names += ["ACTIONS_RUNTIME_TOKEN", "GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE"]
        step = dict.fromkeys([*names, "GITHUB_STEP_SUMMARY"], "/of_the_job")
        shell = ["bash", "-e", "-c", 'exec "$AGENTV_CI" -m agentv_ci github run --exit-zero']
        env = clean_environment({**step, "AGENTV_CI": sys.executable})
        subprocess.run(shell, cwd=job.folder, env=env, check=True, capture_output=True, timeout=60)
        seen = job.path("seen").read_text("utf-8", "replace")
        assert ("AGENTV_CI=" in seen, "of_the_job" in seen) == (True, False)

    @pytest.fixture
    def known(self, job: Job) -> Path:
        """The folder of the runner's files, whose name is known."""
        job.write({"_runner_file_commands/set_env": "", "_runner_file_commands/set_output": "mine=1\n"})
        job.path("_runner_file_commands/add_path").symlink_to("elsewhere")
        return job.path("_runner_file_commands")

    def step(self, job: Job, known: Path, script: str, **env: str) -> CommandResult:
        """Run the step with an agent that starts in the folder of the runner's files."""
        job.agent(f"cd ../_runner_file_commands\n{script}\necho Hello")
        files = {"GITHUB_ENV": "set_env", "GITHUB_PATH": "add_path", "GITHUB_OUTPUT": "set_output"}
        paths = {name: str(known / file) for name, file in files.items()}
        return job.step_in_a_process(GITHUB_ACTIONS="true", **paths, **env)

    @pytest.mark.parametrize(
        "script",
        [
            "echo LD_PRELOAD=x > add_path; rm set_env set_output; mkdir -p set_env/x",
            "for each in *; do rm $each; echo BASH_ENV=x > $each; chmod 0444 $each; done",
            "for each in *; do ln -sf /bin/sh $each; done; chmod 0555 .",
            "mv set_env x; ln x set_env; echo x > x; rm x",
        ],
        ids=["other kinds", "read-only files", "read-only folder", "other names"],
    )
    def test_command_files_of_the_runner_are_restored(self, script: str, job: Job, known: Path) -> None:
        done = self.step(job, known, script)
        assert done.code == 0, done.err
        matcher, first, *_, last = done.out.splitlines()
        assert matcher == "::remove-matcher owner=python::"
        assert re.fullmatch(r"::stop-commands::[0-9a-f]{32}", first)
        assert last == f"::{first.rpartition('::')[2]}::"
        assert [path for path in known.iterdir() if path.is_symlink()] == []
        found = {path.name: path.read_text() for path in known.iterdir() if path.name != "elsewhere"}
        assert found == {"set_env": "", "set_output": "mine=1\n", "add_path": ""}

    @pytest.mark.parametrize(
        ("script", "error"),
        [
            ("cd ..; mv _runner_file_commands x; echo > _runner_file_commands", "cannot be restored: Not a directory"),
            ("echo >> ../tool/a.py", "tool/a.py', which the next step uses"),
            ("touch ../tool/b.py", "tool/b.py', which the next step uses"),
            ("echo hello > ../tool/a.py; touch -r ../tool/c.py ../tool/a.py", "tool/a.py', which the next step uses"),
            ("echo {} > ../event.json", "event.json', which the next step uses"),
        ],
        ids=["folder of the runner", "tool", "new module", "same size and time", "event"],
    )
    def test_step_fails_if_an_agent_changes_what_the_next_step_uses(
        self, script: str, error: str, job: Job, known: Path
    ) -> None:
        job.write({"tool/a.py": "hallo\n", "tool/c.py": "", "event.json": "{}"})
        installed, event = str(job.path("tool")), str(job.path("event.json"))
        done = self.step(job, known, script, AGENTV_INSTALLED=installed, GITHUB_EVENT_PATH=event)
        assert (done.code, error in done.err) == (4, True), done.err
        assert error in done.out.splitlines()[-1]

    @pytest.mark.parametrize(
        ("script", "code"), [("cat ../tool/a.py", 0), ("echo >> ../agentv_ci/x.py", 4), ("echo >> ../README.md", 0)]
    )
    def test_workspace_may_be_the_folder_of_the_action(self, script: str, code: int, job: Job, known: Path) -> None:
        """As with `uses: ./`: results are written there, and what installs the tool must stay as it is."""
        job.write({"tool/a.py": "hallo\n", "agentv_ci/x.py": ""})
        env = {"AGENTV_INSTALLED": str(job.path("tool")), "GITHUB_ACTION_PATH": str(job.folder)}
        assert self.step(job, known, script, **env).code == code

    @pytest.mark.parametrize(
        ("script", "is_unsafe"),
        [
            ("echo", False),
            ("echo >> ../tool/a.py", True),
            (f"{TOOL}; kill -9 $(ps -o ppid= -p $tool) $tool", True),
            ("echo >> ../tool/a.py; rm ../temp/agentv-ci.unsafe", True),
            ("echo >> ../tool/a.py; ln -sf nowhere ../temp/agentv-ci.unsafe", True),
        ],
        ids=["honest", "changes the tool", "kills the tool", "removes the mark", "makes the mark a link"],
    )
    def test_later_uses_in_the_job_know_that_agents_may_have_changed_the_tool(
        self, script: str, is_unsafe: bool, job: Job, known: Path
    ) -> None:
        job.write({"tool/a.py": "hallo\n", "temp/x": ""})
        env = {"AGENTV_INSTALLED": str(job.path("tool")), "RUNNER_TEMP": str(job.path("temp"))}
        self.step(job, known, script, **env)
        assert job.path("temp/agentv-ci.unsafe").exists() is is_unsafe

    def test_killed_tool_fails_the_step(self, job: Job, known: Path) -> None:
        """Unlike the end of its child process, in which the evals run."""
        assert self.step(job, known, f"{TOOL}; kill -9 $(ps -o ppid= -p $tool) $tool").code == -9
        assert self.step(job, known, f"{TOOL}; kill -9 $tool").code == 70
        assert "the run was killed" in job.ended["reason"]

    @pytest.mark.skipif(sys.platform != "linux", reason="memory is closed only on Linux")
    def test_agent_cannot_read_the_processes_of_the_tool(self, job: Job, known: Path) -> None:
        look = "cat /proc/$each/environ; readlink /proc/$each/fd/1"
        loop = f"for each in $tool $(ps -o ppid= -p $tool); do {look}; done > ../seen"
        assert self.step(job, known, f"{TOOL}; {loop}").code == 0
        assert job.text("seen") == ""

    @pytest.mark.skipif(sys.platform != "linux", reason="processes in other sessions are found only on Linux")
    @pytest.mark.parametrize(
        "script",
        [
            "setsid sh -c 'setsid sleep 300 > /dev/null 2>&1 & echo $! > ../stays' > /dev/null 2>&1",
            "setsid sh -c 'setsid sleep 300 > /dev/null 2>&1 & echo $! > ../stays' < /dev/null > /dev/null 2>&1",
            "for each in 1 2; do setsid perl -e 'exit if fork while 1' {0} <&- >&- 2>&1 & done; echo $! > ../stays",
        ],
        ids=["inherited input", "no input", "processes that replace themselves"],
    )
    def test_no_process_of_an_agent_stays(self, script: str, job: Job, known: Path) -> None:
        """It could read the token of the next step."""
        mark = str(job.folder)
        assert self.step(job, known, script.format(mark)).code == 0
        assert has_ended(int(job.text("stays")))
        assert [each for each in commands().values() if mark in each and "perl" in each] == []
