"""How many questions a target is asked at once, and how that follows what its server says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.contracts.report import ConcurrencyChange
from agentv_ci.contracts.targets import MockTarget, Target
from agentv_ci.execute.limits import DOWN_AFTER, MAX_CHANGES, Limit, Limits
from tests.servers.chat_api import chat_api, fails, says
from tests.support import NOW, FakeClock
from tests.support.evals import Run, gpt


def limits_of(workers: int | None, answering: str, **own: int | str | None) -> Limits:
    """Return the limits of targets, each with its own `workers`."""
    targets: dict[str, Target] = {
        name: MockTarget.model_validate({"name": name, "provider": "mock", **({"workers": each} if each else {})})
        for name, each in own.items()
    }
    return Limits(workers, targets, answering, FakeClock().environment(), lambda _: None)


async def most_at_once(limit_of: Callable[[str], Limit], keys: str) -> int:
    """Ask all at once; return how many were asked at a time."""
    running = most = 0

    async def ask(key: str) -> None:
        nonlocal running, most
        async with limit_of(key).slot():
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1

    await asyncio.gather(*map(ask, keys))
    return most


@pytest.mark.parametrize(
    ("workers", "own", "width", "most"),
    [
        (None, {"a": None}, 1, 1),
        (None, {"a": None, "b": None}, 1, 2),
        (None, {"a": 4}, 4, 4),
        (None, {"a": 4, "b": None}, 5, 5),
        (None, {"a": 1, "b": 2}, 3, 3),
        (1, {"a": 4}, 1, 1),
        (2, {"a": 5}, 2, 2),
        (5, {"a": 2}, 5, 5),
        (None, {"a": "${{ WORKERS }}"}, 1, 1),
    ],
)
async def test_the_command_line_sets_the_limits_else_each_target_its_own(
    workers: int | None, own: dict[str, int | str | None], width: int, most: int
) -> None:
    # A judge does not widen the run.
    limits = limits_of(workers, "".join(own), judge=8, **own)
    assert (limits.width, await most_at_once(limits.of, "".join(own) * 10)) == (width, most)


def refusal(*, hint_s: float | None = None, retryable: bool = True) -> ProviderError:
    return ProviderError("rate_limit", "HTTP 429", status=429, retryable=retryable, retry_after_s=hint_s)


class Scene:
    """A limit and its changes; `given` replaces fields of its environment."""

    def __init__(self, most: int, **given: Any) -> None:
        self.changes: list[ConcurrencyChange] = []
        self.limit = Limit("gpt", most, replace(FakeClock().environment(), **given), self.changes.append)

    @property
    def widths(self) -> list[tuple[int, int]]:
        return [(change.before, change.after) for change in self.changes]

    async def answer(self) -> None:
        async with self.limit.slot():
            await asyncio.sleep(0)

    async def fail(self, error: Exception) -> None:
        with pytest.raises(type(error)):
            async with self.limit.slot():
                raise error

    async def refuse(self, turn: asyncio.Event, hint_s: float | None) -> None:
        """Ask, be refused when it is the question's turn, and be answered."""
        async with self.limit.slot():
            await turn.wait()
            await self.limit.pause(refusal(hint_s=hint_s), hint_s or 0)


async def test_each_refusal_halves_the_slots_down_to_one_and_each_round_of_answers_adds_one() -> None:
    scene = Scene(4)
    for _ in range(4):
        await scene.fail(refusal())
    for _ in range(1 + 2 + 3 + 10):
        await scene.answer()
    assert scene.widths == [(4, 2), (2, 1), (1, 2), (2, 3), (3, 4)]
    assert [change.reason for change in scene.changes] == ["HTTP 429"] * 2 + ["no refusals in a full round"] * 3
    assert {change.target for change in scene.changes} == {"gpt"}
    assert scene.changes[0].at == NOW.isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def test_many_slots_grow_by_a_sixteenth() -> None:
    scene = Scene(128)
    await scene.fail(refusal())
    for _ in range(1 + 64 + 68):
        await scene.answer()
    assert scene.widths == [(128, 64), (64, 68), (68, 72)]


