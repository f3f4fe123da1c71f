"""Trials until the verdict of their case is decided: which run, and that nothing else changes."""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.analysis.run_report import report
from agentv_ci.app.report_files import RunOutcome
from agentv_ci.cli import run as command
from agentv_ci.contracts.base import Require, Verdict
from agentv_ci.contracts.exchange import Ask, Grade, ProviderError, Request, Response
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.targets import MockTarget, Target
from agentv_ci.execute import targets
from agentv_ci.execute.engine import Engine
from agentv_ci.execute.materials import Materials
from agentv_ci.execute.run_services import Progress, RunOptions, RunServices
from agentv_ci.results.files import form, form_of, read_rows
from agentv_ci.results.journal import Journal
from agentv_ci.results.resume import EarlierRun
from agentv_ci.results.rows import TrialKey
from agentv_ci.results.trials import Result
from tests.execute.builders import Session
from tests.servers.chat_api import ChatApi, chat_api, fails, says
from tests.servers.http import Reply
from tests.support import FakeClock, clean_environment, write
from tests.support.evals import Run, gpt, question
from tests.support.runs import case, plan

BY_LETTER = {
    "p": Result("pass", 1.0),
    "f": Result("fail", 0.0),
    "b": Result("borderline", 0.7),
    "e": Result("error", 0.0),
}
WORKERS = (1, 2, 8)


def adaptive(id: str = "one", trials: int = 5, require: Require = "majority", **given: Any) -> PlanCase:  # noqa: A002  # its name
    """A case whose n-th trial has the seed n."""
    seeds = tuple(range(1, trials + 1))
    return case(id, trials=trials, require=require, seeds=seeds, **{"stop_when": "decided", **given})


def scripted(letters: str) -> list[Result]:
    return [BY_LETTER[each] for each in letters]


@dataclass(slots=True)
class Ran:
    """What a run came to."""

    plan: Plan
    rows: list[ResultRow]
    """As they were written."""
    progress: Progress
    ending: Ending
    most_at_once: dict[int, int]
    """By number, how many trials were under way with it at most."""

    @property
    def results(self) -> list[tuple[str, int, str, float]]:
        return sorted((each.eval_id, each.trial, each.verdict, each.score) for each in self.rows)

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

    async def main(root: Path) -> Engine:
        with Journal(root / "r.jsonl", form("jsonl").encode) as journal, Materials(of.files, root) as materials:
            engine = Engine(
                of,
                asked,
                RunOptions(root=root, workers=workers, fail_fast=fail_fast),
                RunServices(FakeClock().environment()),
                grade=grade,
                journal=journal,
                materials=materials,
                finished=EarlierRun(results=known or {}),
            )
            async with asyncio.timeout(30):
                await engine.run()
            journal.finish()
        return engine

    with tempfile.TemporaryDirectory() as folder:
        engine = asyncio.run(main(Path(folder)))
        rows = list(read_rows(Path(folder, "r.jsonl"), "jsonl"))
    return Ran(of, rows, engine.progress, engine.ending(), most)


@st.composite
def scripts(draw: st.DrawFn) -> tuple[list[PlanCase], dict[str, list[Result]]]:
    """Adaptive cases, and what all their trials would come to."""
    scores = st.sampled_from([0.0, 0.3, 0.6, 0.7, 1.0])
    graded = st.builds(Result, st.sampled_from(["pass", "borderline", "fail"]), scores)
    results = st.one_of(st.just(BY_LETTER["e"]), graded)
    cases, script = [], {}
    for number in range(draw(st.integers(1, 3))):
        trials, name = draw(st.integers(1, 6)), f"case-{number}"
        cases.append(adaptive(name, trials, draw(st.sampled_from(["majority", "all", "any"]))))
        script[name] = draw(st.lists(results, min_size=trials, max_size=trials))
    return cases, script


