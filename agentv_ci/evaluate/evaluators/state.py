"""The evaluator `state`.

It compares expected rows with a SQLite database or a JSON document that the agent leaves behind.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from agentv_ci.base.json_access import found_at, read_unique
from agentv_ci.base.text import counted, shortened
from agentv_ci.contracts.answer_evaluators import field_steps
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.outcome_evaluators import StateEvaluator
from agentv_ci.evaluate.submission import EvaluatorServices, Submission, without_work
from agentv_ci.workspaces.places import Work

TIMEOUT_S = 10.0
MAX_ROWS = 10_000
MAX_SHOWN = 200
LOGS = ("-wal", "-journal")
"""Suffixes of the files beside a database: committed transactions, and how to undo an open one.
Their index, `-shm`, is made again from the first.
"""
STEPS = 10_000
"""Instructions of SQLite's machine between two looks at the clock."""


async def state(
    settings: StateEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Return the share of expected rows that are there; others count as missed ones."""
    work = submission.work
    if not isinstance(work, Work):
        return without_work(work)
    path = settings.database or settings.document or ""
    try:
        content = await asyncio.to_thread(work.file, path)
        if content is None:
            return Score(0.0, misses=(f"{path} does not exist",))
        if settings.database is not None:
            logs = {suffix: await asyncio.to_thread(work.file, path + suffix) for suffix in LOGS}
            found = await asyncio.to_thread(_queried, content, logs, settings)
        else:
            found = _in_document(content, settings)
    except (OSError, sqlite3.Error, ValueError) as error:
        return Score(0.0, misses=(f"{path}: {error}",))
    return _compared(found, settings)


def _queried(
    content: bytes, logs: Mapping[str, bytes | None], settings: StateEvaluator
) -> list[JsonValue]:
    """Return the rows of the query.

    Raises sqlite3.Error for a file of another kind, and for writing.
    """
    with tempfile.TemporaryDirectory(prefix="agentv-ci-") as scratch:
        place = Path(scratch) / "copy.db"
        for suffix, part in {"": content, **logs}.items():
            if part is not None:
                place.with_name(place.name + suffix).write_bytes(part)
        # SQLite writes to the copy: it completes what is committed in a log, and undoes what is
        # not.
        with closing(sqlite3.connect(f"{place.as_uri()}?mode=rw", uri=True)) as database:
            until = time.monotonic() + TIMEOUT_S
            database.set_progress_handler(lambda: time.monotonic() > until, STEPS)
            # The database is the agent's: its views and triggers get no functions with side
            # effects.
            database.execute("PRAGMA trusted_schema = OFF")
            database.set_authorizer(_authorize)
            cursor = database.execute(settings.query or "")
            names = [column[0] for column in cursor.description or ()]
            rows = cursor.fetchmany(MAX_ROWS)
    as_lists = any(isinstance(row, list) for row in settings.rows or ())
    values = [list(map(_value, row)) for row in rows]
    return [row if as_lists else dict(zip(names, row, strict=True)) for row in values]


def _authorize(
    action: int, _: str | None, __: str | None, ___: str | None, view: str | None
) -> int:
    """Allow reading tables.

    Views are refused: with them, an agent could answer the query instead of storing rows.
    """
    is_read = action in (
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    )
    if is_read and view is None:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _value(value: object) -> JsonValue:
    if isinstance(value, (str, int, float, type(None))):
        return value
    return f"{value!r}"


def _in_document(content: bytes, settings: StateEvaluator) -> list[JsonValue]:
    """Return the items at the path of a document; raises ValueError for what is not JSON."""
    value = read_unique(content.decode("utf-8"))
    found = found_at(value, *field_steps(settings.path)) if settings.path else (value,)
    if not found:
        raise ValueError(f"{settings.path} is missing")
    if isinstance(found[0], list):
        return found[0]
    return [found[0]]


def _compared(found: list[JsonValue], settings: StateEvaluator) -> Score:
    expected = [*(settings.rows or ())]
    left = [*map(_text, found)]
    hits: list[str] = []
    misses: list[str] = []
    for place, row in enumerate(map(_text, expected)):
        if settings.ordered:
            is_there = place < len(found) and _text(found[place]) == row
        else:
            is_there = row in left
        (hits if is_there else misses).append(
            f"{'' if is_there else 'missing: '}{shortened(row, MAX_SHOWN)}"
        )
        if row in left:
            left.remove(row)
    more = max(0, len(found) - len(expected))
    if more:
        misses.append(
            f"{counted(more, 'row')} more than expected, "
            f"such as {shortened((left or ['?'])[0], MAX_SHOWN)}"
        )
    total = max(len(found), len(expected))
    if not total:
        return Score(1.0, hits=("no rows",))
    return Score(len(hits) / total, hits=tuple(hits), misses=tuple(misses))


def _text(row: JsonValue) -> str:
    return json.dumps(_plain(row), ensure_ascii=False, sort_keys=True)


def _plain(value: JsonValue) -> JsonValue:
    """Return a value in which 1.0 is 1."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return list(map(_plain, value))
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case _:
            return value
