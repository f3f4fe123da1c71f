"""Which trial runs next, and when a case or a run has enough."""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import permutations, product
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.analysis.run_report import report
from agentv_ci.cli import run as command
from agentv_ci.contracts.base import Require, Verdict
from agentv_ci.contracts.exchange import Ask, Grade, ProviderError, Request, Response
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.targets import MockTarget, Target
from agentv_ci.execute import targets
from agentv_ci.execute.budget import Budget
from agentv_ci.execute.engine import Engine
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.materials import Materials
from agentv_ci.execute.run_services import Progress, RunOptions, RunServices
from agentv_ci.execute.trial_runner import LocalTrials
from agentv_ci.execute.trials import TrialSchedule, can_pass, first_trials
from agentv_ci.results.files import form, form_of, read_rows
from agentv_ci.results.journal import Journal
from agentv_ci.results.resume import EarlierRun
from agentv_ci.results.rows import Trial, TrialKey
from agentv_ci.results.trials import Result
from agentv_ci.workspaces.places import Workspaces
from tests.execute.builders import Session
from tests.servers.chat_api import chat_api, says
from tests.support import FakeClock
from tests.support.evals import documents, gpt, question
from tests.support.runs import SUITE, case, plan, row, suite

PASS, MISS, ERROR = Result("pass", 1.0), Result("fail", 0.0), Result("error", 0.0)
ALMOST = Result("borderline", 0.7)
VERDICTS: tuple[Verdict, ...] = ("pass", "fail", "error")
NOTHING: Mapping[TrialKey, Result] = MappingProxyType({})
MOCK = MockTarget(name="default", provider="mock", response="it")
WORKERS = (1, 2, 8)


def adaptive(id: str = "one", trials: int = 5, require: Require = "majority", **given: Any) -> PlanCase:  # noqa: A002  # its name
    """A case whose n-th trial has the seed n."""
    seeds = tuple(range(1, trials + 1))
    return case(id, trials=trials, require=require, seeds=seeds, **{"stop_when": "decided", **given})


def finished(results: Mapping[int, Result], id: str = "one") -> dict[TrialKey, Result]:  # noqa: A002  # its name
    return {((SUITE, id, "default"), number): result for number, result in results.items()}


def schedule_of(*cases: PlanCase, known: Mapping[TrialKey, Result] = NOTHING) -> TrialSchedule:
    """Return a schedule with room for all trials at once."""
    asked = {"default": MOCK}
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
        pytest.param(3, "all", {}, [1], id="one miss is enough"),
        pytest.param(3, "all", {1: ALMOST}, [], id="almost is a miss"),
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
    others = finished({1: PASS, 2: PASS, 3: PASS}, "other") | {
        (("other.yaml", "one", "default"), 1): PASS,
        ((SUITE, "one", "other"), 2): PASS,
    }
    assert list(first_trials(plan(one), one, finished(known) | others)) == first
    assert schedule_of(one, known=finished(known)).number == (trials - len(known) if first else 0)


async def test_a_case_that_runs_to_its_end_begins_with_all_that_are_left() -> None:
    one = adaptive(stop_when=None)
    known = finished({1: PASS, 2: PASS, 3: PASS})
    assert (list(first_trials(plan(one), one, known)), schedule_of(one, known=known).number) == ([4, 5], 2)
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


@dataclass(slots=True)
class Ran:
    """What a run came to."""

    plan: Plan
    rows: list[ResultRow]
    """As they were written."""
    progress: Progress
    ending: Ending

    @property
    def results(self) -> list[tuple[str, int, str, float]]:
        return sorted((each.eval_id, each.trial, each.verdict, each.score or 0.0) for each in self.rows)

    def outcome(self) -> tuple[dict[str, Verdict], str, int]:
        """Return the verdicts of the cases, that of the gate, and how many trials are missing."""
        found, outcomes = report(self.plan, self.rows, Ending(stopped=self.ending.stopped))
        verdicts = {each.case.id: each.verdict for each in outcomes}
        return verdicts, found.gate.verdict, sum(each.missing for each in outcomes)


