"""The results file while a run goes on."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from agentv_ci.contracts.results import ResultRow, RowSource
from agentv_ci.errors import UsageError
from agentv_ci.results.files import read_rows
from agentv_ci.results.journal import Journal, KeptRows, claim
from agentv_ci.results.jsonl import encode
from tests.support import clean_environment


def row(case_id: str, answer: str = "42") -> ResultRow:
    return ResultRow(
        timestamp="2030-01-02T03:04:05.000Z",
        eval_id=case_id,
        dataset="a",
        suite="evals/a.yaml",
        target="default",
        provider="mock",
        trial=1,
        digest="0" * 64,
        status="ok",
        verdict="pass",
        score=1.0,
        hits=(),
        misses=(),
        reasoning="",
        candidate_answer=answer,
        evaluator_results=(),
        attempts=1,
        requests=1,
        duration_ms=1,
        source=RowSource(path="evals/a.yaml", line=1),
    )


def ids(path: Path) -> list[str]:
    """Return the ids of the rows in a file; every line has to be one."""
    text = path.read_text(encoding="utf-8")
    assert text == "" or text.endswith("\n")
    return [json.loads(line)["eval_id"] for line in text.splitlines()]


def test_every_row_is_a_line_of_its_own_at_once(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"

    async def main() -> list[list[str]]:
        seen = []
        with Journal(path, encode) as journal:
            for case_id in ("one", "two", "three"):
                journal.append(row(case_id))
                seen.append(ids(path))
        return seen

    assert asyncio.run(main()) == [["one"], ["one", "two"], ["one", "two", "three"]]


def test_a_row_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    rows = [row("one", "line\nbreak \u2028 \x85 \x00 ü 🎉"), row("zwölf", "")]

    async def main() -> None:
        with Journal(path, encode) as journal:
            for each in rows:
                journal.append(each)

    asyncio.run(main())
    assert list(read_rows(path, "jsonl")) == rows


def test_a_row_is_on_the_disk_a_moment_later(tmp_path: Path) -> None:
    script = """
        import asyncio, os, sys
        from pathlib import Path
        from agentv_ci.results import journal
        from tests.results.test_journal import row, encode

        async def main():
            with journal.Journal(Path(sys.argv[1]), encode) as opened:
                opened.append(row("one"))
                opened.append(row("two"))
                await asyncio.sleep(0.5)
                os.kill(os.getpid(), 9)

        asyncio.run(main())
    """
    strace = "import os, sys; real = os.fsync; os.fsync = lambda fd: (print('synced', flush=True), real(fd))[1]\n"
    done = in_a_process(strace + textwrap.dedent(script), tmp_path / "r.jsonl")
    assert done.stdout == "synced\n"
    assert ids(tmp_path / "r.jsonl") == ["one", "two"]


def in_a_process(script: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        env=clean_environment({"PYTHONPATH": os.pathsep.join(sys.path)}),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_a_row_that_does_not_fit_on_the_disk_leaves_no_trace_and_the_next_one_is_written(tmp_path: Path) -> None:
    script = """
        import asyncio, resource, sys
        from pathlib import Path
        from agentv_ci.results.journal import Journal
        from tests.results.test_journal import row, encode

        async def main():
            with Journal(Path(sys.argv[1]), encode) as journal:
                journal.append(row("one"))
                journal.append(row("large", "x" * 20_000))
                journal.append(row("larger", "y" * 30_000))
                journal.append(row("two"))
            print(journal.write_error)

        unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, unlimited[1]))
        asyncio.run(main())
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    """
    done = in_a_process(script, tmp_path / "r.jsonl")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"{tmp_path / 'r.jsonl'}: File too large\n")
    assert ids(tmp_path / "r.jsonl") == ["one", "two"]


def test_nothing_is_wrong_as_long_as_everything_is_written(tmp_path: Path) -> None:
    async def main() -> str | None:
        with Journal(tmp_path / "r.jsonl", encode) as journal:
            journal.append(row("one"))
        return journal.write_error

    assert asyncio.run(main()) is None


def test_the_folders_of_the_file_are_made(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "r.jsonl"
    with Journal(path, encode):
        assert path.exists()


def test_a_file_that_cannot_be_made_is_an_error_before_the_first_row(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(OSError, match="file"), Journal(tmp_path / "file" / "r.jsonl", encode):
        pass


def test_an_existing_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("old\n" * 1000, encoding="utf-8")

    async def main() -> None:
        with Journal(path, encode) as journal:
            journal.append(row("one"))
            journal.append(row("two"))

    asyncio.run(main())
    assert ids(path) == ["one", "two"]


def test_rows_of_a_cancelled_run_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"

    async def main() -> None:
        with Journal(path, encode) as journal:
            journal.append(row("one"))
            await asyncio.sleep(60)

    async def cancelled() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(main(), 0.05)

    asyncio.run(cancelled())
    assert ids(path) == ["one"]


def test_a_file_has_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with Journal(path, encode):
        with pytest.raises(UsageError, match="another run is writing"), Journal(path, encode):
            raise AssertionError("two write one file")
        assert path.exists()
    assert not path.exists()
    with Journal(path, encode) as journal:
        journal.finish()
    assert path.read_bytes() == b""


def test_what_is_kept_of_a_file_that_has_changed_since_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(encode(row("one")), "utf-8")
    size = path.stat().st_size
    path.write_text(encode(row("one")) + encode(row("two")), "utf-8")
    for results in (path, tmp_path / "new.jsonl"):
        with (
            pytest.raises(UsageError, match="changed while it was read"),
            Journal(results, encode, keeps=KeptRows(path, size, size)),
        ):
            raise AssertionError("rows of another run are cut off")
    assert ids(path) == ["one", "two"]
    assert not (tmp_path / "new.jsonl").exists()


@pytest.mark.parametrize("meanwhile", [Path.unlink, lambda path: path.with_name("new").replace(path)])
def test_a_file_that_another_run_took_away_while_it_was_claimed_is_opened_again(
    meanwhile: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lock, turns = tmp_path / "r.jsonl", fcntl.flock, iter([meanwhile])
    path.write_text("old\n", "utf-8")
    path.with_name("new").write_text("new\n", "utf-8")

    def late(file: BinaryIO, how: int) -> None:
        for turn in turns:
            turn(path)
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with claim(path) as file:
        assert os.path.samestat(os.fstat(file.fileno()), path.stat())