async def test_a_question_that_is_stopped_while_it_waits_for_shared_slots_keeps_no_slot() -> None:
    class Shared:
        """Gives a slot once."""

        def __init__(self) -> None:
            self.left = 1

        async def acquire(self) -> None:
            if self.left == 0:
                raise ConnectionError
            self.left -= 1

        async def release(self) -> None:
            pass

    scene = Scene(2)
    scene.limit.shared = Shared()
    with pytest.raises(ConnectionError):
        async with scene.limit.slot():
            await scene.limit.pause(refusal(), 0)
    scene.limit.shared = None
    assert await most_at_once(lambda _: scene.limit, "a" * 6) == scene.limit.width


@pytest.mark.parametrize("refused", [8, 1])
async def test_questions_that_were_under_way_halve_once_and_add_nothing(refused: int) -> None:
    scene = Scene(8)
    turns = [asyncio.Event() for _ in range(8)]

    async def ask(number: int) -> None:
        async with scene.limit.slot():
            await turns[number].wait()
            if number < refused:
                raise refusal()

    asked = [asyncio.ensure_future(ask(number)) for number in range(8)]
    for turn in turns:
        await asyncio.sleep(0)
        turn.set()
    await asyncio.gather(*asked, return_exceptions=True)
    assert scene.widths == [(8, 4)]


@pytest.mark.parametrize(
    ("error", "widths"),
    [
        (ProviderError("server", "HTTP 503", status=503, retryable=True), [(4, 2), (2, 3)]),
        (ProviderError("network", "ReadError", retryable=True), [(4, 2), (2, 3)]),
        (refusal(retryable=False), [(4, 2), (2, 3)]),
        (ProviderError("request", "HTTP 400", status=400), [(4, 2), (2, 3), (3, 4)]),
        (ValueError("a bug"), [(4, 2), (2, 3), (3, 4)]),
    ],
    ids=["server", "network", "quota used up", "request", "bug"],
)
async def test_failures_that_may_be_due_to_load_stop_the_growth_for_a_round(
    error: Exception, widths: list[tuple[int, int]]
) -> None:
    scene = Scene(4)
    await scene.fail(refusal())
    for _ in range(4):
        await scene.answer()
        await scene.fail(error)
    await scene.answer()
    await scene.answer()
    assert scene.widths == widths


async def test_a_wait_holds_all_questions_back_and_repeated_ones_go_first() -> None:
    is_over, order = asyncio.Event(), list[str]()

    async def sleep(seconds: float) -> None:
        if seconds:
            await is_over.wait()

    scene = Scene(4, sleep=sleep, monotonic=lambda: 7.0 * is_over.is_set())
    turns = {name: asyncio.Event() for name in ("first", "second", "third")}

    async def refuse(name: str) -> None:
        await scene.refuse(turns[name], 7 if name == "first" else None)
        order.append(name)

    async def ask() -> None:
        await scene.answer()
        order.append("new")

    asking = [asyncio.create_task(refuse(name)) for name in turns]
    for turn in turns.values():
        await asyncio.sleep(0.01)
        turn.set()
        if len(asking) == len(turns):
            await asyncio.sleep(0.01)
            asking.append(asyncio.create_task(ask()))
    await asyncio.sleep(0.01)
    assert order == []
    is_over.set()
    await asyncio.gather(*asking)
    assert order == ["second", "third", "first", "new"]
    assert (scene.widths[0], scene.changes[0].held_s) == ((4, 2), 7.0)


