"""Planted states are found, and nothing else."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from agentv_ci.analysis.health.report import health_of
from agentv_ci.contracts.ledger import CaseLine, Damage, Ledger
from tests.support.nights import FOUND, Precision, ledger_of, night_of, plan

NIGHTS = 200
ENOUGH = 0.95


@pytest.mark.slow
def test_planted_states_are_found_with_few_mistakes() -> None:
    precision = Precision()
    for seed in (11, 12, 13):
        cases = plan(seed, nights=NIGHTS, of_each=8)
        precision.count(cases, health_of(ledger_of(cases, seed, NIGHTS)))
    poor = {
        state: (round(right, 3), round(recalled, 3))
        for state, (right, recalled) in precision.figures().items()
        if min(right, recalled) < ENOUGH
    }
    assert poor == {}
    assert precision.figures().keys() == FOUND.keys()


@pytest.mark.slow
def test_changes_are_dated() -> None:
    cases = plan(5, nights=NIGHTS, of_each=4)
    onsets = {each.id: each.onset for each in cases}
    report = health_of(ledger_of(cases, 5, NIGHTS))
    off = [
        abs(onset - int(night))
        for each in report.findings
        if each.kind.startswith("drifting") and each.since is not None
        for onset, night in [(onsets[each.id or ""], (night_at(each.since)))]
    ]
    assert len(off) == 12
    assert sorted(off)[len(off) * 3 // 4] <= 2


def night_at(time: str) -> int:
    return next(number for number in range(NIGHTS) if f"{night_of(number):%Y-%m-%dT%H:%M:%SZ}" == time)


def changed(ledger: Ledger, **fields: object) -> Ledger:
    """Return a ledger whose lines have other fields."""

    def line(case: CaseLine) -> CaseLine:
        return replace(case, **fields)

    return replace(ledger, runs=tuple(replace(run, cases=tuple(map(line, run.cases))) for run in ledger.runs))


def kinds(ledger: Ledger) -> Counter[str]:
    return Counter(each.kind for each in health_of(ledger).findings)


@pytest.fixture(scope="module")
def steady() -> Ledger:
    """Forty nights of two cases that always pass."""
    cases = [each for each in plan(1, nights=40, of_each=2) if each.state == "saturated"]
    return ledger_of(cases, 1, 40)


def test_recorded_answers_say_nothing_of_who_answers(steady: Ledger) -> None:
    assert kinds(steady) == {"saturated": 2}
    assert kinds(changed(steady, cached=True)) == {}


def test_errors_are_no_verdicts(steady: Ledger) -> None:
    broken = {"graded": 0, "passed": 0, "score": None, "verdict": "error"}
    assert kinds(changed(steady, **broken)) == {"dead": 2}


def test_few_errors_among_passes_do_not_make_a_case_flaky(steady: Ledger) -> None:
    first, *rest = steady.runs
    broken = changed(replace(steady, runs=(first,)), graded=0, passed=0, score=None, verdict="error")
    assert kinds(replace(steady, runs=(*broken.runs, *rest))) == {"saturated": 2}


def test_cases_that_disagree_with_themselves_in_one_night_are_flaky(steady: Ledger) -> None:
    assert kinds(changed(steady, trials=3, graded=3, passed=2)) == {"flaky": 2}


def test_damage_is_reported_with_the_findings(steady: Ledger) -> None:
    report = health_of(replace(steady, damaged=(Damage("2026-01/x.jsonl:3", "is nested too deep"),)))
    assert report.damaged == ("2026-01/x.jsonl:3: is nested too deep",)
    assert report.runs == 40


def test_empty_ledger_has_no_findings() -> None:
    report = health_of(Ledger("here", (), ()))
    assert (report.runs, report.cases, report.findings, report.first) == (0, 0, (), None)
