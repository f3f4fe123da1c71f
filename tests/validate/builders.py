"""Documents to check."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

from agentv_ci.app.documents.validate import check_paths
from agentv_ci.contracts.diagnostics import Diagnostic

CASE = """\
$schema: agentv-eval-v2
evalcases:
  - id: a
    expected_outcome: x
    input_messages: [{role: user, content: x}]
    expected_messages: []
"""


def case_with(line: str) -> str:
    """Return an eval file whose case has one more line."""
    return f"{CASE}    {line}\n"


def evaluator(settings: str) -> str:
    """Return an eval file with an evaluator."""
    return case_with(f"evaluators: [{{name: e, {settings}}}]")


@contextlib.contextmanager
def time_limit(seconds: float = 30) -> Iterator[None]:
    """Raise TimeoutError in a block that takes longer."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"takes longer than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def found_in(folder: Path, *patterns: str, targets: str | None = None) -> list[Diagnostic]:
    """Return the diagnostics of paths, by default of `x.yaml`."""
    with time_limit():
        checks = check_paths(patterns or ("x.yaml",), targets=targets, cwd=folder)
    return [each for file in checks.files for each in file.diagnostics]


def found_of(folder: Path, content: str | bytes) -> list[Diagnostic]:
    """Write `x.yaml` and return its diagnostics."""
    (folder / "x.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    return found_in(folder)


def rules(found: list[Diagnostic]) -> list[str]:
    """Return the rules of diagnostics."""
    return [each.rule for each in found]
