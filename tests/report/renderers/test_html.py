"""The HTML report without a browser: what stands in the file, and that nothing in it can be more than text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import weakref
from collections.abc import Iterable, Iterator, Sequence
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.report import Ending, ShardRecord
from agentv_ci.contracts.results import InputMessageRecord, ResultRow, RowSource
from agentv_ci.report.renderers import renderer
from agentv_ci.report.renderers.html import document as html
from agentv_ci.report.renderers.html.document import EARLY, TEMPLATES
from agentv_ci.report.renderers.html.document import SCRIPTS as LATER
from agentv_ci.report.renderers.html.payload import MAX_TEXT
from agentv_ci.report.view import Links, RunView
from tests.report.builders import (
    NASTY,
    Verdict,
    any_text,
    case,
    finding,
    reported,
    row,
    rows_of,
    well_formed,
    well_formed_text,
    whole,
)
from tests.report.shop import shop_run

SCRIPTS = (EARLY, *LATER)
SHARD = ShardRecord(index=1, total=3, cases=9)


class Document(HTMLParser):
    """A page as a parser of HTML sees it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.attributes: list[tuple[str, str, str]] = []
        self.elements: list[str] = []
        self.blocks: dict[str, str] = {}
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.text = ""
        self.title = ""
        self._into: tuple[str, str | None] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        given = dict(attrs)
        if tag == "script":
            self._into = ("block", given["id"]) if given.get("type") == "application/json" else ("script", None)
        if tag in ("style", "title") and self._into is None:
            self._into = (tag, None)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style", "title"):
            self._into = None

    def handle_data(self, data: str) -> None:
        match self._into:
            case ("block", str(name)):
                assert name not in self.blocks
                self.blocks[name] = data
            case ("script", _):
                self.scripts.append(data)
            case ("style", _):
                self.styles.append(data)
            case ("title", _):
                self.title += data
            case _:
                self.text += data

    def data(self, name: str) -> Any:
        return json.loads(self.blocks[name])

    @property
    def policy(self) -> str:
        (policy,) = (value for _, name, value in self.attributes if name == "content" and "default-src" in value)
        return policy


def rendered(run: RunView) -> bytes:
    return b"".join(html.render(run))


def page(*rows: ResultRow, ending: Ending | None = None) -> Document:
    return Document(rendered(reported(rows, ending)).decode())


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_family_knows_it() -> None:
    assert renderer("html") is html.render


