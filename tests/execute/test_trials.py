"""Trials until the verdict of their case is decided: which run, and that nothing else changes by it."""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.analysis.run_report import report
from agentv_ci.app.compile import Selection, compile_paths
from agentv_ci.app.report_files import RunFiles, RunOutcome
from agentv_ci.app.run import run_plan
from agentv_ci.compile.overrides import Overrides
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
from agentv_ci.execute.provider_services import ProviderServices
from agentv_ci.execute.run_services import Progress, RunOptions, RunServices
from agentv_ci.execute.trials import TrialSchedule, first_trials
from agentv_ci.results.files import form, read_rows
from agentv_ci.results.journal import Journal
from agentv_ci.results.resume import EarlierRun
from agentv_ci.results.rows import TrialKey
from agentv_ci.results.trials import Result
from tests.report.builders import SUITE, case, plan, row, whole
from tests.servers.chat_api import ChatApi, Reply, chat_api, fails, says
from tests.support import FakeClock, clean_environment, write

PASS, MISS, ALMOST, ERROR = Result("pass", 1.0), Result("fail", 0.0), Result("borderline", 0.7), Result("error", 0.0)
BY_LETTER = {"p": PASS, "f": MISS, "b": ALMOST, "e": ERROR}
WORKERS = (1, 2, 8)
REQUIREMENTS: tuple[Require, ...] = ("majority", "all", "any")

Told = tuple[str, int, str, float]
"""Of a row: case, trial, verdict and score."""


def adaptive(id: str = "one", trials: int = 5, require: Require = "majority", **given: Any) -> PlanCase:  # noqa: A002  # its name
    """A case whose n-th trial has the seed n."""
    seeds = tuple(range(1, trials + 1))
    return case(id, trials=trials, require=require, seeds=seeds, **{"stop_when": "decided", **given})


def scripted(letters: str) -> list[Result]:
    return [BY_LETTER[each] for each in letters]


def finished(results: Mapping[int, Result], id: str = "one") -> dict[TrialKey, Result]:  # noqa: A002  # its name
    return {(SUITE, id, number): result for number, result in results.items()}


def schedule_of(*cases: PlanCase, known: Mapping[TrialKey, Result] = MappingProxyType({})) -> TrialSchedule:
    """A schedule with room for all trials at once."""
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


def begin_and_finish(schedule: TrialSchedule, of: PlanCase, *ended: tuple[int, Verdict]) -> list[tuple[int, list[int]]]:
    """End trials one after the other; return how many each makes unneeded, and the numbers of those that begin then."""

    async def main() -> list[tuple[int, list[int]]]:
        found = [(0, await begin(schedule))]
        for number, verdict in ended:
            of_trial = row(verdict, of=of, trial=number)
            found.append((schedule.finish(schedule.of_row(of_trial), of_trial), await begin(schedule)))
        return found

    return asyncio.run(main())


# --- Units ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trials", "require", "known", "first"),
    [
        pytest.param(5, "majority", {}, [1, 2, 3], id="as many as a majority takes"),
        pytest.param(5, "any", {}, [1], id="one may do"),
        pytest.param(3, "all", {}, [1, 2], id="two misses may be enough"),
        pytest.param(1, "majority", {}, [1], id="only one"),
        pytest.param(5, "majority", {1: PASS, 2: PASS, 3: PASS}, [], id="decided"),
        pytest.param(5, "majority", {1: PASS, 2: MISS, 3: PASS}, [4], id="it goes on"),
        pytest.param(5, "majority", {3: PASS}, [1, 2], id="gaps first"),
        pytest.param(5, "majority", {1: PASS, 2: PASS, 4: MISS}, [3], id="an error is made up for"),
        pytest.param(5, "majority", dict.fromkeys(range(1, 6), ALMOST), [], id="all ran"),
    ],
)
def test_case_begins_with(trials: int, require: Require, known: dict[int, Result], first: list[int]) -> None:
    one = adaptive(trials=trials, require=require)
    assert list(first_trials(one, finished(known))) == first
    assert schedule_of(one, known=finished(known)).number == (trials - len(known) if first else 0)


