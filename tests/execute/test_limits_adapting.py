"""How a target's slots follow what its server says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.contracts.report import ConcurrencyChange
from agentv_ci.execute.limits import Limit
from tests.support import NOW, FakeClock


def refusal(*, hint_s: float | None = None, retryable: bool = True) -> ProviderError:
    return ProviderError("rate_limit", "HTTP 429", status=429, retryable=retryable, retry_after_s=hint_s)


class Scene:
    """A limit, its changes, and a clock that moves when somebody waits."""

    def __init__(self, most: int) -> None:
        self.waits = FakeClock()
        self.changes: list[ConcurrencyChange] = []
        self.limit = Limit("gpt", most, self.waits.environment(), self.changes.append)

    @property
    def widths(self) -> list[tuple[int, int]]:
        return [(change.before, change.after) for change in self.changes]

    async def answer(self) -> None:
        async with self.limit.slot():
            await asyncio.sleep(0)

    async def fail(self, error: ProviderError) -> None:
        with pytest.raises(ProviderError):
            async with self.limit.slot():
                raise error

    async def refuse(self, *, hint_s: float | None = None) -> None:
        """Refused once, then answered."""
        error = refusal(hint_s=hint_s)
        async with self.limit.slot():
            await self.limit.pause(error, 1.0 if hint_s is None else hint_s)


def play(most: int, act: Callable[[Scene], Awaitable[None]]) -> Scene:
    async def main() -> Scene:
        scene = Scene(most)
        async with asyncio.timeout(20):
            await act(scene)
        await scene.limit.close()
        return scene

    return asyncio.run(main())


def test_a_refusal_halves_the_slots_and_each_round_of_answers_gives_one_back() -> None:
    async def act(scene: Scene) -> None:
        await scene.fail(refusal())
        for _ in range(2 + 3):
            await scene.answer()
        for _ in range(10):
            await scene.answer()

    scene = play(4, act)
    assert scene.widths == [(4, 2), (2, 3), (3, 4)]
    assert [change.reason for change in scene.changes] == ["HTTP 429", *["no refusals in a full round"] * 2]
    assert {change.target for change in scene.changes} == {"gpt"}
    assert scene.changes[0].at == NOW.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_refusals_of_questions_that_were_under_way_count_once() -> None:
    async def act(scene: Scene) -> None:
        begun = asyncio.Barrier(8)

        async def refused() -> None:
            async with scene.limit.slot():
                await begun.wait()
                raise refusal()

        errors = await asyncio.gather(*(refused() for _ in range(8)), return_exceptions=True)
        assert {type(error) for error in errors} == {ProviderError}

    assert play(8, act).widths == [(8, 4)]


def test_the_next_refusal_after_those_halves_again_but_never_below_one() -> None:
    async def act(scene: Scene) -> None:
        for _ in range(6):
            await scene.fail(refusal())

    assert play(8, act).widths == [(8, 4), (4, 2), (2, 1)]


@pytest.mark.parametrize(
    "error",
    [
        ProviderError("server", "HTTP 503", status=503, retryable=True),
        ProviderError("network", "ReadError", retryable=True),
        refusal(retryable=False),
    ],
    ids=["server", "network", "quota used up"],
)
def test_other_failures_narrow_nothing_and_stop_the_growth_for_a_round(error: ProviderError) -> None:
    async def act(scene: Scene) -> None:
        await scene.fail(refusal())
        for _ in range(3):
            await scene.answer()
            await scene.fail(error)
        await scene.answer()
        await scene.answer()

    assert play(4, act).widths == [(4, 2), (2, 3)]


def test_nobody_asks_while_the_server_wants_rest_and_a_repeated_question_goes_first() -> None:
    order: list[str] = []

    async def act(scene: Scene) -> None:
        held = asyncio.Event()

        async def sleep(seconds: float) -> None:
            await held.wait()
            scene.waits.slept.append(seconds)

        scene.limit = Limit("gpt", 2, replace(scene.waits.environment(), sleep=sleep), scene.changes.append)

        async def refused() -> None:
            async with scene.limit.slot():
                await scene.limit.pause(refusal(hint_s=7), 7)
                order.append("repeated")

        async def other(name: str) -> None:
            async with scene.limit.slot():
                order.append(name)

        first = asyncio.create_task(refused())
        await asyncio.sleep(0.01)
        others = [asyncio.create_task(other(name)) for name in ("one", "two")]
        await asyncio.sleep(0.01)
        assert order == []
        held.set()
        await asyncio.gather(first, *others)

    scene = play(2, act)
    assert order == ["repeated", "one", "two"]
    assert (scene.widths[0], scene.changes[0].held_s) == ((2, 1), 7.0)


def test_a_longer_wish_prolongs_the_wait_and_a_shorter_one_does_not() -> None:
    async def act(scene: Scene) -> None:
        async def sleep(seconds: float) -> None:
            await asyncio.sleep(0.01)
            scene.waits.slept.append(seconds)

        scene.limit = Limit("gpt", 8, replace(scene.waits.environment(), sleep=sleep), scene.changes.append)
        begun = asyncio.Barrier(4)

        async def refused(hint_s: float) -> None:
            async with scene.limit.slot():
                await begun.wait()
                await scene.limit.pause(refusal(hint_s=hint_s), hint_s)

        async with asyncio.TaskGroup() as asking:
            for hint_s in (3, 9, 2, 9.5):
                asking.create_task(refused(hint_s))

    held = [(change.before, change.after, change.held_s) for change in play(8, act).changes if change.held_s]
    # Which question comes first is not said; together they wait as long as the longest wish.
    assert held[0][:2] == (8, 4)
    assert 9 <= sum(seconds for _, _, seconds in held) <= 9.5
    assert {change[:2] for change in held[1:]} <= {(4, 4)}


def test_at_one_slot_only_a_wait_is_told() -> None:
    async def act(scene: Scene) -> None:
        await scene.fail(refusal())
        await scene.refuse(hint_s=5)

    scene = play(1, act)
    assert [(change.before, change.after, change.held_s) for change in scene.changes] == [(1, 1, 5.0)]


def test_who_is_cancelled_while_waiting_takes_no_slot_away() -> None:
    async def act(scene: Scene) -> None:
        async with scene.limit.slot():
            waiting = [asyncio.create_task(scene.answer()) for _ in range(3)]
            await asyncio.sleep(0)
            waiting[0].cancel()
            waiting[2].cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.wait_for(scene.answer(), 5)

    play(1, act)


def test_who_is_cancelled_while_pausing_gives_the_slot_back_once() -> None:
    async def act(scene: Scene) -> None:
        async def forever() -> None:
            async with scene.limit.slot():
                await scene.limit.pause(refusal(), 1)
                await asyncio.sleep(60)

        for _ in range(3):
            task = asyncio.create_task(forever())
            await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        running = most = 0

        async def count() -> None:
            nonlocal running, most
            async with scene.limit.slot():
                running += 1
                most = max(most, running)
                await asyncio.sleep(0.001)
                running -= 1

        await asyncio.gather(*(count() for _ in range(6)))
        assert most == scene.limit.width == 2

    play(2, act)
