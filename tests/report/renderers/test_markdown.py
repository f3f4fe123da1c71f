"""Markdown, read by GitHub's own parser."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest
from cmarkgfm import github_flavored_markdown_to_html
from cmarkgfm.cmark import Options
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.analysis.comparison import BaselineComparison, Side, compare
from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.results import EvaluatorResult, InputMessageRecord, ResultRow, RowSource
from agentv_ci.report.inert_markdown import cell_code, code, fence, folded
from agentv_ci.report.renderers.markdown import LIMIT, render, text
from agentv_ci.report.view import Links, RunView
from tests.report.builders import NASTY, any_text, case, reported, row, rows_of, well_formed, well_formed_text, whole

LINKS = Links("https://github.com/o/r/blob/abc")
OURS = {"h2", "h3", "h4", "p", "strong", "em", "ul", "li", "pre", "code", "a", "details", "summary", "hr"}
OURS |= {"table", "thead", "tbody", "tr", "th", "td"}
ATTACKS = (
    *NASTY,
    *("@octocat", "@org/team", "#123", "GH-1", "![x](https://evil.example/x.png)", "[x](https://evil.example)"),
    *("https://evil.example", "www.evil.example", "a@evil.example", "<img src=x onerror=alert(1)>", "<b>"),
    *("</details>", "</summary>", "</code>", "<!--", "-->", "```", "````\n", "~~~", "`", "``", "|", "\\", "\\|"),
    *("\n\n", "\n# x\n", "\n- x", "\n> x", "&lt;", "&#64;octocat", "[^1]", "$x$", ":tada:", "<details>"),
    *("**x**", "~~x~~", "_x_"),
)
hostile = st.lists(st.sampled_from(ATTACKS) | any_text, max_size=6).map("".join)


class Page(HTMLParser):
    """What a reader's browser is given."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str | None] = []
        self.loose: list[str] = []
        """Text outside code, where mentions and addresses would be live."""
        self._open: list[str] = []
        # As GitHub keeps `<details>`, and unlike GitHub everything else: what it takes away must not be there at all.
        self.feed(github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._open.append(tag)
        self.links += [value for name, value in attrs if name == "href"]

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "code" not in self._open:
            self.loose.append(data)

    def handle_comment(self, data: str) -> None:
        self.tags.add(f"comment {data}")


def shown(run: RunView) -> str:
    return b"".join(render(run)).decode()


def finding(text: str, **given: Any) -> EvaluatorResult:
    plain: dict[str, Any] = {
        "name": "judge",
        "type": "llm_judge",
        "status": "ok",
        "score": 0.2,
        "weight": 1.0,
        "required": False,
        "verdict": "fail",
        "hits": (),
        "misses": (text,),
        "reasoning": "",
    }
    return EvaluatorResult(**{**plain, **given})


def compared(rows: Sequence[ResultRow], older: Sequence[ResultRow], name: str = "main.json") -> RunView:
    """A run that was compared with an older one."""
    found, outcomes = whole(rows)
    against = BaselineComparison(Side(name, whole(older)[1]), "now.jsonl", datetime(2030, 1, 1, tzinfo=UTC))
    return RunView(found.model_copy(update={"comparison": compare(against, outcomes)}), outcomes, lambda: rows, LINKS)


def test_verdict_comes_first_then_the_figures_of_the_run() -> None:
    lines = shown(reported([row("pass"), row("fail", of=case("two"))])).splitlines()
    assert lines[0] == "## ❌ Evaluations: not passed"
    assert lines[2] == "**2 cases: 1 passed, 1 failed, 0 errors** · mean 0.600"
    assert lines[4] == "- `pass rate 50.0% is below 100.0%`"


@pytest.mark.parametrize(
    ("rows", "ending", "title"),
    [
        ([row()], Ending(), "✅ Evaluations: passed"),
        ([row("error")], Ending(), "⚠️ Evaluations: no verdict"),
        ([row()], Ending(stopped="budget"), "⛔ Evaluations: budget used up"),
        ([row()], Ending(stopped="interrupted"), "⛔ Evaluations: interrupted"),
        ([], Ending(), "➖ Evaluations: nothing ran"),
        ([row(dry_run=True)], Ending(dry_run=True), "🧪 Evaluations: dry run"),
    ],
)
def test_every_end_of_a_run_has_its_title(rows: list[ResultRow], ending: Ending, title: str) -> None:
    said = shown(reported(rows, ending))
    assert said.splitlines()[0] == f"## {title}"
    assert ("the scores below are meaningless" in said) == ending.dry_run


def test_case_that_failed_has_its_place_its_reasons_and_the_command_that_runs_it_again() -> None:
    failed = row("fail", of=case("refund [EU]", line=7), target="gpt", evaluator_results=(finding("no 30 days"),))
    said = shown(replace(reported([failed]), links=LINKS))
    assert "#### ❌ `refund [EU]`: fail 0.200" in said
    assert "[`evals/a.yaml:7`](https://github.com/o/r/blob/abc/evals/a.yaml#L7) · target `gpt`" in said
    assert "- ❌ `judge` fail 0.200: `no 30 days`" in said
    assert "```sh\nagentv-ci eval evals/a.yaml --eval-id='refund [[]EU]' --target=gpt\n```" in said


def test_without_a_repository_on_the_web_places_are_text() -> None:
    assert "\n`evals/a.yaml:3` · target `default`\n" in shown(reported([row("fail")]))


def test_question_and_answer_are_folded() -> None:
    asked = [InputMessageRecord(role="user", content="Where?"), InputMessageRecord(role="tool", name="db", content="7")]
    told = row("fail", input_messages=asked, expected_outcome="Says so", reference_answer="Here", candidate_answer="")
    said = shown(reported([told]))
    assert "**Question**\n\n```\n[user]\nWhere?\n\n[db]\n7\n```" in said
    assert "**Reference answer**\n\n```\nHere\n```\n\n</details>" in said, "there was no answer"
    assert "details" in Page(said).tags


def test_of_several_trials_the_one_is_shown_that_says_why() -> None:
    of = case("dice", trials=3)
    rows = rows_of(of, "pass", "fail", "fail")
    rows[1] = rows[1].model_copy(update={"candidate_answer": "the second"})
    said = shown(reported(rows))
    assert "1 of 3 trials passed" in said
    assert "**Answer of trial 2**\n\n```\nthe second\n```" in said


def test_what_has_changed_comes_before_the_cases() -> None:
    older = [row(of=case("a|b")), row(of=case("two")), row("fail", of=case("three"))]
    now = [row("fail", of=case("a|b")), row(of=case("two")), row(of=case("three"))]
    said = shown(compared(now, older, name="main.json"))
    assert said.index("### Against `main.json`") < said.index("### Failures, worst first")
    assert "**1 regressed, 1 improved, 1 unchanged**" in said
    assert "- pass rate 66.7% → 66.7%" in said
    regressed = "| 📉 regressed | `a\\|b` | pass 1.000 → fail 0.200; one trial per side, possibly noise | "
    assert f"{regressed}[`evals/a.yaml:3`](https://github.com/o/r/blob/abc/evals/a.yaml#L3) |" in said
    assert {"table", "td"} <= Page(said).tags


@settings(max_examples=60)
@given(st.lists(hostile, min_size=9, max_size=9), well_formed_text, st.booleans())
def test_text_of_others_is_only_read(texts: list[str], case_id: str, is_error: bool) -> None:
    # Lone surrogates stand where rows are not checked again: in what a target said.
    target, path, answer, good, outcome, base = texts[:6]
    name, question, why = map(well_formed, texts[6:])
    of = case(case_id or "x", suite=path or "x")
    told = row(
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
    said = shown(compared([told], [row(of=of, target=target or "x"), row(of=case("gone"))], name=base or "x"))
    page = Page(said)
    assert page.tags <= OURS, said
    assert all(link is not None and link.startswith("https://github.com/o/r/blob/abc/") for link in page.links), said
    loose = "".join(page.loose)
    assert not re.search(r"@|evil|#123|GH-1|onerror|\*\*|!\[|:tada:", loose), said


@given(hostile)
def test_code_shows_the_text_and_nothing_but_the_text(given_text: str) -> None:
    line = " ".join(given_text.split())
    for piece in (code(given_text), f"| {cell_code(given_text)} |\n|---|"):
        html = github_flavored_markdown_to_html(piece, options=Options.CMARK_OPT_UNSAFE)
        assert html.count("<code>") == 1, (piece, html)
        assert Page(piece).loose == [] or not "".join(Page(piece).loose).strip(), (piece, html, line)


@given(hostile, hostile)
def test_fences_and_folds_end_where_we_end_them(inside: str, title: str) -> None:
    page = Page(folded(title, fence(inside)) + "\n\nafter")
    assert page.tags <= {"details", "summary", "pre", "code", "p"}
    assert "".join(page.loose).strip().endswith("after")


def test_what_matters_least_is_left_out_first() -> None:
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
    assert "case-40" in some, "every case is told before any answer is"
    assert 0 < some.count("<summary>Question and answer") < 40
    assert some.endswith("_Left out to stay within 20,000 characters: details. The results file has everything._\n")
    assert few.count("#### ") < 40
    assert "#### ❌ `case-1`" in few
    left_out = 40 - few.count("#### ")
    assert f"5,000 characters: {left_out} cases that did not pass, and more." in few
    assert "[0.0, 0.2)     20" in few, "figures are small and say more than the fortieth case"
    for said in (some, few):
        assert Page(said).tags <= OURS
        assert said.count("<details>") == said.count("</details>")


def test_a_great_run_stays_within_what_a_comment_takes() -> None:
    bad = "@octocat " * 300
    rows = [
        row("fail", of=case(f"{number} {bad}"), candidate_answer=bad, evaluator_results=(finding(bad),) * 20)
        for number in range(400)
    ]
    assert 50_000 < len(shown(reported(rows))) <= LIMIT


def test_trial_without_a_verdict_is_named_where_its_case_has_one() -> None:
    of = case("moody", trials=3)
    rows = [row("pass", of=of), row("error", of=of, trial=2, error="@octocat"), row("pass", of=of, trial=3)]
    said = shown(reported(rows))
    told = "- ⚠️ `moody` trial 2 of 3, `evals/a.yaml:3`: `process: @octocat`"
    assert f"### Trials without a verdict\n\n{told}\n" in said
    assert "@" not in "".join(Page(said).loose)
