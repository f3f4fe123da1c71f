"""How many questions are asked at once."""

from __future__ import annotations

import asyncio

import pytest

from agentv_ci.contracts.targets import MockTarget, Target
from agentv_ci.execute.limits import Limits
from tests.support import FakeClock


def targets(**workers: int | str | None) -> dict[str, Target]:
    """Targets by name, each with its own `workers`."""
    return {
        name: MockTarget.model_validate(
            {"name": name, "provider": "mock", **({} if each is None else {"workers": each})}
        )
        for name, each in workers.items()
    }


def limits_of(
    workers: int | None,
    known: dict[str, Target],
    answering: list[str],
    *,
    waits: FakeClock | None = None,
    log: list[str] | None = None,
) -> Limits:
    return Limits(workers, known, answering, (waits or FakeClock()).environment(), ([] if log is None else log).append)


def most_at_once(limits: Limits, *keys: str) -> int:
    """Ask all at once; return how many were asked at a time."""
    running = most = 0

    async def ask(key: str) -> None:
        nonlocal running, most
        async with limits.of(key).slot():
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1

    async def main() -> None:
        async with asyncio.timeout(10):
            await asyncio.gather(*map(ask, keys))

    asyncio.run(main())
    return most


@pytest.mark.parametrize(
    ("workers", "own", "width"),
    [
        (None, {"a": None}, 1),
        (None, {"a": None, "b": None}, 1),
        (None, {"a": 1, "b": 1}, 1),
        (None, {"a": 4}, 4),
        (None, {"a": 4, "b": None}, 5),
        (None, {"a": 2, "b": 3}, 5),
        (1, {"a": 4, "b": 4}, 1),
        (8, {"a": None}, 8),
        (8, {"a": 2, "b": 2}, 8),
    ],
)
def test_the_run_is_as_wide_as_the_command_line_says_else_as_the_targets(
    workers: int | None, own: dict[str, int | None], width: int
) -> None:
    assert limits_of(workers, targets(**own), list(own) * 3).width == width


def test_a_judge_does_not_widen_the_run() -> None:
    assert limits_of(None, targets(a=2, judge=8), ["a"]).width == 2


@pytest.mark.parametrize(
    ("workers", "own", "most"), [(None, None, 1), (None, 3, 3), (2, None, 2), (2, 5, 2), (5, 2, 5)]
)
def test_a_target_is_asked_no_more_at_once_than_it_may_be(workers: int | None, own: int | None, most: int) -> None:
    assert most_at_once(limits_of(workers, targets(a=own), ["a"]), *["a"] * 20) == most


def test_targets_do_not_wait_for_each_other() -> None:
    assert most_at_once(limits_of(None, targets(a=1, b=2), ["a", "b"]), *["a", "b"] * 10) == 3


def test_a_question_that_fails_frees_its_slot() -> None:
    limits = limits_of(1, targets(a=None), ["a"])

    async def fail() -> None:
        async with limits.of("a").slot():
            raise ValueError("no answer")

    async def main() -> None:
        for _ in range(3):
            with pytest.raises(ValueError, match="no answer"):
                await asyncio.wait_for(fail(), 10)

    asyncio.run(main())


def test_a_reference_that_a_dry_run_leaves_alone_counts_as_nothing_said() -> None:
    limits = limits_of(None, targets(a="${{ WORKERS }}"), ["a"])
    assert (limits.width, most_at_once(limits, "a", "a", "a")) == (1, 1)
