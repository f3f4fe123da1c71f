"""The cases of large plans are compressed in memory."""

from __future__ import annotations

import pytest

from agentv_ci.contracts import packed_cases
from agentv_ci.contracts.cases import CaseHead
from agentv_ci.contracts.packed_cases import BLOCK, MANY, OPEN_BLOCKS, PackedCases, heads_of, packed
from tests.support.runs import case, plan

FACTS = [name for name in vars(CaseHead) | vars(CaseHead.__mro__[1]) if not name.startswith("_")]

CASES = [case(f"case-{number}", line=number + 1, tags=("slow",) if number % 2 else None) for number in range(3 * BLOCK)]


@pytest.fixture(scope="module")
def many() -> PackedCases:
    return PackedCases(CASES)


def test_items_are_the_cases(many: PackedCases) -> None:
    assert len(many) == len(CASES)
    assert list(many) == CASES
    assert [many[0], many[BLOCK], many[-1]] == [CASES[0], CASES[BLOCK], CASES[-1]]
    assert many[BLOCK - 1 : BLOCK + 1] == CASES[BLOCK - 1 : BLOCK + 1]
    for outside in (len(CASES), -len(CASES) - 1):
        with pytest.raises(IndexError):
            many[outside]


def test_heads_say_what_the_cases_say(many: PackedCases) -> None:
    assert {"id", "digest", "judges", "guidelines"} <= {*FACTS}
    for head, full in zip(many.heads, CASES, strict=True):
        assert [getattr(head, name) for name in FACTS if name != "source"] == [
            getattr(full, name) for name in FACTS if name != "source"
        ]
        assert (head.source.path, head.source.line) == (full.source.path, full.source.line)


def test_few_blocks_stay_open() -> None:
    many = PackedCases(CASES[:1] * ((OPEN_BLOCKS + 1) * BLOCK))
    first, second = many[0], many[BLOCK]
    for place in range(2 * BLOCK, OPEN_BLOCKS * BLOCK, BLOCK):
        many[place]
    assert many[0] is first
    many[-1]
    assert many[0] is first
    assert many[BLOCK] is not second


def test_few_cases_stay_as_they_are() -> None:
    few = packed(iter(CASES))
    assert few == tuple(CASES)
    assert heads_of(plan(*CASES[:2])) == tuple(CASES[:2])


def test_many_cases_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_cases, "MANY", 3)
    assert [type(packed(CASES[:number])) for number in (3, 4)] == [tuple, PackedCases]
    assert list(packed(iter(CASES[:4]))) == CASES[:4]
    assert MANY > 3
