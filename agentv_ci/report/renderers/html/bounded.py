"""Pieces of a file of limited size."""

from __future__ import annotations

from collections.abc import Container

Rank = tuple[int, int, int, int]
"""Kind, size, case and trial of a piece; the largest rank is dropped first."""


class BoundedPieces:
    """Pieces of a file that together fit into a limit.

    Pieces are dropped by rank, so the order in which they are added does not matter.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._size = 0
        self._pieces: list[tuple[Rank, bytes]] = []
        self._gone_from: Rank | None = None

    def add(self, kind: int, case: int, trial: int, piece: bytes) -> None:
        """Add a piece; pieces of the largest `kind` are dropped first."""
        rank = (kind, len(piece), case, trial)
        if len(piece) > self.limit or (self._gone_from is not None and rank >= self._gone_from):
            return
        self._pieces.append((rank, piece))
        self._size += len(piece)
        # Sorting now and then is cheaper than keeping order.
        if self._size > self.limit * 5 // 4:
            self.shrink(self.limit)

    def shrink(self, limit: int) -> None:
        """Drop pieces until the rest fits into a limit."""
        self._pieces.sort()
        while self._size > max(limit, 0):
            self._gone_from, piece = self._pieces.pop()
            self._size -= len(piece)

    def drop_other_cases(self, cases: Container[int]) -> None:
        """Drop the pieces of all other cases."""
        self._pieces = [(rank, piece) for rank, piece in self._pieces if rank[2] in cases]
        self._size = sum(len(piece) for _, piece in self._pieces)

    def in_order(self) -> list[tuple[int, int, bytes]]:
        """Return case, trial and piece of all pieces that fit."""
        self.shrink(self.limit)
        return sorted((case, trial, piece) for (_, _, case, trial), piece in self._pieces)
