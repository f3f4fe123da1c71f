"""What tests of several folders share; tests/README.md says what is where."""

from __future__ import annotations

from tests.support.clock import NOW, FakeClock
from tests.support.commands import CommandResult, clean_environment, run_command, run_process, run_program
from tests.support.files import REPOSITORY, lines, write
from tests.support.processes import ORDINARY, has_ended

__all__ = [
    "NOW",
    "ORDINARY",
    "REPOSITORY",
    "CommandResult",
    "FakeClock",
    "clean_environment",
    "has_ended",
    "lines",
    "run_command",
    "run_process",
    "run_program",
    "write",
]
