"""What providers work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from agentv_ci.contracts.base import ErrorKind
from agentv_ci.contracts.exchange import Environment, Log, ProviderError, Warn
from agentv_ci.contracts.results import PrintedOutput
from agentv_ci.process import ProcessFailed, ProcessTimedOut

Pause = Callable[[ProviderError, float], Awaitable[None]]
"""Waits so many seconds before a question that failed is asked again."""


def unwritable(error: OSError) -> ProviderError:
    """Return the failure of a question whose files cannot be written."""
    return ProviderError("process", f"cannot write the files of the question: {error}")


def process_failure(error: ProcessFailed, detail: str) -> ProviderError:
    """Return the failure of a question whose process did not end by itself."""
    kind: ErrorKind = "timeout" if isinstance(error, ProcessTimedOut) else "process"
    return ProviderError(kind, detail, printed=PrintedOutput(stdout=error.stdout, stderr=error.stderr))


def require_folder(path: Path) -> None:
    """Raise ProviderError for a working directory that does not exist."""
    if not path.is_dir():
        raise ProviderError("process", f"the working directory does not exist: {path} (setting 'cwd')")


@dataclass(frozen=True, slots=True)
class ProviderServices:
    """Everything of a run that a provider may use besides its target."""

    root: Path
    """The repository; paths of targets are relative to it."""
    logs: Path
    """The folder for logs of agents."""
    environment: Environment
    log: Log
    warn: Warn
    redact: Callable[[str], str]
    """Takes secrets out of what is written to files."""
    pause: Pause
    """Gives others the turn meanwhile."""

    def place(self, path: str) -> Path:
        """Return a path of a target: relative to the repository, with `~` for the home folder, or absolute.

        Raises ProviderError for the home folder of an unknown user.
        """
        try:
            return self.root / Path(path).expanduser()
        except RuntimeError as error:
            raise ProviderError("process", f"'{path}': {error}") from error
