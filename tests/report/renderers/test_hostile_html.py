"""The HTML report against those who mean it no good, without a browser."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from agentv_ci.analysis.comparison import BaselineComparison, Side
from agentv_ci.analysis.run_report import report
from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.results import OutputMessage, ResultRow, ToolCall, TraceSummary
from agentv_ci.report.renderers.html import document as html
from agentv_ci.report.renderers.html import plots
from agentv_ci.report.renderers.html.numbers import large
from agentv_ci.report.view import Links, RunView
from tests.report.builders import case, finding, plan, reported, row, rows_of
from tests.report.renderers.test_html import Document, kept_of, page, rendered
from tests.report.shop import shop_run

HOSTILE = (
    "__proto__", "constructor", "toString", "hasOwnProperty", "</script><script>window.pwned=1</script>",
    "<!--<script>", "<!-- data -->", "]]>", "-->", "{{ 7 * 7 }}", "{% raw %}", "a\u2028b", "\u202etxt.exe", "nul\x00x",
    " ", "\n", "a", "A", " a", "a ", "a\nb", "a\r\nb", "a\rb", "%41", "#", "&case=x", "a+b", "\u0430", "e\u0301", "é",
)  # fmt: skip


def size(*rows: ResultRow) -> int:
    return len(rendered(reported(rows)))


def bare() -> int:
    return size()


def tool_calls(number: int, characters: int) -> dict[str, Any]:
    calls = (ToolCall(tool="read", input={}, output="x" * characters) for _ in range(number))
    return {"output_messages": (OutputMessage(role="assistant", content="", tool_calls=tuple(calls)),)}


def test_hostile_names_in_two_suites_and_two_targets_are_all_told_apart() -> None:
    rows = [
        row(
            "fail",
            of=case(f"{name}", suite=suite, line=line),
            target=target,
            evaluator_results=(finding(name).model_copy(update={"name": f"x{name}", "type": name}),),
            metadata={name: name},
            trace_summary=TraceSummary.of([name, "__proto__"]),
            model=name,
        )
        for line, (name, suite, target) in enumerate(
            itertools.product(HOSTILE, ("evals/a.yaml", "evals/A.yaml"), ("t", "t ")), 1
        )
    ]
    run = reported(rows)
    document = Document(rendered(run).decode())
    names = document.data("run")
    suites, targets = names["suites"], names["targets"]
    table = [(each["id"], suites[each["suite"]], targets[each["target"]]) for each in document.data("cases")]
    assert sorted(table) == sorted((each.eval_id, each.suite, each.target) for each in rows)
    assert len(kept_of(document)) == len(rows)
    assert document.elements.count("script") == len(rows) + 2 + len(document.scripts)
    assert not [name for _, name, _ in document.attributes if name.startswith("on")]


@pytest.mark.parametrize("server", ['https://x" onclick="y', "https://x/<script>", "http://"])
def test_hostile_environments_make_no_markup(server: str) -> None:
    links = Links.of_commit(server, 'a/../"b', 'c?d#"e')
    run = reported([row("fail", of=case("a", suite='evals/"><script>.yaml'))])
    document = Document(rendered(RunView(run.report, run.outcomes, run.rows, links)).decode())
    assert not [name for _, name, _ in document.attributes if name.startswith("on")]
    assert document.elements.count("script") == 3 + len(document.scripts)


def test_the_figures_of_the_page_are_those_of_the_run_report() -> None:
    run = shop_run()
    document = Document(rendered(run).decode())
    counts, table = run.report.counts, document.data("cases")
    verdicts = Counter(each["verdict"] for each in table)
    assert (verdicts["pass"], verdicts["fail"] + verdicts["borderline"]) == (counts.passed, counts.failed)
    assert (verdicts["error"], sum(each.get("flaky", False) for each in table)) == (counts.errored, counts.flaky)
    assert sum(each.get("cost", 0) for each in table) == pytest.approx(run.report.cost_usd, abs=1e-5)
    drawn = plots.columns(run.outcomes)
    assert tuple(each.total() for each in drawn) == run.report.statistics.histogram
    assert run.report.comparison is not None
    changed = Counter(each["change"] for each in table)
    assert {**changed} == {name: number for name, number in run.report.comparison.counts.items() if number}


def test_every_case_that_failed_is_there_when_passed_ones_have_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [
        row("fail" if number % 10 == 0 else "pass", of=case(f"{number}", line=number + 1), candidate_answer="x" * 5_000)
        for number in range(400)
    ]
    monkeypatch.setattr(html, "MAX_BYTES", bare() + 700_000)
    document = Document(rendered(reported(rows)).decode())
    failed = {each["n"] for each in document.data("cases") if each["verdict"] == "fail"}
    assert len(failed) == 40
    assert {f"trial-{number}-1" for number in failed} <= kept_of(document)
    assert len(kept_of(document)) < 400


def test_a_flaky_case_that_failed_outlasts_one_that_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    failed, passed = {"candidate_answer": "x" * 50_000}, {"candidate_answer": "x" * 49_000}
    rows = [each.model_copy(update=failed) for each in rows_of(case("fails", line=1, trials=3), "pass", "fail", "fail")]
    rows += [
        each.model_copy(update=passed) for each in rows_of(case("passes", line=2, trials=3), "pass", "fail", "pass")
    ]
    run = reported(rows)
    assert [each.verdict for each in run.outcomes] == ["fail", "pass"]
    monkeypatch.setattr(html, "MAX_BYTES", bare() + 4_000 + 3 * 52_000)
    assert kept_of(Document(rendered(run).decode())) == {"trial-0-1", "trial-0-2", "trial-0-3"}


def test_a_failed_case_with_a_long_trace_keeps_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = [row(of=case(f"{number}", line=number + 1)) for number in range(20)]
    failed = row("fail", of=case("long", line=99), candidate_answer="the answer", **tool_calls(9, 90_000))
    monkeypatch.setattr(html, "MAX_BYTES", bare() + 300_000)
    document = Document(rendered(reported([*passed, failed])).decode())
    assert len(kept_of(document)) >= 20
    assert document.data("trial-20-1")["candidate_answer"] == "the answer"


def test_a_trial_that_has_no_room_takes_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = [row(of=case(f"{number}", line=number + 1)) for number in range(20)]
    failed = row("fail", of=case("long", line=99), **tool_calls(10, 90_000))
    monkeypatch.setattr(html, "MAX_BYTES", 930_000)
    kept = kept_of(Document(rendered(reported([*passed, failed])).decode()))
    assert {f"trial-{number}-1" for number in range(20)} <= kept


def test_texts_without_a_line_in_the_table_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        row(of=case(f"{number}{'i' * (600 if number % 2 else 1)}", line=number + 1), candidate_answer=answer)
        for number, answer in enumerate(["x" * 1_500, "x" * 10] * 400)
    ]
    monkeypatch.setattr(html, "MAX_BYTES", bare() + 800_000)
    document = Document(rendered(reported(rows)).decode())
    listed = {each["n"] for each in document.data("cases")}
    assert 0 < len(listed) < len(rows)
    assert {name for name in kept_of(document) if int(name.split("-")[1]) not in listed} == set()


def test_costs_of_trials_in_any_order_give_the_same_bytes() -> None:
    costs = (0.2667236, 0.8907681, 0.5644468)
    trials = rows_of(case("a", trials=3), "pass", "pass", "pass")
    rows = [each.model_copy(update={"cost_usd": cost}) for each, cost in zip(trials, costs, strict=True)]
    assert len({rendered(reported(order)) for order in itertools.permutations(rows)}) == 1


def test_a_small_cost_is_the_same_in_the_table_as_in_the_figures() -> None:
    document = page(*(row(of=case(name, line=line), cost_usd=4e-7) for line, name in enumerate("ab", 1)))
    assert "<$0.0001" in document.text
    assert [each["cost"] for each in document.data("cases")] == [4e-7, 4e-7]


def test_the_smallest_cost_there_is_can_be_drawn() -> None:
    assert page(row(of=case("a", line=1), cost_usd=5e-324), row(of=case("b", line=2), cost_usd=5e-324)).elements


def test_the_longest_time_that_a_row_can_have_can_be_drawn() -> None:
    assert page(*(row(of=case(name, line=line), duration_ms=10**400) for line, name in enumerate("ab", 1))).elements


def test_nearly_a_thousand_million_tokens_are_a_number_for_people() -> None:
    assert large(999_600_000) == "1,000 M"


def test_every_removed_case_is_named_or_not_promised() -> None:
    cases = [case(f"case-{number:02}", line=number + 1) for number in range(30)]
    base = Side("old.json", reported([row(of=each) for each in cases]).outcomes)
    rows = [row("fail" if number < 8 else "pass", of=each) for number, each in enumerate(cases[:20])]
    against = BaselineComparison(base, "this run", datetime(2030, 1, 2, tzinfo=UTC))
    found = report(plan(*cases[:20]), rows, Ending(), against=against)
    document = Document(rendered(RunView(*found, lambda: rows)).decode())
    (promised,) = re.findall(r"… and (\d+) more; the table below filters by change", document.text) or ["0"]
    in_table = sum(each["change"] not in ("new", "unchanged") for each in document.data("cases"))
    named = len(re.findall(r"data-id=", rendered(RunView(*found, lambda: rows)).decode()))
    assert named + int(promised) <= max(named, in_table)


def test_the_texts_of_a_lone_second_trial_are_found() -> None:
    document = page(row("fail", trial=2))
    (entry,) = document.data("cases")
    numbers = [number for number, *_ in entry.get("trials", [[1]])]
    assert {f"trial-0-{number}" for number in numbers} == kept_of(document)


def test_a_trial_that_is_there_twice_has_two_blocks() -> None:
    text = rendered(reported([row(candidate_answer="one"), row("fail", candidate_answer="two")])).decode()
    names = re.findall(r'id="(trial-[\d-]+)"', text)
    assert len(names) == len(set(names))
