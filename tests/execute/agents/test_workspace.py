"""The scratch folder of a question: made beside other questions, and always removed."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from pathlib import Path

import pytest

from agentv_ci.contracts.exchange import InputFile, ProviderError
from agentv_ci.execute.agents import workspace as module
from agentv_ci.execute.agents.workspace import Workspace, workspace


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_files_are_copied_and_everything_is_removed(scratch: Path, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("a", encoding="utf-8")

    async def main() -> None:
        async with workspace("codex", [InputFile(tmp_path / "a.md", is_guideline=True, sha256="")]) as place:
            (copy,) = place.files
            assert (copy.path.read_text("utf-8"), copy.is_guideline) == ("a", True)
            copy.path.write_text("changed", encoding="utf-8")

    asyncio.run(main())
    assert list(scratch.iterdir()) == []
    assert (tmp_path / "a.md").read_text("utf-8") == "a"


def test_file_that_is_gone_is_a_failure_and_leaves_nothing(scratch: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with workspace("codex", [InputFile(tmp_path / "gone.md", is_guideline=False, sha256="")]):
            raise AssertionError

    with pytest.raises(ProviderError, match="cannot write the files of the question"):
        asyncio.run(main())
    assert list(scratch.iterdir()) == []


def test_folder_that_cannot_be_made_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))

    async def main() -> None:
        async with workspace("codex", []):
            raise AssertionError

    with pytest.raises(ProviderError, match="cannot write the files of the question"):
        asyncio.run(main())


def test_question_that_is_cancelled_while_its_files_are_copied_leaves_nothing(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on = threading.Event(), threading.Event()
    make = module._make

    def slow(kind: str, files: tuple[InputFile, ...]) -> Workspace:
        begun.set()
        assert goes_on.wait(30)
        return make(kind, files)

    async def main() -> None:
        async def use() -> None:
            async with workspace("codex", []):
                raise AssertionError

        using = asyncio.create_task(use())
        await asyncio.to_thread(begun.wait, 30)
        using.cancel()
        asyncio.get_running_loop().call_later(0.05, goes_on.set)
        with pytest.raises(asyncio.CancelledError):
            await using

    monkeypatch.setattr(module, "_make", slow)
    asyncio.run(main())
    assert list(scratch.iterdir()) == []
