"""Errors that stop a command: each class has an exit code, each error a message and perhaps a hint.

    CannotGoOn
    ├── UsageError        2   invalid options or environment
    │   └── MissingVariables  targets require environment variables that are not set
    ├── InvalidInput      2   the documents have errors
    ├── NothingToRun      3   the paths and filters select no case
    ├── TargetUnavailable 4   a target cannot be asked at all
    ├── NotContained      4   an agent may have changed what later steps use
    ├── LedgerUnavailable 4   a ledger cannot be read, or a run cannot be added
    └── Interrupted     130   the run was interrupted

A run with a verdict ends with 0 or one of the constants below.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    # Building contracts takes long, and most users of this module only need an exit code.
    from agentv_ci.contracts.diagnostics import Diagnostic

Places = Mapping[str, tuple[str, int]]
"""Target → the path and line where it is defined."""
NO_PLACES: Places = {}
Missing = Mapping[str, Mapping[str, Sequence[str]]]
"""Target → variable → the fields that need it."""

PASSED = 0
FAILED = 1
INVALID = 2
NOTHING = 3
INFRASTRUCTURE = 4
BUDGET = 5
UNDECIDED = 6
BUG = 70
INTERRUPTED = 130


class CannotGoOn(Exception):
    """The command cannot continue, for a reason that the user can act on."""

    exit_code: ClassVar[int]

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(CannotGoOn):
    """The options or the environment are invalid."""

    exit_code = INVALID


class MissingVariables(UsageError):
    """Targets require environment variables that are not set or empty.

    Such as secrets withheld from a workflow.
    """

    def __init__(
        self,
        missing: Mapping[str, Mapping[str, Sequence[str]]],
        others: Sequence[str] = (),
        *,
        empty: Collection[str] = (),
        places: Places = NO_PLACES,
    ) -> None:
        """`others` are sentences on more problems; `empty` are the variables that are set."""
        lines: list[str] = []
        for target, fields in missing.items():
            place = "{}:{}: ".format(*places[target]) if target in places else ""
            unset = {name: of_name for name, of_name in fields.items() if name not in empty}
            blank = {name: of_name for name, of_name in fields.items() if name in empty}
            for state, of_state in (("not set", unset), ("set but empty", blank)):
                if of_state:
                    needs = f"{place}target '{target}' needs environment variables"
                    lines.append(f"{needs} that are {state}: {_with_fields(of_state)}")
        super().__init__(
            "\n".join([*lines, *others]), hint="set them in the environment or in a .env file"
        )
        self.missing = missing
        self.others = others
        self.empty = empty
        self.places = places

    @property
    def variables(self) -> Sequence[str]:
        """One variable for each need, of several that would do."""
        names = chain.from_iterable(self.missing.values())
        return list(dict.fromkeys(name.partition(" or ")[0] for name in names))

    def at(self, places: Places) -> MissingVariables:
        """Return the error with the places of targets."""
        return MissingVariables(self.missing, self.others, empty=self.empty, places=places)


def _with_fields(variables: Mapping[str, Sequence[str]]) -> str:
    """Return variables, each with the fields that need it."""
    return ", ".join(f"{name} ({', '.join(fields)})" for name, fields in variables.items())


class InvalidInput(CannotGoOn):
    """The documents have errors."""

    exit_code = INVALID

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        errors = sum(diagnostic.severity == "error" for diagnostic in diagnostics)
        super().__init__(
            f"the documents have {errors} {'error' if errors == 1 else 'errors'}; nothing ran"
        )
        self.diagnostics = tuple(diagnostics)

    def __str__(self) -> str:
        """Return the message and all diagnostics, for tracebacks."""
        lines = [self.message]
        for problem in self.diagnostics:
            place = f"{problem.path}:{problem.line}:{problem.column}"
            lines.append(f"{place}: {problem.message}")
        return "\n".join(lines)


class NothingToRun(CannotGoOn):
    """Nothing was selected; a run that tests nothing is not a success."""

    exit_code = NOTHING


class TargetUnavailable(CannotGoOn):
    """A target failed before the first case."""

    exit_code = INFRASTRUCTURE


class NotContained(CannotGoOn):
    """An agent of the action may have changed what later steps use."""

    exit_code = INFRASTRUCTURE


class LedgerUnavailable(CannotGoOn):
    """A ledger cannot be read, or a run cannot be added to it."""

    exit_code = INFRASTRUCTURE


class Interrupted(CannotGoOn):
    """A run was interrupted; the message says what it left behind."""

    exit_code = INTERRUPTED
