"""Git commands that leave the work tree, the index and HEAD as they are, and run no hooks."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from agentv_ci.base.guarded_git import git_command, with_credentials
from agentv_ci.base.process import ProcessFailed, run
from agentv_ci.base.text import on_one_line, shortened
from agentv_ci.contracts.exchange import ProcessResult
from agentv_ci.errors import LedgerUnavailable

TIMEOUT_S = 120.0
SETTINGS = ("user.name=agentv-ci", "user.email=agentv-ci@noreply.invalid")


class Git(Struct, frozen=True):
    """Runs git in a repository."""

    folder: Path
    variables: Mapping[str, str]
    """The environment; credentials are those that git is configured with."""

    async def run(
        self, *words: str, stdin: bytes = b"", index: Path | None = None, out: Path | None = None
    ) -> str:
        """Return what a command prints; raises LedgerUnavailable if it fails.

        `index` is used instead of the repository's; with `out`, the output goes to that file.
        """
        done = await self.attempt(*words, stdin=stdin, index=index, out=out)
        if done.status != 0:
            raise failure(words[0], done)
        return done.stdout

    async def attempt(
        self, *words: str, stdin: bytes = b"", index: Path | None = None, out: Path | None = None
    ) -> ProcessResult:
        """Run a command that may fail.

        Raises LedgerUnavailable if it cannot start or takes too long.
        """
        command = git_command("-C", str(self.folder), *words, settings=SETTINGS)
        # Captured output is cut at a limit, so that long output goes to a file.
        redirected = ("/bin/sh", "-c", f"exec {shlex.join(command)} > {shlex.quote(str(out))}")
        # Credential helpers may need the tokens, which agents do not get.
        env = with_credentials(self.variables)
        if index:
            env = {**env, "GIT_INDEX_FILE": str(index)}
        argv = redirected if out is not None else command
        try:
            return await run(argv, cwd=self.folder, env=env, timeout_s=TIMEOUT_S, stdin=stdin)
        except ProcessFailed as error:
            raise LedgerUnavailable(f"git {words[0]}: {error}") from error


def failure(command: str, done: ProcessResult) -> LedgerUnavailable:
    """Return the error of a command that failed, with what it printed."""
    said = shortened(on_one_line(done.stderr or done.stdout), 300)
    return LedgerUnavailable(f"git {command} failed: {said or f'exit code {done.status}'}")
