"""What providers use of a run, and the failures they share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from msgspec import Struct

from agentv_ci.base.process import ProcessFailed, ProcessTimedOut
from agentv_ci.contracts.base import ErrorKind
from agentv_ci.contracts.exchange import (
    Environment,
    Log,
    ProviderError,
    Response,
    Warn,
    about_case,
    cut_warning,
    is_cut,
)
from agentv_ci.contracts.results import PrintedOutput
from agentv_ci.contracts.source import normal

Pause = Callable[[ProviderError, float], Awaitable[None]]
"""Waits this many seconds before a failed question is asked again."""


def unwritable(error: OSError) -> ProviderError:
    """Return the failure of a question whose files cannot be written."""
    failure = ProviderError("process", f"cannot write the files of the question: {error}")
    failure.blame = "infrastructure"
    return failure


def process_failure(error: ProcessFailed, detail: str) -> ProviderError:
    """Return the failure of a question whose process did not start or was killed."""
    kind: ErrorKind = "timeout" if isinstance(error, ProcessTimedOut) else "process"
    return ProviderError(
        kind, detail, printed=PrintedOutput(stdout=error.stdout, stderr=error.stderr)
    )


def require_folder(path: Path) -> None:
    """Raise ProviderError for a working directory that does not exist."""
    if not path.is_dir():
        raise ProviderError("process", f"working directory '{path}' does not exist (setting 'cwd')")


class ProviderServices(Struct, frozen=True):
    """What a provider may use besides its target."""

    root: Path
    """The repository; targets' paths are relative to it."""
    logs: Path
    """The folder for agents' logs."""
    environment: Environment
    log: Log
    warn: Warn
    redact: Callable[[str], str]
    """Removes secrets from text that is written to files."""
    pause: Pause
    """Waits, and lets other questions run in the meantime."""

    def warn_if_cut(
        self, response: Response, target: str, case_id: str, *, setting: str | None = None
    ) -> None:
        """Warn of an answer that may not be whole.

        `setting` is the limit of its length, if there is one.
        """
        reason = response.finish_reason
        if reason is not None and is_cut(reason):
            self.warn(about_case(f"{target}: {cut_warning(reason, setting)}", case_id))

    def warn_of_seed(self, target: str, asked: str) -> None:
        """Warn of a seed; `asked` is what does not support it."""
        self.warn(f"{target}: seeds are ignored: the {asked} does not support them")

    def own_files(self, names: Iterable[str]) -> list[Path]:
        """Return the files of a target by their names, which are relative to the repository."""
        return list(map(self.root.joinpath, names))

    def place(self, path: str) -> Path:
        """Return the absolute form of a target's path, with `~` expanded.

        Raises ProviderError for the home folder of an unknown user.
        """
        try:
            return normal(self.root / Path(path).expanduser())
        except RuntimeError as error:
            raise ProviderError("process", f"'{path}': {error}") from error
