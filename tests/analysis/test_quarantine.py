"""Cases in quarantine: they run, they are counted on their own, and they decide nothing."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from agentv_ci.analysis.cases.tally import Tally
from agentv_ci.analysis.comparison.comparison import BaselineComparison, Side
from agentv_ci.analysis.run_report import report
from agentv_ci.contracts.quarantine import Quarantine, QuarantineState, state_on
from agentv_ci.contracts.report import Ending, RunReport, ShardRecord
from tests.support import NOW
from tests.support.runs import case, plan, row, rows_of, suite

IDLE = "no case was graded: all are in quarantine"
SHARD = ShardRecord(index=1, total=2, cases=9)


def entry(case_id: str = "q*", *, state: QuarantineState = "active", **given: Any) -> Quarantine:
    plain = {"reason": "It is slow.", "owner": "ops", "expires": "2030-01-31"}
    return Quarantine(id=case_id, state=state, **{**plain, **given})


def ran(words: str, *entries: Quarantine, ending: dict[str, Any] | None = None, **gate: Any) -> RunReport:
    """The report of a run: one case per word, one trial per letter; those after `+` are named `q…`."""
    kept, _, excused = words.partition("+")
    named = [(f"c-{number}", word) for number, word in enumerate(kept.split())]
    named += [(f"q-{number}", word) for number, word in enumerate(excused.split())]
    cases = [(case(name, trials=len(word)), word) for name, word in named]
    of = plan(*(each for each, _ in cases), suites=[suite(**gate)])
    rows = [found for each, word in cases for found in rows_of(each, word)]
    return report(of, rows, Ending(quarantine=entries or (entry(),), **(ending or {})))[0]


@pytest.mark.parametrize(
    ("words", "gate", "code", "reasons"),
    [
        ("p + f", {}, 0, []),
        ("p + e", {}, 0, []),
        ("p + pf", {}, 0, []),
        ("p + b f e", {"min_mean_score": 1.0}, 0, []),
        ("f + p p p", {"min_pass_rate": 0.5}, 1, ["pass rate 0.0% is below 50.0%"]),
        ("e + p", {}, 4, ["1 errored case, at most 0 allowed", "no case was graded"]),
        ("e + p", {"max_errors": 1}, 1, ["no case was graded"]),
        ("+ p", {}, 1, [IDLE]),
        ("+ f f", {}, 1, [IDLE]),
        ("+ e", {"max_errors": 1}, 1, [IDLE]),
    ],
)
def test_gate(words: str, gate: dict[str, Any], code: int, reasons: list[str]) -> None:
    found = ran(words, **gate)
    assert (found.gate.exit_code, [*found.gate.reasons]) == (code, reasons)


def test_figures_are_those_of_the_other_cases() -> None:
    found = ran("p f + f pf e p")
    counts = found.counts
    assert (counts.cases, counts.passed, counts.failed, counts.errored, counts.quarantined) == (6, 1, 1, 0, 4)
    assert (counts.flaky, counts.rows, found.statistics.mean) == (0, 7, 0.6)
    (group,) = found.suites
    assert (group.passed, group.counting, group.quarantined) == (1, 2, 4)


def test_an_entry_that_expired_takes_nothing_out_of_the_gate() -> None:
    found = ran("p + f", entry(state="expired"))
    assert (found.gate.exit_code, found.counts.quarantined) == (1, 0)
    assert [each.state for each in found.quarantine] == ["expired"]
    assert ran("p + f", entry(state="ending")).gate.exit_code == 0


@pytest.mark.parametrize(
    ("given", "covers"),
    [
        ({}, True),
        ({"suite": "evals/a.yaml"}, True),
        ({"suite": "evals/*"}, True),
        ({"suite": "a"}, True),
        ({"suite": "b"}, False),
        ({"target": "def*"}, True),
        ({"target": "gpt"}, False),
    ],
)
def test_suite_and_target_narrow_an_entry(given: dict[str, Any], covers: bool) -> None:
    assert (ran("p + f", entry(**given)).gate.exit_code == 0) == covers


@pytest.mark.parametrize(("words", "code"), [("p + f", 0), ("+ f", 0), ("+ e", 0), ("e + p", 4)])
def test_shard_may_have_nothing_but_quarantined_cases(words: str, code: int) -> None:
    assert ran(words, ending={"shard": SHARD}).gate.exit_code == code


def test_fail_fast_is_blamed_on_a_case_that_gates() -> None:
    found = ran("e + f", ending={"stopped": "fail-fast"}, max_errors=1)
    assert found.gate.exit_code == 4


def test_skipped_cases_stay_skipped() -> None:
    of = plan(case("q-1", skip="Later"), case("q-2"))
    rows = [row("skipped", None, of=of.cases[0]), row("fail", of=of.cases[1])]
    found = report(of, rows, Ending(quarantine=(entry(),)))[0]
    assert (found.counts.skipped, found.counts.quarantined) == (1, 1)
    assert [*found.gate.reasons] == ["no case was graded: all are skipped or in quarantine"]


def test_baseline_says_nothing_of_them() -> None:
    cases = [case("c-1"), case("q-1")]
    before = Tally.of(plan(*cases))
    for each in cases:
        before.add(row("pass", of=each))
    against = BaselineComparison(Side("baseline.json", before.outcomes()), "this run", NOW)
    rows = [row("pass", of=cases[0]), row("fail", of=cases[1])]

    def compared(*entries: Quarantine) -> RunReport:
        return report(plan(*cases), rows, Ending(quarantine=entries), against=against)[0]

    comparison = compared(entry()).comparison
    assert comparison is not None
    assert (comparison.quarantined, comparison.counts["regressed"], comparison.reasons) == (1, 0, ())
    assert compared(entry()).gate.exit_code == 0
    assert [each.kind for each in compared().gate.causes] == ["pass-rate", "undecided"]


@pytest.mark.parametrize(
    ("expires", "state"),
    [
        ("2030-01-01", "expired"),
        ("2030-01-02", "ending"),
        ("2030-01-16", "ending"),
        ("2030-01-17", "active"),
        ("2030-02-30", "expired"),
    ],
)
def test_last_day(expires: str, state: str) -> None:
    assert state_on(date(2030, 1, 2), expires) == state