def test_case_without_an_end_before_the_last_trial_runs_what_is_left() -> None:
    one = adaptive(stop_when=None)
    known = finished({1: PASS, 2: PASS, 3: PASS})
    assert first_trials(one, known) == [4, 5]
    assert schedule_of(one, known=known).number == 2


def test_finished_trials_of_other_cases_do_not_count() -> None:
    one = adaptive()
    others = finished({1: PASS, 2: PASS, 3: PASS}, "other") | {("other.yaml", "one", 1): PASS}
    assert list(first_trials(one, others)) == [1, 2, 3]


def test_trials_left_are_those_of_all_cases() -> None:
    known = finished({1: PASS, 2: PASS, 3: PASS}, "a") | finished({1: PASS}, "b")
    assert schedule_of(adaptive("a"), adaptive("b"), case("c", trials=2), known=known).number == 0 + 4 + 2


def test_it_goes_on_when_all_that_run_side_by_side_have_ended() -> None:
    one = adaptive()
    found = begin_and_finish(schedule_of(one), one, (3, "pass"), (1, "fail"), (2, "pass"), (4, "pass"))
    assert found == [(0, [1, 2, 3]), (0, []), (0, []), (0, [4]), (1, [])]


@pytest.mark.parametrize("order", list(permutations([1, 2, 3])))
def test_order_in_which_trials_end_does_not_matter(order: tuple[int, ...]) -> None:
    one = adaptive()
    verdicts: dict[int, Verdict] = {1: "pass", 2: "fail", 3: "fail"}
    _, *found = begin_and_finish(schedule_of(one), one, *((number, verdicts[number]) for number in order))
    assert found == [(0, []), (0, []), (0, [4])]


def test_case_that_runs_to_its_end_is_left_alone() -> None:
    one = adaptive(stop_when=None)
    fails: list[tuple[int, Verdict]] = [(number, "fail") for number in range(1, 6)]
    assert begin_and_finish(schedule_of(one), one, *fails) == [(0, [1, 2, 3, 4, 5])] + [(0, [])] * 5


def test_what_an_earlier_run_found_counts() -> None:
    one = adaptive()
    schedule = schedule_of(one, known=finished({1: PASS, 3: PASS}))
    assert begin_and_finish(schedule, one, (2, "pass")) == [(0, [2]), (2, [])]


# --- The engine, with answers that are graded by a script -------------------------------------------------------------


@dataclass(slots=True)
class Ran:
    """What a run came to."""

    plan: Plan
    rows: list[ResultRow]
    """As they were written."""
    progress: Progress
    ending: Ending
    most_at_once: dict[int, int]
    """Trials under way at most, while trials of that number were."""

    @property
    def told(self) -> list[Told]:
        return sorted((each.eval_id, each.trial, each.verdict, each.score) for each in self.rows)

    @property
    def trials(self) -> list[tuple[str, int]]:
        return sorted((each.eval_id, each.trial) for each in self.rows)


Script = Mapping[str, Sequence[Result]]
"""Case → what its trials come to."""


