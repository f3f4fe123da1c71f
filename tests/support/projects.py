"""A repository with documents, in which commands run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.commands import CommandResult, run_command, run_process
from tests.support.files import write

HELLO = {"name": "hello", "type": "contains", "value": "Hello"}
JUDGED = {"name": "judged", "type": "llm_judge", "judge_target": "judge"}
GREETS = {"name": "default", "provider": "mock", "response": "Hello!", "tool_calls": [{"tool": "greet"}]}
JUDGE = {"name": "judge", "provider": "mock", "response": '{"score": 0.9, "reasoning": "kind"}'}


@dataclass(slots=True)
class Project:
    """A repository, and the environment of the commands that run in it."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def write(self, files: Mapping[str, str]) -> None:
        """Write files."""
        write(self.folder, files)

    def documents(
        self,
        *cases: str | Mapping[str, Any],
        targets: tuple[Mapping[str, Any], ...] = (GREETS, JUDGE),
        name: str = "evals/x.yaml",
        **execution: Any,
    ) -> None:
        """Write an eval file and its targets; a case is its id, or fields over those of a plain one.

        A case with evaluators has these alone.
        """
        plain = {
            "expected_outcome": "A greeting",
            "input_messages": [{"role": "user", "content": "Greet me"}],
            "expected_messages": [],
        }
        given = [{"id": case} if isinstance(case, str) else case for case in cases]
        given = [{"inherit_evaluators": False, **case} if "evaluators" in case else case for case in given]
        evals = {
            "$schema": "agentv-eval-v2",
            "execution": {"evaluators": [HELLO], **execution},
            "evalcases": [{"id": f"case-{number}", **plain, **case} for number, case in enumerate(given, 1)],
        }
        self.write({name: json.dumps(evals)})
        self.targets(*targets)

    def targets(self, *targets: Mapping[str, Any], name: str = "targets.yaml") -> None:
        """Write a targets file."""
        self.write({name: json.dumps({"$schema": "agentv-targets-v2.2", "targets": targets})})

    def run(self, *arguments: str | Path, cwd: str = ".") -> CommandResult:
        """Run a command in this process."""
        return run_command(*arguments, cwd=self.folder / cwd, env=self.env)

    def process(self, *arguments: str | Path) -> CommandResult:
        """Run a command in a process of its own."""
        return run_process(*arguments, cwd=self.folder, env=self.env)

    def eval(self, *flags: str) -> CommandResult:
        """Run the evals, with the results in `r.jsonl`."""
        return self.run("eval", "evals", "--out", "r.jsonl", *flags)

    def refuses(self, *arguments: str | Path, error: str = "error: ", code: int = 2) -> None:
        """Run a command that must print nothing but a message with this text, and change no file."""
        before = self.files()
        done = self.run(*arguments)
        shown = " ".join(done.err.replace(f"{self.folder}/", "").split())
        assert (done.code, done.out, " ".join(error.split()) in shown) == (code, "", True), done
        assert "Traceback" not in done.err
        assert self.files() == before

    def path(self, name: str) -> Path:
        """Return the path of a file."""
        return self.folder / name

    def text(self, name: str) -> str:
        """Return the text of a file."""
        return (self.folder / name).read_text("utf-8")

    def files(self) -> dict[str, bytes]:
        """Return all files below the folder but for those of Git."""
        found = (path for path in self.folder.rglob("*") if path.is_file())
        names = ((path.relative_to(self.folder).as_posix(), path) for path in found)
        return {name: path.read_bytes() for name, path in names if not name.startswith(".git/")}

    def json(self, name: str) -> Any:
        """Return the data of a JSON file."""
        return json.loads(self.text(name))

    def rows(self, name: str = "r.jsonl") -> list[dict[str, Any]]:
        """Return the rows of a results file."""
        return [json.loads(line) for line in self.text(name).splitlines()]

    def store(self, name: str, *rows: Mapping[str, Any]) -> None:
        """Write rows as a results file."""
        self.write({name: "".join(json.dumps(row) + "\n" for row in rows)})
