"""Cases of large plans, compressed in memory."""

from __future__ import annotations

import zlib
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from typing import Any, TypeVar, overload

from pydantic import BaseModel, TypeAdapter

from agentv_ci.contracts.cases import CaseHead, StoredHead
from agentv_ci.contracts.plan import Plan, PlanCase

T = TypeVar("T")

MANY = 5_000
"""Most cases of a plan that are kept as they are, which takes 4 KiB each."""
BLOCK = 128
"""Cases that are compressed together."""
OPEN_BLOCKS = 8
"""Blocks that stay open: the cases of several targets are asked at the same time."""


_FIELD_NAMES: dict[frozenset[str], set[str]] = {}


def share_field_names(part: object) -> None:
    """Let equal models share the set of field names that pydantic keeps with each.

    5,000 short cases take 22 MB instead of 35. pydantic has no public way to do it for a model that
    it has validated.
    """
    if isinstance(part, BaseModel):
        names = part.__pydantic_fields_set__
        object.__setattr__(
            part, "__pydantic_fields_set__", _FIELD_NAMES.setdefault(frozenset(names), names)
        )
        part = tuple(part.__dict__.values())
    if isinstance(part, tuple):
        for each in part:
            share_field_names(each)


def packed(cases: Iterable[PlanCase]) -> Sequence[PlanCase]:
    """Return the cases of a plan, compressed if there are many."""
    rest = iter(cases)
    first: deque[PlanCase] = deque()
    for case in islice(rest, MANY + 1):
        share_field_names(case)
        first.append(case)
    if len(first) <= MANY:
        return tuple(first)
    # Each one is freed when it is packed.
    return PackedCases(chain((first.popleft() for _ in range(len(first))), rest))


def heads_of(plan: Plan) -> Sequence[CaseHead]:
    """Return what is known of the cases of a plan without reading them."""
    return plan.cases.heads if isinstance(plan.cases, PackedCases) else plan.cases


class PackedCases(Sequence[PlanCase]):
    """Many cases of a plan: their heads, and everything compressed."""

    def __init__(self, cases: Iterable[PlanCase]) -> None:
        heads: list[StoredHead] = []
        self._blocks: list[bytes] = []
        shared: dict[Any, Any] = {}
        rest = iter(cases)
        while block := list(islice(rest, BLOCK)):
            heads += (_head(case, shared) for case in block)
            self._blocks.append(
                zlib.compress(_cases().dump_json(block, by_alias=True, exclude_none=True), 1)
            )
        self.heads: Sequence[StoredHead] = heads
        self._open: OrderedDict[int, Sequence[PlanCase]] = OrderedDict()

    def __len__(self) -> int:
        return len(self.heads)

    def __iter__(self) -> Iterator[PlanCase]:
        return chain.from_iterable(map(_read, self._blocks))

    @overload
    def __getitem__(self, index: int) -> PlanCase: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PlanCase]: ...
    def __getitem__(self, index: int | slice) -> PlanCase | Sequence[PlanCase]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        number, place = divmod(range(len(self))[index], BLOCK)
        block = self._open.pop(number, None) or _read(self._blocks[number])
        self._open[number] = block
        if len(self._open) > OPEN_BLOCKS:
            self._open.popitem(last=False)
        return block[place]


@cache
def _cases() -> TypeAdapter[list[PlanCase]]:
    return TypeAdapter(list[PlanCase])


def _read(block: bytes) -> Sequence[PlanCase]:
    return _cases().validate_json(zlib.decompress(block), by_alias=True, by_name=False)


def _head(case: PlanCase, shared: dict[Any, Any]) -> StoredHead:
    """Return the head of a case; equal names and lists are kept once, in `shared`."""

    def once(value: T) -> T:
        found: T = shared.setdefault(value, value)
        return found

    return StoredHead(
        id=case.id,
        suite=once(case.suite),
        sha256=bytes.fromhex(case.digest),
        path=once(case.source.path),
        line=case.source.line,
        trials=case.trials,
        require=once(case.require),
        stop_when=once(case.stop_when),
        tags=once(case.tags),
        target=once(case.target),
        arm=once(case.arm),
        seeds=once(case.seeds),
        skip=once(case.skip),
        judges=once(case.judges),
        guidelines=once(case.guidelines),
    )
