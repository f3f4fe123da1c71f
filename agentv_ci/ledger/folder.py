"""A ledger in a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path

from agentv_ci.base.atomic import write_whole
from agentv_ci.contracts.ledger import Damage, Ledger, LedgerRun
from agentv_ci.ledger.lines import FILE_NAME, MAX_FILE_BYTES, in_order, is_in_range, read_run


def add_to_folder(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Write the runs that the folder does not have, and return their paths in it.

    Raises OSError.
    """
    new = [path for path in files if not (folder / path).exists()]
    for path in new:
        _write(folder / path, files[path])
    return new


def _write(path: Path, content: bytes) -> None:
    write_whole(path, lambda file: file.write(content))


def read_folder(folder: Path, since: date | None = None) -> Ledger:
    """Return the ledger in a folder; raises OSError if the folder cannot be read."""
    damaged: list[Damage] = []
    runs = in_order(_runs(folder, since, damaged), since)
    return Ledger(str(folder), runs, tuple(damaged))


def _runs(folder: Path, since: date | None, damaged: list[Damage]) -> Iterator[LedgerRun]:
    for month in sorted(folder.iterdir()):
        if not month.is_dir():
            continue
        for file in sorted(month.glob("*.jsonl")):
            path = f"{month.name}/{file.name}"
            if not FILE_NAME.fullmatch(path) or not is_in_range(path, since):
                continue
            try:
                content = _content(file)
            except (OSError, ValueError) as error:
                damaged.append(Damage(path, str(error)))
                continue
            if (run := read_run(path, content, damaged)) is not None:
                yield run


def _content(file: Path) -> bytes:
    """Return the content of a file; raises OSError, and ValueError for one that is not read."""
    if file.is_symlink() or not file.is_file():
        raise ValueError("is not a regular file")
    if file.stat().st_size > MAX_FILE_BYTES:
        raise ValueError(f"is larger than {MAX_FILE_BYTES // 1024 // 1024} MiB")
    return file.read_bytes()
