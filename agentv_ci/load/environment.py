"""The environment a run sees: the process's own, and below it what `.env` files add."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from agentv_ci.errors import UsageError


def with_dotenv(environ: Mapping[str, str], files: Iterable[Path]) -> dict[str, str]:
    """Return `environ` with the variables of `.env` files that it does not have; the first value of a name wins.

    Raises UsageError for a file that cannot be read.
    """
    merged = dict(environ)
    for path in dict.fromkeys(files):
        for name, value in _read(path).items():
            merged.setdefault(name, value)
    return merged


def _read(path: Path) -> Mapping[str, str]:
    from dotenv import dotenv_values  # few runs have such a file

    # It complains, without naming the file, about every line that is written for a shell.
    logging.getLogger("dotenv.main").setLevel(logging.ERROR)
    try:
        # Without interpolation: a secret may contain `$`.
        values = dotenv_values(path, interpolate=False)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read '{path}': {error}") from error
    return {name: value for name, value in values.items() if value is not None}
