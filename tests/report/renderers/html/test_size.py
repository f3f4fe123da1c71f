"""What is left out of a page that would be too large."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.contracts.results import OutputMessage, ResultRow, ToolCall
from agentv_ci.report.renderers.html import document as html
from agentv_ci.report.renderers.html.blocks import MAX_TEXT
from agentv_ci.report.renderers.html.bounded import BoundedPieces
from agentv_ci.report.view import RunView
from tests.report.renderers.html.pages import Document, page, rendered
from tests.support.runs import VERDICTS, case, reported, row, rows_of, whole

PIECES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 99), st.integers(1, 9), st.integers(1, 50)),
    max_size=20,
    unique_by=lambda piece: piece[1:3],
)

Limited = Callable[..., Document]


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Limited:
    """Return a page of rows whose data has so many bytes at most."""

    def page_of(rows: list[ResultRow], room: int) -> Document:
        monkeypatch.setattr(html, "MAX_BYTES", limit := len(rendered(reported([]))) + room)
        text = rendered(reported(rows))
        assert len(text) <= limit
        return Document(text.decode())

    return page_of


def tool_calls(number: int) -> dict[str, Any]:
    calls = (ToolCall(tool="read", input={}, output="x" * 90_000) for _ in range(number))
    return {"output_messages": (OutputMessage(role="assistant", content="", tool_calls=tuple(calls)),)}


def test_long_texts_are_cut_and_carry_their_length() -> None:
    trial = page(row(candidate_answer="x" * MAX_TEXT, reasoning="y" * (MAX_TEXT + 1))).data("trial-0-1")
    assert trial["candidate_answer"] == "x" * MAX_TEXT
    assert trial["reasoning"] == {"text": "y" * MAX_TEXT, "length": MAX_TEXT + 1}


@pytest.mark.parametrize(
    ("room", "kept"),
    # In the last row each trial is too long, and only its beginning is kept.
    [(4.5, {0, 1, 2, 3}), (3.5, {1, 2, 3}), (2.5, {2, 3}), (0.9, {2, 3})],
)
def test_texts_of_passed_then_borderline_cases_go_first(limited: Limited, room: float, kept: set[int]) -> None:
    verdicts = enumerate(VERDICTS.values(), 1)
    rows = [row(each, of=case(each, line=line), candidate_answer="x" * 50_000) for line, each in verdicts]
    document = limited(rows, 4_000 + round(room * 51_000))
    assert document.trials == {f"trial-{number}-1" for number in kept}
    assert len(document.data("cases")) == 4
    assert (document.data("run")["trials"], document.data("run")["texts"]) == (4, len(kept))


@pytest.mark.parametrize(
    ("first", "second", "kept"), [("ppp", "pfp", 1), ("pff", "pfp", 0)], ids=["steady and flaky", "failed and flaky"]
)
def test_texts_of_flaky_cases(limited: Limited, first: str, second: str, kept: int) -> None:
    rows = [
        each.model_copy(update={"candidate_answer": "x" * (50_000 - 1_000 * number)})
        for number, letters in enumerate((first, second))
        for each in rows_of(case(letters, line=number + 1, trials=3), letters)
    ]
    document = limited(rows, 4_000 + 3 * 52_000)
    assert document.trials == {f"trial-{kept}-{trial}" for trial in (1, 2, 3)}


def test_all_failed_cases_keep_their_texts(limited: Limited) -> None:
    letters = ("f" + "p" * 9) * 20
    cases = [case(f"{number}", line=number) for number in range(1, 201)]
    pairs = zip(letters, cases, strict=True)
    rows = [row(VERDICTS[each], of=of, candidate_answer="x" * 5_000) for each, of in pairs]
    document = limited(rows, 350_000)
    failed = {f"trial-{each['n']}-1" for each in document.data("cases") if each["verdict"] == "fail"}
    assert len(failed) == 20
    assert failed <= document.trials
    assert len(document.trials) < 200


def test_table_loses_passed_cases_last(limited: Limited) -> None:
    rows = [row(VERDICTS[each], of=case(f"{n}", line=n)) for n, each in enumerate("fp" * 200, 1)]
    document = limited(rows, 144_000)
    table = document.data("cases")
    assert sum(each["verdict"] == "fail" for each in table) == 200
    assert 200 < len(table) < 400
    assert document.data("run")["cases"] == 400
    assert [each["n"] for each in table] == sorted(each["n"] for each in table)


def test_texts_of_cases_that_left_the_table_take_no_room(limited: Limited) -> None:
    rows = [
        row(of=case(f"{number}{'i' * (600 if number % 2 else 1)}", line=number + 1), candidate_answer=answer)
        for number, answer in enumerate(["x" * 1_500, "x" * 10] * 100)
    ]
    document = limited(rows, 200_000)
    listed = {each["n"] for each in document.data("cases")}
    assert 0 < len(listed) < len(rows)
    assert {int(name.split("-")[1]) for name in document.trials} <= listed


def test_huge_trial_keeps_the_beginnings_of_its_texts(limited: Limited) -> None:
    rows = [row("fail", of=case("a", line=1), misses=("<" * 90_000,) * 9), row(of=case("b", line=2))]
    document = limited(rows, 56_000)
    assert document.trials == {"trial-0-1", "trial-1-1"}
    assert len(document.blocks["trial-0-1"]) < 50_000
    assert [each["length"] for each in document.data("trial-0-1")["misses"]] == [90_000] * 9
    assert document.data("trial-0-1")["candidate_answer"] == "Hello"


def test_long_trace_takes_no_room_from_others(limited: Limited) -> None:
    passed = [row(of=case(f"{number}", line=number + 1)) for number in range(20)]
    failed = row("fail", of=case("long", line=99), candidate_answer="the answer", **tool_calls(10))
    document = limited([*passed, failed], 300_000)
    assert len(document.trials) == 21
    assert document.data("trial-20-1")["candidate_answer"] == "the answer"


def test_rows_are_read_once_and_not_kept() -> None:
    class Row(ResultRow):
        __hash__ = object.__hash__
        __eq__ = object.__eq__

    rows = [Row.model_construct(**dict(row(of=case(f"{number}", line=number + 1)))) for number in range(50)]
    alive: weakref.WeakSet[ResultRow] = weakref.WeakSet()
    counts: list[int] = []

    def read() -> Iterator[ResultRow]:
        for each in rows:
            fresh = each.model_copy()
            alive.add(fresh)
            counts.append(len(alive))
            yield fresh

    list(html.render(RunView(*whole(rows), read)))
    assert len(counts) == 50
    assert max(counts) <= 3


def kept(pieces: list[tuple[int, int, int, int]], limit: int) -> list[tuple[int, int, bytes]]:
    bounded = BoundedPieces(limit)
    for kind, number, trial, size in pieces:
        bounded.add(kind, number, trial, b"x" * size)
    return bounded.in_order()


@given(PIECES, st.integers(0, 200))
def test_pieces_are_dropped_by_rank_in_any_order(pieces: list[tuple[int, int, int, int]], limit: int) -> None:
    found = kept(pieces, limit)
    assert sum(len(piece) for _, _, piece in found) <= limit
    assert kept(pieces[::-1], limit) == found == sorted(found)
    stays = {(number, trial) for number, trial, _ in found}
    ranks = [(kind, size, number, trial) for kind, number, trial, size in pieces if size <= limit]
    dropped = [rank for rank in ranks if rank[2:] not in stays]
    assert all(rank < min(dropped) for rank in ranks if dropped and rank[2:] in stays)


def test_lower_limit_drops_the_largest_kind() -> None:
    bounded = BoundedPieces(100)
    for kind in (2, 0, 1):
        bounded.add(kind, kind, 1, b"x" * 30)
    bounded.shrink(60)
    assert [number for number, _, _ in bounded.in_order()] == [0, 1]
    bounded.add(1, 9, 1, b"x")
    assert [number for number, _, _ in bounded.in_order()] == [0, 1, 9]
    bounded.shrink(-5)
    assert bounded.in_order() == []
