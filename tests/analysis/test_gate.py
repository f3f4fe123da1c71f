"""The gate: verdict, exit code and reasons."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.analysis.run_report import report
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.report import Ending, GateResult, GateSettings, Stop
from agentv_ci.contracts.results import ResultRow
from tests.report.builders import SCORES, Verdict, case, plan, row, suite

A, B, C = "evals/a.yaml", "evals/b.yaml", "evals/c.yaml"
LETTERS: dict[str, Verdict] = {"p": "pass", "b": "borderline", "f": "fail", "e": "error"}
VERDICT_OF_CODE = {0: "pass", 1: "fail", 4: "error"}


def cases_of(ended: str, path: str = A, trials: int = 1) -> list[tuple[PlanCase, list[ResultRow]]]:
    """One case per word; one row per letter: p(ass), b(orderline), f(ail), e(rror); `-` is a case that never ran."""
    found = []
    for number, word in enumerate(ended.split()):
        each = case(f"case-{number}", suite=path, trials=max(trials, len(word)))
        letters = word.replace("-", "")
        found.append((each, [row(LETTERS[letter], of=each, trial=n) for n, letter in enumerate(letters, 1)]))
    return found


def judged(
    ended: str,
    *,
    trials: int = 1,
    dry_run: bool = False,
    write_error: str | None = None,
    stopped: Stop | None = None,
    **gate: Any,
) -> GateResult:
    """The gate's word over one suite."""
    cases = cases_of(ended, trials=trials)
    of = plan(*(each for each, _ in cases), suites=[suite(A, **gate)])
    rows = [found for _, listed in cases for found in listed]
    return report(of, rows, Ending(dry_run=dry_run, write_error=write_error, stopped=stopped))[0].gate


def judged_together(**ended: str) -> GateResult:
    """The gate's word over suites a, b, c."""
    cases = [each for name, words in ended.items() for each in cases_of(words, f"evals/{name}.yaml")]
    of = plan(*(each for each, _ in cases), suites=[suite(f"evals/{name}.yaml") for name in ended])
    return report(of, [found for _, listed in cases for found in listed], Ending())[0].gate


def said(gate: GateResult) -> tuple[str, int, tuple[str, ...]]:
    return gate.verdict, gate.exit_code, gate.reasons


@pytest.mark.parametrize(
    ("ended", "gate", "verdict", "code", "reasons"),
    [
        pytest.param("p p", {}, "pass", 0, [], id="all pass"),
        pytest.param("p f", {}, "fail", 1, ["pass rate 50.0% is below 100.0%"], id="one fails"),
        pytest.param("p b", {}, "fail", 1, ["pass rate 50.0% is below 100.0%"], id="borderline is no pass"),
        pytest.param("p f", {"min_pass_rate": 0.5}, "pass", 0, [], id="pass rate just reached"),
        pytest.param("p p f", {"min_pass_rate": 2 / 3}, "pass", 0, [], id="pass rate with endless digits"),
        pytest.param(
            "p f f", {"min_pass_rate": 0.5}, "fail", 1, ["pass rate 33.3% is below 50.0%"], id="pass rate not reached"
        ),
        pytest.param("f f", {"min_pass_rate": 0.0}, "pass", 0, [], id="no pass rate asked"),
        pytest.param("p p", {"min_mean_score": 1.0}, "pass", 0, [], id="mean just reached"),
        pytest.param(
            "p f b", {"min_pass_rate": 0.0, "min_mean_score": 1.9 / 3}, "pass", 0, [], id="mean with endless digits"
        ),
        pytest.param(
            "p f",
            {"min_pass_rate": 0.0, "min_mean_score": 0.75},
            "fail",
            1,
            ["mean score 0.600 is below 0.750"],
            id="mean not reached",
        ),
        pytest.param(
            "p f",
            {"min_mean_score": 0.75},
            "fail",
            1,
            ["pass rate 50.0% is below 100.0%", "mean score 0.600 is below 0.750"],
            id="neither reached",
        ),
        pytest.param("p e", {}, "error", 4, ["1 error, at most 0 allowed"], id="an error"),
        pytest.param("p e", {"max_errors": 1}, "pass", 0, [], id="an allowed error"),
        pytest.param("p e e", {"max_errors": 1}, "error", 4, ["2 errors, at most 1 allowed"], id="an error more"),
        pytest.param("p -", {}, "error", 4, ["1 error, at most 0 allowed"], id="a case that never ran"),
        pytest.param("ppe", {}, "error", 4, ["1 error, at most 0 allowed"], id="an errored trial"),
        pytest.param("ppe", {"max_errors": 1}, "pass", 0, [], id="an allowed errored trial"),
        pytest.param("pppee", {"max_errors": 1}, "error", 4, ["2 errors, at most 1 allowed"], id="errored trials"),
        pytest.param(
            "f e",
            {},
            "fail",
            1,
            ["pass rate 0.0% is below 100.0%", "1 error, at most 0 allowed"],
            id="quality beats errors",
        ),
        pytest.param("f e", {"max_errors": 1}, "fail", 1, ["pass rate 0.0% is below 100.0%"], id="quality alone"),
        pytest.param("e e", {}, "error", 4, ["2 errors, at most 0 allowed", "no case was graded"], id="all errored"),
        pytest.param("- -", {}, "error", 4, ["2 errors, at most 0 allowed", "no case was graded"], id="none ran"),
        pytest.param("e e", {"max_errors": 2}, "fail", 1, ["no case was graded"], id="all errored and allowed"),
        pytest.param(
            "e",
            {"max_errors": 1, "min_pass_rate": 0.0, "min_mean_score": 0.0},
            "fail",
            1,
            ["no case was graded"],
            id="nothing asked and nothing graded",
        ),
    ],
)
def test_run_is_judged_as_the_table_says(
    ended: str, gate: dict[str, Any], verdict: str, code: int, reasons: list[str]
) -> None:
    assert said(judged(ended, **gate)) == (verdict, code, tuple(reasons))


