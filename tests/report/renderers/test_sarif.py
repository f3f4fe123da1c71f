"""SARIF of results, held against the official schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.results import ResultRow
from agentv_ci.report.renderers.sarif import MAX_RESULTS, render
from tests.report.builders import Verdict, any_text, case, reported, row, rows_of, well_formed_text
from tests.report.standards import what_sarif_forbids


def log_run(rows: list[ResultRow], ending: Ending | None = None) -> Any:
    """The only run of a log."""
    (found,) = log(rows, ending)["runs"]
    return found


def log(rows: list[ResultRow], ending: Ending | None = None) -> Any:
    return json.loads(b"".join(render(reported(rows, ending))))


def rules_of(rows: list[ResultRow], ending: Ending | None = None) -> list[tuple[str, str]]:
    return [(each["ruleId"], each["level"]) for each in log_run(rows, ending)["results"]]


def test_case_that_failed_is_a_result_on_its_line() -> None:
    of = case("a case", line=7, suite="evals/a b%.yaml", trials=3)
    found = log_run(rows_of(of, "fail", "pass", "fail"))
    (result,) = found["results"]
    assert found["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "case-failed"
    assert result["message"]["text"].splitlines() == [
        "a case (default): fail, score 0.467, 1 of 3 trials passed",
        "Run it again: agentv-ci eval 'evals/a b%.yaml' --eval-id='a case'",
    ]
    assert result["locations"] == [
        {
            "physicalLocation": {"artifactLocation": {"uri": "evals/a%20b%25.yaml"}, "region": {"startLine": 7}},
            "logicalLocations": [
                {"name": "a case", "kind": "member", "fullyQualifiedName": "evals/a b%.yaml:a case"},
            ],
        }
    ]
    assert result["properties"] == {
        "verdict": "fail",
        "score": pytest.approx(1.4 / 3),
        "target": "default",
        "digest": of.digest,
        "trials": 3,
        "passed": 1,
        "flaky": True,
    }


def test_worst_come_first_and_what_passed_is_not_there() -> None:
    verdicts: list[Verdict] = ["borderline", "pass", "error", "fail"]
    assert rules_of([row(each, of=case(each)) for each in verdicts]) == [
        ("case-failed", "error"),
        ("case-errored", "error"),
        ("case-borderline", "warning"),
    ]


def test_reason_is_told_and_is_no_link() -> None:
    said = "see [here](https://evil.example)\x1b[2J"
    (result,) = log_run([row("error", error=said, error_kind="process")])["results"]
    assert result["message"]["text"].splitlines()[1] == "process: see [here] (https://evil.example)"


@pytest.mark.parametrize(
    ("rows", "ending", "said"),
    [
        ([row()], Ending(write_error="disk full"), [("gate-not-passed", "error")]),
        ([row("borderline")], Ending(), [("case-borderline", "warning"), ("gate-not-passed", "error")]),
        ([row()], Ending(stopped="budget"), [("gate-not-passed", "error")]),
        ([row("fail")], Ending(stopped="budget"), [("case-failed", "error")]),
        ([row("fail", dry_run=True)], Ending(dry_run=True), []),
        ([row()], Ending(), []),
        ([], Ending(), []),
    ],
)
def test_no_log_is_green_whose_run_is_not(rows: list[ResultRow], ending: Ending, said: list[tuple[str, str]]) -> None:
    assert rules_of(rows, ending) == said


def test_run_says_how_it_ended() -> None:
    (ended,) = log_run([row("error")])["invocations"]
    assert (ended["executionSuccessful"], ended["exitCode"], ended["exitCodeDescription"]) == (False, 4, "error")
    assert [each["message"]["text"] for each in ended["toolExecutionNotifications"]] == [
        "1 error, at most 0 allowed",
        "no case was graded",
    ]
    (passed,) = log_run([row()])["invocations"]
    assert (passed["executionSuccessful"], passed["exitCode"]) == (True, 0)


def fingerprints(rows: list[ResultRow]) -> dict[str, str]:
    return {
        each["locations"][0]["logicalLocations"][0]["name"]: each["partialFingerprints"]["agentvCi/v1"]
        for each in log_run(rows)["results"]
    }


def test_fingerprint_stays_while_the_case_does() -> None:
    before = fingerprints([row("fail", of=case("one", digest="1" * 64)), row("fail", of=case("two", digest="2" * 64))])
    moved = [
        row("fail", of=case("two", digest="2" * 64, suite="other.yaml", line=99), misses=("other words",)),
        row("fail", of=case("one", digest="3" * 64)),
    ]
    after = fingerprints(moved)
    assert after["two"] == before["two"]
    assert len({*before.values(), after["one"]}) == 3, "another question is another finding"


def test_copies_of_a_case_are_different_findings() -> None:
    twins = [row("fail", of=case("one", suite=suite)) for suite in ("a.yaml", "b.yaml")]
    found = [each["partialFingerprints"]["agentvCi/v1"] for each in log_run(twins)["results"]]
    assert len({*found}) == 2


def test_of_a_great_run_the_worst_are_kept_and_the_rest_is_counted() -> None:
    rows = [row("fail", score=0.1, of=case(f"bad-{number}")) for number in range(MAX_RESULTS)]
    found = log_run([row("borderline", of=case("nearly")), *rows])
    assert len(found["results"]) == MAX_RESULTS
    assert {each["ruleId"] for each in found["results"]} == {"case-failed"}
    notes = found["invocations"][0]["toolExecutionNotifications"]
    assert notes[0]["message"]["text"] == "1 more case did not pass"


@settings(max_examples=40)
@given(st.lists(st.tuples(well_formed_text, any_text, st.sampled_from(["fail", "error", "pass"])), max_size=4))
def test_log_is_what_the_standard_says(texts: list[tuple[str, str, Verdict]]) -> None:
    rows = [
        row(verdict, of=case(f"{name} {number}", suite=text or "x"), misses=(text,), target=name or "t")
        for number, (name, text, verdict) in enumerate(texts)
    ]
    assert what_sarif_forbids(log(rows)) == []


def test_trial_without_a_verdict_is_a_result_where_its_case_has_a_verdict() -> None:
    of = case("moody", trials=3, line=7)
    rows = [row("pass", of=of), row("error", of=of, trial=2, error="no answer"), row("pass", of=of, trial=3)]
    trial, gate = log_run(rows)["results"]
    assert (trial["ruleId"], trial["level"], gate["ruleId"]) == ("trial-errored", "warning", "gate-not-passed")
    assert trial["message"]["text"] == "moody (default): trial 2 of 3 has no verdict\nprocess: no answer"
    assert trial["locations"][0]["physicalLocation"]["region"] == {"startLine": 7}
    assert what_sarif_forbids(log(rows)) == []
