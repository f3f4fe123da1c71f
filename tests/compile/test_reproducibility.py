"""A plan is the same bytes everywhere, and contains nothing of the machine that made it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentv_ci import __version__
from tests.compile.builders import EVAL, case, evals, published, rich, targets, write_repository
from tests.support import REPOSITORY, clean_environment

REPOSITORIES = sorted(path.parent.parent for path in (REPOSITORY / "tests/corpus").glob("*/*/expected/plan.json"))
REFERENCE = re.compile(r"\$\{\{\s*(\w+)\s*\}\}")


@pytest.mark.parametrize("folder", REPOSITORIES, ids=lambda folder: folder.name)
def test_plan_contains_no_secret_place_time_or_version(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "canary-place" / "with spaces" / "ünï"
    shutil.copytree(folder, repository, ignore=shutil.ignore_patterns("expected"))
    (repository / ".git").mkdir()
    written = "\n".join(path.read_text("utf-8") for path in repository.rglob("*.y*ml"))
    names = {*REFERENCE.findall(written), "OPENAI_API_KEY", "GITHUB_TOKEN"}
    for name in names:
        monkeypatch.setenv(name, f"canary-value-of-{name}")
    (repository / ".env").write_text("".join(f"{name}=canary-from-a-file\n" for name in names), "utf-8")
    compiled = published(".", cwd=repository)
    assert compiled == (folder / "expected" / "plan.json").read_bytes()
    plan = compiled.decode("utf-8")
    own = {str(tmp_path), str(Path.home()), socket.gethostname(), sys.executable, platform.python_version()}
    assert [each for each in (*own, "canary", f'"{__version__}"') if len(each) > 3 and each in plan] == []
    assert re.findall(r"20\d\d-\d\d-\d\dT", plan) == []
    assert {text for text in re.findall(r'"(/[^"]*)"', plan) if text not in written} == set()


def test_plan_does_not_depend_on_times_of_files_and_on_paths(repository: Path, tmp_path_factory: Any) -> None:
    write_repository(repository, {**rich(), "evals/b.yaml": evals(case("b"))})
    expected = published("evals", cwd=repository)
    for path in repository.rglob("*.yaml"):
        os.utime(path, (1, 1))
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "link").symlink_to(repository)
    assert {
        published("b.yaml", "a.yaml", cwd=repository / "evals"),
        published(".", cwd=repository / "evals"),
        published("../evals/a.yaml", "b.yaml", cwd=repository / "evals"),
        published(repository / "evals", cwd=elsewhere),
        published("evals", cwd=elsewhere / "link"),
        published("evals/*.yaml", cwd=repository),
        published("evals", EVAL, "evals", cwd=repository),
    } == {expected}


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables",
    [
        {"LC_ALL": "C", "PYTHONHASHSEED": "7"},
        {"LC_ALL": "C.UTF-8", "TZ": "Pacific/Chatham", "PYTHONUTF8": "0", "PYTHONHASHSEED": "1"},
        {"LC_ALL": "tr_TR.UTF-8", "PYTHONIOENCODING": "latin-1", "COLUMNS": "20", "FORCE_COLOR": "1"},
    ],
    ids=str,
)
def test_plan_does_not_depend_on_the_process(variables: dict[str, str], tmp_path: Path) -> None:
    files = {f"{name}/e.yaml": evals(case("ıİ")) for name in ("a0", "A1", "b2", "B3")}
    root = write_repository(tmp_path, {**rich("Grüße 😀"), **files, "b2/targets.yaml": targets()})
    printed = subprocess.run(
        [sys.executable, "-m", "agentv_ci", "compile", "."],
        cwd=root,
        env=clean_environment(variables),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert printed.stdout == published(".", cwd=root)
