"""Copies of a question's files for agents that do not see the repository."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, count, filterfalse
from pathlib import Path

from msgspec.structs import replace

from agentv_ci.contracts.exchange import InputFile


def mirrored(files: Iterable[InputFile], folder: Path) -> tuple[InputFile, ...]:
    """Copy files to a folder, and return the copies; further ones of a name get suffixes.

    Raises OSError.
    """
    copies: dict[str, InputFile] = {}
    for file in files:
        names = chain([file.path.name], (f"{file.path.name}.{number}" for number in count(1)))
        name = next(filterfalse(copies.__contains__, names))
        folder.mkdir(exist_ok=True)
        # Not the metadata: agents may have to edit a file that is read-only in the repository.
        (folder / name).write_bytes(file.path.read_bytes())
        copies[name] = replace(file, path=folder / name)
    return tuple(copies.values())
