"""A plan is the same bytes everywhere, and holds nothing of where it was made."""

from __future__ import annotations

import os
import platform
import random
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import pytest

from agentv_ci import __version__
from agentv_ci.app.compile import Selection, write_plan
from tests.compile.builders import case, evals, targets, write_repository
from tests.support import REPOSITORY, clean_environment

CORPUS = REPOSITORY / "tests" / "corpus"
REPOSITORIES = sorted(path.parent.parent for path in CORPUS.glob("*/*/expected/plan.json"))
REFERENCE = re.compile(r"\$\{\{\s*(\w+)\s*\}\}")


def compiled(root: Path) -> bytes:
    with BytesIO() as scratch, BytesIO() as out:
        document, _ = write_plan(Selection(["."]), cwd=root, scratch=scratch, watch=lambda _: None)
        document.copy_to(out)
        return out.getvalue()


def copied(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("expected"))
    (to / ".git").mkdir()
    return to


@pytest.mark.parametrize("folder", REPOSITORIES, ids=lambda folder: folder.name)
def test_plan_holds_no_secret_place_time_or_version(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = copied(folder, tmp_path / "canary-place")
    written = "\n".join(path.read_text("utf-8") for path in repository.rglob("*.y*ml"))
    names = {*REFERENCE.findall(written), "OPENAI_API_KEY", "GITHUB_TOKEN"}
    for name in names:
        monkeypatch.setenv(name, f"canary-value-of-{name}")
    (repository / ".env").write_text("".join(f"{name}=canary-from-a-file\n" for name in names), "utf-8")
    plan = compiled(repository).decode("utf-8")
    own = {str(tmp_path), str(Path.home()), socket.gethostname(), sys.executable, platform.python_version()}
    found = [each for each in (*own, "canary", f'"{__version__}"') if len(each) > 3 and each in plan]
    assert found == []
    assert re.findall(r"20\d\d-\d\d-\d\dT", plan) == []
    absolute = {text for text in re.findall(r'"(/[^"]*)"', plan) if text not in written}
    assert absolute == set(), "paths that the author did not write"


@pytest.mark.parametrize("folder", REPOSITORIES, ids=lambda folder: folder.name)
def test_plan_is_the_golden_one_wherever_the_repository_lies(folder: Path, tmp_path: Path) -> None:
    deep = copied(folder, tmp_path / "with spaces" / "ünï" / "x" / "y")
    assert compiled(deep) == (folder / "expected" / "plan.json").read_bytes()


def many() -> dict[str, Any]:
    """Suites in many folders, with targets files and configs of their own."""
    files: dict[str, Any] = {}
    for number in range(12):
        folder = f"suites/{'ABab'[number % 4]}{number}"
        files[f"{folder}/e.yaml"] = evals(
            case("x", input_messages=[{"role": "user", "content": [{"type": "file", "value": f"{number % 3}.md"}]}]),
            case("y", evaluators=[{"name": "j", "type": "llm_judge", "prompt": "p.md"}]),
        )
        files[f"{folder}/{number % 3}.md"] = f"text {number % 2}"
        files[f"{folder}/p.md"] = "Judge {{ candidate_answer }}"
        if number % 2:
            answering = {"name": "default", "provider": "mock", "response": str(number % 4)}
            files[f"{folder}/targets.yaml"] = targets(answering)
    return files


@contextmanager
def shuffled(monkeypatch: pytest.MonkeyPatch, seed: int) -> Iterator[None]:
    """Let the system list folders in another order."""
    chance = random.Random(seed)

    def reorder(find: Callable[..., Any]) -> Callable[..., Any]:
        def listing(*arguments: Any) -> Any:
            found = list(find(*arguments))
            chance.shuffle(found)
            return found

        return listing

    class Entries(list[Any]):
        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        def close(self) -> None: ...

        def __next__(self) -> Any:
            if not self:
                raise StopIteration
            return self.pop()

    with monkeypatch.context() as patch:
        scan = reorder(os.scandir)
        patch.setattr(os, "scandir", lambda *arguments: Entries(scan(*arguments)))
        patch.setattr(os, "listdir", reorder(os.listdir))
        yield


def test_plan_does_not_depend_on_the_order_of_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_repository(tmp_path, many())
    expected = compiled(root)
    for seed in range(5):
        with shuffled(monkeypatch, seed):
            assert compiled(root) == expected


@pytest.mark.parametrize(
    "variables",
    [
        {"LC_ALL": "C", "PYTHONHASHSEED": "7"},
        {"LC_ALL": "C.UTF-8", "TZ": "Pacific/Chatham", "PYTHONUTF8": "0"},
        {"LC_ALL": "tr_TR.UTF-8", "PYTHONIOENCODING": "latin-1"},
        {"LANG": "", "LC_ALL": "", "COLUMNS": "20", "FORCE_COLOR": "1", "PYTHONIOENCODING": "utf-16"},
    ],
    ids=str,
)
def test_plan_does_not_depend_on_the_locale(variables: dict[str, str], tmp_path: Path) -> None:
    root = write_repository(tmp_path, {**many(), "suites/z/e.yaml": evals(case("ıİ", expected_outcome="Grüße 😀"))})
    printed = subprocess.run(
        [sys.executable, "-m", "agentv_ci", "compile", "."],
        cwd=root,
        env=clean_environment(variables),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert printed.stdout == compiled(root)


def test_plan_of_a_repository_behind_a_link_is_the_same(tmp_path: Path) -> None:
    root = write_repository(tmp_path / "real", many())
    (tmp_path / "link").symlink_to(root)
    assert compiled(tmp_path / "link") == compiled(root)
