"""What all tests share: a scratch repository, the command line, and a world without waiting."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from agentv_ci.contracts.exchange import Environment

# No test asserts a time: machines are shared. The same examples every time, so that what fails has to do with the
# change; `HYPOTHESIS=explore` looks for others.
BUSY = [HealthCheck.too_slow]
settings.register_profile("shared", deadline=None, derandomize=True, suppress_health_check=BUSY)
settings.register_profile("explore", deadline=None, max_examples=1_000, suppress_health_check=BUSY)
settings.load_profile(os.environ.get("HYPOTHESIS", "shared"))

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
REPOSITORY = Path(__file__).parent.parent
SWEEPS = {"action", "browser", "external", "faults", "guards"}
"""Folders of tests that are not about one part. What runs only there, or in a process of its own, is not covered."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the corpus's expected files")


@pytest.fixture(autouse=True)
def no_workflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the workflow that these tests may run in: what is tested reads the same variables."""
    for name in os.environ:
        if name.startswith(("GITHUB_", "ACTIONS_")):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def measured(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave out of the coverage what has all parts run again and again: measuring would take most of the time."""
    if SWEEPS.isdisjoint(request.path.parts):
        yield
        return
    tracer = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(tracer)


@dataclass(frozen=True, slots=True)
class Finished:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


def agentv_ci(
    *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None, timeout_s: float = 60
) -> Finished:
    """Run the command line in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "agentv_ci", *map(str, arguments)],
        cwd=cwd,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without anything that would change what agentv-ci does."""
    changing = ("OPENAI_", "GITHUB_", "ACTIONS_", "AGENTV_", "NO_COLOR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(changing)}
    return {**kept, **(extra or {})}


@dataclass(slots=True)
class Waits:
    """A world in which waiting takes no time and chance is even; it keeps what was waited for."""

    environ: Mapping[str, str] = field(default_factory=dict)
    slept: list[float] = field(default_factory=list)

    def world(self) -> Environment:
        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)

        return Environment(
            variables=self.environ,
            now=lambda: NOW,
            monotonic=lambda: sum(self.slept),
            sleep=sleep,
            uniform=lambda _low, _high: 1.0,
        )


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder with `.git`, so that paths are relative to it."""
    (tmp_path / ".git").mkdir()
    return tmp_path


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write files below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def lines(text: str) -> Sequence[str]:
    """Return the lines of a text that are not blank."""
    return [line for line in text.splitlines() if line.strip()]


def has_ended(pid: int) -> bool:
    """Whether a process ends within moments; one that nobody has waited for counts as ended."""
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
        if not shown.stdout.strip() or shown.stdout.startswith("Z"):
            return True
        time.sleep(0.02)
    return False