def go(
    cases: Sequence[PlanCase],
    script: Mapping[str, Sequence[Result]],
    *,
    workers: int = 1,
    known: Mapping[TrialKey, Result] | None = None,
    fail_fast: bool = False,
    chance: int = 0,
    **target: Any,
) -> Ran:
    """Run cases whose trials come to the results of a script, and last as chance has it."""
    asked: dict[str, Target] = {"default": MockTarget(name="default", provider="mock", response="it", **target)}
    of = plan(*cases).model_copy(update={"targets": asked})
    lasting = random.Random(chance)

    async def grade(trial: Trial, request: Request, _response: Response, _ask: Ask) -> Grade:
        assert request.seed is not None
        for _ in range(lasting.randrange(1, 30)):
            await asyncio.sleep(0)
        verdict, score, _ = script[trial.case.id][request.seed - 1]
        return Grade(score, verdict, (), (), "", (), error="broken" if verdict == "error" else None)

    async def main(root: Path) -> Engine:
        with Journal(root / "r.jsonl", form("jsonl").encode) as journal, Materials(of.files, root) as materials:
            options = RunOptions(root=root, workers=workers, fail_fast=fail_fast)
            services = RunServices(FakeClock().environment())
            places = Workspaces({}, root, {}, services.log)
            runner = partial(
                LocalTrials, of, asked, options, services, grade=grade, materials=materials, workspaces=places
            )
            finished = EarlierRun(results=known or {})
            engine = Engine(of, asked, options, services, runner=runner, journal=journal, finished=finished)
            async with asyncio.timeout(30):
                await engine.run()
            journal.finish()
        return engine

    with tempfile.TemporaryDirectory() as folder:
        engine = asyncio.run(main(Path(folder)))
        rows = list(read_rows(Path(folder, "r.jsonl"), "jsonl"))
    return Ran(of, rows, engine.progress, engine.ending())


Cases = tuple[list[PlanCase], dict[str, list[Result]]]
chances = st.integers(0, 99)


@st.composite
def scripts(draw: st.DrawFn) -> Cases:
    """Adaptive cases, and what all their trials would come to."""
    scores = st.sampled_from([0.0, 0.3, 0.6, 0.7, 1.0])
    graded = st.builds(Result, st.sampled_from(["pass", "borderline", "fail"]), scores)
    results = st.one_of(st.just(ERROR), graded)
    cases, script = [], {}
    for number in range(draw(st.integers(1, 3))):
        trials, name = draw(st.integers(1, 6)), f"case-{number}"
        cases.append(adaptive(name, trials, draw(st.sampled_from(["majority", "all", "any"]))))
        script[name] = draw(st.lists(results, min_size=trials, max_size=trials))
    return cases, script


@settings(max_examples=15)
@given(scripts(), st.sampled_from(WORKERS), chances)
def test_any_number_of_workers_runs_the_same_trials_to_the_verdicts_of_all(
    scripted: Cases, workers: int, chance: int
) -> None:
    cases, script = scripted
    alone, together = go(cases, script), go(cases, script, workers=workers, chance=chance)
    assert together.results == alone.results
    assert (together.progress.total, together.progress.running) == (len(together.rows), 0)
    assert (together.progress.done, together.ending.stopped) == (len(together.rows), None)
    complete = go([each.model_copy(update={"stop_when": None}) for each in cases], script, workers=workers)
    assert (_without_borderline(together), together.outcome()[2]) == (_without_borderline(complete), 0)
    assert {*together.results} <= {*complete.results}
    assert len(complete.rows) == sum(each.trials for each in cases)


def _without_borderline(ran: Ran) -> dict[str, Verdict]:
    """Return the verdicts of cases; which of those that do not pass are borderline depends on the trials that ran."""
    return {name: "fail" if verdict == "borderline" else verdict for name, verdict in ran.outcome()[0].items()}


