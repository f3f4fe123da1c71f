"""What can stop a run: each class owns its exit code, its sentence and a hint.

    CannotGoOn
    ├── UsageError        2   the command line is wrong
    │   └── MissingVariables  the environment lacks what targets need
    ├── InvalidInput      2   the documents are wrong; the diagnostics say where
    ├── NothingToRun      3   the paths and filters select no case
    ├── TargetUnavailable 4   a target cannot be asked at all
    └── Interrupted     130   somebody ended the run

A run that ends with a verdict ends with a number instead: 0, or one of the constants below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    # Whoever only wants an exit code need not build contracts.
    from agentv_ci.contracts.diagnostics import Diagnostic

PASSED = 0
FAILED = 1
INFRASTRUCTURE = 4
BUDGET = 5
BUG = 70
INTERRUPTED = 130


class CannotGoOn(Exception):
    """The command ends here, for a reason the user can act on."""

    exit_code: ClassVar[int]

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(CannotGoOn):
    """The command line or the environment asks for something impossible."""

    exit_code = 2


class MissingVariables(UsageError):
    """Targets need variables of the environment that are not set, such as a secret that a workflow does not get."""


class InvalidInput(CannotGoOn):
    """The documents have errors."""

    exit_code = 2

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("the documents have errors")
        self.diagnostics = tuple(diagnostics)


class NothingToRun(CannotGoOn):
    """Nothing was selected; a run that tests nothing is not a success."""

    exit_code = 3


class TargetUnavailable(CannotGoOn):
    """A target failed before the first case."""

    exit_code = 4


class Interrupted(CannotGoOn):
    """A run was ended from outside, and left something that is worth knowing."""

    exit_code = INTERRUPTED
