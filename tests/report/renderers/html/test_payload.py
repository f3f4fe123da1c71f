"""What has room stays by its rank, whatever order things come in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.report.renderers.html.payload import BoundedPieces

PIECES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 99), st.integers(1, 9), st.integers(1, 50)),
    max_size=20,
    unique_by=lambda piece: piece[1:3],
)


def kept(pieces: list[tuple[int, int, int, int]], limit: int) -> list[tuple[int, int, bytes]]:
    bounded = BoundedPieces(limit)
    for kind, case, trial, size in pieces:
        bounded.add(kind, case, trial, b"x" * size)
    return bounded.in_order()


@given(PIECES, st.integers(0, 200))
def test_what_stays_fits_and_depends_on_no_order(pieces: list[tuple[int, int, int, int]], limit: int) -> None:
    found = kept(pieces, limit)
    assert sum(len(piece) for _, _, piece in found) <= limit
    assert kept(pieces[::-1], limit) == found == sorted(found)


@given(PIECES, st.integers(0, 200))
def test_everything_that_stays_is_missed_more_than_everything_that_goes(
    pieces: list[tuple[int, int, int, int]], limit: int
) -> None:
    stays = {(case, trial) for case, trial, _ in kept(pieces, limit)}
    ranks = [(kind, size, case, trial) for kind, case, trial, size in pieces if size <= limit]
    gone = [rank for rank in ranks if rank[2:] not in stays]
    assert all(rank < min(gone) for rank in ranks if gone and rank[2:] in stays)


def test_a_lower_limit_lets_go_of_the_least_missed() -> None:
    bounded = BoundedPieces(100)
    for kind in (2, 0, 1):
        bounded.add(kind, kind, 1, b"x" * 30)
    bounded.shrink(60)
    assert [case for case, _, _ in bounded.in_order()] == [0, 1]
    bounded.add(1, 9, 1, b"x")
    assert [case for case, _, _ in bounded.in_order()] == [0, 1, 9]
    bounded.shrink(-5)
    assert bounded.in_order() == []
