"""What tests of several commands share."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.action import events
from tests.action.github_api import FakeGitHub
from tests.action.rig import SIGNATURE, git
from tests.servers.git_http import GitServer
from tests.support import ORDINARY, CommandResult, clean_environment, run_command, run_process, run_program
from tests.support.evals import tool
from tests.support.processes import state_of
from tests.support.projects import HELLO, Project

ENDS_S = 60
"""A command that takes so long would never end."""

PRICED, ONE_ANSWER_USD = "gpt-4o", 0.000325
"""A model with a public price, and what an answer of the server costs."""

HEARING = (
    "import signal, runpy; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "runpy.run_module('agentv_ci', run_name='__main__', alter_sys=True)"
)
"""Runs a command that hears SIGINT: background jobs of a shell, such as these tests, may be deaf to it."""


def in_a_shell(project: Project, arguments: str) -> CommandResult:
    """Run a command in a process, with redirections; the exit code is that of the command."""
    line = f"{sys.executable} -m agentv_ci {arguments}; exit ${{PIPESTATUS[0]}}"
    return run_program("bash", "-c", line, cwd=project.folder, env=project.env, timeout_s=ENDS_S)


def stopped(project: Project, *arguments: str, when: Callable[[], bool], by: signal.Signals) -> CommandResult:
    """Run a command in a process, and send it a signal as soon as something holds."""
    process = subprocess.Popen(
        [sys.executable, "-c", HEARING, *arguments],
        cwd=project.folder,
        env=clean_environment(project.env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + ENDS_S
        while not when():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(process.pid, by)
        out, err = process.communicate(timeout=ENDS_S)
    finally:
        process.kill()
    return CommandResult(process.returncode, out, err)


_PIECE = re.compile(r"\x1b\[(?P<number>[0-9;?]*)(?P<command>[A-Za-z])|(?P<control>[\r\n])|(?P<text>[^\x1b\r\n]+)")


def screen(written: str, columns: int) -> list[str]:
    """Return the lines on a terminal after it has got a text; no line may be wider than the terminal."""
    lines, row, column = [""], 0, 0
    for piece in _PIECE.finditer(written):
        match piece["command"] or piece["control"]:
            case "A":
                row = max(0, row - int(piece["number"] or 1))
            case "K":
                lines[row] = lines[row][:column] if piece["number"] in ("", "0") else ""
            case "\r":
                column = 0
            case "\n":
                row, column = row + 1, 0
                lines += [""] * (row + 1 - len(lines))
            case _:
                text = piece["text"] or ""
                lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + len(text) :]
                column += len(text)
                assert column <= columns, lines[row]
    return [line.rstrip() for line in lines]


class Terminal:
    """A command with its streams, or one of them, on a terminal; the others are pipes."""

    def __init__(
        self, folder: Path, *arguments: str, stream: str | None = None, columns: int | None = None, **env: str
    ) -> None:
        self._main, end = pty.openpty()
        if columns is not None:
            termios.tcsetwinsize(end, (24, columns))
        names = ("stdin", "stdout", "stderr")
        streams: dict[str, Any] = {name: end if stream in (None, name) else subprocess.PIPE for name in names}
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-m", "agentv_ci", *arguments],
            cwd=folder,
            env=clean_environment({"TERM": "xterm-256color", "COLUMNS": str(columns or 100), **env}),
            start_new_session=True,
            **streams,
        )
        os.close(end)
        self.shown, self.other = "", ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(ENDS_S)
        os.close(self._main)

    def wait_for(self, text: str) -> None:
        """Read until a new text is shown."""
        seen = len(self.shown)
        while text not in self.shown[seen:]:
            assert self._read(), self.shown

    def answer(self, question: str, line: str) -> None:
        self.wait_for(question)
        os.write(self._main, f"{line}\n".encode())

    def interrupt(self) -> None:
        """Send Ctrl-C as soon as the process waits for an answer; before, Python misses the signal."""
        while state_of(self._process.pid) != "S":
            time.sleep(0.01)
        self._process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Read to the end, and return the exit code; `other` is then what the pipes got."""
        while self._read():
            pass
        out, err = self._process.communicate(timeout=ENDS_S)
        self.other = (out or err or b"").decode()
        return self._process.returncode

    def _read(self) -> bool:
        """Read what is shown next; False at the end."""
        assert select.select([self._main], [], [], ENDS_S)[0], self.shown
        with suppress(OSError):  # the other end is closed
            piece = os.read(self._main, 65_536)
            self.shown += piece.decode("utf-8", "replace").replace("\r\n", "\n")
            return bool(piece)
        return False


GREETS = {
    "id": "greets",
    "expected_outcome": "Greets",
    "input_messages": [{"role": "user", "content": "Hi"}],
    "evaluators": [HELLO],
}
LEAVES = {
    "id": "leaves",
    "expected_outcome": "Says goodbye",
    "evaluators": [HELLO, {"name": "leaves", "type": "contains", "value": "goodbye", "required": True}],
}
"""A case that passes, and one that fails."""
PASSES = {"name": "default", "provider": "mock", "response": "Hello"}
KEYED = {"name": "default", "provider": "openai", "model": "m", "api_key": "${{ OPENAI_API_KEY }}"}