def test_trials_that_never_ran_count_as_errors() -> None:
    assert said(judged("pp", trials=3)) == ("error", 4, ("1 error, at most 0 allowed",))


def test_errored_cases_do_not_count_in_the_pass_rate() -> None:
    assert judged("p p e", max_errors=1, min_pass_rate=1.0).exit_code == 0


@pytest.mark.parametrize("score", [0.1 + 0.7, 0.8])
def test_mean_has_no_float_noise(score: float) -> None:
    one = case()
    of = plan(one, suites=[suite(A, min_mean_score=0.8)])
    assert report(of, [row("pass", score, of=one)], Ending())[0].gate.exit_code == 0


@pytest.mark.parametrize(
    ("ended", "code", "reasons"),
    [
        ("p", 4, ["results could not be written: disk full"]),
        ("f", 1, ["results could not be written: disk full", "pass rate 0.0% is below 100.0%"]),
        (
            "-",
            4,
            ["results could not be written: disk full", "1 error, at most 0 allowed", "no case was graded"],
        ),
    ],
)
def test_results_that_cannot_be_written_fail_the_run(ended: str, code: int, reasons: list[str]) -> None:
    gate = judged(ended, write_error="disk full")
    assert said(gate) == (VERDICT_OF_CODE[code], code, tuple(reasons))


@pytest.mark.parametrize("ended", ["p", "f", "e", "-", "p f e -"])
def test_dry_run_is_not_gated(ended: str) -> None:
    assert said(judged(ended, dry_run=True)) == ("dry-run", 0, ())


@pytest.mark.parametrize(
    ("ending", "verdict", "code", "reason"),
    [
        ({"write_error": "disk full"}, "error", 4, "results could not be written: disk full"),
        ({"stopped": "interrupted"}, "interrupted", 130, "interrupted: 1 of 2 cases never ran"),
    ],
)
def test_how_a_dry_run_ended_is_told_all_the_same(ending: dict[str, Any], verdict: str, code: int, reason: str) -> None:
    assert said(judged("f -", dry_run=True, **ending)) == (verdict, code, (reason,))


@pytest.mark.parametrize(
    ("ended", "code", "reasons"),
    [
        ({"a": "p", "b": "p"}, 0, []),
        ({"a": "p", "b": "p e"}, 4, [f"{B}: 1 error, at most 0 allowed"]),
        ({"a": "f", "b": "p"}, 1, [f"{A}: pass rate 0.0% is below 100.0%"]),
        (
            {"a": "p e", "b": "f"},
            1,
            [f"{A}: 1 error, at most 0 allowed", f"{B}: pass rate 0.0% is below 100.0%"],
        ),
        (
            {"a": "e", "b": "p", "c": "f p"},
            1,
            [
                f"{A}: 1 error, at most 0 allowed",
                f"{A}: no case was graded",
                f"{C}: pass rate 50.0% is below 100.0%",
            ],
        ),
    ],
)
def test_worst_suite_wins(ended: dict[str, str], code: int, reasons: list[str]) -> None:
    assert said(judged_together(**ended)) == (VERDICT_OF_CODE[code], code, tuple(reasons))


def test_every_suite_has_its_own_thresholds() -> None:
    first, second = case(suite=A), case(suite=B)
    of = plan(first, second, suites=[suite(A, min_pass_rate=0.0), suite(B, max_errors=1)])
    rows = [row("fail", of=first), row("error", of=second)]
    gate = report(of, rows, Ending())[0].gate
    assert said(gate) == ("fail", 1, (f"{B}: no case was graded",))


@pytest.mark.parametrize("dry_run", [False, True])
def test_thresholds_that_were_applied_are_told(dry_run: bool) -> None:
    of = plan(case(suite=A), suites=[suite(A, min_pass_rate=0.5, min_mean_score=0.25, max_errors=3), suite(B)])
    gate = report(of, [], Ending(dry_run=dry_run))[0].gate
    assert gate.settings == (GateSettings(suite=A, cases=1, min_pass_rate=0.5, min_mean_score=0.25, max_errors=3),)


