"""Each fault of a network alone."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.results import ResultRow
from agentv_ci.results.files import read_rows
from tests.faults.builders import KEY, documents, gpt, question, run, shell, targets, tool
from tests.faults.catalogue import ATTEMPTS, CATALOGUE, PLAYS, RETRIES
from tests.faults.server import SOUND, FaultyApi, faulty_api
from tests.support import FakeClock, clean_environment


@pytest.fixture(scope="module")
def api() -> Iterator[FaultyApi]:
    with faulty_api(PLAYS) as serving:
        yield serving


@pytest.fixture
def waits() -> FakeClock:
    return FakeClock(clean_environment({"MOCK_KEY": KEY}))


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
    return {f"{place}-{fault}": fault if place == "at" else SOUND for place in ("before", "at", "after", "last")}


@pytest.mark.parametrize("fault", CATALOGUE)
def test_a_fault_is_the_row_it_should_be_and_touches_no_other(
    fault: str, api: FaultyApi, waits: FakeClock, repository: Path
) -> None:
    faults = around(fault)
    documents(repository, asking(faults), gpt(api.base_url, max_retries=RETRIES), max_retries=ATTEMPTS - 1)
    rows = run(repository, waits.environment())
    found = {row.eval_id: outcome(row) for row in rows}
    assert found == {name: fate(name, each, api) for name, each in faults.items()}
    assert {name: api.heard[name] for name in faults} == {row.eval_id: row.requests for row in rows}


def outcome(row: ResultRow) -> tuple[str, str | None, str, int, int]:
    return row.status, row.error_kind, row.candidate_answer, row.requests, row.attempts


def fate(name: str, fault: str, api: FaultyApi) -> tuple[str, str | None, str, int, int]:
    """Return what a case's row has to say."""
    declared = CATALOGUE[fault]
    requests = declared.requests + (name in api.spited)
    if declared.error_kind is None:
        return "ok", None, f"42 for {name}", requests, declared.attempts
    return "error", declared.error_kind, "", requests, declared.attempts


def test_a_server_that_ends_under_the_run_is_the_error_of_every_question_from_then_on(
    waits: FakeClock, repository: Path
) -> None:
    with faulty_api(PLAYS) as api:
        faults = {"one": SOUND, "two": SOUND, "three": "the-server-ends", "four": SOUND, "five": SOUND}
        documents(repository, asking(faults), gpt(api.base_url, max_retries=RETRIES))
        rows = run(repository, waits.environment())
    found = [(row.eval_id, row.status, row.error_kind, row.requests) for row in rows]
    assert found[:2] == [("one", "ok", None, 1), ("two", "ok", None, 1)]
    assert found[2:] == [(name, "error", "network", RETRIES + 1) for name in ("three", "four", "five")]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_port_where_nobody_listens_is_a_network_error_after_every_retry(
    scheme: str, waits: FakeClock, repository: Path
) -> None:
    # Bound but not listening: no other process can take the port.
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        base_url = f"{scheme}://127.0.0.1:{bound.getsockname()[1]}/v1"
        documents(repository, asking({"one": SOUND}), gpt(base_url, max_retries=RETRIES))
        (row,) = run(repository, waits.environment())
    assert outcome(row) == ("error", "network", "", RETRIES + 1, 1)


def test_a_server_that_does_not_speak_tls_is_a_network_error_after_every_retry(
    api: FaultyApi, waits: FakeClock, repository: Path
) -> None:
    base_url = api.base_url.replace("http:", "https:")
    documents(repository, asking({"no-tls": SOUND}), gpt(base_url, max_retries=RETRIES))
    (row,) = run(repository, waits.environment())
    assert outcome(row) == ("error", "network", "", RETRIES + 1, 1)
    assert api.heard["no-tls"] == 0


@pytest.mark.parametrize(
    "fault", ["closed", "reset-in-body", "garbage", "503-for-ever", "429-for-ever", "401", "page", "silence"]
)
def test_a_fault_of_a_judge_is_its_evaluators_error_and_the_answer_is_kept(
    fault: str, api: FaultyApi, waits: FakeClock, repository: Path
) -> None:
    name = f"judged-{fault}"
    judge = {"name": "judge", "type": "llm_judge"}
    documents(repository, asking({name: fault}), tool("echo 42", judge_target="judge"), evaluators=[judge])
    listed = [tool("echo 42", judge_target="judge"), gpt(api.base_url, name="judge", max_retries=RETRIES)]
    (repository / "targets.yaml").write_text(targets(*listed), encoding="utf-8")
    (row,) = run(repository, waits.environment())
    assert outcome(row) == ("error", "evaluator", "42", 1, 1)
    # A judge is asked within the case's only attempt.
    assert api.heard[name] == CATALOGUE[fault].requests // CATALOGUE[fault].attempts


def test_a_small_body_that_unpacks_to_gigabytes_is_malformed_and_takes_no_memory(
    api: FaultyApi, repository: Path
) -> None:
    faults = around("bomb-in-a-bomb")
    documents(repository, asking(faults), gpt(api.base_url, max_retries=RETRIES))
    command = 'ulimit -v 600000; exec "$0" -m agentv_ci eval evals --out r.jsonl'
    done = shell(command, sys.executable, cwd=repository, env={"MOCK_KEY": KEY})
    assert "Traceback" not in done.err
    rows = list(read_rows(repository / "r.jsonl", "jsonl"))
    assert [row.error_kind for row in rows] == [None, "malformed", None, None]
