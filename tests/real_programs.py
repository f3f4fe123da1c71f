"""Which tests of real programs run: those whose inputs have changed since they last passed.

Workflows under act, browsers and clusters take most of the minutes of a test run, and few changes
concern them. `make test-real` runs them all, and records the digest of what they read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.support import REPOSITORY

RECORD = REPOSITORY / "tests" / "real_programs.json"
COMMAND = "make test-real"


class Group(NamedTuple):
    """Tests of one real program."""

    tests: tuple[str, ...]
    """Their files and folders, which count as inputs, too."""
    inputs: tuple[str, ...]
    """What else decides whether they pass: globs of files."""


GROUPS: Mapping[str, Group] = {
    "act": Group(
        ("tests/action",),
        (
            "action.yml",
            ".github/**/*",
            "agentv_ci/github/*.py",
            "agentv_ci/cli/action_*.py",
            "agentv_ci/cli/github_*.py",
            "agentv_ci/cli/step_options.py",
            "agentv_ci/contracts/action.py",
            "tests/servers/*.py",
        ),
    ),
    "browser": Group(
        ("tests/browser",),
        (
            "agentv_ci/report/renderers/html/**/*",
            "agentv_ci/report/site/**/*",
            "agentv_ci/report/view.py",
            "tests/support/shop.py",
        ),
    ),
    "cluster": Group(
        ("tests/cli/test_cluster.py", "tests/faults/test_cluster.py"),
        (
            "agentv_ci/execute/cluster*.py",
            "agentv_ci/app/run/cluster*.py",
            "tests/support/clusters.py",
            "tests/faults/cluster_rounds.py",
        ),
    ),
}


def group_of(path: Path) -> str | None:
    """Return the name of the group that a file of tests is in; None for all others."""
    for name, group in GROUPS.items():
        if any(path.is_relative_to(REPOSITORY / tests) for tests in group.tests):
            return name
    return None


def unchanged() -> frozenset[str]:
    """Return the groups that have passed with what they read now."""
    passed = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    return frozenset(name for name, group in GROUPS.items() if passed.get(name) == digest_of(group, REPOSITORY))


def record_as_passed() -> None:
    """Record that all groups have passed with what they read now."""
    passed = {name: digest_of(group, REPOSITORY) for name, group in GROUPS.items()}
    RECORD.write_text(json.dumps(passed, indent=2) + "\n", "utf-8")


def digest_of(group: Group, root: Path) -> str:
    """Return a digest of the names and contents of what a group of tests reads."""
    digest = hashlib.sha256()
    for path in sorted(_inputs(group, root)):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _inputs(group: Group, root: Path) -> Iterator[Path]:
    patterns = [*group.inputs, *group.tests]
    patterns += [f"{tests}/**/*" for tests in group.tests]
    for path in {path for pattern in patterns for path in root.glob(pattern)}:
        if path.is_file() and "__pycache__" not in path.parts:
            yield path