@settings(max_examples=15)
@given(scripts(), st.sampled_from(WORKERS), chances, st.data())
def test_a_resumed_run_ends_with_the_rows_of_an_uninterrupted_one(
    scripted: Cases, workers: int, chance: int, data: st.DataObject
) -> None:
    uninterrupted = go(*scripted, workers=workers, chance=chance)
    kept = uninterrupted.rows[: data.draw(st.integers(0, len(uninterrupted.rows)))]
    known = {
        (each.case_key, each.trial): Result(each.verdict, each.score or 0.0) for each in kept if each.status == "ok"
    }
    rest = go(*scripted, workers=data.draw(st.sampled_from(WORKERS)), known=known)
    last = {(each.eval_id, each.trial): each.verdict for each in (*kept, *rest.rows)}
    assert last == {(each.eval_id, each.trial): each.verdict for each in uninterrupted.rows}
    assert rest.progress.total == rest.progress.done == len(rest.rows)


@settings(max_examples=15)
@given(scripts(), st.sampled_from(WORKERS), chances)
def test_a_run_stopped_by_a_failure_is_incomplete_exactly_if_a_case_is_open(
    scripted: Cases, workers: int, chance: int
) -> None:
    stopped = go(*scripted, workers=workers, chance=chance, fail_fast=True)
    _, verdict, missing = stopped.outcome()
    assert (missing > 0) == (stopped.ending.stopped == "fail-fast")
    assert (verdict == "pass") == (go(*scripted).outcome()[1] == "pass")


