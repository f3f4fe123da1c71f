"""Fixtures and options of all tests."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from tests.real_programs import COMMAND, group_of, record_as_passed, unchanged
from tests.support import FakeClock

# Tests interrupt processes; a background job of a shell starts deaf to that, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test asserts a time: machines are shared. The same examples every time, so that what fails has to do with the
# change; `HYPOTHESIS=explore` looks for others.
BUSY = [HealthCheck.too_slow]
settings.register_profile("shared", deadline=None, derandomize=True, suppress_health_check=BUSY)
settings.register_profile("explore", deadline=None, max_examples=1_000, suppress_health_check=BUSY)
settings.load_profile(os.environ.get("HYPOTHESIS", "shared"))

SWEEPS = {"action", "browser", "external", "faults", "guards"}
"""Folders of tests that are not about one part. What runs only there, or in a process of its own, is not covered."""

LEFT_OUT = pytest.StashKey[frozenset[str]]()
"""The groups of tests of real programs that do not run."""
NONE: frozenset[str] = frozenset()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the corpus's expected files")
    parser.addoption(
        "--real", action="store_true", help="run the tests of real programs alone, and record that they pass"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Decide which tests of real programs are left out: none of those that are named."""
    if hasattr(config, "workerinput"):
        config.stash[LEFT_OUT] = frozenset(config.workerinput["left_out"])
        return
    names_no_tests = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    runs_all = config.option.real or not names_no_tests
    config.stash[LEFT_OUT] = NONE if runs_all else unchanged()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist what is left out."""
    node.workerinput["left_out"] = sorted(node.config.stash[LEFT_OUT])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of real programs, and deselect those that are left out."""
    kept: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        group = group_of(item.path)
        if group is not None:
            item.add_marker(group)
        is_left_out = group is None if config.option.real else group in config.stash[LEFT_OUT]
        (others if is_left_out else kept).append(item)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = kept


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which tests of real programs are left out."""
    left_out = config.stash[LEFT_OUT]
    if names := ", ".join(sorted(left_out)):
        why = "what they read has not changed since they passed"
        terminalreporter.write_line(f"left out: tests of {names}, since {why}; to run them: {COMMAND}")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Record that the tests of real programs pass."""
    if session.config.option.real and exitstatus == 0 and not hasattr(session.config, "workerinput"):
        record_as_passed()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine; it fails instead of hanging."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**given), timeout=60))
    return True


@pytest.fixture(autouse=True)
def no_workflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the workflow that these tests may run in: what is tested reads the same variables."""
    for name in os.environ:
        if name == "CI" or name.startswith(("GITHUB_", "ACTIONS_")):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def measured(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave out of the coverage what has parts run again and again: measuring would take most of the time.

    That is all that a folder of `SWEEPS` does, and the many examples of a property.
    """
    if SWEEPS.isdisjoint(request.path.parts) and not is_hypothesis_test(request.function):
        yield
        return
    tracer = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(tracer)


@pytest.fixture
def waits() -> FakeClock:
    return FakeClock()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder with `.git`, so that paths are relative to it."""
    (tmp_path / ".git").mkdir()
    return tmp_path
