"""Which trial runs next, and when a case or a run has enough."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import permutations, product
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from agentv_ci.analysis.run_report import report
from agentv_ci.contracts.base import Require, Verdict
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.targets import MockTarget, Target
from agentv_ci.execute.budget import Budget
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.run_services import RunOptions
from agentv_ci.execute.trials import TrialSchedule, can_pass, first_trials
from agentv_ci.results.resume import EarlierRun
from agentv_ci.results.rows import TrialKey
from agentv_ci.results.trials import Result
from tests.support import FakeClock
from tests.support.runs import SUITE, case, plan, row, suite

PASS, MISS, ALMOST = Result("pass", 1.0), Result("fail", 0.0), Result("borderline", 0.7)
VERDICTS: tuple[Verdict, ...] = ("pass", "fail", "error")
NOTHING: Mapping[TrialKey, Result] = MappingProxyType({})


def adaptive(id: str = "one", trials: int = 5, require: Require = "majority", **given: Any) -> PlanCase:  # noqa: A002  # its name
    return case(id, trials=trials, require=require, **{"stop_when": "decided", **given})


def finished(results: Mapping[int, Result], id: str = "one") -> dict[TrialKey, Result]:  # noqa: A002  # its name
    return {(SUITE, id, number): result for number, result in results.items()}


def schedule_of(*cases: PlanCase, known: Mapping[TrialKey, Result] = NOTHING) -> TrialSchedule:
    """Return a schedule with room for all trials at once."""
    asked = {"default": MockTarget(name="default", provider="mock")}
    limits = Limits(100, asked, ["default"], FakeClock().environment(), lambda _: None)
    budget = Budget(None, {}, 1, lambda _: None)
    return TrialSchedule(plan(*cases), asked, RunOptions(Path()), EarlierRun(known), limits, budget)


async def begin(schedule: TrialSchedule) -> list[int]:
    """Begin all trials that can; return their numbers."""
    begun: list[int] = []
    with suppress(TimeoutError):
        async with asyncio.timeout(0):
            while (trial := await schedule.next()) is not None:
                begun.append(trial.number)
    return begun


async def begin_and_finish(
    schedule: TrialSchedule, of: PlanCase, *ended: tuple[int, Verdict]
) -> list[tuple[int, list[int]]]:
    """Finish one trial after the other; return how many each makes unneeded, and the numbers of those that begin."""
    found = [(0, await begin(schedule))]
    for number, verdict in ended:
        of_trial = row(verdict, of=of, trial=number)
        found.append((schedule.finish(schedule.of_row(of_trial), of_trial), await begin(schedule)))
    return found


@pytest.mark.parametrize(
    ("trials", "require", "known", "first"),
    [
        pytest.param(5, "majority", {}, [1, 2, 3], id="as many as a majority takes"),
        pytest.param(5, "any", {}, [1], id="one may do"),
        pytest.param(3, "all", {}, [1, 2], id="two misses may be enough"),
        pytest.param(1, "majority", {}, [1], id="only one"),
        pytest.param(5, "majority", {1: PASS, 2: PASS, 3: PASS}, [], id="decided"),
        pytest.param(5, "majority", {1: PASS, 2: MISS, 3: PASS}, [4], id="undecided"),
        pytest.param(5, "majority", {3: PASS}, [1, 2], id="gaps first"),
        pytest.param(5, "majority", {1: PASS, 2: PASS, 4: MISS}, [3], id="a gap of an error"),
        pytest.param(5, "majority", dict.fromkeys(range(1, 6), ALMOST), [], id="all ran"),
    ],
)
def test_a_case_begins_with(trials: int, require: Require, known: dict[int, Result], first: list[int]) -> None:
    one = adaptive(trials=trials, require=require)
    others = finished({1: PASS, 2: PASS, 3: PASS}, "other") | {("other.yaml", "one", 1): PASS}
    assert list(first_trials(one, finished(known) | others)) == first
    assert schedule_of(one, known=finished(known)).number == (trials - len(known) if first else 0)


async def test_a_case_that_runs_to_its_end_begins_with_all_that_are_left() -> None:
    one = adaptive(stop_when=None)
    known = finished({1: PASS, 2: PASS, 3: PASS})
    assert (list(first_trials(one, known)), schedule_of(one, known=known).number) == ([4, 5], 2)
    fails: list[tuple[int, Verdict]] = [(number, "fail") for number in range(1, 6)]
    assert await begin_and_finish(schedule_of(one), one, *fails) == [(0, [1, 2, 3, 4, 5])] + [(0, [])] * 5


@pytest.mark.parametrize("order", list(permutations([1, 2, 3])))
async def test_further_trials_begin_when_all_that_run_have_ended_in_any_order(order: tuple[int, ...]) -> None:
    one, verdicts = adaptive(), dict[int, Verdict]({1: "fail", 2: "pass", 3: "pass"})
    ended = [(number, verdicts[number]) for number in order]
    found = await begin_and_finish(schedule_of(one), one, *ended, (4, "pass"))
    assert found == [(0, [1, 2, 3]), (0, []), (0, []), (0, [4]), (1, [])]


@pytest.mark.parametrize("require", ["majority", "all", "any"])
@pytest.mark.parametrize("trials", [1, 2, 3, 4])
def test_a_case_can_pass_exactly_as_long_as_the_gate_could_pass_it(trials: int, require: Require) -> None:
    one = case(trials=trials, require=require)
    for verdicts in product(VERDICTS, repeat=trials):
        missed = sum(verdict != "pass" for verdict in verdicts)
        best = sorted(verdicts, key=lambda verdict: verdict == "pass")
        (outcome,) = report(plan(one), [row(each, of=one, trial=n) for n, each in enumerate(best, 1)], Ending())[1]
        assert can_pass(one, missed) == (outcome.verdict == "pass"), verdicts


class Line:
    """A schedule of cases whose targets are the letters of a text, in order."""

    def __init__(self, targets: str, *, spent_on: Sequence[int] = (), **workers: int) -> None:
        known: dict[str, Target] = {
            name: MockTarget(name=name, provider="mock", workers=workers.get(name, 1)) for name in sorted({*targets})
        }
        suites = [suite(f"{number}.eval.yaml", max_cost_usd=1.0) for number in range(len(targets))]
        cases = [case(f"{name}{n}", target=name, suite=suites[n].path) for n, name in enumerate(targets)]
        self.ids = [each.id for each in cases]
        limits = Limits(None, known, targets, FakeClock().environment(), lambda _: None)
        budget = Budget(None, {each.path: each for each in suites}, 1, lambda _: None)
        for number in spent_on:
            budget.add(2.0, suites[number].path)
        options = RunOptions(Path(), fail_fast=True)
        self.schedule = TrialSchedule(plan(*cases, suites=suites), known, options, EarlierRun(), limits, budget)

    async def run(self, workers: int) -> list[str]:
        """Let workers take all trials; return the cases in order."""
        took: list[str] = []

        async def work() -> None:
            while (found := await self.schedule.next()) is not None:
                took.append(found.case.id)
                await asyncio.sleep(0)
                self.schedule.finish(found, row(of=found.case))

        await asyncio.gather(*(work() for _ in range(workers)))
        return took


async def test_one_worker_takes_cases_in_order() -> None:
    line = Line("aabbaacb", b=4)
    assert await line.run(1) == line.ids


async def test_a_busy_target_does_not_hold_up_others() -> None:
    line = Line("aaaab")

    assert [trial.case.id for _ in range(2) if (trial := await line.schedule.next()) is not None] == ["a0", "b4"]


async def test_suites_without_a_budget_left_are_skipped() -> None:
    line = Line("aaaa", spent_on=[0, 2, 3], a=2)
    assert [trial.case.id for trial in line.schedule.first("a")] == ["a1"]
    assert await line.run(3) == ["a1"]
    assert line.schedule.stopped == "budget"


@pytest.mark.parametrize("waiting", [False, True])
async def test_a_stopped_schedule_hands_out_nothing_more(waiting: bool) -> None:
    line = Line("aaa")
    first = await line.schedule.next()
    assert first is not None
    second = asyncio.create_task(line.schedule.next())
    if waiting:
        await asyncio.sleep(0)
    line.schedule.finish(first, row("fail", of=first.case))
    assert (await second, await line.schedule.next()) == (None, None)
    assert line.schedule.stopped == "fail-fast"