Cases = tuple[list[PlanCase], dict[str, list[Result]]]
chances = st.integers(0, 99)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(
    ("letters", "require", "ran", "verdict"),
    [
        ("ppppp", "majority", 3, "pass"),
        ("pfpfp", "majority", 5, "pass"),
        ("pffpf", "majority", 5, "fail"),
        ("fffpp", "majority", 3, "fail"),
        ("bbbpp", "majority", 4, "borderline"),
        ("epppp", "majority", 4, "pass"),
        ("eeeee", "majority", 5, "error"),
        ("fffff", "any", 5, "fail"),
        ("ffpff", "any", 3, "pass"),
        ("ppppp", "all", 5, "pass"),
        ("fffpp", "all", 3, "fail"),
        ("pppfp", "all", 4, "borderline"),
    ],
)
def test_no_more_trials_run_than_the_verdict_needs(
    letters: str, require: Require, ran: int, verdict: str, workers: int
) -> None:
    found = go([adaptive(require=require)], {"one": scripted(letters)}, workers=workers)
    assert sorted(each.trial for each in found.rows) == [*range(1, ran + 1)]
    assert (found.progress.total, found.progress.done, found.ending.stopped) == (ran, ran, None)
    assert found.outcome()[0] == {"one": verdict}


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
    assert (together.outcome()[0], together.outcome()[2]) == (complete.outcome()[0], 0)
    assert {*together.results} <= {*complete.results}
    assert len(complete.rows) == sum(each.trials for each in cases)