def go(
    cases: Sequence[PlanCase],
    script: Script,
    *,
    workers: int = 1,
    known: Mapping[TrialKey, Result] | None = None,
    fail_fast: bool = False,
    others: Sequence[str] = (),
    chance: int = 0,
    **target: Any,
) -> Ran:
    """Run cases; trials last as long as chance has it. `others`: targets beside the default one."""
    names = ("default", *others)
    known_targets: dict[str, Target] = {
        name: MockTarget(name=name, provider="mock", response="it", **target) for name in names
    }
    of = plan(*cases).model_copy(update={"targets": known_targets})
    known = known or {}
    lasting = random.Random(chance)
    under_way: set[tuple[str, int]] = set()
    most: dict[int, int] = {}

    async def grade(case: PlanCase, request: Request, _response: Response, _ask: Ask) -> Grade:
        assert request.seed is not None
        key = case.id, request.seed
        under_way.add(key)
        for _ in range(lasting.randrange(1, 30)):
            for _, number in under_way:
                most[number] = max(most.get(number, 0), len(under_way))
            await asyncio.sleep(0)
        under_way.discard(key)
        verdict, score = script[case.id][request.seed - 1]
        return Grade(score, verdict, (), (), "", (), error="broken" if verdict == "error" else None)

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)

        async def main() -> Engine:
            results = Journal(root / "r.jsonl", form("jsonl").encode)
            with results as journal, Materials(of.files, root) as materials:
                engine = Engine(
                    of,
                    known_targets,
                    RunOptions(root=root, workers=workers, fail_fast=fail_fast),
                    RunServices(FakeClock().environment()),
                    grade=grade,
                    journal=journal,
                    materials=materials,
                    finished=EarlierRun(results=known),
                )
                async with asyncio.timeout(30):
                    await engine.run()
                journal.finish()
            return engine

        engine = asyncio.run(main())
        rows = list(read_rows(root / "r.jsonl", "jsonl"))
        return Ran(of, rows, engine.progress, engine.ending(), most)


def outcome_of(ran: Ran, rows: Sequence[ResultRow] | None = None) -> tuple[dict[str, Verdict], str, int]:
    """Verdicts of the cases, the gate's word, and how many trials are missing."""
    found, outcomes = report(ran.plan, ran.rows if rows is None else rows, Ending(stopped=ran.ending.stopped))
    verdicts = {each.case.id: each.verdict for each in outcomes}
    return verdicts, found.gate.verdict, sum(each.missing for each in outcomes)


@st.composite
def scripts(draw: st.DrawFn, most_cases: int = 3) -> tuple[list[PlanCase], dict[str, list[Result]]]:
    """Adaptive cases, and what all their trials would come to."""
    scores = st.sampled_from([0.0, 0.3, 0.6, 0.7, 1.0])
    results = st.one_of(st.just(ERROR), st.builds(Result, st.sampled_from(["pass", "borderline", "fail"]), scores))
    cases, script = [], {}
    for number in range(draw(st.integers(1, most_cases))):
        trials, name = draw(st.integers(1, 6)), f"case-{number}"
        cases.append(adaptive(name, trials, draw(st.sampled_from(REQUIREMENTS))))
        script[name] = draw(st.lists(results, min_size=trials, max_size=trials))
    return cases, script


Cases = tuple[list[PlanCase], dict[str, list[Result]]]
chances = st.integers(0, 99)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(
    ("letters", "require", "ran"),
    [
        ("ppppp", "majority", 3),
        ("pfpfp", "majority", 5),
        ("ppffp", "majority", 5),
        ("pffpp", "majority", 5),
        ("fffpp", "majority", 3),
        ("bbbpp", "majority", 4),
        ("epppp", "majority", 4),
        ("eeeee", "majority", 5),
        ("fffff", "any", 5),
        ("ffpff", "any", 3),
        ("pffff", "any", 1),
        ("ppppp", "all", 5),
        ("fffpp", "all", 3),
        ("pppfp", "all", 4),
    ],
)
def test_no_more_trials_run_than_the_verdict_takes(letters: str, require: Require, ran: int, workers: int) -> None:
    found = go([adaptive(require=require)], {"one": scripted(letters)}, workers=workers)
    assert found.trials == [("one", number) for number in range(1, ran + 1)]
    assert (found.progress.total, found.progress.done, found.ending.stopped) == (ran, ran, None)


@settings(max_examples=30)
@given(scripts(), st.sampled_from(WORKERS[1:]), chances)
def test_any_number_of_workers_runs_the_same_trials(scripted: Cases, workers: int, chance: int) -> None:
    alone, together = go(*scripted), go(*scripted, workers=workers, chance=chance)
    assert together.told == alone.told
    assert len(set(together.trials)) == len(together.trials)
    for ran in (alone, together):
        assert (ran.progress.total, ran.progress.running) == (ran.progress.done, 0)
        assert ran.progress.done == len(ran.rows)
        assert ran.ending.stopped is None


