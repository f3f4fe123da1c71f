"""Which trial is next."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.targets import MockTarget, Target
from agentv_ci.execute.budget import Budget
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.run_services import RunOptions
from agentv_ci.execute.trials import TrialSchedule
from agentv_ci.results.resume import NO_EARLIER_RUN
from agentv_ci.results.rows import Trial
from tests.report.builders import case, plan, row, suite
from tests.support import FakeClock


class Line:
    """A schedule of cases whose targets are the letters of a text, in order."""

    def __init__(self, targets: str, workers: dict[str, int], *, spent_on: Sequence[int] = ()) -> None:
        known: dict[str, Target] = {
            name: MockTarget(name=name, provider="mock", workers=workers.get(name, 1)) for name in sorted({*targets})
        }
        suites = {n: suite(f"{n}.eval.yaml", max_cost_usd=1.0) for n, _ in enumerate(targets)}
        cases = [case(f"{name}{n}", target=name, suite=suites[n].path) for n, name in enumerate(targets)]
        self.ids = [each.id for each in cases]
        limits = Limits(None, known, targets, FakeClock().environment(), lambda _: None)
        budget = Budget(None, {each.path: each for each in suites.values()}, 1, lambda _: None)
        for number in spent_on:
            budget.add(2.0, suites[number].path)
        self.schedule = TrialSchedule(
            plan(*cases, suites=tuple(suites.values())),
            known,
            RunOptions(Path(), fail_fast=True),
            NO_EARLIER_RUN,
            limits,
            budget,
        )

    async def work(self, took: list[str], lasting: Iterable[float]) -> None:
        for seconds in lasting:
            found = await self.schedule.next()
            if found is None:
                return
            took.append(found.case.id)
            await asyncio.sleep(seconds)
            self.finish(found)

    def finish(self, trial: Trial, verdict: Verdict = "pass") -> None:
        self.schedule.finish(trial, row(verdict, of=trial.case))


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
    assert run_all(line, 1) == line.ids


def test_a_busy_target_holds_up_no_other() -> None:
    line = Line("aaaab", {"a": 1, "b": 1})

    async def main() -> list[str]:
        return [trial.case.id for _ in range(2) if (trial := await line.schedule.next()) is not None]

    assert asyncio.run(main()) == ["a0", "b4"]


@given(st.text("abc", min_size=1, max_size=30), st.integers(1, 6), st.integers(0, 99))
def test_everything_is_handed_out_once_whatever_the_limits_are(targets: str, workers: int, seed: int) -> None:
    line = Line(targets, {"a": 1, "b": 2, "c": 3})
    assert sorted(run_all(line, workers, seed)) == sorted(line.ids)


def test_suites_without_money_left_are_passed_over() -> None:
    line = Line("aaaa", {"a": 2}, spent_on=[0, 2, 3])
    assert [trial.case.id for trial in line.schedule.first("a")] == ["a1"]
    assert run_all(line, 3) == ["a1"]
    assert line.schedule.stopped == "budget"


@pytest.mark.parametrize("waiting", [False, True])
def test_nothing_more_is_handed_out_when_it_is_stopped(waiting: bool) -> None:
    line = Line("aaa", {"a": 1})

    async def main() -> tuple[object, object]:
        first = await line.schedule.next()
        assert first is not None
        next_one = asyncio.create_task(line.schedule.next())
        if waiting:
            await asyncio.sleep(0)
        line.finish(first, "fail")
        return await asyncio.wait_for(next_one, 10), await line.schedule.next()

    assert asyncio.run(main()) == (None, None)
    assert line.schedule.stopped == "fail-fast"
