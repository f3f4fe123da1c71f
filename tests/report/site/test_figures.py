"""The figures that the pages of a ledger show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentv_ci.contracts.ledger import CaseLine
from agentv_ci.report.site import document
from agentv_ci.report.site.badge import badge, message_of
from agentv_ci.report.site.document import Shown, SiteView, render
from agentv_ci.report.site.payload import case_block, interval_block, tracks
from agentv_ci.report.site.series import by_suite, by_target, overall
from tests.support.ledgers import case_line, ledger_of

KEY = ("evals/a.yaml", "one", "default")


def test_case_that_crashes_has_not_passed() -> None:
    lines = case_line("one", 4, 4), case_line("two", 0, 4, crashed=4, verdict="error"), case_line("three", 0, 0)
    (point,) = overall(ledger_of(lines).runs).points
    assert point is not None
    assert (point.cases, point.passed, point.graded, point.errored, point.rate, point.score) == (3, 1, 2, 1, 0.5, 0.5)


def test_figures_are_those_of_graded_cases() -> None:
    cases = [
        case_line("one", 3, 4, cost_usd=0.5, duration_ms=100),
        case_line("two", 0, 4, duration_ms=300),
        case_line("three", 0, 0),
    ]
    (point,) = overall(ledger_of(cases).runs).points
    assert point is not None
    assert (point.cases, point.passed, point.graded, point.errored, point.rate) == (3, 1, 2, 1, 0.5)
    assert (point.score, point.cost_usd, point.duration_ms) == (0.375, 0.5, 200)
    # As SciPy computes them for one of two.
    assert (round(point.low, 4), round(point.high, 4)) == (0.0945, 0.9055)


def test_what_is_unknown_has_no_figure() -> None:
    (point,) = overall(ledger_of([case_line("one", 0, 0)]).runs).points
    assert point is not None
    assert (point.rate, point.score, point.cost_usd, point.duration_ms) == (None, None, None, None)


def test_groups_have_a_gap_where_they_did_not_run() -> None:
    small, other = case_line(target="small"), case_line(suite="evals/b.yaml")
    runs = ledger_of([small], [other], [small, other]).runs
    assert [(each.name, [point is not None for point in each.points]) for each in by_target(runs)] == [
        ("default", [False, True, True]),
        ("small", [True, False, True]),
    ]
    assert [each.name for each in by_suite(runs)] == ["evals/a.yaml", "evals/b.yaml"]
    assert by_target(runs[:2])[1].last == by_target(runs)[1].points[0]


def track(*lines: CaseLine | None) -> dict[str, Any]:
    found = tracks(ledger_of(*([line] if line is not None else [] for line in lines)).runs)
    return case_block(KEY, found[KEY], ())


def test_a_case_is_a_letter_for_each_run() -> None:
    lines = (case_line(), None, case_line(passed=0), case_line(graded=0, passed=0), case_line(verdict="borderline"))
    assert track(*lines)["verdicts"] == "p.feb"


def test_trials_are_given_where_a_run_has_several() -> None:
    assert "passed" not in track(case_line(), case_line(passed=0))
    given = track(case_line(passed=2, graded=3), None, case_line())
    assert (given["passed"], given["graded"]) == ([2, None, 1], [3, None, 1])


def test_models_and_digests_are_given_where_they_change() -> None:
    old = case_line(model="m-1")
    given = track(old, None, old, case_line(), case_line(model="m-2", digest="e" * 64))
    assert given["models"] == [[0, "m-1"], [4, "m-2"]]
    assert given["edits"] == [4]
    assert track(case_line(), case_line()).keys() == {"id", "suite", "target", "verdicts", "score"}


def test_intervals_are_those_of_the_numbers_of_trials_that_occur() -> None:
    found = tracks(ledger_of([case_line(passed=2, graded=3)], [case_line(passed=2, graded=3)], [case_line()]).runs)
    assert interval_block(found.values()).keys() == {"2/3"}


def test_newest_runs_are_shown_as_far_as_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = ledger_of(*[[case_line("one"), case_line("two")]] * 10).runs
    assert Shown.of(runs).left_out == 0
    monkeypatch.setattr(document, "MOST_CELLS", 7)
    assert Shown.of(runs) == Shown(runs[-3:], 7)
    monkeypatch.setattr(document, "MOST_CELLS", 1)
    assert Shown.of(runs) == Shown(runs[-1:], 9)
    assert Shown.of(()) == Shown((), 0)


BADGES = {
    "none": ([], "no runs", "#5c6670"),
    "passed": ([case_line("one"), case_line("two")], "2/2 passed", "#17753f"),
    "most": ([case_line(f"{number}", passed=int(number > 0)) for number in range(10)], "9/10 passed", "#8a5a00"),
    "few": ([case_line("one"), case_line("two", passed=0)], "1/2 passed", "#bd2530"),
    "errors": ([case_line("one"), case_line("two", 0, 0)], "1/1 passed, 1 without verdict", "#8a5a00"),
    "ungraded": ([case_line("one", 0, 0)], "no verdict", "#5c6670"),
}


@pytest.mark.parametrize(("cases", "text", "color"), BADGES.values(), ids=BADGES)
def test_badge(cases: list[CaseLine], text: str, color: str) -> None:
    newest = overall(ledger_of(cases).runs).points[0] if cases else None
    assert message_of(newest) == text
    assert f"<title>evals: {text}</title>" in badge(newest)
    assert color in badge(newest)


def test_status_has_the_newest_figures_for_programs() -> None:
    old, new = [case_line(passed=0)], [case_line(cost_usd=0.25), case_line("two", 0, 0)]
    files = render(SiteView(ledger_of(old, new, commit="abc", run_url="https://example.com/1")))
    assert json.loads(files["status.json"]) == {
        "message": "1/1 passed, 1 without verdict",
        "time": "2026-01-02T02:15:00Z",
        "commit": "abc",
        "run_url": "https://example.com/1",
        "runs": 2,
        "cases": 2,
        "passed": 1,
        "graded": 1,
        "rate": 1.0,
        "score": 1.0,
        "cost_usd": 0.25,
    }
    assert json.loads(render(SiteView(ledger_of()))["status.json"])["rate"] is None