@settings(max_examples=30)
@given(scripts(), st.sampled_from(WORKERS), chances)
def test_verdicts_are_those_of_all_trials(scripted: Cases, workers: int, chance: int) -> None:
    cases, script = scripted
    decided = go(cases, script, workers=workers, chance=chance)
    complete = go([each.model_copy(update={"stop_when": None}) for each in cases], script, workers=workers)
    assert outcome_of(decided)[0] == outcome_of(complete)[0]
    assert outcome_of(decided)[2] == 0
    assert {*decided.told} <= {*complete.told}
    assert len(complete.rows) == sum(each.trials for each in cases)


@pytest.mark.parametrize(
    ("letters", "verdict", "ran"),
    [
        ("pppff", "pass", 3),
        ("ppfff", "fail", 5),
        ("ppbbb", "borderline", 5),
        ("fffpp", "fail", 3),
        ("bbbff", "fail", 5),
        ("eeeee", "error", 5),
    ],
)
def test_each_verdict_takes_its_trials(letters: str, verdict: str, ran: int) -> None:
    found = go([adaptive()], {"one": scripted(letters)})
    assert (outcome_of(found)[0]["one"], len(found.rows)) == (verdict, ran)


@settings(max_examples=30)
@given(scripts(), st.sampled_from(WORKERS), chances, st.data())
def test_resuming_in_the_middle_of_trials_ends_with_the_rows_of_an_uninterrupted_run(
    scripted: Cases, workers: int, chance: int, data: st.DataObject
) -> None:
    whole_run = go(*scripted, workers=workers, chance=chance)
    kept = whole_run.rows[: data.draw(st.integers(0, len(whole_run.rows)))]
    known = {
        (each.suite, each.eval_id, each.trial): Result(each.verdict, each.score) for each in kept if each.status == "ok"
    }
    rest = go(*scripted, workers=data.draw(st.sampled_from(WORKERS)), known=known)
    last = {(each.eval_id, each.trial): each.verdict for each in (*kept, *rest.rows)}
    assert last == {(each.eval_id, each.trial): each.verdict for each in whole_run.rows}
    assert rest.progress.total == rest.progress.done == len(rest.rows)


@settings(max_examples=30)
@given(scripts(), st.sampled_from(WORKERS), chances)
def test_run_that_stops_at_the_first_failure_says_so_where_a_case_is_open(
    scripted: Cases, workers: int, chance: int
) -> None:
    stopped = go(*scripted, workers=workers, chance=chance, fail_fast=True)
    _, word, missing = outcome_of(stopped)
    assert (missing > 0) == (stopped.ending.stopped == "fail-fast")
    assert (word == "pass") == (outcome_of(go(*scripted))[1] == "pass")


def test_case_in_flight_that_stays_open_has_been_stopped_although_nothing_waited_its_turn() -> None:
    # "open" wants more trials after "lost" has stopped the run, and nothing else is left by then.
    script = {"lost": scripted("f"), "open": scripted("pfpfp")}
    left = set()
    for chance in range(200):
        found = go([adaptive("open"), adaptive("lost", 1)], script, workers=8, fail_fast=True, chance=chance)
        verdicts, word, missing = outcome_of(found)
        assert (word, found.ending.stopped == "fail-fast") == ("fail", missing > 0)
        assert (verdicts["open"] == "pass") == (missing == 0)
        left.add(missing)
    assert left == {0, 1, 2}, "chance has it stop at any moment"


def test_case_that_is_decided_by_what_is_in_flight_was_not_stopped() -> None:
    script = {"lost": scripted("f"), "decided": scripted("ppppp")}
    for chance in range(20):
        found = go([adaptive("decided"), adaptive("lost", 1)], script, workers=8, fail_fast=True, chance=chance)
        assert (found.ending.stopped, len(found.rows), outcome_of(found)[2]) == (None, 4, 0)


