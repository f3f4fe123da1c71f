"""Trials until the verdict of their case is decided: which run, and that nothing else changes."""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
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
from agentv_ci.execute.engine import Engine
from agentv_ci.execute.materials import Materials
from agentv_ci.execute.run_services import Progress, RunOptions, RunServices
from agentv_ci.results.files import form, form_of, read_rows
from agentv_ci.results.journal import Journal
from agentv_ci.results.resume import EarlierRun
from agentv_ci.results.rows import TrialKey
from agentv_ci.results.trials import Result
from tests.execute.builders import Session
from tests.servers.chat_api import ChatApi, chat_api, says
from tests.support import FakeClock
from tests.support.evals import Run, gpt, question
from tests.support.runs import case, plan

PASS, MISS, ERROR = Result("pass", 1.0), Result("fail", 0.0), Result("error", 0.0)
WORKERS = (1, 2, 8)


def adaptive(id: str = "one", trials: int = 5, require: Require = "majority") -> PlanCase:  # noqa: A002  # its name
    """A case whose n-th trial has the seed n."""
    seeds = tuple(range(1, trials + 1))
    return case(id, trials=trials, require=require, seeds=seeds, stop_when="decided")


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

    async def grade(case: PlanCase, request: Request, _response: Response, _ask: Ask) -> Grade:
        assert request.seed is not None
        for _ in range(lasting.randrange(1, 30)):
            await asyncio.sleep(0)
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


class Mixed:
    """Cases whose answers depend on the seed, in the working directory, with validators."""

    def __init__(self, run: Run, api: ChatApi) -> None:
        self._run, self._api = run, api
        self.documents()

    def documents(self, **repeat: Any) -> None:
        cases = [{"id": case, "input_messages": question(text)} for case, text in GOOD.items()]
        validators = ["structural_consistency", "determinism_check", "reproducibility_metadata"]
        self._run.documents(
            cases,
            gpt(self._api.base_url),
            seeds=[1, 2, 3, 4, 5],
            repeat={"max": 5, "stop_when": "decided", **repeat},
            validators=validators,
            gate={"min_pass_rate": 0.1, "validators": "warn"},
        )


@pytest.fixture
def mixed(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mixed]:
    monkeypatch.chdir(repository)
    monkeypatch.setenv("MOCK_KEY", "sk-0123456789")
    with chat_api(lambda body: says("42" if str(body["seed"]) in body["messages"][-1]["content"] else "43")) as api:
        yield Mixed(Run(repository), api)


def rows_in(name: str) -> list[tuple[str, int, int | None, str, float]]:
    rows = read_rows(Path(name), form_of(Path(name)))
    return sorted((row.eval_id, row.trial, row.seed, row.verdict, row.score) for row in rows)


def report_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(name).with_suffix(".report.json").read_text("utf-8"))
    return {name: found[name] for name in ("counts", "statistics", "scenario_reports")}


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


def test_a_rescored_case_that_is_open_again_is_not_complete(mixed: Mixed, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["eval", "evals", "--out", "r.jsonl"]) == 0
    # Under `all`, three passes of five no longer decide "yes".
    mixed.documents(require="all")
    capsys.readouterr()
    assert command(["rescore", "r.jsonl", "--out", "s.jsonl"]) != 0
    assert "passed" not in capsys.readouterr().out.splitlines()[-1]
