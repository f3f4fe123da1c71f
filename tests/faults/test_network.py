"""Each fault of a network alone, and all of them among sound answers."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.results import ResultRow
from agentv_ci.results.files import read_rows
from tests.faults.builders import gpt, shell
from tests.faults.catalogue import ATTEMPTS, CATALOGUE, PLAYS, RETRIES
from tests.faults.server import SOUND, FaultyApi, faulty_api
from tests.support.evals import KEY, Run, question

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def api() -> Iterator[FaultyApi]:
    with faulty_api(PLAYS) as serving:
        yield serving


@pytest.fixture
def run(repository: Path) -> Run:
    return Run(repository)


def asking(faults: dict[str, str]) -> list[dict[str, Any]]:
    """Return cases from id and fault."""
    return [
        {
            "id": name,
            "input_messages": question(f"case: {name}; fault: {fault}"),
            "execution": {"timeout_seconds": timeout_s(fault)},
        }
        for name, fault in faults.items()
    ]


def timeout_s(fault: str) -> float:
    return (CATALOGUE[fault].timeout_s if fault in CATALOGUE else None) or 60


def around(fault: str) -> dict[str, str]:
    """Return a case with the fault, among sound ones."""
    return {f"{place}-{fault}": fault if place == "at" else SOUND for place in ("before", "at", "after")}


Outcome = tuple[str, str | None, str, int, int]


def outcome(row: ResultRow) -> Outcome:
    return row.status, row.error_kind, row.candidate_answer, row.requests, row.attempts


def expected(name: str, fault: str, api: FaultyApi) -> Outcome:
    declared = CATALOGUE[fault]
    requests = declared.requests + (name in api.closed_at_once)
    if declared.error_kind is None:
        return "ok", None, f"42 for {name}", requests, declared.attempts
    return "error", declared.error_kind, "", requests, declared.attempts


@pytest.mark.parametrize("fault", CATALOGUE)
def test_a_fault_is_the_row_it_should_be_and_touches_no_other(fault: str, api: FaultyApi, run: Run) -> None:
    faults = around(fault)
    run.documents(asking(faults), gpt(api.base_url, max_retries=RETRIES), max_retries=ATTEMPTS - 1)
    rows = run.rows()
    assert {row.eval_id: outcome(row) for row in rows} == {
        name: expected(name, each, api) for name, each in faults.items()
    }
    assert {name: api.heard[name] for name in faults} == {row.eval_id: row.requests for row in rows}


@pytest.mark.slow
def test_among_many_cases_every_fault_is_its_own_row(api: FaultyApi, run: Run) -> None:
    kinds = [name for name, fault in CATALOGUE.items() if name != SOUND for _ in range(fault.share)]
    chance = random.Random(20_300_102)
    chance.shuffle(kinds)
    faults = [*islice(cycle(kinds), 200), *[SOUND] * 800]
    chance.shuffle(faults)
    cases = {f"many-{number:04}": fault for number, fault in enumerate(faults)}
    run.documents(asking(cases), gpt(api.base_url, max_retries=RETRIES), max_retries=ATTEMPTS - 1)
    report = run(workers=32).report
    found = {row.eval_id: outcome(row) for row in run.written()}
    declared = {name: expected(name, fault, api) for name, fault in cases.items()}
    # How many requests fit into a case's time is left to chance.
    assert {n: (cases[n], each) for n, each in found.items() if each != declared[n] and each[1] != "timeout"} == {}
    assert {n: each[:3] for n, each in found.items()} == {n: each[:3] for n, each in declared.items()}
    errors = sum(CATALOGUE[fault].error_kind is not None for fault in faults)
    counts = report.counts
    assert (counts.cases, counts.rows, counts.passed, counts.failed, counts.errored) == (
        1000,
        1000,
        1000 - errors,
        0,
        errors,
    )


def test_a_server_that_ends_during_the_run_is_an_error_of_every_later_question(run: Run) -> None:
    with faulty_api(PLAYS) as api:
        faults = {"one": SOUND, "two": "the-server-ends", "three": SOUND}
        run.documents(asking(faults), gpt(api.base_url, max_retries=RETRIES))
        rows = run.rows()
    found = [(row.eval_id, row.error_kind, row.requests) for row in rows]
    assert found == [("one", None, 1), ("two", "network", RETRIES + 1), ("three", "network", RETRIES + 1)]


@pytest.mark.slow
def test_a_small_body_of_gigabytes_is_malformed_and_takes_no_memory(api: FaultyApi, run: Run) -> None:
    run.documents(asking(around("bomb-in-a-bomb")), gpt(api.base_url, max_retries=RETRIES))
    command = 'ulimit -v 600000; exec "$0" -m agentv_ci eval evals --out r.jsonl'
    done = shell(command, sys.executable, cwd=run.repository, env={"MOCK_KEY": KEY})
    assert "Traceback" not in done.err
    assert [row.error_kind for row in read_rows(run.results, "jsonl")] == [None, "malformed", None]