@pytest.mark.parametrize("workers", WORKERS)
def test_several_targets_each_decide_their_own_cases(workers: int) -> None:
    cases = [adaptive(f"case-{n}", target=("default", "other", "third")[n % 3]) for n in range(9)]
    script = {each.id: scripted(("ppppp", "pfpfp", "fffff")[n % 3]) for n, each in enumerate(cases)}
    for chance in range(5):
        found = go(cases, script, workers=workers, others=("other", "third"), chance=chance)
        assert [sum(name == each.id for name, _ in found.trials) for each in cases] == [3, 5, 3] * 3
        assert found.progress.total == found.progress.done
        by_name = {each.eval_id: each.target for each in found.rows}
        assert by_name == {each.id: each.target for each in cases}


def test_one_worker_decides_a_case_before_it_begins_the_next() -> None:
    found = go([adaptive("a"), adaptive("b")], {"a": scripted("pfpfp"), "b": scripted("ppppp")})
    ran = [(each.eval_id, each.trial) for each in found.rows]
    assert ran == [("a", 1), ("a", 2), ("a", 3), ("a", 4), ("a", 5), ("b", 1), ("b", 2), ("b", 3)]


def test_trials_that_are_needed_run_side_by_side() -> None:
    assert go([adaptive()], {"one": scripted("ppppp")}, workers=8).most_at_once[1] == 3


def test_further_trials_that_are_needed_run_side_by_side_too() -> None:
    found = go([adaptive(trials=9)], {"one": scripted("ppffpffff")}, workers=8)
    assert found.most_at_once[6] == 2