@pytest.mark.parametrize(
    ("most", "hints_s", "changes"),
    [
        (1, [5], [(1, 1, 5.0)]),
        (1, [None], []),
        (8, [3, 9, 2, 9.5], [(8, 4, 3.0), (4, 4, 6.0)]),
        (8, [None, 3], [(8, 4, 0.0), (4, 4, 3.0)]),
        (8, [3, 4], [(8, 4, 3.0), (4, 4, 1.0)]),
    ],
)
async def test_only_a_longer_wait_prolongs_the_hold_and_is_reported(
    most: int, hints_s: list[float | None], changes: list[tuple[int, int, float]]
) -> None:
    scene = Scene(most, sleep=lambda _: asyncio.sleep(60), monotonic=lambda: 0.0)
    turns = [asyncio.Event() for _ in hints_s]
    asking = [asyncio.create_task(scene.refuse(turn, hint_s)) for turn, hint_s in zip(turns, hints_s, strict=True)]
    for turn in turns:
        await asyncio.sleep(0.001)
        turn.set()
    await asyncio.sleep(0.001)
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    await scene.limit.close()
    assert [(change.before, change.after, change.held_s) for change in scene.changes] == changes


async def test_a_question_that_is_cancelled_while_it_waits_or_pauses_gives_its_slot_back_once() -> None:
    scene = Scene(2, sleep=lambda _: asyncio.sleep(60))
    for _ in range(3):
        turn = asyncio.Event()
        turn.set()
        pausing = asyncio.create_task(scene.refuse(turn, None))
        await asyncio.sleep(0.001)
        pausing.cancel()
        await asyncio.gather(pausing, return_exceptions=True)
    async with scene.limit.slot():
        waiting = [asyncio.create_task(scene.answer()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        waiting[2].cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert (await most_at_once(lambda _: scene.limit, "a" * 6), scene.limit.width) == (2, 2)


@pytest.mark.parametrize(("hint_s", "held_s"), [(60.0, 60.0), (60.1, 0.0), (None, 0.0)])
async def test_a_refusal_that_is_final_holds_others_back_for_a_minute_at_most(
    hint_s: float | None, held_s: float
) -> None:
    scene = Scene(4, sleep=lambda _: asyncio.sleep(60), monotonic=lambda: 0.0)
    await scene.fail(refusal(hint_s=hint_s))
    await scene.limit.close()
    assert [change.held_s for change in scene.changes] == [held_s]


async def test_a_run_keeps_as_many_changes_as_its_report_may_have() -> None:
    limits = limits_of(None, "a", a=2)
    for _ in range(MAX_CHANGES):
        with suppress(ProviderError):
            async with limits.of("a").slot():
                raise refusal()
        async with limits.of("a").slot():
            pass
    assert len(limits.changes) == MAX_CHANGES


@pytest.mark.parametrize(
    ("settings", "execution"),
    [({"max_retries": 0}, {}), ({"retry_max_delay_ms": 1_000}, {}), ({}, {"timeout_seconds": 2})],
    ids=["last try", "longer than the longest wait", "no time"],
)
def test_a_target_rests_although_the_refused_question_is_given_up(
    settings: dict[str, Any], execution: dict[str, Any], repository: Path
) -> None:
    run = Run(repository)
    replies = iter([fails(429, retry_after="3")])
    with chat_api(lambda _: next(replies, says("42"))) as api:
        run.documents([f"case-{number}" for number in range(4)], gpt(api.base_url, **settings), **execution)
        report = run().report
    assert [row.verdict for row in run.written()] == ["error", "pass", "pass", "pass"]
    assert [change.held_s for change in report.concurrency] == [3.0]


async def test_an_answer_to_a_question_that_was_under_way_ends_that_a_target_is_down() -> None:
    scene, turn = Scene(2), asyncio.Event()

    async def answer_later() -> None:
        async with scene.limit.slot():
            await turn.wait()

    under_way = asyncio.create_task(answer_later())
    await asyncio.sleep(0)
    for _ in range(DOWN_AFTER):
        await scene.fail(ProviderError("network", "ConnectError", unreachable=True))
    with pytest.raises(ProviderError, match="gpt is down"):
        await scene.answer()
    turn.set()
    await under_way
    await scene.answer()
