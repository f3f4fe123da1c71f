"""Each fault of a network alone, and all of them among sound answers."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import pytest

from agentv_ci.execute.limits import DOWN_AFTER
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


def asks(run: Run, api: FaultyApi, faults: dict[str, str]) -> None:
    """Write cases from id and fault."""
    cases = [
        {
            "id": name,
            "input_messages": question(f"case: {name}; fault: {fault}"),
            "execution": {"timeout_seconds": CATALOGUE.get(fault, CATALOGUE[SOUND]).timeout_s or 60},
        }
        for name, fault in faults.items()
    ]
    run.documents(cases, gpt(api.base_url, max_retries=RETRIES), max_retries=ATTEMPTS - 1)


def around(fault: str) -> dict[str, str]:
    """Return a case with the fault, among sound ones."""
    return {f"{place}-{fault}": fault if place == "at" else SOUND for place in ("before", "at", "after")}


Outcome = tuple[str | None, str, int, int]
"""The kind of the error, the answer, requests and attempts."""


def outcomes(run: Run) -> dict[str, Outcome]:
    return {
        row.eval_id: (row.error_kind, row.candidate_answer, row.requests, row.attempts)
        for row in run.written()
        if (row.status == "error") == (row.error_kind is not None)
    }


def expected(faults: dict[str, str], api: FaultyApi) -> dict[str, Outcome]:
    def outcome(name: str, fault: str) -> Outcome:
        kind, requests = CATALOGUE[fault].error_kind, CATALOGUE[fault].requests + (name in api.closed_at_once)
        return kind, "" if kind else f"42 for {name}", requests, CATALOGUE[fault].attempts

    return {name: outcome(name, fault) for name, fault in faults.items()}


def without_timeouts(found: dict[str, Outcome]) -> dict[str, Outcome]:
    """Leave out cases of which chance decides how many requests fit into their time."""
    return {name: each for name, each in found.items() if each[0] != "timeout"}


@pytest.mark.parametrize("fault", CATALOGUE)
def test_a_fault_is_the_row_it_should_be_and_touches_no_other(fault: str, api: FaultyApi, run: Run) -> None:
    faults = around(fault)
    asks(run, api, faults)
    run()
    assert outcomes(run) == expected(faults, api)
    assert {name: api.heard[name] for name in faults} == {row.eval_id: row.requests for row in run.written()}


def test_among_many_cases_every_fault_is_its_own_row(api: FaultyApi, run: Run) -> None:
    shares = [name for name, fault in CATALOGUE.items() if name != SOUND for _ in range(fault.share)]
    chance = random.Random(20_300_102)
    chance.shuffle(shares)
    faults = [*islice(cycle(shares), 200), *[SOUND] * 800]
    chance.shuffle(faults)
    cases = {f"many-{number:04}": fault for number, fault in enumerate(faults)}
    asks(run, api, cases)
    counts = run(workers=32).report.counts
    found, declared = outcomes(run), expected(cases, api)
    assert without_timeouts(found) == without_timeouts(declared)
    assert {name: each[0] for name, each in found.items()} == {name: each[0] for name, each in declared.items()}
    errors = sum(CATALOGUE[fault].error_kind is not None for fault in faults)
    assert (counts.cases, counts.rows, counts.errored, counts.passed) == (1000, 1000, errors, 1000 - errors)


def test_a_server_that_ends_during_the_run_is_an_error_of_every_later_question(run: Run) -> None:
    with faulty_api(PLAYS) as api:
        asks(run, api, {"one": SOUND, "two": "the-server-ends", "three": SOUND})
        rows = run.rows()
    found = [(row.eval_id, row.error_kind, row.requests) for row in rows]
    connections = DOWN_AFTER - RETRIES
    assert found == [("one", None, 1), ("two", "network", RETRIES + 1), ("three", "network", connections)]


def test_a_small_body_of_gigabytes_is_malformed_and_takes_no_memory(api: FaultyApi, run: Run) -> None:
    asks(run, api, around("bomb-in-a-bomb"))
    command = 'ulimit -v 600000; exec "$0" -m agentv_ci eval evals --out r.jsonl'
    done = shell(command, sys.executable, cwd=run.repository, env={"MOCK_KEY": KEY})
    assert "Traceback" not in done.err
    assert [row.error_kind for row in read_rows(run.results, "jsonl")] == [None, "malformed", None]