def test_the_policy_allows_the_scripts_and_the_style_of_the_file_and_nothing_else() -> None:
    document = page(row())
    (style,) = document.styles
    allowed = " ".join(map(digest, document.scripts))
    assert document.policy == (
        f"default-src 'none'; script-src {allowed}; style-src {digest(style)}; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    assert len(document.scripts) == 2


def test_nothing_is_asked_of_anybody_and_nothing_runs_that_has_no_hash() -> None:
    document = Document(rendered(shop_run()).decode())
    names = {name for _, name, _ in document.attributes}
    assert not names & {"src", "style", "action", "background", "srcset", "poster"}
    assert not [name for name in names if name.startswith("on")]
    addresses = {value for _, name, value in document.attributes if name == "href"}
    commit = "https://github.com/example/shop/commit/4f2c9d1"
    assert {value for value in addresses if not value.startswith("#")} <= {
        commit,
        *(each["link"] for each in document.data("cases")),
    }
    assert not set(document.elements) & {"link", "img", "iframe", "object", "embed", "form", "base"}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_make_no_markup(name: str) -> None:
    script = (TEMPLATES / name).read_text("utf-8")
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|</script|<!--"
    assert re.search(forbidden, script) is None
    assert script.startswith('"use strict";\n')


@settings(max_examples=40)
@given(any_text, any_text, st.sampled_from(["pass", "fail", "error"]))
def test_every_text_stays_what_it_is(text: str, other: str, verdict: Verdict) -> None:
    found = row(
        verdict,
        candidate_answer=text,
        reference_answer=other,
        error=f"x{other}",
        evaluator_results=(finding(f"{text}x"),),
        input_messages=(InputMessageRecord(role="user", content=f"{text}y"),),
        metadata={"x": text},
        target=f"{well_formed(other)}t",
    )
    document = page(found)
    trial = document.data("trial-0-1")
    assert trial.get("candidate_answer", "") == well_formed(text)
    assert trial.get("reference_answer", "") == well_formed(other)
    assert trial["error"] == well_formed(f"x{other}")
    assert trial["evaluator_results"][0]["misses"] == [well_formed(f"{text}x")]
    assert trial["input_messages"] == [{"role": "user", "content": well_formed(f"{text}y")}]
    assert document.data("run")["targets"] == [f"{well_formed(other)}t"]
    assert len(document.scripts) == 2


@pytest.mark.parametrize(
    "text",
    [*NASTY, "</script><script>window.pwned=1</script>", "<!--<script>", "<img src=x onerror=alert(1)>"],
    ids=ascii,
)
def test_special_texts_are_never_elements(text: str) -> None:
    found = row("fail", candidate_answer=text, misses=(f"x{text}y",), of=case(f"{well_formed(text)}i"))
    document = page(found)
    assert document.data("cases")[0]["id"] == f"{well_formed(text)}i"
    assert document.elements.count("script") == 5
    assert "img" not in document.elements


@settings(max_examples=30)
@given(st.lists(well_formed_text, min_size=1, max_size=4, unique=True))
def test_every_name_stands_in_the_table(names: list[str]) -> None:
    rows = [row(of=case(f"{name}i", suite=f"{name}.yaml")) for name in names]
    document = page(*rows)
    found = {(each["id"], document.data("run")["suites"][each["suite"]]) for each in document.data("cases")}
    assert found == {(f"{name}i", f"{name}.yaml") for name in names}


def test_what_no_json_can_hold_is_null() -> None:
    trial = page(row(evaluator_results=(finding("x").model_copy(update={"weight": float("nan")}),))).data("trial-0-1")
    assert trial["evaluator_results"][0]["weight"] is None


def test_long_texts_are_cut_and_their_length_is_told() -> None:
    trial = page(row(candidate_answer="x" * MAX_TEXT, reasoning="y" * (MAX_TEXT + 1))).data("trial-0-1")
    assert trial["candidate_answer"] == "x" * MAX_TEXT
    assert trial["reasoning"] == {"text": "y" * MAX_TEXT, "length": MAX_TEXT + 1}


def test_the_same_rows_in_any_order_give_the_same_bytes() -> None:
    run = shop_run()
    assert rendered(RunView(run.report, run.outcomes, lambda: list(run.rows())[::-1], run.links)) == rendered(run)


def kept_of(document: Document) -> set[str]:
    return {name for name in document.blocks if name.startswith("trial-")}


def mixed() -> list[ResultRow]:
    """One case that passes, one that is doubtful, one that fails and one without a verdict; all of the same size."""
    verdicts: list[Verdict] = ["pass", "borderline", "fail", "error"]
    return [row(each, of=case(each, line=line), candidate_answer="x" * 50_000) for line, each in enumerate(verdicts, 1)]


@pytest.mark.parametrize(
    ("room", "kept"),
    [
        (4.5, {"trial-0-1", "trial-1-1", "trial-2-1", "trial-3-1"}),
        (3.5, {"trial-1-1", "trial-2-1", "trial-3-1"}),
        (2.5, {"trial-2-1", "trial-3-1"}),
        # Now each of them is too long, and only its beginning is there.
        (0.9, {"trial-2-1", "trial-3-1"}),
    ],
)
def test_texts_of_passed_cases_go_first_then_doubtful_ones(
    room: float, kept: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = len(rendered(reported([])))
    limit = bare + 4_000 + round(room * 51_000)
    monkeypatch.setattr(html, "MAX_BYTES", limit)
    text = rendered(reported(mixed()))
    document = Document(text.decode())
    assert len(text) <= limit
    assert kept_of(document) == kept
    assert len(document.data("cases")) == 4
    assert (document.data("run")["trials"], document.data("run")["texts"]) == (4, len(kept))


def test_flaky_cases_outlast_those_that_always_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    big = {"candidate_answer": "x" * 50_000}
    steady = [each.model_copy(update=big) for each in rows_of(case("a", line=1, trials=3), "pass", "pass", "pass")]
    flaky = [each.model_copy(update=big) for each in rows_of(case("b", line=2, trials=3), "pass", "fail", "pass")]
    monkeypatch.setattr(html, "MAX_BYTES", len(rendered(reported([]))) + 4_000 + 3 * 52_000)
    document = Document(rendered(reported([*steady, *flaky])).decode())
    assert kept_of(document) == {"trial-1-1", "trial-1-2", "trial-1-3"}


def test_the_table_loses_passed_cases_only_when_nothing_else_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row("pass" if number % 2 else "fail", of=case(f"{number}", line=number + 1)) for number in range(2_000)]
    limit = len(rendered(reported([]))) + 720_000
    monkeypatch.setattr(html, "MAX_BYTES", limit)
    text = rendered(reported(rows))
    document = Document(text.decode())
    table = document.data("cases")
    assert len(text) <= limit
    assert sum(each["verdict"] == "fail" for each in table) == 1_000
    assert 1_000 < len(table) < 2_000
    assert document.data("run")["cases"] == 2_000
    assert [each["n"] for each in table] == sorted(each["n"] for each in table)


def test_of_a_trial_larger_than_any_file_beginnings_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row("fail", of=case("a", line=1), misses=("<" * 90_000,) * 9), row(of=case("b", line=2))]
    monkeypatch.setattr(html, "MAX_BYTES", len(rendered(reported([]))) + 50_000)
    document = Document(rendered(reported(rows)).decode())
    assert kept_of(document) == {"trial-0-1", "trial-1-1"}
    assert len(document.blocks["trial-0-1"]) < 50_000
    assert [each["length"] for each in document.data("trial-0-1")["misses"]] == [90_000] * 9
    assert document.data("trial-0-1")["candidate_answer"] == "Hello"


