"""Which trial is next."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.contracts.targets import MockTarget
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.queue import Lane, Queue
from agentv_ci.results.rows import Trial
from tests.conftest import Waits
from tests.report.builders import case, suite


def trial(target: str, number: int) -> Trial:
    asked = MockTarget(name=target, provider="mock")
    return Trial(case(f"{target}{number}", target=target), suite(), asked, 1, None, dry_run=False)


class Line:
    """A queue over cases whose targets are the letters of a text, in order."""

    def __init__(self, targets: str, workers: dict[str, int]) -> None:
        known = {
            name: MockTarget(name=name, provider="mock", workers=workers.get(name, 1)) for name in sorted({*targets})
        }
        self.trials = [trial(target, number) for number, target in enumerate(targets)]
        self.limits = Limits(None, known, targets, Waits().world(), lambda _: None)
        self.unwanted: set[str] = set()
        lanes = (
            Lane(target, iter([(n, each) for n, each in enumerate(self.trials) if each.case.target == target]))
            for target in known
        )
        self.queue = Queue(lanes, self.limits, lambda each: each.case.id not in self.unwanted)

    async def work(self, took: list[str], lasting: Iterable[float]) -> None:
        for seconds in lasting:
            found = await self.queue.next()
            if found is None:
                return
            took.append(found.case.id)
            with self.queue.running(found):
                await asyncio.sleep(seconds)


def run_all(line: Line, workers: int, seed: int = 0) -> list[str]:
    chance = random.Random(seed)
    took: list[str] = []

    async def main() -> None:
        lasting = [chance.random() / 1000 for _ in range(1000)]
        async with asyncio.timeout(20), asyncio.TaskGroup() as all_of_them:
            for _ in range(workers):
                all_of_them.create_task(line.work(took, lasting))

    asyncio.run(main())
    return took


def test_one_worker_goes_through_the_documents_in_order() -> None:
    line = Line("aabbaacb", {"a": 1, "b": 4})
    assert run_all(line, 1) == [each.case.id for each in line.trials]


def test_a_busy_target_holds_up_no_other() -> None:
    line = Line("aaaab", {"a": 1, "b": 1})
    took: list[str] = []

    async def main() -> None:
        first = await line.queue.next()
        assert first is not None
        with line.queue.running(first):
            second = await line.queue.next()
            assert second is not None
            took.extend([first.case.id, second.case.id])

    asyncio.run(main())
    assert took == ["a0", "b4"]


@given(st.text("abc", min_size=1, max_size=30), st.integers(1, 6), st.integers(0, 99))
def test_everything_is_handed_out_once_whatever_the_limits_are(targets: str, workers: int, seed: int) -> None:
    line = Line(targets, {"a": 1, "b": 2, "c": 3})
    took = run_all(line, workers, seed)
    assert sorted(took) == sorted(each.case.id for each in line.trials)


def test_what_is_not_wanted_any_more_is_passed_over() -> None:
    line = Line("aaaa", {"a": 2})
    line.unwanted = {"a0", "a2", "a3"}
    assert run_all(line, 3) == ["a1"]


@pytest.mark.parametrize("waiting", [False, True])
def test_nothing_more_is_handed_out_when_it_is_stopped(waiting: bool) -> None:
    line = Line("aaa", {"a": 1})

    async def main() -> tuple[object, object]:
        first = await line.queue.next()
        assert first is not None
        with line.queue.running(first):
            next_one = asyncio.create_task(line.queue.next())
            if waiting:
                await asyncio.sleep(0)
            line.queue.stop()
            return await asyncio.wait_for(next_one, 10), await line.queue.next()

    assert asyncio.run(main()) == (None, None)
