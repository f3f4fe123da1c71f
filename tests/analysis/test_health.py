"""Planted states are found, and nothing else."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from msgspec.structs import replace

from agentv_ci.analysis.health.report import health_of
from agentv_ci.base.canonical import digest_of
from agentv_ci.contracts.ledger import CaseLine, Damage, JudgedAnswer, Ledger
from tests.support.ledgers import case_line
from tests.support.ledgers import ledger_of as runs_of
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


@pytest.mark.parametrize("moody", [True, False], ids=["all-nights", "one-night"])
def test_trials_of_one_night_are_one_observation_of_a_judge(*, moody: bool) -> None:
    """Neither nights in which a judge is strict nor a single one make a drift, however many trials they have."""
    alarms = 0
    for seed in range(30):
        rng = random.Random(seed)
        levels = [0.8 + (rng.gauss(0.0, 0.05) if moody else -0.4 * (night == 30)) for night in range(60)]
        judged = [[rng.gauss(level, 0.01) for _ in range(5)] for level in levels]
        given = [tuple(JudgedAnswer(digest_of("x")[:8], score) for score in scores) for scores in judged]
        report = health_of(runs_of(*([case_line(passed=5, graded=5, judged=each)] for each in given)))
        alarms += any(each.kind == "drifting-judge" for each in report.findings)
    assert alarms <= 1


@pytest.mark.parametrize(
    ("nights", "is_flaky"),
    [
        ([0, 0] + [10] * 22, False),  # two nights, though they are a twelfth of all trials
        ([9] * 24, True),  # the same share in each night is beyond chance
        ([0, 10] * 12, True),
        ([10] * 24, False),
    ],
)
def test_trials_of_one_night_may_be_alike(nights: list[int], *, is_flaky: bool) -> None:
    ledger = runs_of(*([case_line(passed=each, graded=10, score=1.0)] for each in nights))
    assert ("flaky" in kinds(ledger)) is is_flaky


@pytest.mark.parametrize(
    ("means", "fell_from"),
    [
        ((0.9, 0.3, 0.5), 0.9),  # not yet back
        ((0.9, 0.3, 0.33), 0.9),  # a last change that does not matter
        ((0.9, 0.3, 0.89), None),
        ((0.9, 0.3), 0.9),
        ((0.3, 0.9), None),
        ((0.5, 0.9, 0.3, 0.5), 0.9),
    ],
)
def test_level_before_the_first_fall_is_kept(means: tuple[float, ...], fell_from: float | None) -> None:
    scores = [mean + (night % 3 - 1) / 1000 for mean in means for night in range(25)]
    ledger = runs_of(*([case_line(score=each, passed=0)] for each in scores))
    (drift,) = (each for each in health_of(ledger).findings if each.kind == "drifting-provider")
    assert drift.fell_from == pytest.approx(fell_from, abs=0.002)


def test_drift_says_between_which_commits_it_began() -> None:
    ledger = runs_of(*([case_line(score=0.9 if night < 20 else 0.4)] for night in range(40)))
    (alike,) = (each for each in health_of(ledger).findings if each.kind == "drifting-provider")
    assert alike.message.endswith("though case and target have the same digest")
    runs = [replace(each, head=replace(each.head, commit=f"{night:02}" * 20)) for night, each in enumerate(ledger.runs)]
    (found,) = (each for each in health_of(replace(ledger, runs=tuple(runs))).findings if each.since == alike.since)
    assert found.message == f"{alike.message}; it began between commits 191919191919 and 202020202020"


@pytest.mark.parametrize(("models", "is_change"), [("aabaaa", False), ("aaabbb", True), ("aababb", True)])
def test_model_that_changed_back_did_not_change(models: str, *, is_change: bool) -> None:
    ledger = runs_of(*([case_line(model=model)] for model in models for _ in range(4)))
    assert ("model-changed" in kinds(ledger)) is is_change


def test_damage_is_reported_with_the_findings(steady: Ledger) -> None:
    report = health_of(replace(steady, damaged=(Damage("2026-01/x.jsonl:3", "is nested too deep"),)))
    assert report.damaged == ("2026-01/x.jsonl:3: is nested too deep",)
    assert report.runs == 40


def test_empty_ledger_has_no_findings() -> None:
    report = health_of(Ledger("here", (), ()))
    assert (report.runs, report.cases, report.findings, report.first) == (0, 0, (), None)
