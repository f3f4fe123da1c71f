"""What a file has room for, when not everything: the most telling things first, whatever order they come in."""

from __future__ import annotations

import heapq
from collections.abc import Container
from dataclasses import dataclass, field
from typing import TypeAlias

Rank: TypeAlias = tuple[int, int, int, int]
"""How soon something goes: kind, size, case, trial; what is smaller stays longer."""


@dataclass(slots=True)
class Keeper:
    """Holds pieces of a file, never more than their limit together.

    What goes is the end of all pieces in the order of their ranks, so what stays depends on no other order.
    """

    limit: int
    _size: int = 0
    _worst_first: list[tuple[Rank, Rank, bytes]] = field(default_factory=list)
    _gone_from: Rank | None = None

    def add(self, kind: int, case: int, trial: int, piece: bytes) -> None:
        """Take in a piece; `kind` is how little it will be missed."""
        rank = (kind, len(piece), case, trial)
        if len(piece) > self.limit or (self._gone_from is not None and rank >= self._gone_from):
            return
        heapq.heappush(self._worst_first, ((-rank[0], -rank[1], -rank[2], -rank[3]), rank, piece))
        self._size += len(piece)
        self.shrink(self.limit)

    def shrink(self, limit: int) -> None:
        """Let go of what is over a limit."""
        while self._size > max(limit, 0):
            _, self._gone_from, piece = heapq.heappop(self._worst_first)
            self._size -= len(piece)

    def keep_cases(self, cases: Container[int]) -> None:
        """Let go of what is of other cases."""
        self._worst_first = [each for each in self._worst_first if each[1][2] in cases]
        heapq.heapify(self._worst_first)
        self._size = sum(len(piece) for _, _, piece in self._worst_first)

    @property
    def kept(self) -> list[tuple[int, int, bytes]]:
        """Case, trial and piece, in order."""
        return sorted((rank[2], rank[3], piece) for _, rank, piece in self._worst_first)
