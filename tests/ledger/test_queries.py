"""The queries of the documentation, over ledgers as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.ledger.folder import add_to_folder
from tests.support.nights import SUITE, Stretch, files_of
from tests.support.pages import blocks

duckdb = pytest.importorskip("duckdb", reason="pip install 'duckdb>=2'")

(QUERIES,) = [
    [query for query in text.split(";") if query.strip()]
    for place, text in blocks("sql")
    if place.startswith("docs/history.md:")
]


def answers(
    folder: Path, cases: Mapping[str, Sequence[Stretch]], *, edit: tuple[bytes, bytes] = (b"", b"")
) -> list[Any]:
    """Return the answers to the queries about a ledger."""
    files = files_of(cases)
    add_to_folder(folder / "ledger", {path: content.replace(*edit) for path, content in files.items()})
    view, *queries = QUERIES
    with duckdb.connect() as database:
        database.sql(view.replace("'ledger/", f"'{folder}/ledger/"))
        return [database.sql(query).fetchall() for query in queries]


def test_queries_of_the_documentation(tmp_path: Path) -> None:
    stretches = [Stretch(1, (0.9,), answer="A"), Stretch(2, (0.5,), answer="A")]
    nights, rates, judged = answers(tmp_path, {"judged": stretches, "steady": [Stretch(3, (1.0,))]})
    assert [(f"{time:%Y-%m-%d}", *figures) for time, _, *figures in nights] == [
        ("2026-01-01", 1.0, pytest.approx(0.95), pytest.approx(0.02)),
        ("2026-01-02", 0.5, pytest.approx(0.75), pytest.approx(0.02)),
        ("2026-01-03", 0.5, pytest.approx(0.75), pytest.approx(0.02)),
    ]
    assert rates == [(SUITE, "judged", "assistant", 1 / 3, 3), (SUITE, "steady", "assistant", 1.0, 3)]
    assert [each[-2:] for each in judged] == [(0.5, 0.9)]


def test_ledger_without_costs_and_judges_can_be_queried(tmp_path: Path) -> None:
    nights, rates, judged = answers(tmp_path, {"one": [Stretch(1, (1.0,))]}, edit=(b',"cost_usd":0.01', b""))
    assert [each[-1] for each in nights] == [None]
    assert rates == [(SUITE, "one", "assistant", 1.0, 1)]
    assert judged == []