# --- In one session ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Session:
    """A provider that answers many questions at once, and single ones too."""

    breaks: bool = False
    together: list[list[int | None]] = field(default_factory=list)
    alone: list[int | None] = field(default_factory=list)

    async def check(self) -> None: ...

    async def ask(self, request: Request) -> Response:
        self.alone.append(request.seed)
        return Response("it", (), has_trace=False)

    async def ask_together(self, requests: Sequence[Request]) -> Sequence[Response]:
        self.together.append([request.seed for request in requests])
        if self.breaks:
            raise ProviderError("process", "no window")
        return [Response("it", (), has_trace=False) for _ in requests]

    async def close(self) -> None: ...


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("breaks", [False, True])
def test_questions_of_one_session_are_those_that_a_case_begins_with(
    workers: int, breaks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(breaks)

    def opened(_target: Target, _context: ProviderServices) -> Session:
        return session

    monkeypatch.setattr(targets, "open_provider", opened)
    cases = [adaptive("a"), adaptive("b")]
    script = {"a": scripted("pfpfp"), "b": scripted("ppppp")}
    found = go(cases, script, workers=workers, provider_batching=True)
    assert len(found.rows) == 8
    assert session.together == [[1, 2, 3, 1, 2, 3]]
    assert sorted(session.alone, key=str) == ([1, 1, 2, 2, 3, 3, 4, 5] if breaks else [4, 5])


# --- Whole runs -------------------------------------------------------------------------------------------------------

FINDS = {"name": "finds", "type": "contains", "value": "42"}
DECIDED = {"max": 5, "stop_when": "decided"}


@dataclass(slots=True)
class Runs:
    """A repository and runs of it; the answer to a question depends on its case and seed."""

    repository: Path
    api: ChatApi
    good: dict[str, set[int]]
    """Case → seeds whose answers are right."""
    broken: dict[str, set[int]]
    """Case → seeds to which there is no answer."""
    environ: Mapping[str, str] = field(default_factory=lambda: clean_environment({"MOCK_KEY": "sk-0123456789abcdef"}))
    progress: Progress = field(default_factory=lambda: Progress(0))
    when_asked: Callable[[str, int], None] = lambda _case, _seed: None
    """Told of every question when it comes in, in a thread of the server."""

    @property
    def results(self) -> Path:
        return self.repository / "r.jsonl"

    def documents(self, *cases: str, prices: bool = False, **execution: Any) -> None:
        common = {"expected_outcome": "42", "expected_messages": []}
        evals = {
            "$schema": "agentv-eval-v2",
            "execution": {"evaluators": [FINDS], "seeds": [1, 2, 3, 4, 5], "repeat": DECIDED, **execution},
            "evalcases": [
                {**common, "id": each, "input_messages": [{"role": "user", "content": each}]} for each in cases
            ],
        }
        target = {"name": "default", "provider": "openai", "model": "gpt-mock", "base_url": self.api.base_url}
        documents = {"$schema": "agentv-targets-v2.2", "targets": [{**target, "api_key": "${{ MOCK_KEY }}"}]}
        write(self.repository, {"evals/a.yaml": json.dumps(evals), "targets.yaml": json.dumps(documents)})
        if prices:
            # A dollar an answer: a hundred tokens.
            costs = {"prices": {"gpt-mock": {"input_per_mtok": 10_000, "output_per_mtok": 0}}}
            write(self.repository, {".agentv/config.yaml": json.dumps(costs)})

    def reply(self, body: Mapping[str, Any]) -> Reply:
        case, seed = body["messages"][-1]["content"], body["seed"]
        self.when_asked(case, seed)
        if seed in self.broken.get(case, ()):
            return fails(400)
        return says("42" if seed in self.good.get(case, ()) else "43")

    async def start(self, *, resume: bool = False, **settings: Any) -> RunOutcome:
        return await run_plan(
            compile_paths(Selection(["evals"]), cwd=self.repository),
            Overrides(),
            RunOptions(root=self.repository, resume=self.results if resume else None, **settings),
            RunFiles(self.results, "jsonl"),
            RunServices(FakeClock(self.environ).environment(), watch=self._watch),
        )

    def __call__(self, **settings: Any) -> RunOutcome:
        """Run to the end; fails instead of hanging."""

        async def main() -> RunOutcome:
            async with asyncio.timeout(60):
                return await self.start(**settings)

        return asyncio.run(main())

    def _watch(self, progress: Progress) -> None:
        self.progress = progress

    def rows(self) -> list[ResultRow]:
        return list(read_rows(self.results, "jsonl"))

    def told(self) -> list[tuple[str, int, int | None, str]]:
        return sorted((each.eval_id, each.trial, each.seed, each.verdict) for each in self.rows())

    def keep(self, kept: Callable[[ResultRow], bool]) -> None:
        """Leave only some of the rows, as a run that was killed does."""
        encode = form("jsonl").encode
        rows = [each for each in self.rows() if kept(each)]
        self.results.write_text("".join(map(encode, rows)), encoding="utf-8")

    def asked(self) -> list[tuple[str, int]]:
        return [(each["body"]["messages"][-1]["content"], each["body"]["seed"]) for each in self.api.requests]


@pytest.fixture
def runs(repository: Path) -> Iterator[Runs]:
    def reply(body: Mapping[str, Any]) -> Reply:
        return made.reply(body)

    with chat_api(reply) as api:
        made = Runs(repository, api, {}, {})
        yield made


MIXED = {"yes": {1, 2, 3, 4, 5}, "late": {2, 3, 5}, "no": set[int](), "half": {1, 4}}


def test_answers_that_depend_on_the_seed_give_the_same_rows_for_any_number_of_workers(runs: Runs) -> None:
    runs.good = MIXED
    runs.documents(*MIXED)
    seen = []
    for workers in WORKERS:
        outcome = runs(workers=workers)
        seen.append((runs.told(), outcome.report.counts, outcome.report.gate))
        assert runs.progress.total == runs.progress.done == len(runs.rows())
    assert seen[0] == seen[1] == seen[2]
    counted = {name: sum(each == name for each, *_ in seen[0][0]) for name in MIXED}
    assert counted == {"yes": 3, "late": 5, "no": 3, "half": 5}


def test_verdicts_and_gate_are_those_of_all_trials(runs: Runs) -> None:
    runs.good = MIXED
    runs.documents(*MIXED)
    decided = runs(workers=2).report
    runs.documents(*MIXED, repeat=5)
    complete = runs(workers=2).report
    assert (decided.counts.rows, complete.counts.rows) == (16, 20)
    # "flaky" is what the trials show that ran: no mark of the verdict.
    left = {"rows", "flaky"}
    assert decided.counts.model_dump(exclude=left) == complete.counts.model_dump(exclude=left)
    assert (decided.gate.verdict, decided.gate.exit_code) == (complete.gate.verdict, complete.gate.exit_code)


def test_decided_case_is_complete_and_passes(runs: Runs) -> None:
    runs.good = {"yes": {1, 2, 3}}
    runs.documents("yes")
    found = runs().report
    assert (found.gate.verdict, found.gate.reasons, found.counts.rows) == ("pass", (), 3)
    assert runs.asked() == [("yes", 1), ("yes", 2), ("yes", 3)]


@pytest.mark.parametrize(("max_errors", "word"), [(0, "error"), (1, "pass")])
def test_error_of_a_trial_counts_and_trials_that_did_not_run_do_not(max_errors: int, word: str, runs: Runs) -> None:
    runs.good, runs.broken = {"yes": {1, 3, 4, 5}}, {"yes": {2}}
    runs.documents("yes", gate={"max_errors": max_errors})
    found = runs().report
    assert (found.gate.verdict, found.counts.rows, found.counts.passed) == (word, 4, 1)


@pytest.mark.parametrize("kept", [(), (1,), (3,), (1, 2), (2, 3), (1, 3), (1, 2, 3), (1, 2, 3, 4)])
def test_resumed_run_has_the_rows_of_an_uninterrupted_one(kept: tuple[int, ...], runs: Runs) -> None:
    runs.good = {"late": {2, 3, 5}, "yes": {1, 2, 3}}
    runs.documents("late", "yes")
    complete = runs().report
    told, asked = runs.told(), len(runs.asked())
    runs.keep(lambda each: each.eval_id == "late" and each.trial in kept)
    again = runs(resume=True).report
    assert runs.told() == told
    assert (again.counts, again.gate) == (complete.counts, complete.gate)
    assert len(runs.asked()) - asked == len(told) - len(kept)
    assert runs.progress.total == runs.progress.done == len(told) - len(kept)


def test_complete_run_that_is_resumed_needs_nothing_of_the_targets_environment(runs: Runs) -> None:
    runs.good = MIXED
    runs.documents(*MIXED)
    before = runs().report
    asked = len(runs.asked())
    runs.environ = clean_environment()
    after = runs(resume=True).report
    assert len(runs.asked()) == asked
    assert (after.counts, after.gate) == (before.counts, before.gate)
    assert runs.progress.total == 0


def test_run_that_decides_goes_on_to_the_last_trial_when_that_is_wanted_after_all(runs: Runs) -> None:
    runs.good = {"yes": {1, 2, 3}}
    runs.documents("yes")
    runs()
    runs.documents("yes", repeat=5)
    found = runs(resume=True).report
    assert [each.trial for each in runs.rows()] == [1, 2, 3, 4, 5]
    assert (found.gate.verdict, found.counts.flaky) == ("pass", 1)


def test_error_among_trials_is_made_up_for_when_a_run_is_resumed(runs: Runs) -> None:
    runs.good, runs.broken = {"yes": {1, 2, 3, 4, 5}}, {"yes": {2}}
    runs.documents("yes")
    assert runs().report.gate.verdict == "error"
    runs.broken = {}
    assert runs(resume=True).report.gate.verdict == "pass"
    assert sorted(each.trial for each in runs.rows()) == [1, 2, 3, 4]


def test_errors_of_trials_that_are_not_needed_any_more_do_not_stay(runs: Runs) -> None:
    runs.good, runs.broken = {"yes": {1, 2, 3, 4, 5}}, {"yes": {1, 2, 3, 4, 5}}
    runs.documents("yes")
    assert runs().report.gate.verdict == "error"
    # The outage is over: three trials decide the case.
    runs.broken = {}
    runs(resume=True)
    found = runs(resume=True).report
    assert (found.gate.verdict, found.counts.passed) == ("pass", 1)


@pytest.mark.parametrize("workers", WORKERS)
def test_run_whose_budget_ends_in_the_middle_of_trials_says_so_and_goes_on_when_it_is_resumed(
    workers: int, runs: Runs
) -> None:
    runs.good = {"late": {2, 3, 5}}
    runs.documents("late", prices=True)
    first = runs(workers=workers, max_cost_usd=4.0).report
    assert (first.stopped, first.gate.verdict, first.gate.exit_code) == ("budget", "budget", 5)
    assert first.counts.rows == 4
    assert "the budget is used up: every case ran, but not every trial" in first.gate.reasons
    second = runs(resume=True, workers=workers, max_cost_usd=5.0).report
    assert (second.stopped, second.gate.verdict, second.counts.rows) == (None, "pass", 5)


def test_budget_that_is_just_enough_to_decide_is_enough(runs: Runs) -> None:
    runs.good = {"yes": {1, 2, 3}}
    runs.documents("yes", prices=True)
    found = runs(max_cost_usd=3.0).report
    assert (found.stopped, found.gate.verdict, found.cost_usd) == (None, "pass", 3.0)


@pytest.mark.parametrize("workers", WORKERS)
def test_run_that_is_interrupted_in_the_middle_of_trials_does_not_pass(workers: int, runs: Runs) -> None:
    runs.good = {"yes": {1, 2, 3, 4, 5}, "late": {2, 3, 5}}
    runs.documents("yes", "late")
    over = threading.Event()

    async def main() -> RunOutcome:
        loop, running = asyncio.get_running_loop(), asyncio.create_task(runs.start(workers=workers))

        def end(case: str, seed: int) -> None:
            if (case, seed) == ("late", 4):
                loop.call_soon_threadsafe(running.cancel)
                over.wait(10)

        runs.when_asked = end
        async with asyncio.timeout(60):
            return await running

    found = asyncio.run(main()).report
    assert (found.stopped, found.gate.verdict, found.gate.exit_code) == ("interrupted", "interrupted", 130)
    assert 3 <= found.counts.rows < 8
    over.set()
    runs.when_asked = lambda _case, _seed: None
    again = runs(resume=True, workers=workers).report
    assert (again.gate.verdict, again.counts.rows) == ("pass", 8)


def test_run_stopped_at_the_first_failure_leaves_the_rest_to_a_resumed_one(runs: Runs) -> None:
    runs.good = {"yes": {1, 2, 3}, "no": set()}
    runs.documents("no", "yes")
    first = runs(fail_fast=True).report
    assert (first.stopped, first.gate.verdict, first.counts.not_run) == ("fail-fast", "fail", 1)
    again = runs(resume=True).report
    assert (again.stopped, again.gate.verdict, again.counts.rows) == (None, "fail", 6)


# --- Rows alone -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdicts", "missing"),
    [
        (("pass", "pass", "pass"), 0),
        (("pass", "pass"), 3),
        (("pass", "fail", "pass", "fail"), 1),
        (("borderline", "borderline", "borderline"), 2),
        (("fail", "fail", "fail"), 0),
        (("error", "error"), 3),
    ],
)
def test_rows_without_their_plan_tell_what_is_missing(verdicts: tuple[Verdict, ...], missing: int) -> None:
    one = adaptive()
    rows = [row(each, of=one, trial=number, stop_when="decided") for number, each in enumerate(verdicts, 1)]
    found, (outcome,) = whole(rows)
    assert outcome.missing == missing
    assert (found.gate.verdict == "pass") == (verdicts == ("pass", "pass", "pass"))
    assert any("error" in reason for reason in found.gate.reasons) == (missing > 0)