@settings(max_examples=15)
@given(scripts(), st.sampled_from(WORKERS), chances, st.data())
def test_a_resumed_run_ends_with_the_rows_of_an_uninterrupted_one(
    scripted: Cases, workers: int, chance: int, data: st.DataObject
) -> None:
    uninterrupted = go(*scripted, workers=workers, chance=chance)
    kept = uninterrupted.rows[: data.draw(st.integers(0, len(uninterrupted.rows)))]
    known = {
        (each.suite, each.eval_id, each.trial): Result(each.verdict, each.score) for each in kept if each.status == "ok"
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
    script = {"lost": scripted("f"), "open": scripted("pfpfp"), "decided": scripted("ppppp")}
    left = set()
    for chance in range(30):
        found = go([adaptive("open"), adaptive("lost", 1)], script, workers=8, fail_fast=True, chance=chance)
        verdicts, verdict, missing = found.outcome()
        assert (verdict, found.ending.stopped == "fail-fast") == ("fail", missing > 0)
        assert (verdicts["open"] == "pass") == (missing == 0)
        left.add(missing)
        found = go([adaptive("decided"), adaptive("lost", 1)], script, workers=8, fail_fast=True, chance=chance)
        assert (found.ending.stopped, len(found.rows), found.outcome()[2]) == (None, 4, 0)
    assert left == {0, 1, 2}


def test_one_worker_decides_a_case_before_it_begins_the_next() -> None:
    found = go([adaptive("a"), adaptive("b")], {"a": scripted("pfpfp"), "b": scripted("ppppp")})
    assert [(each.eval_id, each.trial) for each in found.rows] == [
        *(("a", number) for number in range(1, 6)),
        *(("b", number) for number in range(1, 4)),
    ]


def test_trials_that_are_needed_run_side_by_side() -> None:
    found = go([adaptive(trials=9)], {"one": scripted("ppffpffff")}, workers=8)
    assert (found.most_at_once[1], found.most_at_once[6]) == (5, 2)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("breaks", [False, True])
def test_a_batch_has_the_trials_that_cases_begin_with(
    workers: int, breaks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(ProviderError("process", "no window") if breaks else None)
    monkeypatch.setattr(targets, "open_provider", lambda *_: session)
    script = {"a": scripted("pfpfp"), "b": scripted("ppppp")}
    found = go([adaptive("a"), adaptive("b")], script, workers=workers, provider_batching=True)
    assert len(found.rows) == 8
    assert session.together == [[("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("b", 3)]]
    later = [("a", 4), ("a", 5)]
    assert sorted(session.alone) == sorted([*session.together[0], *later] if breaks else later)


@dataclass(slots=True)
class Asked:
    """Runs whose answers depend on the case and the seed."""

    run: Run
    api: ChatApi
    good: dict[str, set[int]] = field(default_factory=dict)
    """Case → seeds with a right answer."""
    broken: dict[str, set[int]] = field(default_factory=dict)
    """Case → seeds without an answer."""
    when_asked: Callable[[str, int], None] = lambda _case, _seed: None
    """Called for every question, in a thread of the server."""

    def documents(self, *cases: str, **execution: Any) -> None:
        """Write the documents; a right answer costs a dollar."""
        asked = [{"id": each, "input_messages": question(each)} for each in cases]
        plain = {"seeds": [1, 2, 3, 4, 5], "repeat": {"max": 5, "stop_when": "decided"}}
        self.run.documents(asked, gpt(self.api.base_url), **{**plain, **execution})
        costs = {"prices": {"gpt-mock": {"input_per_mtok": 10_000, "output_per_mtok": 0}}}
        write(self.run.repository, {".agentv/config.yaml": json.dumps(costs)})

    def reply(self, body: Mapping[str, Any]) -> Reply:
        case, seed = body["messages"][-1]["content"], body["seed"]
        self.when_asked(case, seed)
        if seed in self.broken.get(case, ()):
            return fails(400)
        return says("42" if seed in self.good.get(case, ()) else "43")

    def resume(self, **settings: Any) -> RunOutcome:
        return self.run(resume=self.run.results, **settings)

    def written(self) -> list[tuple[str, int, int | None, str]]:
        return sorted((each.eval_id, each.trial, each.seed, each.verdict) for each in self.run.written())


@pytest.fixture
def asked(repository: Path) -> Iterator[Asked]:
    def reply(body: Mapping[str, Any]) -> Reply:
        return made.reply(body)

    with chat_api(reply) as api:
        made = Asked(Run(repository), api)
        yield made


MIXED = {"yes": {1, 2, 3, 4, 5}, "late": {2, 3, 5}, "no": set[int](), "half": {1, 4}}
DECIDING = {"yes": 3, "late": 5, "no": 3, "half": 5}
"""Case → trials that decide it."""


def test_verdicts_and_gate_are_those_of_all_trials(asked: Asked) -> None:
    asked.good = MIXED
    asked.documents(*MIXED)
    decided = asked.run(workers=2).report
    assert {case: sum(each == case for each, *_ in asked.written()) for case in MIXED} == DECIDING
    asked.documents(*MIXED, repeat=5)
    complete = asked.run(workers=2).report
    assert (decided.counts.rows, complete.counts.rows) == (16, 20)
    # `flaky` depends on the trials that ran.
    others = {"rows", "flaky"}
    assert decided.counts.model_dump(exclude=others) == complete.counts.model_dump(exclude=others)
    assert (decided.gate.verdict, decided.gate.exit_code) == (complete.gate.verdict, complete.gate.exit_code)


@pytest.mark.parametrize(("max_errors", "verdict"), [(0, "error"), (1, "pass")])
def test_an_error_of_a_trial_counts_and_trials_that_did_not_run_do_not(
    max_errors: int, verdict: str, asked: Asked
) -> None:
    asked.good, asked.broken = MIXED, {"yes": {2}}
    asked.documents("yes", gate={"max_errors": max_errors})
    found = asked.run().report
    assert (found.gate.verdict, found.counts.rows, found.counts.passed) == (verdict, 4, 1)
    asked.broken = {}
    assert asked.resume().report.gate.verdict == "pass"
    assert sorted(each.trial for each in asked.run.written()) == [1, 2, 3, 4]


@pytest.mark.parametrize("kept", [(), (3,), (1, 3), (1, 2, 3)])
def test_a_resumed_run_asks_only_for_trials_that_are_missing(kept: tuple[int, ...], asked: Asked) -> None:
    asked.good = MIXED
    asked.documents("late", "yes")
    complete = asked.run().report
    written, questions = asked.written(), len(asked.api.requests)
    rows = [each for each in asked.run.written() if each.eval_id == "late" and each.trial in kept]
    asked.run.results.write_text("".join(map(form("jsonl").encode, rows)), encoding="utf-8")
    again = asked.resume().report
    assert (asked.written(), again.counts, again.gate) == (written, complete.counts, complete.gate)
    left = len(written) - len(kept)
    assert (len(asked.api.requests) - questions, asked.run.progress.total, asked.run.progress.done) == (left,) * 3
    asked.run.variables = clean_environment()
    assert (asked.resume().report.gate, asked.run.progress.total) == (complete.gate, 0)


def test_a_decided_case_continues_to_its_last_trial_when_all_are_required(asked: Asked) -> None:
    asked.good = {"yes": {1, 2, 3}}
    asked.documents("yes")
    asked.run()
    asked.documents("yes", repeat=5)
    found = asked.resume().report
    assert [each.trial for each in asked.run.written()] == [1, 2, 3, 4, 5]
    assert (found.gate.verdict, found.counts.flaky) == ("pass", 1)


def test_errors_of_trials_that_are_no_longer_needed_are_removed(asked: Asked) -> None:
    asked.good, asked.broken = MIXED, {"yes": {1, 2, 3, 4, 5}}
    asked.documents("yes")
    assert asked.run().report.gate.verdict == "error"
    asked.broken = {}
    asked.resume()
    found = asked.resume().report
    assert (found.gate.verdict, found.counts.passed) == ("pass", 1)


@pytest.mark.parametrize("workers", WORKERS)
def test_a_budget_that_ends_among_trials_stops_the_run_until_it_is_raised(workers: int, asked: Asked) -> None:
    asked.good = MIXED
    asked.documents("late")
    first = asked.run(workers=workers, max_cost_usd=4.0).report
    assert (first.stopped, first.gate.verdict, first.gate.exit_code, first.counts.rows) == ("budget", "budget", 5, 4)
    assert "the budget is used up: every case ran, but not every trial" in first.gate.reasons
    second = asked.resume(workers=workers, max_cost_usd=5.0).report
    assert (second.stopped, second.gate.verdict, second.counts.rows) == (None, "pass", 5)


@pytest.fixture
def commands(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """The documents of mixed cases in the working directory, with validators."""
    monkeypatch.chdir(asked.run.repository)
    monkeypatch.setenv("MOCK_KEY", "sk-0123456789")
    asked.good = MIXED
    validators = ["structural_consistency", "determinism_check", "reproducibility_metadata"]
    asked.documents(*MIXED, validators=validators, gate={"min_pass_rate": 0.1, "validators": "warn"})
    return asked


def rows_in(name: str) -> list[tuple[str, int, int | None, str, float]]:
    rows = read_rows(Path(name), form_of(Path(name)))
    return sorted((row.eval_id, row.trial, row.seed, row.verdict, row.score) for row in rows)


def report_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(name).with_suffix(".report.json").read_text("utf-8"))
    return {name: found[name] for name in ("counts", "gate", "statistics", "scenario_reports")}


@pytest.mark.usefixtures("commands")
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
    assert rows_in(other) == rows_in("r.jsonl")
    assert {case: sum(each == case for each, *_ in rows_in(other)) for case in MIXED} == DECIDING
    one, two = report_of("r.jsonl"), report_of(other)
    assert {name: one[name] for name in ("counts", "statistics", "scenario_reports")} == {
        name: two[name] for name in ("counts", "statistics", "scenario_reports")
    }


def test_a_rescored_case_that_is_open_again_is_not_complete(
    commands: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["eval", "evals", "--out", "r.jsonl"]) == 0
    # Under `all`, three passes of five no longer decide "yes".
    commands.documents(*MIXED, repeat={"max": 5, "stop_when": "decided", "require": "all"})
    capsys.readouterr()
    assert command(["rescore", "r.jsonl", "--out", "s.jsonl"]) != 0
    assert "passed" not in capsys.readouterr().out.splitlines()[-1]