@dataclass(slots=True)
class Job(Project):
    """A job of a workflow in a repository, with the documents of one case."""

    def on(self, event: str, payload: Any) -> None:
        """Be a job of this event."""
        self.write({".git/event.json": json.dumps(payload)})
        self.env |= {
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(self.path(".git/event.json")),
            "GITHUB_REPOSITORY": "acme/demo",
            "GITHUB_SHA": "3" * 40,
            "GITHUB_WORKFLOW": "Evals",
            "GITHUB_JOB": "evals",
            "GITHUB_RUN_ID": "5",
            "GITHUB_RUN_ATTEMPT": "1",
        }

    def step(self, *options: str, cwd: str = ".") -> CommandResult:
        """Run the step in which agents run."""
        return self.run("github", "run", *options, cwd=cwd)

    def step_in_a_process(self, **env: str) -> CommandResult:
        """Run that step in a process of an ordinary user, with these variables and no others of a workflow."""
        return run_process("github", "run", "--args=--include-trace", cwd=self.folder, env=env, through=ORDINARY)

    def publish(self, *options: str) -> CommandResult:
        """Run the step that publishes, with the runner's files and no token."""
        files = {"GITHUB_OUTPUT": str(self.path(".git/outputs")), "GITHUB_STEP_SUMMARY": str(self.path(".git/summary"))}
        return run_command("github", "publish", *options, cwd=self.folder, env={**self.env, **files})

    @property
    def outputs(self) -> dict[str, str]:
        found = re.findall(r"^(\S+)<<(\S+)\n(.*)\n\2$", self.text(".git/outputs"), re.MULTILINE)
        return {name: value for name, _, value in found}

    @property
    def summary(self) -> str:
        return self.text(".git/summary")

    def left(self, name: str) -> Path:
        """A file in the results folder."""
        return self.path("agentv-results") / name

    @property
    def ended(self) -> Any:
        """The record of how the step ended."""
        return json.loads(self.left("run.json").read_text("utf-8"))

    def agent(self, script: str) -> None:
        """Have a shell script answer."""
        self.write({"agent.sh": script})
        self.targets(tool("sh ../agent.sh {PROMPT_FILE}"))


def quarantine(*entries: dict[str, str]) -> str:
    return json.dumps({"$schema": "agentv-quarantine-v1", "quarantine": entries})


@dataclass(slots=True)
class Change:
    """A pull request in a real repository, the action's steps in this process, and a double of GitHub."""

    job: Job
    github: FakeGitHub = field(default_factory=FakeGitHub)

    def base(self, **files: str) -> None:
        """Commit the base branch, with more files, and begin a branch for the change."""
        self.job.write({name: text for name, text in files.items() if text})
        git(self.job.folder, "init", "-q", "-b", "main")
        git(self.job.folder, "remote", "add", "origin", "https://github.com/acme/demo.git")
        self.commit()
        git(self.job.folder, "switch", "-q", "-c", "feat")
        self.github.repository = self.job.folder
        self.job.on("pull_request", events.pull_request(git(self.job.folder, "rev-parse", "HEAD")))

    def commit(self) -> None:
        git(self.job.folder, "add", "-A")
        git(self.job.folder, *SIGNATURE, "commit", "-q", "--allow-empty", "-m", "change")

    def reads_base(self, *options: str, token: str = "ghs_0123456789") -> CommandResult:
        """Run the step that reads the base branch; its outputs become inputs of the next one, as in action.yml."""
        outputs = self.job.path(".git/base-outputs")
        outputs.write_text("", "utf-8")
        served = GitServer(self.job.path(".git/served"), token)
        checkout = served.folder / "acme" / "demo.git"
        checkout.parent.mkdir(parents=True, exist_ok=True)
        if self.github.repository is not None and not checkout.is_symlink():
            checkout.symlink_to(self.github.repository / ".git")
        with self.github.running() as url, served.running() as server:
            env = {**self.job.env, "GITHUB_API_URL": url, "GITHUB_SERVER_URL": server, "GITHUB_OUTPUT": str(outputs)}
            env |= {"GITHUB_TOKEN": token, "RUNNER_TEMP": str(self.job.path(".git"))}
            done = run_command("github", "base", *options, cwd=self.job.folder, env=env)
        assert done.code == 0, done
        found = re.findall(r"^(\w+)<<(\S+)\n(.*)\n\2$", outputs.read_text("utf-8"), re.MULTILINE)
        self.job.env |= {f"AGENTV_{name.upper()}": value for name, _, value in found}
        return done

    @property
    def report(self) -> Any:
        return self.job.json("agentv-results/results.report.json")
