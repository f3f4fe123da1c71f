"""The pytest plugin: with `--agentv`, each case of an eval file is a test, for each target.

See docs/pytest.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

SUFFIXES = (".test.yaml", ".test.yml", ".eval.yaml", ".eval.yml")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, which no other plugin has."""
    group = parser.getgroup("agentv", "evaluations of AI agents (agentv-ci)")
    group.addoption(
        "--agentv", action="store_true", help=f"Collect eval files: {', '.join(SUFFIXES)}."
    )
    group.addoption(
        "--agentv-target",
        action="append",
        metavar="NAME",
        help="Run every case against this target; repeatable.",
    )
    group.addoption(
        "--agentv-replay", metavar="DIR", help="Take every answer from DIR instead of asking."
    )
    group.addoption(
        "--agentv-dry-run",
        action="store_true",
        help="Let the mock answer for every target and judge.",
    )
    parser.addini("agentv", "Collect eval files as with --agentv.", type="bool", default=False)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.File | None:
    """Collect an eval file, if that is asked for: agents and models cost money."""
    wanted = parent.config.getoption("--agentv") or parent.config.getini("agentv")
    if not wanted or not file_path.name.endswith(SUFFIXES):
        return None
    from agentv_ci.pytest_plugin.cases import EvalFile  # most test runs have no eval files

    return EvalFile.from_parent(parent, path=file_path)