def test_a_case_under_way_is_stopped_only_if_it_needs_more_trials() -> None:
    script = {"lost": [MISS], "open": [PASS, MISS, PASS, MISS, PASS], "decided": [PASS] * 5}
    left = set()
    for chance in range(30):
        found = go([adaptive("open"), adaptive("lost", 1)], script, workers=8, fail_fast=True, chance=chance)
        verdicts, verdict, missing = found.outcome()
        assert (verdict, found.ending.stopped == "fail-fast") == ("fail", missing > 0)
        assert (verdicts["open"] == "pass", found.progress.total) == (missing == 0, len(found.rows) + missing)
        left.add(missing)
        found = go([adaptive("decided"), adaptive("lost", 1)], script, workers=8, fail_fast=True, chance=chance)
        assert (found.ending.stopped, len(found.rows), found.outcome()[2]) == (None, 4, 0)
    assert left == {0, 1, 2}


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("breaks", [False, True])
def test_a_batch_has_the_trials_that_cases_begin_with(
    workers: int, breaks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(ProviderError("process", "no window") if breaks else None)
    monkeypatch.setattr(targets, "open_provider", lambda *_: session)
    script = {"a": [PASS, MISS, PASS, MISS, PASS], "b": [PASS] * 5}
    found = go([adaptive("a"), adaptive("b")], script, workers=workers, provider_batching=True)
    assert len(found.rows) == 8
    assert session.together == [[("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("b", 3)]]
    later = [("a", 4), ("a", 5)]
    assert sorted(session.alone) == sorted([*session.together[0], *later] if breaks else later)


GOOD = {"yes": "12345", "late": "235", "no": "-", "half": "14"}
"""Case → its question: the seeds with a right answer."""
DECIDING = {"yes": 3, "late": 5, "no": 3, "half": 5}
"""Case → trials that decide it."""


@pytest.fixture
def mixed(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Cases whose answers depend on the seed, in the working directory, with validators."""
    monkeypatch.chdir(repository)
    monkeypatch.setenv("MOCK_KEY", "sk-0123456789")
    with chat_api(lambda body: says("42" if str(body["seed"]) in body["messages"][-1]["content"] else "43")) as api:
        documents(
            repository,
            [{"id": case, "input_messages": question(text)} for case, text in GOOD.items()],
            gpt(api.base_url),
            seeds=[1, 2, 3, 4, 5],
            repeat={"max": 5, "stop_when": "decided"},
            validators=["structural_consistency", "determinism_check", "reproducibility_metadata"],
            gate={"min_pass_rate": 0.1, "validators": "warn"},
        )
        yield


def rows_in(name: str) -> list[tuple[str, int, int | None, str, float | None]]:
    rows = read_rows(Path(name), form_of(Path(name)))
    return sorted((row.eval_id, row.trial, row.seed, row.verdict, row.score) for row in rows)


def report_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(name).with_suffix(".report.json").read_text("utf-8"))
    counts = {**found["counts"], "cached": None}
    return {**{name: found[name] for name in ("statistics", "scenario_reports")}, "counts": counts}


@pytest.mark.usefixtures("mixed")
@pytest.mark.parametrize(
    "again",
    [
        ["eval evals --workers 16 --out s.jsonl"],
        ["eval evals --output-format yaml --out s.yaml"],
        ["rescore r.jsonl --workers 16 --out s.jsonl"],
        ["eval evals --record rec --out first.jsonl", "eval evals --replay rec --workers 16 --out s.jsonl"],
        ["eval evals --cache --out first.jsonl", "eval evals --cache --workers 16 --out s.jsonl"],
        [
            *(f"eval evals --shard {n}/3 --workers 4 --out p{n}.jsonl" for n in (1, 2, 3)),
            "report p1.jsonl p2.jsonl p3.jsonl --expect-shards 3 --out s.jsonl",
        ],
        ["eval evals --fail-fast --out s.jsonl", "eval evals --resume s.jsonl --workers 16"],
    ],
    ids=["workers", "yaml", "rescored", "replayed", "cached", "shards", "fail-fast"],
)
def test_decided_trials_are_the_same_in_every_kind_of_run(again: list[str]) -> None:
    assert command(["eval", "evals", "--out", "r.jsonl"]) == 0
    *before, last = again
    for each in before:
        command(each.split())
    assert command(last.split()) == 0
    other = "s.yaml" if "yaml" in last else "s.jsonl"
    assert (rows_in(other), report_of(other)) == (rows_in("r.jsonl"), report_of("r.jsonl"))
    assert Counter(case for case, *_ in rows_in(other)) == DECIDING


@pytest.mark.usefixtures("mixed")
def test_a_rescored_case_that_is_open_again_is_not_complete(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["eval", "evals", "--out", "r.jsonl"]) == 0
    # Under `all`, three passes of five no longer decide "yes".
    changed = Path("evals/a.yaml").read_text("utf-8").replace('"decided"', '"decided", "require": "all"')
    Path("evals/a.yaml").write_text(changed, encoding="utf-8")
    capsys.readouterr()
    assert command(["rescore", "r.jsonl", "--out", "s.jsonl"]) != 0
    assert "passed" not in capsys.readouterr().out.splitlines()[-1]


async def test_trials_of_an_experiment_run_in_rounds() -> None:
    cases = [case(each, arm=arm, trials=trials) for each, trials in (("a", 2), ("b", 3)) for arm in ("now", "next")]
    schedule = schedule_of(*cases)
    begun = [(trial.case.id, trial.case.arm, trial.number) for _ in range(10) if (trial := await schedule.next())]
    first = [("a", "now", 1), ("a", "next", 1), ("b", "now", 1), ("b", "next", 1)]
    assert begun == [*first, *((*key, 2) for *key, _ in first), ("b", "now", 3), ("b", "next", 3)]
    assert schedule.number == 10


async def test_stopped_schedule_hands_out_nothing_more() -> None:
    schedule = schedule_of(case("a", arm="now"), case("a", arm="next"))
    assert await schedule.next() is not None
    schedule.stop("decided")
    assert await schedule.next() is None
    assert schedule.stopped == "decided"
