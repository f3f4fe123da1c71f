"""The writer of a results file during a run."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from agentv_ci.contracts.results import ResultRow
from agentv_ci.errors import UsageError
from agentv_ci.results.files import read_rows
from agentv_ci.results.journal import SYNC_INTERVAL_S, Journal, KeptRows, claim
from agentv_ci.results.jsonl import encode
from tests.support.runs import case, row


def answered(case_id: str, answer: str = "42") -> ResultRow:
    return row(of=case(case_id), candidate_answer=answer)


def ids(path: Path) -> list[str]:
    """Return the ids of the rows in a file, in which every line must be a row."""
    text = path.read_text(encoding="utf-8")
    assert text == "" or text.endswith("\n")
    return [json.loads(line)["eval_id"] for line in text.splitlines()]


def write(path: Path, *rows: ResultRow, keeps: KeptRows | None = None, outdates: Path | None = None) -> str | None:
    """Write rows, and return the first error."""

    async def main() -> str | None:
        with Journal(path, encode, keeps=keeps, outdates=outdates) as journal:
            for number, each in enumerate(rows, 1):
                journal.append(each)
                assert journal.write_error or len(ids(path)) >= number
        return journal.write_error

    return asyncio.run(main())


def test_rows_replace_a_file_and_are_written_immediately(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "r.jsonl"
    rows = [answered("one", "line\nbreak \u2028 \x85 \x00 ü 🎉"), answered("zwölf", "")]
    assert write(path, *rows, *rows) is None
    assert write(path, *rows) is None
    assert list(read_rows(path, "jsonl")) == rows


async def test_rows_are_synced_together_soon_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[list[str]] = []
    path = tmp_path / "r.jsonl"
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(ids(path)))

    with Journal(path, encode) as journal:
        journal.append(answered("one"))
        journal.append(answered("two"))
        assert synced == []
        await asyncio.sleep(SYNC_INTERVAL_S + 0.1)
        assert synced == [["one", "two"]]
    assert synced == [["one", "two"]] * 2


def test_row_that_does_not_fit_on_the_disk_is_removed_and_the_next_is_written(tmp_path: Path) -> None:
    path, limits = tmp_path / "r.jsonl", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        error = write(path, answered("one"), answered("large", "x" * 20_000), answered("larger", "y" * 30_000))
        again = write(path, answered("one"), answered("large", "x" * 20_000), answered("two"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert error == again == f"{path}: File too large"
    assert ids(path) == ["one", "two"]


def test_file_that_cannot_be_created_is_an_error_before_the_first_row(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        write(tmp_path / "file" / "r.jsonl")


def test_file_has_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with Journal(path, encode):
        with pytest.raises(UsageError, match="another run is writing"):
            write(path)
        assert path.exists()
    assert not path.exists()
    with Journal(path, encode) as journal:
        journal.finish()
    assert path.read_bytes() == b""


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("end", ["", "\n"])
def test_kept_rows_are_the_beginning(tmp_path: Path, own: bool, end: str) -> None:
    earlier, path = tmp_path / "old.jsonl", tmp_path / ("old.jsonl" if own else "new.jsonl")
    whole = encode(answered("one")) + encode(answered("two")).rstrip("\n") + end
    earlier.write_text(whole + '{"torn', "utf-8")
    (tmp_path / "report.json").touch()
    keeps = KeptRows(earlier, len(whole), len(whole) + 6)
    assert write(path, answered("three"), keeps=keeps, outdates=tmp_path / "report.json") is None
    assert ids(path) == ["one", "two", "three"]
    assert not (tmp_path / "report.json").exists()


def test_rows_are_written_although_what_they_outdate_cannot_be_removed(tmp_path: Path) -> None:
    (tmp_path / "report.json").mkdir()
    error = write(tmp_path / "r.jsonl", answered("one"), outdates=tmp_path / "report.json")
    assert str(error).startswith(f"{tmp_path / 'report.json'}: ")
    assert ids(tmp_path / "r.jsonl") == ["one"]


def test_kept_file_stays_until_the_first_row(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(encode(answered("one")), "utf-8")
    with Journal(path, encode):
        assert ids(path) == ["one"]
    assert ids(path) == ["one"]


def test_kept_file_that_has_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    size = path.write_text(encode(answered("one")), "utf-8")
    path.write_text(encode(answered("one")) + encode(answered("two")), "utf-8")
    for results in (path, tmp_path / "new.jsonl"):
        with pytest.raises(UsageError, match="changed while it was read"):
            write(results, keeps=KeptRows(path, size, size))
    assert ids(path) == ["one", "two"]
    assert not (tmp_path / "new.jsonl").exists()


def test_kept_rows_that_another_program_removes_are_a_write_error(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    size = path.write_text(encode(answered("one")), "utf-8")
    with Journal(path, encode, keeps=KeptRows(path, size, size)) as journal:
        path.write_text("", "utf-8")
        journal.begin()
        assert journal.write_error == f"{path}: changed by another program; rows to keep are lost"


@pytest.mark.parametrize("meanwhile", [Path.unlink, lambda path: path.with_name("new").replace(path)])
def test_file_that_is_replaced_while_it_is_claimed_is_opened_again(
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


def test_file_system_without_locks_does_not_prevent_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: BinaryIO, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with claim(tmp_path / "r.jsonl") as file:
        assert not file.closed
