"""SARIF of results, checked against the official schema."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.results import ResultRow, RowSource
from agentv_ci.report.renderers import markdown, sarif
from tests.report.standards import sarif_violations
from tests.support.runs import any_text, case, reported, row, rows_of, well_formed_text


def log(rows: Sequence[ResultRow], ending: Ending | None = None) -> Any:
    return json.loads(b"".join(sarif.render(reported(rows, ending))))


def run_of(*rows: ResultRow, ending: Ending | None = None) -> Any:
    (found,) = log(rows, ending)["runs"]
    return found


def fingerprints(*rows: ResultRow) -> dict[tuple[str, str], str]:
    """The fingerprints of results by path and case."""
    places = [(each["locations"][0], each["partialFingerprints"]["agentvCi/v1"]) for each in run_of(*rows)["results"]]
    return {
        (place["physicalLocation"]["artifactLocation"]["uri"], place["logicalLocations"][0]["name"]): found
        for place, found in places
    }


def test_line_zero_becomes_the_first_line() -> None:
    (result,) = run_of(row("fail", source=RowSource(path="/a.yaml", line=0)))["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "file:///a.yaml"}, "region": {"startLine": 1}}


def test_reason_is_not_a_link() -> None:
    (result,) = run_of(row("error", error="see [here](https://evil.example)\x1b[2J"))["results"]
    assert result["message"]["text"].splitlines()[1] == "server: see [here] (https://evil.example)"


@pytest.mark.parametrize(("case_id", "error"), [("[a](https://evil.example)", ""), ("a](https://evil.example)", "[b")])
def test_id_is_not_a_link(case_id: str, error: str) -> None:
    (result,) = run_of(row("error", error=error, of=case(case_id)))["results"]
    assert "](" not in result["message"]["text"]


@pytest.mark.parametrize("case_id", ["a](b", "x[(y"])
def test_command_is_that_of_the_markdown(case_id: str) -> None:
    run = reported([row("fail", of=case(case_id))])
    (result,) = json.loads(b"".join(sarif.render(run)))["runs"][0]["results"]
    assert result["message"]["text"].rpartition("Run it again: ")[2] in markdown.text(run, 9_999)


@pytest.mark.parametrize(
    ("verdicts", "ending", "said"),
    [
        (["borderline", "pass", "error", "fail"], Ending(), ["case-failed", "case-errored", "case-borderline"]),
        (["pass"], Ending(write_error="disk full"), ["gate-not-passed"]),
        (["borderline"], Ending(), ["case-borderline", "gate-not-passed"]),
        (["pass"], Ending(stopped="budget"), ["gate-not-passed"]),
        (["fail"], Ending(stopped="budget"), ["case-failed"]),
        (["fail"], Ending(dry_run=True), []),
        (["pass"], Ending(), []),
        ([], Ending(), []),
    ],
)
def test_failed_runs_have_an_error(verdicts: list[Verdict], ending: Ending, said: list[str]) -> None:
    rows = [row(each, of=case(each), dry_run=ending.dry_run) for each in verdicts]
    levels = {"case-borderline": "warning"}
    found = [(each["ruleId"], each["level"]) for each in run_of(*rows, ending=ending)["results"]]
    assert found == [(rule, levels.get(rule, "error")) for rule in said]


def test_dry_run_has_a_note() -> None:
    (dry,) = run_of(row(dry_run=True), ending=Ending(dry_run=True))["invocations"]
    assert dry["toolExecutionNotifications"][0]["level"] == "note"


def test_fingerprint_is_that_of_the_case() -> None:
    before = fingerprints(
        row("fail", of=case("one", digest="1" * 64)), row("fail", of=case("two", digest="2" * 64, suite="two.yaml"))
    )
    moved = fingerprints(
        row("fail", of=case("two", digest="2" * 64, suite="other.yaml", line=99), misses=("other words",)),
        row("fail", of=case("one", digest="3" * 64)),
    )
    assert moved["other.yaml", "two"] == before["two.yaml", "two"]
    assert len({*before.values(), *moved.values()}) == 3


@pytest.mark.parametrize("score", [0.2, 0.4])
def test_copies_of_a_case_have_their_own_fingerprints(score: float) -> None:
    def of_copies(first: float) -> dict[tuple[str, str], str]:
        return fingerprints(row("fail", first, of=case(suite="a.yaml")), row("fail", 0.3, of=case(suite="b.yaml")))

    assert len({*of_copies(score).values()}) == 2
    assert of_copies(score) == of_copies(0.3)


def test_most_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MAX_RESULTS", 20)
    rows = [row("fail", score=0.1, of=case(f"bad-{number}")) for number in range(20)]
    found = run_of(row("borderline", of=case("nearly")), *rows)
    assert [each["ruleId"] for each in found["results"]] == ["case-failed"] * 20
    notes = found["invocations"][0]["toolExecutionNotifications"]
    assert notes[0]["message"]["text"] == "1 more case did not pass"


@settings(max_examples=40)
@given(st.lists(st.tuples(well_formed_text, any_text, st.sampled_from(["fail", "error", "pass"])), max_size=4))
def test_any_text_gives_a_valid_log(texts: list[tuple[str, str, Verdict]]) -> None:
    rows = [
        row(verdict, of=case(f"{name} {number}", suite=text or "x"), misses=(text,), target=name or "t")
        for number, (name, text, verdict) in enumerate(texts)
    ]
    assert sarif_violations(log([*rows, *rows_of(case("moody", trials=3), "pep")])) == []
