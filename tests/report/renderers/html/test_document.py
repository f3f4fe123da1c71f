"""The HTML report without a browser: its contents, and that foreign text is only data."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv_ci.analysis.comparison.comparison import BaselineComparison, Side
from agentv_ci.analysis.run_report import report
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.report import Ending, RunOrigin, ShardRecord
from agentv_ci.contracts.results import InputMessageRecord, ResultRow, RowSource, TraceSummary
from agentv_ci.report.renderers.html import plots
from agentv_ci.report.renderers.html.document import SCRIPTS
from agentv_ci.report.renderers.html.page import EARLY, TEMPLATES
from agentv_ci.report.view import Links, RunView
from tests.report.renderers.html.pages import document_of, page, rendered
from tests.support.runs import any_text, case, finding, plan, reported, row, rows_of, well_formed
from tests.support.shop import shop_run

STOPPED = Ending(stopped="budget")
SHARD = ShardRecord(index=1, total=3, cases=9)
NAMES = (
    "__proto__", "constructor", "hasOwnProperty", "</script><script>window.pwned=1</script>", "<!--<script>",
    "<!-- data -->", "]]>", "{{ 7 * 7 }}", "{% raw %}", "a\u2028b", "\u202etxt.exe", "nul\x00x", " ", "\n", "a", "A",
    " a", "a ", "a\nb", "a\r\nb", "a\rb", "%41", "#", "&case=x", "a+b", "\u0430", "e\u0301", "é",
)  # fmt: skip


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_policy_allows_only_the_scripts_and_the_style_of_the_page() -> None:
    document = page(row())
    scripts, (style,) = document.parts["script"], document.parts["style"]
    assert len(scripts) == 2
    assert document.policy == (
        f"default-src 'none'; script-src {' '.join(map(digest, scripts))}; style-src {digest(style)}; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def test_page_loads_nothing() -> None:
    document = document_of(shop_run())
    names = {name for _, name, _ in document.attributes}
    assert not names & {"src", "style", "action", "background", "srcset", "poster"}
    assert not [name for name in names if name.startswith("on")]
    assert not set(document.elements) & {"link", "img", "iframe", "object", "embed", "form", "base"}
    links = {value for _, name, value in document.attributes if name == "href" and not value.startswith("#")}
    commit = "https://github.com/example/shop/commit/4f2c9d1"
    assert links <= {commit, *(each["link"] for each in document.data("cases"))}


@pytest.mark.parametrize("name", [EARLY, *SCRIPTS])
def test_scripts_build_no_markup(name: str) -> None:
    script = (TEMPLATES / name).read_text("utf-8")
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|</script|<!--"
    assert re.search(forbidden, script) is None
    assert script.startswith('"use strict";\n')


@settings(max_examples=60)
@given(any_text, any_text, st.sampled_from(["pass", "fail", "error"]))
@example("<img src=x onerror=alert(1)>", "</script><!--", "fail")
def test_texts_are_kept_and_are_not_elements(text: str, other: str, verdict: Verdict) -> None:
    document = page(
        row(
            verdict,
            of=case(f"{well_formed(text)}i"),
            candidate_answer=text,
            reference_answer=other,
            error=f"x{other}",
            misses=(f"x{text}y",),
            evaluator_results=(finding(f"{text}x"),),
            input_messages=(InputMessageRecord(role="user", content=f"{text}y"),),
            metadata={"x": text},
            target=f"{well_formed(other)}t",
        )
    )
    trial = document.data("trial-0-1")
    assert trial.get("candidate_answer", "") == well_formed(text)
    assert trial.get("reference_answer", "") == well_formed(other)
    assert trial["error"] == well_formed(f"x{other}")
    assert trial["evaluator_results"][0]["misses"] == [well_formed(f"{text}x")]
    assert trial["input_messages"] == [{"role": "user", "content": well_formed(f"{text}y")}]
    assert document.data("run")["targets"] == [f"{well_formed(other)}t"]
    assert document.data("cases")[0]["id"] == f"{well_formed(text)}i"
    assert (len(document.parts["script"]), document.elements.count("script")) == (2, 5)
    assert "img" not in document.elements


def test_similar_names_are_distinguished() -> None:
    places = itertools.product(NAMES, ("evals/a.yaml", "evals/A.yaml"), ("t", "t "))
    rows = [
        row(
            "fail",
            of=case(name, suite=suite, line=line),
            target=target,
            evaluator_results=(finding(name, name=f"x{name}", type=name),),
            metadata={name: name},
            trace_summary=TraceSummary.of([name, "__proto__"]),
            model=name,
        )
        for line, (name, suite, target) in enumerate(places, 1)
    ]
    document = page(*rows)
    suites, targets = (document.data("run")[name] for name in ("suites", "targets"))
    table = [(each["id"], suites[each["suite"]], targets[each["target"]]) for each in document.data("cases")]
    assert sorted(table) == sorted((each.eval_id, each.suite, each.target) for each in rows)
    assert len(document.trials) == len(rows)
    assert document.elements.count("script") == len(rows) + 4
    assert not [name for _, name, _ in document.attributes if name.startswith("on")]


def test_attributes_are_escaped() -> None:
    run = reported([row("fail", of=case("a", suite='evals/"><script>.yaml'))])
    document = document_of(replace(run, links=Links.of_commit("https://x", 'a/../"b', 'c?d#"e')))
    assert not [name for _, name, _ in document.attributes if name.startswith("on")]
    assert document.elements.count("script") == 5


def test_data_is_indented_text() -> None:
    trial = page(row(metadata={"a": [1]}, request={"b": "é"}, seed=7)).data("trial-0-1")
    assert trial["seed"] == "7"
    assert (trial["metadata"], trial["request"]) == ('{\n  "a": [\n    1\n  ]\n}', '{\n  "b": "é"\n}')


def test_numbers_that_json_cannot_hold_are_null() -> None:
    trial = page(row(evaluator_results=(finding("x").model_copy(update={"weight": float("nan")}),))).data("trial-0-1")
    assert trial["evaluator_results"][0]["weight"] is None


@pytest.mark.parametrize(
    ("rows", "ending", "title", "said"),
    [
        ([row()], Ending(), "✓ Passed", []),
        ([row("fail")], Ending(), "✗ Not passed", ["pass rate 0.0% is below 100.0%"]),
        ([row("error")], Ending(), "! No verdict", ["no case was graded"]),
        ([row()], Ending(dry_run=True), "! Dry run", ["no target was asked"]),
        ([row("error")], Ending(stopped="interrupted"), "! Interrupted", ["the run was interrupted"]),
        ([row()], STOPPED, "! Budget used up", ["the budget is used up: "]),
        ([row("fail")], Ending(shard=SHARD), "✗ Not passed", ["shard 1 of 3", "Not enforced"]),
        ([row()], Ending(write_error="disk full"), "! No verdict", ["results could not be written: disk full"]),
        ([row()], Ending(unpriced_models=("gpt-9",)), "✓ Passed", ["no price is known for gpt-9"]),
        ([row()], Ending(unrecorded=2), "! No verdict", ["2 requests without a recording"]),
        ([row()], Ending(incomplete=("shard 2/2 is missing",)), "✗ Not passed", ["shard 2/2 is missing"]),
        ([], Ending(), "! Nothing ran", ["no case was left to run"]),
    ],
)
def test_gate(rows: list[ResultRow], ending: Ending, title: str, said: list[str]) -> None:
    document = page(*rows, ending=ending)
    assert title in document.text
    assert document.title.startswith(f"{title}: ")
    assert [document.text.count(each) for each in said] == [1] * len(said)


@pytest.mark.parametrize(
    ("given", "when"),
    [
        ({"duration_ms": 1500}, "2030-01-02 03:04:03 to 03:04:05 UTC (1.5 s)"),
        ({"duration_ms": 86_400_000}, "2030-01-01 03:04:05 to 2030-01-02 03:04:05 UTC (24 h)"),
        ({"timestamp": "yesterday"}, ""),
    ],
)
def test_time_of_the_run(given: dict[str, Any], when: str) -> None:
    text = page(row(**given)).text
    assert when in text
    assert ("UTC" in text) == bool(when)


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        ({"commit": "c" * 40}, ["commit cccccccccccc gpt-x"]),
        ({"commit": f"{'c' * 40}-dirty", "version": "1.2"}, ["commit cccccccccccc with changes", "agentv-ci 1.2"]),
        ({"command": "agentv-ci eval '<x>'"}, ["gpt-x agentv-ci eval '<x>'"]),
    ],
)
def test_origin_of_the_run(origin: dict[str, str], said: list[str]) -> None:
    text = page(row(model="gpt-x"), ending=Ending(origin=RunOrigin(**origin))).text
    assert [each for each in said if each not in text] == []


def test_without_scripts_the_worst_cases_are_listed() -> None:
    scores = [number / 100 for number in range(20)]
    text = page(*(row("fail", each, of=case(f"case-{each}"), misses=("too long",)) for each in scores)).text
    assert all(each in text for each in ("the first 12 of 20", "case-0.0 0.000", "too long"))
    assert "case-0.12" not in text


def test_places_are_links_if_the_commit_is_known() -> None:
    run = reported([row("fail", of=case("a", line=7))])
    linked = document_of(replace(run, links=Links("https://github.com/o/r/blob/c")))
    address = "https://github.com/o/r/blob/c/evals/a.yaml#L7"
    assert ("a", "href", address) in linked.attributes
    assert linked.data("cases")[0]["link"] == address
    assert "link" not in document_of(run).data("cases")[0]


def test_figures_are_those_of_the_run_report() -> None:
    run = shop_run()
    document = document_of(run)
    counts, table, comparison = run.report.counts, document.data("cases"), run.report.comparison
    verdicts = Counter(each["verdict"] for each in table)
    assert (verdicts["pass"], verdicts["fail"] + verdicts["borderline"]) == (counts.passed, counts.failed)
    assert (verdicts["error"], sum(each.get("flaky", False) for each in table)) == (counts.errored, counts.flaky)
    assert sum(each.get("cost", 0) for each in table) == pytest.approx(run.report.cost_usd, abs=1e-5)
    assert tuple(each.total() for each in plots.columns(run.outcomes)) == run.report.statistics.histogram
    assert comparison is not None
    assert Counter(each["change"] for each in table) == +Counter(comparison.counts)
    assert "2 regressed 2 improved 3 flaky 17 unchanged 2 new 2 not enough evidence" in document.text
    assert "worse (25 cases, 95% confidence)" in document.text
    assert "pass rate: no change shown" in document.text


def test_case_in_the_table() -> None:
    rows = [
        each.model_copy(update={"cost_usd": 0.25, "duration_ms": 1000 * each.trial})
        for each in rows_of(case("a [1]", line=7, trials=2), "pf")
    ]
    (found,) = page(*rows).data("cases")
    assert found == {
        "n": 0,
        "id": "a [1]",
        "suite": 0,
        "target": 0,
        "verdict": "borderline",
        "score": 0.6,
        "flaky": True,
        "trials": [[1, "pass", 1.0, ""], [2, "fail", 0.2, ""]],
        "require": "majority",
        "line": 7,
        "rerun": "agentv-ci eval evals/a.yaml --eval-id='a [[]1]'",
        "answer": "Hello",
        "shown": 2,
        "ms": 1500,
        "cost": 0.5,
        "interval": [pytest.approx(0.0945, abs=1e-3), pytest.approx(0.9055, abs=1e-3)],
    }
    elsewhere = row(of=case("a"), source=RowSource(path="evals/b.yaml", line=9))
    assert page(elsewhere).data("cases")[0]["path"] == "evals/b.yaml"


def test_texts_in_the_table() -> None:
    of = case("a", trials=2)
    asked = [
        InputMessageRecord(role=role, content=text)
        for role, text in (("user", "<Attached: a.md>\n\nQ\n1"), ("tool", "x"))
    ]
    told: dict[str, Any] = {"input_messages": tuple(asked), "tags": ("slow", "billing")}
    broken = (finding("x", name="judge"), finding("y", name="late", verdict="skipped"))
    rows = [
        row("fail", of=of, trial=1, candidate_answer="long " * 99, evaluator_results=broken, **told),
        row(of=of, trial=2, candidate_answer="Hello", **told),
    ]
    document = page(*rows)
    run, (found,) = document.data("run"), document.data("cases")
    assert (found["question"], found["answer"]) == ("Q 1", f"{('long ' * 99)[:239]}…")
    assert ([run["tags"][each] for each in found["tags"]], run["tags"]) == (["slow", "billing"], ["billing", "slow"])
    assert ([run["evaluators"][each] for each in found["misses"]], run["evaluators"]) == (["judge"], ["judge"])


def test_order_of_rows_does_not_matter() -> None:
    run = shop_run()
    assert rendered(replace(run, rows=lambda: list(run.rows())[::-1])) == rendered(run)
    costs = enumerate((0.2667236, 0.8907681, 0.5644468), 1)
    rows = [row(of=case("a", trials=3), trial=trial, cost_usd=cost) for trial, cost in costs]
    assert len({rendered(reported(order)) for order in itertools.permutations(rows)}) == 1


def test_rows_of_other_cases_are_ignored() -> None:
    run = reported([row(of=case("a"))])
    rows = [row(of=case("a")), row(of=case("other"))]
    assert document_of(replace(run, rows=lambda: rows)).trials == {"trial-0-1"}


@pytest.mark.parametrize("given", [{"cost_usd": 5e-324}, {"cost_usd": 4e-7}, {"duration_ms": 10**400}])
def test_extreme_figures_are_drawn(given: dict[str, Any]) -> None:
    document = page(*(row(of=case(name, line=line), **given) for line, name in enumerate("ab", 1)))
    assert "svg" in document.elements
    assert ("<$0.0001" in document.text) == (given.get("cost_usd") == 4e-7)


@pytest.mark.parametrize("number", [30, 8])
def test_unlisted_changes_are_counted(number: int) -> None:
    cases = [case(f"case-{each:02}", line=each + 1) for each in range(number)]
    base = Side("old.json", reported([row(of=each) for each in cases]).outcomes)
    rows = [row("fail" if each.id < "case-08" else "pass", of=each) for each in cases[:20]]
    against = BaselineComparison(base, "this run", datetime(2030, 1, 2, tzinfo=UTC))
    found = report(plan(*cases[:20]), rows, Ending(), against=against)
    text = document_of(RunView(*found, lambda: rows)).text
    assert "… and 1 more; the table filters by change" in text
    assert ("… and 10 more removed" in text) == (number == 30)


def test_row_of_a_flaky_case_that_passes_shows_a_trial_that_passed() -> None:
    verdicts: tuple[Verdict, ...] = ("fail", "pass", "pass")
    rows = [row(each, of=case(trials=3), trial=n, candidate_answer=f"answer {n}") for n, each in enumerate(verdicts, 1)]
    (entry,) = page(*rows).data("cases")
    assert (entry["verdict"], entry["answer"]) == ("pass", "answer 2")


@pytest.mark.parametrize("numbers", [[2], [1, 3]])
def test_trials_that_ran_are_in_the_table_and_others_are_missing(numbers: list[int]) -> None:
    document = page(*(row("fail", of=case(trials=3), trial=number) for number in numbers), ending=STOPPED)
    (entry,) = document.data("cases")
    assert [number for number, *_ in entry["trials"]] == numbers
    assert (entry["missing"], entry["require"]) == (3 - len(numbers), "majority")
    assert document.trials == {f"trial-0-{number}" for number in numbers}
    (both,) = page(row(trial=1), row(trial=2)).data("cases")
    assert [number for number, *_ in both["trials"]] == [1, 2]


def test_trial_that_occurs_twice_has_one_block() -> None:
    # The parser of pages refuses a second block with the same id.
    assert page(row(candidate_answer="one"), row("fail", candidate_answer="two")).trials == {"trial-0-1"}
