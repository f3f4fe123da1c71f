"""Targets side by side, in Markdown and on a terminal."""

from __future__ import annotations

import pytest

from agentv_ci.analysis.run_report import report
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.report import Ending
from agentv_ci.report.matrix import matrix_cases
from agentv_ci.report.matrix_tables import case_table, target_table
from agentv_ci.report.renderers import markdown, terminal
from agentv_ci.report.view import RunView
from tests.support.markdown import MARKDOWN_ATTACKS, MARKUP, MarkdownPage
from tests.support.runs import case, plan, reported, row

VERDICTS: dict[str, tuple[tuple[Verdict, float], ...]] = {
    "alike": (("pass", 1.0), ("pass", 0.9)),
    "apart": (("pass", 1.0), ("pass", 0.8)),
    "differs": (("fail", 0.3), ("pass", 1.0)),
    "breaks": (("error", 0.0), ("pass", 1.0)),
}


def run(ending: Ending | None = None) -> RunView:
    rows = [
        row(verdict, score, of=case(name, line=number), target=target, duration_ms=1_500)
        for number, (name, found) in enumerate(VERDICTS.items(), 1)
        for target, (verdict, score) in zip(("a", "b"), found, strict=True)
    ]
    return reported([*rows, row(of=case("own", line=9), target="c")], ending)


def test_cases_that_tell_targets_apart_come_first() -> None:
    assert [each.first.case.id for each in matrix_cases(run())] == ["breaks", "differs", "apart", "alike"]


def test_figures_of_targets() -> None:
    assert target_table(run()).splitlines()[2:] == [
        "| ❌ | `a` | 4 | 2 | 1 | 1 | 0.767 |  | 6.0 s |",
        "| ✅ | `b` | 4 | 4 | 0 | 0 | 0.925 |  | 6.0 s |",
        "| ✅ | `c` | 1 | 1 | 0 | 0 | 1.000 |  | 1.5 s |",
    ]


def test_verdicts_of_targets() -> None:
    table = case_table(run(), lambda each: each.case.id)
    assert "verdicts differ in 2 of 4 cases" in table
    assert [line for line in table.splitlines() if line.startswith("| ")][2:] == [
        "| breaks | ⚠️ | ✅ 1.000 | – |",
        "| differs | ❌ 0.300 | ✅ 1.000 | – |",
        "| apart | ✅ 1.000 | ✅ 0.800 | – |",
        "| alike | ✅ 1.000 | ✅ 0.900 | – |",
    ]


def test_terminal_names_the_cases_that_tell_targets_apart() -> None:
    lines = [line.text for line in terminal.render(run())]
    place = lines.index("verdicts of targets differ in 2 of 4 cases")
    assert lines[place + 1 : place + 3] == ["  breaks: a error, b pass 1.000", "  differs: a fail 0.300, b pass 1.000"]
    assert "  a  2/4 passed, mean 0.767, 1 error, 6.0 s" in lines


def test_cases_of_different_targets_are_no_matrix() -> None:
    rows = [row("fail", of=case("one"), target="a"), row(of=case("two"), target="b")]
    assert "Cases by target" not in markdown.text(reported(rows), 60_000)
    assert not any("verdicts of targets" in line.text for line in terminal.render(reported(rows)))


def test_large_matrix_is_cut() -> None:
    rows = [row(of=case(f"case-{one}"), target=f"target-{other}") for one in range(60) for other in range(12)]
    text = markdown.text(reported(rows), 60_000)
    assert "… and 2 more targets" in text
    assert "… and 10 more cases" in text
    assert max(line.count(" | ") for line in text.splitlines()) == 10
    assert "`case-59`" not in text


@pytest.mark.parametrize("text", MARKDOWN_ATTACKS)
def test_names_of_targets_are_only_text(text: str) -> None:
    rows = [row("fail", of=case(f"x{text}"), target=f"{name}{text}") for name in "ab"]
    page = MarkdownPage(markdown.text(reported(rows), 60_000))
    assert page.tags <= MARKUP
    assert (page.links, page.comments) == ([], [])
    assert "octocat" not in page.loose


def test_stopped_run_counts_what_did_not_run() -> None:
    both = plan(case("x", target="a"), case("x", target="b"))
    stopped = RunView(*report(both, [row(of=both.cases[0], target="a")], Ending(stopped="interrupted")))
    assert target_table(stopped).splitlines()[2:] == [
        "| ⛔ | `a` | 1 | 1 | 0 | 0 | 0 | 1.000 |  | 1.5 s |",
        "| ⛔ | `b` | 1 | 0 | 0 | 0 | 1 |  |  | 0.0 s |",
    ]