def test_rows_are_read_once_and_not_held() -> None:
    rows = [row(of=case(f"{number}", line=number + 1)) for number in range(50)]
    alive: weakref.WeakSet[ResultRow] = weakref.WeakSet()
    most = 0
    readings = 0

    def read() -> Iterator[ResultRow]:
        nonlocal most, readings
        readings += 1
        for each in rows:
            fresh = each.model_copy()
            alive.add(fresh)
            most = max(most, len(alive))
            yield fresh

    class Row(ResultRow):
        __hash__ = object.__hash__

        def __eq__(self, other: object) -> bool:
            return self is other

    rows = [Row.model_construct(**dict(each)) for each in rows]
    found, outcomes = whole(rows)
    list(html.render(RunView(found, outcomes, read)))
    assert readings == 1
    assert most <= 3


def test_rows_of_foreign_cases_are_not_told() -> None:
    run = reported([row(of=case("a"))])
    rows: Iterable[ResultRow] = [row(of=case("a")), row(of=case("foreign"))]
    document = Document(rendered(RunView(run.report, run.outcomes, lambda: rows)).decode())
    assert kept_of(document) == {"trial-0-1"}


@pytest.mark.parametrize(
    ("rows", "ending", "title", "said"),
    [
        ([row()], Ending(), "✓ Passed", []),
        ([row("fail")], Ending(), "✗ Not passed", ["pass rate 0.0% is below 100.0%"]),
        ([row("error")], Ending(), "! No verdict", ["no case was graded"]),
        ([row()], Ending(dry_run=True), "! Dry run", ["the scores below are meaningless"]),
        ([row("error")], Ending(stopped="interrupted"), "! Interrupted", ["the run was interrupted"]),
        ([row()], Ending(stopped="budget"), "! Budget used up", ["the budget is used up: "]),
        ([row("fail")], Ending(shard=SHARD), "✗ Not passed", ["shard 1 of 3", "Not enforced"]),
        ([row()], Ending(write_error="disk full"), "! No verdict", ["results could not be written: disk full"]),
        ([row()], Ending(unpriced_models=("gpt-9",)), "✓ Passed", ["no price is known for gpt-9"]),
        ([row()], Ending(unrecorded=2), "! No verdict", ["2 requests without a recording"]),
        ([row()], Ending(incomplete=("shard 2/2 is missing",)), "✗ Not passed", ["shard 2/2 is missing"]),
        ([], Ending(), "! Nothing ran", ["no case was left to run"]),
    ],
)
def test_the_gate_is_told_in_words(rows: list[ResultRow], ending: Ending, title: str, said: list[str]) -> None:
    document = page(*rows, ending=ending)
    assert re.findall(r"^\s*([✓✗!] .+)$", document.text, re.MULTILINE)[0] == title
    assert document.title.startswith(f"{title}: ")
    for each in said:
        assert document.text.count(each) == 1


def test_without_scripts_the_first_cases_that_did_not_pass_are_listed() -> None:
    rows = [
        row("fail", number / 100, of=case(f"case-{number}", line=number + 1), misses=("too long",))
        for number in range(20)
    ]
    text = page(*rows).text
    assert "the first 12 of 20" in text
    assert "case-0 0.000" in " ".join(text.split())
    assert "too long" in text
    assert "case-12 " not in " ".join(text.split())


def test_links_are_those_of_the_run_and_otherwise_places() -> None:
    found, outcomes = whole([row("fail", of=case("a", line=7))])
    links = Links("https://github.com/o/r/blob/c")
    linked = Document(rendered(RunView(found, outcomes, lambda: [row("fail", of=case("a", line=7))], links)).decode())
    address = "https://github.com/o/r/blob/c/evals/a.yaml#L7"
    assert ("a", "href", address) in linked.attributes
    assert linked.data("cases")[0]["link"] == address
    assert "link" not in page(row("fail", of=case("a", line=7))).data("cases")[0]


def test_a_comparison_stands_at_the_top_and_in_the_table() -> None:
    document = Document(rendered(shop_run()).decode())
    text = " ".join(document.text.split())
    assert "2 regressed 2 improved 3 flaky 17 unchanged 2 new 2 not enough evidence" in text
    assert "pass rate80.0% → 76.0% p = 1" in text
    changed = {(each["id"], each["target"]): each["change"] for each in document.data("cases")}
    assert changed["change-of-address-after-dispatch", 0] == "regressed"
    assert changed["ignore-your-instructions", 0] == "unchanged"


def test_a_case_has_its_figures_and_its_command() -> None:
    of = case("a [1]", line=7, trials=2)
    rows = [
        each.model_copy(update={"cost_usd": 0.25, "duration_ms": 1000 * each.trial})
        for each in rows_of(of, "pass", "fail")
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
        "ms": 1500,
        "cost": 0.5,
        "interval": [pytest.approx(0.0945, abs=1e-3), pytest.approx(0.9055, abs=1e-3)],
    }


def test_a_place_outside_its_suite_is_told() -> None:
    found = row(of=case("a"), source=RowSource(path="evals/b.yaml", line=9))
    assert page(found).data("cases")[0]["path"] == "evals/b.yaml"