@pytest.mark.parametrize(("passes", "cases", "min_pass_rate"), [(1999, 2000, 1.0), (1, 3, 0.3334), (5, 9, 0.5556)])
def test_reason_tells_two_figures_apart_when_the_pass_rate_is_just_missed(
    passes: int, cases: int, min_pass_rate: float
) -> None:
    (reason,) = judged(" ".join("p" * passes + "f" * (cases - passes)), min_pass_rate=min_pass_rate).reasons
    reached, wanted = re.findall(r"[\d.]+%", reason)
    assert reached != wanted


@pytest.mark.parametrize(("mean", "min_mean_score"), [(0.7996, 0.8), (0.79999996, 0.8), (0.7, 0.700000000002)])
def test_reason_tells_two_figures_apart_when_the_mean_is_just_missed(mean: float, min_mean_score: float) -> None:
    one = case()
    of = plan(one, suites=[suite(A, min_pass_rate=0.0, min_mean_score=min_mean_score)])
    (reason,) = report(of, [row("borderline", mean, of=one)], Ending())[0].gate.reasons
    reached, wanted = re.findall(r"\d\.\d+", reason)
    assert reached != wanted


Run = tuple[Plan, list[ResultRow], bool, str | None]


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Any run: suites with any thresholds, cases with any trials, rows missing or not."""
    suites, cases, rows = [], [], []
    for path in draw(st.sampled_from([[A], [A, B], [A, B, C]])):
        gate = {
            "min_pass_rate": draw(st.sampled_from([0.0, 0.5, 2 / 3, 1.0])),
            "max_errors": draw(st.integers(0, 3)),
        }
        mean = draw(st.sampled_from([None, 0.0, 0.6, 0.75, 1.0]))
        suites.append(suite(path, **gate, **({} if mean is None else {"min_mean_score": mean})))
        words = draw(st.lists(st.sampled_from(["p", "b", "f", "e", "-", "ppe", "pf", "eee", "pp"]), min_size=1))
        for each, listed in cases_of(" ".join(words), path):
            cases.append(each)
            rows += listed
    return plan(*cases, suites=suites), rows, draw(st.booleans()), draw(st.none() | st.just("disk full"))


@settings(deadline=None, derandomize=True, max_examples=100)
@given(runs())
def test_verdict_exit_code_and_reasons_never_disagree(run: Run) -> None:
    of, rows, dry_run, write_error = run
    found = report(of, rows, Ending(dry_run=dry_run, write_error=write_error))[0]
    gate = found.gate
    if dry_run:
        lost = ("error", 4, (f"results could not be written: {write_error}",))
        assert said(gate) == (("dry-run", 0, ()) if write_error is None else lost)
    else:
        assert gate.verdict == VERDICT_OF_CODE[gate.exit_code]
        assert (gate.exit_code == 0) == (not gate.reasons)
        assert any("below" in reason or "graded" in reason for reason in gate.reasons) or gate.exit_code != 1
        assert any("errors" in reason or "written" in reason for reason in gate.reasons) or gate.exit_code != 4
    assert (found.dry_run, found.write_error) == (dry_run, write_error)


def expected_code(of: Plan, rows: list[ResultRow], path: str) -> int:
    """What the table of exit codes says of one suite, in exact fractions."""
    gate = next(each.gate for each in of.suites if each.path == path)
    graded: list[tuple[bool, Fraction]] = []
    errors = 0
    for each in of.cases:
        if each.suite != path:
            continue
        ran = [found.verdict for found in rows if (found.suite, found.eval_id) == (path, each.id)]
        errors += each.trials - len(ran) + ran.count("error")
        scores = [Fraction(str(SCORES[verdict])) for verdict in ran if verdict != "error"]
        if scores:
            graded.append((ran.count("pass") * 2 > each.trials, sum(scores, Fraction()) / len(scores)))
    too_many = errors > gate.max_errors
    if not graded:
        return 4 if too_many else 1
    passes = sum(passed for passed, _ in graded) / len(graded) >= gate.min_pass_rate
    mean = float(sum((score for _, score in graded), Fraction()) / len(graded))
    high = gate.min_mean_score is None or round(mean, 12) >= gate.min_mean_score
    return (4 if too_many else 0) if passes and high else 1


@settings(deadline=None, derandomize=True, max_examples=100)
@given(runs())
def test_exit_code_is_the_worst_of_what_the_table_says_of_every_suite(run: Run) -> None:
    of, rows, _, write_error = run
    codes = {expected_code(of, rows, each.path) for each in of.suites} | ({4} if write_error else set())
    worst = next(code for code in (1, 4, 0) if code in codes)
    assert report(of, rows, Ending(write_error=write_error))[0].gate.exit_code == worst


def test_report_names_the_plan_it_is_of() -> None:
    of = plan(case())
    assert report(of, [], Ending())[0].plan_digest == of.digest
