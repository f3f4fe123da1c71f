"""Ten thousand cases, a fifth of them with a fault: nothing is lost, nothing counts twice, every kind is right."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from junitparser import JUnitXml

from agentv_ci.results.files import read_rows
from tests.faults.builders import KEY, evaluate, gpt, question, suite, targets
from tests.faults.catalogue import ATTEMPTS, CATALOGUE, PLAYS, RETRIES
from tests.faults.server import SOUND, faulty_api
from tests.support import clean_environment, write

CASES = 10_000
FAULTY = CASES // 5
SUITES = ("evals/a.yaml", "evals/b.yaml", "evals/deeper/a.yaml", "evals/deeper/c.yaml")
"""Their cases have the same ids."""

CaseKey = tuple[str, str]
"""Suite and id."""


def mix() -> Mapping[CaseKey, str]:
    """Return the fault of every case: each as often as its share says, in an order that is always the same."""
    known = {name: fault.share for name, fault in CATALOGUE.items() if name != SOUND}
    kinds = [name for name, share in known.items() for _ in range(share)]
    faults = [*islice(cycle(kinds), FAULTY), *[SOUND] * (CASES - FAULTY)]
    random.Random(20_300_102).shuffle(faults)
    keys = ((suite, f"case-{number:04}") for number in range(CASES // len(SUITES)) for suite in SUITES)
    return dict(zip(keys, faults, strict=True))


def asked(key: CaseKey) -> str:
    """Return what a case is called in its question."""
    return "-".join(key).replace("/", ".")


def case(key: CaseKey, fault: str) -> dict[str, Any]:
    timeout_s = CATALOGUE[fault].timeout_s
    own = {"execution": {"timeout_seconds": timeout_s}} if timeout_s else {}
    return {"id": key[1], "input_messages": question(f"case: {asked(key)}; fault: {fault}"), **own}


def documents(faults: Mapping[CaseKey, str], base_url: str) -> dict[str, str]:
    suites = {
        path: suite(
            [case(key, fault) for key, fault in faults.items() if key[0] == path],
            timeout_seconds=60,
            max_retries=ATTEMPTS - 1,
        )
        for path in SUITES
    }
    return {**suites, "targets.yaml": targets(gpt(base_url, max_retries=RETRIES))}


def test_ten_thousand_cases_of_which_a_fifth_has_a_fault_are_ten_thousand_right_rows(repository: Path) -> None:
    faults = mix()
    with faulty_api(PLAYS) as api:
        write(repository, documents(faults, api.base_url))
        flags = ["--out", "r.jsonl", "--junit", "r.xml", "--workers", "32"]
        done = evaluate("evals", *flags, cwd=repository, env=clean_environment({"MOCK_KEY": KEY}))
    rows = list(read_rows(repository / "r.jsonl", "jsonl"))
    assert len(rows) == CASES
    assert {(row.suite, row.eval_id) for row in rows} == faults.keys()

    found = {(row.suite, row.eval_id): (row.status, row.error_kind, row.attempts, row.candidate_answer) for row in rows}
    expected = {key: fate(key, fault) for key, fault in faults.items()}
    assert {key: (faults[key], found[key]) for key in found if found[key] != expected[key]} == {}
    requests = {(row.suite, row.eval_id): row.requests for row in rows if row.error_kind != "timeout"}
    declared = {key: CATALOGUE[faults[key]].requests + (asked(key) in api.spited) for key in requests}
    assert {key: number for key, number in requests.items() if number != declared[key]} == {}
    assert {key: number for key, number in requests.items() if number != api.heard[asked(key)]} == {}

    errors = Counter(key[0] for key, fault in faults.items() if CATALOGUE[fault].error_kind)
    passed = CASES - errors.total()
    report = json.loads((repository / "r.report.json").read_text("utf-8"))
    counts = {"cases": CASES, "rows": CASES, "passed": passed, "failed": 0, "errored": errors.total(), "flaky": 0}
    assert {name: report["counts"][name] for name in counts} == counts
    assert report["gate"]["reasons"] == [f"{path}: {errors[path]} errors, at most 0 allowed" for path in SUITES]
    assert f"{CASES} cases: {passed} passed, 0 failed, {errors.total()} errors" in done.out.splitlines()
    assert (done.code, report["gate"]["exit_code"], "Traceback" in done.err) == (4, 4, False)
    junit = JUnitXml.fromfile(str(repository / "r.xml"))
    assert (junit.tests, junit.failures, junit.errors) == (CASES, 0, errors.total())


def fate(key: CaseKey, fault: str) -> tuple[str, str | None, int, str]:
    """Return status, kind of error, attempts and answer of a case's row."""
    declared = CATALOGUE[fault]
    if declared.error_kind is None:
        return "ok", None, 1, f"42 for {asked(key)}"
    return "error", declared.error_kind, declared.attempts, ""
