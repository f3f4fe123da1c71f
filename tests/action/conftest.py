"""Scenarios that are run once for several tests."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.action.rig import Outcome, find_act

Once = Callable[[str, Callable[[Path], Outcome]], Outcome]
"""Takes the name of a scenario and a function that runs it in a folder."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if find_act() is None:
        missing = pytest.mark.skip(
            reason="act is missing: python -m pip install --require-hashes -r tests/action/act.lock"
        )
        for item in items:
            if item.get_closest_marker("act"):
                item.add_marker(missing)


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Run a scenario once for all workers of pytest-xdist."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def play(name: str, scenario: Callable[[Path], Outcome]) -> Outcome:
        kept = shared / f"{name}.outcome"
        with (shared / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                kept.write_bytes(pickle.dumps(scenario(shared / name)))
        outcome = pickle.loads(kept.read_bytes())
        assert isinstance(outcome, Outcome)
        return outcome

    return play
