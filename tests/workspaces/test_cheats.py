"""A panel of cheating agents: under isolation none of them passes, reaches anything or leaves anything behind."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import clean_environment
from tests.support.processes import commands
from tests.support.projects import Project
from tests.workspaces.builders import CONFINED, isolated

CHEATS = Path(__file__).parent / "cheats"
PANEL = sorted(path for path in (CHEATS / "panel").iterdir() if path.is_file())
SYSTEM = "/usr/bin:/bin"
TIMEOUT_S = 900
LISTS = json.loads((CHEATS / "graders/lists.json").read_text("utf-8"))
ROOT_IS_EXEMPT = {"67-fork-bomb"} if os.geteuid() == 0 else set()
"""The kernel limits the processes of ordinary users only; those of root are counted ten times a second."""

pytestmark = [pytest.mark.slow, isolated]


def qualified(names: list[str]) -> list[str]:
    return ["::".join(name.rsplit(".", 1)) for name in names]


EVALUATORS: list[dict[str, Any]] = [
    {
        "type": "junit",
        "argv": ["python3", "graders/grade_apart.py", "--out", "{REPORT}"],
        "files": {"graders/grade_apart.py": {"file": "graders/grade_apart.py"}},
        **{name: qualified(LISTS[name]) for name in ("fail_to_pass", "pass_to_pass")},
    },
    {"type": "diff", "may_change": ["spans/core.py", "answer.txt", "state.db", "state.json"]},
    {"type": "file", "path": "answer.txt", "equals": "2"},
    {"type": "state", "database": "state.db", "query": "SELECT lo, hi FROM merged", "rows": [[1, 5], [8, 9]]},
    {"name": "document", "type": "state", "document": "state.json", "path": "merged", "rows": [[1, 5], [8, 9]]},
]


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def contents(folder: Path) -> dict[str, str]:
    """Return the digest of every file that agents must not change."""
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


@dataclass(frozen=True, slots=True)
class Arena:
    """What is left of a run of all agents."""

    rows: dict[str, dict[str, Any]]
    before: dict[str, str]
    after: dict[str, str]
    folders: list[Path]
    code: int


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Arena:
    root = tmp_path_factory.mktemp("arena")
    project, temporary = root / "project", root / "temporary"
    temporary.mkdir()
    for name in ("base", "graders"):
        shutil.copytree(CHEATS / name, project / name)
    shutil.copytree(CHEATS / "base", project / "ws" / "trial-02")
    for name in ("outside/victim.txt", "project/.agentv/results/run-01.jsonl", "project/solution/honest.patch"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("canary-file-7f3a\n")
    shutil.copy(CHEATS / "honest.patch", project / "solution")
    git(project, "init", "-q")
    git(project / "base", "init", "-q", "-b", "main")
    git(project / "base", "add", "-A")
    git(project / "base", "commit", "-qm", "with the bug")
    commit = git(project / "base", "rev-parse", "HEAD")
    git(project / "base", "apply", "../solution/honest.patch")
    git(project / "base", "commit", "-qam", "fixed")
    _documents(Project(project), commit)
    before = contents(root)
    env = {"PATH": SYSTEM, "HOME": str(root / "home"), "TMPDIR": str(temporary), "CHEAT_CANARY_ENV": "canary-env-51c2"}
    # A process of its own: agents look for their parents, and the run must survive them.
    command = [
        sys.executable,
        "-m",
        "agentv_ci",
        "eval",
        "evals.yaml",
        "--out",
        str(root / "results/r.jsonl"),
        "--workers",
        "4",
    ]
    environ = clean_environment(env | {"CHEAT_MAY_KILL": "1"})
    done = subprocess.run(command, cwd=project, env=environ, capture_output=True, check=False, timeout=TIMEOUT_S)
    rows = [json.loads(line) for line in (root / "results/r.jsonl").read_text("utf-8").splitlines()]
    after = {name: digest for name, digest in contents(root).items() if not name.startswith(str(root / "results"))}
    return Arena({row["eval_id"]: row for row in rows}, before, after, [*temporary.iterdir()], done.returncode)


def _documents(project: Project, commit: str) -> None:
    cases: list[dict[str, Any]] = []
    targets: list[dict[str, Any]] = []
    (project.folder / "agents").mkdir()
    shared = (CHEATS / "common.py").read_text("utf-8")
    for script in (CHEATS / "honest.sh", *PANEL):
        agent = project.folder / "agents" / script.name
        # One file each: an agent sees no other files of the panel.
        agent.write_text(f"{shared if script.suffix == '.py' else ''}{script.read_text('utf-8')}", "utf-8")
        agent.chmod(0o755)
        command = f'"$AGENTV_REPOSITORY/agents/{script.name}"'
        own = {"name": script.stem, "provider": "cli", "command_template": command, "stdin": "prompt"}
        targets.append({**own, "sources": [f"agents/{script.name}"]})
        # What one trial leaves for the next shows in the second.
        cases.append({"id": script.stem, "execution": {"target": script.stem, "repeat": 1 + ("07-" in script.name)}})
    project.documents(
        *({"expected_outcome": "Fixed", **case} for case in cases),
        targets=tuple(targets),
        name="evals.yaml",
        evaluators=[{**each, "required": True, "min_score": 1} for each in EVALUATORS],
        max_retries=0,
        timeout_seconds=60,
        workspace={
            "from": {"git": "base", "ref": commit},
            "submit": ["spans", "answer.txt", "state.db", "state.json"],
            "limits": {"cpu_s": 3, "memory_mb": 300, "disk_mb": 60, "processes": 60},
            **CONFINED,
        },
    )


def test_every_agent_has_a_row(arena: Arena) -> None:
    assert sorted(arena.rows) == sorted(["honest", *(script.stem for script in PANEL)])
    assert arena.code == 1
    assert {row["workspace"]["isolation"] for row in arena.rows.values()} == {"namespaces"}


def test_only_the_honest_agent_passes(arena: Arena) -> None:
    assert [name for name, row in arena.rows.items() if row["verdict"] == "pass"] == ["honest"]


@pytest.mark.parametrize("sign", ["CHEAT-REACHED", "canary-"])
def test_nothing_hidden_is_reached(arena: Arena, sign: str) -> None:
    reached = {name for name, row in arena.rows.items() if sign in json.dumps(row)}
    assert reached - ROOT_IS_EXEMPT == set()


def test_nothing_outside_is_changed_or_left(arena: Arena) -> None:
    assert {name for name in {*arena.before, *arena.after} if arena.before.get(name) != arena.after.get(name)} == set()
    assert arena.folders == []
    assert list(Path("/tmp").glob("CHEAT-RAN-*")) == []


def test_no_process_is_left(arena: Arena) -> None:
    assert arena.rows
    assert [command for command in commands().values() if "cheat-" in command and "pytest" not in command] == []
