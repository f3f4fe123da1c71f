"""Markdown, read with GitHub's own parser."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from cmarkgfm import github_flavored_markdown_to_html
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv_ci.analysis.comparison.comparison import BaselineComparison, Side, compare
from agentv_ci.base.text import counted
from agentv_ci.contracts.action import PastRun
from agentv_ci.contracts.report import Ending, ScenarioAggregates, ScenarioReport, Validation, ValidatorIssue
from agentv_ci.contracts.results import NO_OUTCOME, InputMessageRecord, ResultRow, RowSource
from agentv_ci.report.inert_markdown import cell_code, code, fence, folded
from agentv_ci.report.renderers.markdown import LIMIT, render, text
from agentv_ci.report.view import Links, RunView
from tests.support.markdown import MARKDOWN_ATTACKS, MARKUP, MarkdownPage
from tests.support.runs import NASTY, any_text, case, finding, reported, row, well_formed, well_formed_text, whole

LINKS = Links("https://github.com/o/r/blob/abc")
attacks = st.lists(st.sampled_from([*NASTY, *MARKDOWN_ATTACKS]) | any_text, max_size=6).map("".join)


def shown(run: RunView) -> str:
    return b"".join(render(run)).decode()


def compared(rows: Sequence[ResultRow], older: Sequence[ResultRow], name: str = "main.json") -> RunView:
    """A run that was compared with an older one."""
    found, outcomes = whole(rows)
    against = BaselineComparison(Side(name, whole(older)[1]), "now.jsonl", datetime(2030, 1, 1, tzinfo=UTC))
    return RunView(found.model_copy(update={"comparison": compare(against, outcomes)}), outcomes, lambda: rows, LINKS)


def test_dry_and_interrupted_runs_have_titles() -> None:
    said = shown(reported([row(dry_run=True)], Ending(dry_run=True)))
    assert said.startswith("## 🧪 Evaluations: dry run\n")
    assert "no target was asked." in said
    assert shown(reported([row()], Ending(stopped="interrupted"))).startswith("## ⛔ Evaluations: interrupted\n")


def test_place_is_a_link_if_the_commit_is_known() -> None:
    run = reported([row("fail", of=case(line=7))])
    link = "[`evals/a.yaml:7`](https://github.com/o/r/blob/abc/evals/a.yaml#L7) · target `default`"
    assert link in shown(replace(run, links=LINKS))
    assert "\n`evals/a.yaml:7` · target `default`\n" in shown(run)


def test_cases_with_one_cause_share_a_row() -> None:
    refused = [
        row("error", of=case(f"case-{number}", line=number + 1), error="connection refused") for number in range(7)
    ]
    wrong = [row("fail", score=number / 100, of=case(f"wrong-{number}")) for number in range(12)]
    said = shown(reported([*refused, *wrong, row(of=case("fine"))]))
    names = ", ".join(f"`case-{number}`" for number in range(5))
    assert f"| ⚠️ | {names}, 2 more |  | 7 × `server: connection refused` |" in said
    assert "fine" not in said


def test_table_has_the_ten_worst() -> None:
    rows = [
        row("fail", score=number / 100, of=case(f"case-{number}"), evaluator_results=(finding(f"reason {number}"),))
        for number in range(12)
    ]
    said = shown(reported(rows))
    assert "| ❌ | `case-9` | 0.090 | `e: reason 9` |\n\n… and 2 more cases\n" in said.replace("`c: ", "`e: ")
    assert "<summary>Details of 12 cases</summary>" in said


def test_dry_run_shows_failures_and_no_mean() -> None:
    said = shown(
        reported([row("fail", dry_run=True), row("error", of=case("two"), dry_run=True)], Ending(dry_run=True))
    )
    assert ("❌" in said, "⚠️" in said, "mean" in said.partition("\n\n")[2].partition("\n")[0]) == (True, True, False)


@pytest.mark.parametrize(
    ("number", "names"), [(1, "1 case is judged by what an agent leaves behind: c0"), (12, "c7, c8, c9 … and 2 more")]
)
def test_cases_of_a_dry_run_that_need_an_agent_are_unknown(number: int, names: str) -> None:
    unknown = {"dry_run": True, "error": NO_OUTCOME, "error_kind": "request"}
    rows = [row("error", of=case(f"c{each}", line=each + 1)).model_copy(update=unknown) for each in range(number)]
    said = shown(reported(rows, Ending(dry_run=True)))
    assert (f"0 errors, {number} unknown**" in said, names in said, "⚠️" in said) == (True, True, False)
    said = shown(reported(rows))
    assert (counted(number, "error") in said, "unknown" in said) == (True, False)


@pytest.mark.parametrize(
    ("total", "shown_last"),
    [(2, "since the last run: -1 passed, mean +0.100"), (3, "last run: 2/3 passed, mean 0.500")],
)
def test_figures_are_compared_with_those_of_the_last_run(total: int, shown_last: str) -> None:
    at = "2030-01-01 00:00"
    last = PastRun(run_id=1, attempt=1, sha="0" * 40, at=at, verdict="pass", passed=2, total=total, mean=0.5)
    run = reported([row(), row("fail", of=case("two"))], Ending(duration_s=75.4))
    facts = text(run, LIMIT, last).splitlines()[2]
    assert facts == f"**2 cases: 1 passed, 1 failed, 0 errors** · mean 0.600 · {shown_last} · 1 min 15 s"
    empty = last.model_copy(update={"passed": None, "mean": None, "verdict": "invalid"})
    assert " · last run: invalid · " in text(run, LIMIT, empty)


def test_passing_run_takes_five_lines() -> None:
    said = shown(reported([row()], Ending(duration_s=3.2)))
    assert said.partition("<details>")[0] == (
        "## ✅ Evaluations: passed\n\n**1 case: 1 passed, 0 failed, 0 errors** · mean 1.000 · 3.2 s\n\n"
        "Gate: `pass rate ≥ 100%, errors ≤ 0`\n\n"
    )


def test_comparison_comes_before_the_cases() -> None:
    older = [row(of=case("a|b")), row(of=case("two")), row("fail", of=case("three"))]
    now = [row("fail", of=case("a|b")), row(of=case("two")), row(of=case("three"))]
    said = shown(compared(now, older))
    assert said.index("### Against `main.json`") < said.index("| | case | score | why |")
    assert "**1 regressed, 1 improved, 1 unchanged**" in said
    assert "- **undecided (3 cases, 95% confidence)**" in said
    few = "too few trials to see any drop; use --repeat 5"
    assert f"- no change shown: `pass rate 66.7% before and now (2 → 2 of 3 trials); {few}`" in said
    assert "- `a|b passed 1 of 1, now 0 of 1; this may be chance: " in said
    regressed = "| 📉 regressed | `a\\|b` | pass 1.000 → fail 0.200; one trial a side, which may be chance | "
    assert f"{regressed}[`evals/a.yaml:3`](https://github.com/o/r/blob/abc/evals/a.yaml#L3) |" in said
    assert {"table", "td"} <= MarkdownPage(said).tags


@settings(max_examples=60)
@given(st.lists(attacks, min_size=9, max_size=9), well_formed_text, st.booleans())
def test_foreign_text_is_shown_as_text(texts: list[str], case_id: str, is_error: bool) -> None:
    # Only rows that are not validated again may have lone surrogates.
    target, path, answer, good, outcome, base = texts[:6]
    name, question, why = map(well_formed, texts[6:])
    of = case(case_id or "x", suite=path or "x")
    wrong = row(
        "error" if is_error else "fail",
        of=of,
        target=target or "x",
        candidate_answer=answer,
        reference_answer=good,
        expected_outcome=outcome,
        error=why if is_error else None,
        input_messages=(InputMessageRecord(role="user", name=name or None, content=question),),
        evaluator_results=() if is_error else (finding(why, name=name or "x"), finding("", reasoning=why)),
        source=RowSource(path=path or "x", line=1),
    )
    page = MarkdownPage(shown(compared([wrong], [row(of=of), row(of=case("removed"))], name=base or "x")))
    assert page.tags <= MARKUP
    assert page.comments == []
    assert all(link is not None and link.startswith("https://github.com/o/r/blob/abc/") for link in page.links)
    assert not re.search(r"@|evil|#123|GH-1|onerror|\*\*|!\[|:tada:", page.loose)


@given(attacks)
def test_code_is_one_span(given_text: str) -> None:
    for piece in (code(given_text), f"| {cell_code(given_text)} |\n|---|"):
        page = MarkdownPage(piece)
        assert "code" in page.tags
        assert page.loose.strip() == ""
        assert github_flavored_markdown_to_html(piece).count("<code>") == 1


@pytest.mark.parametrize("given_text", ["|a@evil.example", "mailto:a@evil.example \\", "|xmpp:a@evil.example"])
def test_address_in_a_cell_is_not_a_link(given_text: str) -> None:
    assert MarkdownPage(f"| {cell_code(given_text)} |\n|---|").links == []


@given(attacks, attacks)
def test_fences_and_folds_contain_any_text(inside: str, title: str) -> None:
    page = MarkdownPage(folded(title, fence(inside)) + "\n\nafter")
    assert page.tags <= {"details", "summary", "pre", "code", "p"}
    assert page.loose.strip().endswith("after")


@pytest.mark.parametrize("answer", ["`" * 10_000, "\u0301" * 60_000, "\ud800" * 5_000, "```\n" * 9_999, "$x$ " * 999])
def test_extreme_answers_fit(answer: str) -> None:
    wrong = row("fail", candidate_answer=answer, reference_answer=answer, evaluator_results=(finding("x" + answer),))
    said = shown(reported([wrong]))
    assert MarkdownPage(said).tags <= MARKUP
    assert len(said) <= LIMIT


def test_least_important_parts_are_left_out_first() -> None:
    long = "word " * 500
    cases = [case(f"case-{number}", line=number) for number in range(1, 41)]
    rows = [
        row("fail", score=number / 100, of=of, candidate_answer=long, evaluator_results=(finding("too long"),))
        for number, of in enumerate(cases)
    ]
    run = reported(rows)
    everything, some, few = (text(run, limit) for limit in (1_000_000, 20_000, 5_000))
    assert len(everything) > 20_000 >= len(some) > 5_000 >= len(few)
    assert "Left out" not in everything
    assert "case-40" in some
    assert 0 < some.count("<summary>Question and answer") < 40
    assert some.endswith("_Left out to stay within 20,000 characters: details. The results file has everything._\n")
    listed = few.count("#### ")
    assert 0 < listed < 40
    assert "#### ❌ `case-1`" in few
    assert f"5,000 characters: {40 - listed} cases that did not pass, and more." in few
    assert "[0.0, 0.2)     20" in few
    for said in (some, few):
        assert MarkdownPage(said).tags <= MARKUP
        assert said.count("<details>") == said.count("</details>")


def test_large_run_fits() -> None:
    bad = "@octocat " * 300
    rows = [
        row("fail", of=case(f"{number} {bad}"), candidate_answer=bad, evaluator_results=(finding(bad),) * 20)
        for number in range(100)
    ]
    assert 50_000 < len(shown(reported(rows))) <= LIMIT


def test_long_id_hides_no_other_case() -> None:
    rows = [row("fail", score=0.0, of=case("x" * 61_000)), row("fail", score=0.1, of=case("second"))]
    assert "#### ❌ `second`" in shown(reported(rows))


def test_validators_hide_no_case() -> None:
    issues = (ValidatorIssue(id="x", severity="warning", message="took much longer than the others do" * 2),) * 10
    aggregates = ScenarioAggregates(
        runs=9, errors=0, validations=(Validation(validator="outlier_detection", issues=issues, summary={}),)
    )
    scenarios = tuple(ScenarioReport(scenario_key=f"evals/{each}.yaml", aggregates=aggregates) for each in range(80))
    found, outcomes = whole([row("fail", of=case("refund"))])
    said = shown(RunView(found.model_copy(update={"scenario_reports": scenarios}), outcomes))
    assert "#### ❌ `refund`" in said
    assert "lines" in said[said.index("<summary>Validators") :]
