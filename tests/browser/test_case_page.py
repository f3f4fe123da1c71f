"""The page of one case: answer and difference, trials, errors, and texts that try to be more than text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from playwright.sync_api import Page, expect

from agentv_ci.contracts.report import GuidelineText
from agentv_ci.contracts.results import (
    EvaluatorResult,
    InputMessageRecord,
    OutputMessage,
    ToolCall,
    TraceSummary,
    WorkspaceRecord,
)
from agentv_ci.report.renderers.html.blocks import MAX_TEXT
from agentv_ci.report.renderers.html.document import render
from tests.browser.conftest import Visit, Write
from tests.support.runs import case, finding, reported, row, rows_of

pytestmark = pytest.mark.slow

REFUND = "#case=refund-within-window&suite=evals%2Frefunds.test.yaml&target=support-agent"
ADDRESS = "#case={}&suite=evals%2Fa.yaml&target=default"
LONG = "x" * 120
MARKUP = (
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    '<a href="javascript:window.pwned=1">x</a>',
    '"><svg onload=window.pwned=1>',
    "{{ 1 }}<!--<script>",
    "a\u202etxt.exe\u2066",
)
TEXTS = {
    "windows": ("one two three\r\nfour five six\r\nseven", "one two three\nfour five six\nseven"),
    "joined": ("می\u200cخواهم 👨\u200d👩\u200d👧", None),
    "hidden": ("ok \U000e0068\U000e0069 ok", None),
    "hindi": ("यह किताबें है और वह भी", "यह किताब है और वह भी"),
    "coloured": ("\x1b[31mred\x1b[0m apple and a pear", "red apple and a plum"),
    "emoji": ("😀" * (MAX_TEXT + 1), None),
    "cut-alike": (f"{'a b ' * (MAX_TEXT // 4)}one end", f"{'a b ' * (MAX_TEXT // 4)}another end"),
    "cut": (f"{'a b ' * (MAX_TEXT // 4)}end", f"c {'a b ' * (MAX_TEXT // 5)}"),
}
NAMES = (
    "__proto__", "constructor", "toString", "a", "A", " a", "a ", "a\nb", "a\r\nb", "nul\x00x", "\u202etxt", "%41", "#",
    "&case=x", "a+b", "</script>", "é", "e\u0301",
)  # fmt: skip
TOO_WIDE = """[...document.querySelectorAll("#case h3, #case code, #case bdi")]
    .filter((each) => each.closest(".command") === null)
    .filter((each) => each.getBoundingClientRect().right > 361 || each.scrollWidth > each.clientWidth)
    .map((each) => `${each.parentElement.className || each.parentElement.tagName} ${each.tagName}`)"""


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with a case for each of TEXTS."""
    rows = [
        row("fail", of=case(name, line=line), candidate_answer=answer, reference_answer=reference, reasoning="a\r\nb")
        for line, (name, (answer, reference)) in enumerate(TEXTS.items(), 1)
    ]
    file = tmp_path_factory.mktemp("texts") / "texts.html"
    file.write_bytes(b"".join(render(reported(rows))))
    return file


def test_answer_and_expected_answer(shop: Path, visit: Visit) -> None:
    page = visit(shop, REFUND)
    answer = page.locator("#answer")
    assert answer.locator("del").all_inner_texts()[:2] == ["30", "of €89.95 "]
    assert answer.locator(".text ins").all_inner_texts() == ["14", "soon"]
    answer.get_by_role("button", name="Expected").click()
    expect(answer.locator(".text")).to_contain_text("inside the 30-day window")
    answer.get_by_role("button", name="Answer", exact=True).click()
    expect(answer.locator(".text")).to_contain_text("inside the 14-day window")


@pytest.mark.parametrize(
    ("expected", "answer", "form", "shown"),
    [
        (
            '{"a": 1, "b": [1, 2]}',
            '{\n"b": [1, 2],\n"a": 1.0}',
            "equal",
            '{\n  "a": 1,\n  "b": [\n    1,\n    2\n  ]\n}\n',
        ),
        (
            '{"a": 1}',
            '```json\n{"a": 2, "c": null}\n```',
            "data",
            '{\n  [-"a": 1,-]\n  {+"a": 2,+}\n  {+"c": null+}\n}\n',
        ),
        ("[1, 2, 3]", "[1, 3]", "data", "[\n  1,\n  [-2,-]\n  3\n]\n"),
        (
            '[{"id": 1, "n": {"x": 1}}]',
            '[{"id": 1, "n": {"x": 2}}, {"id": 2}]',
            "data",
            (
                '[\n  {\n    "id": 1,\n    "n": {\n      [-"x": 1-]\n      {+"x": 2+}\n    }\n  },\n'
                '  {+{+}\n    {+"id": 2+}\n  {+}+}\n]\n'
            ),
        ),
        (
            '{"__proto__": 1}',
            '{"__proto__": [2]}',
            "data",
            '{\n  [-"__proto__": 1-]\n  {+"__proto__": [+}\n    {+2+}\n  {+]+}\n}\n',
        ),
        # JavaScript would round these numbers to the same one.
        ('{"key": 12345678901234567}', '{"key": 12345678901234568}', "apart", None),
        ("1", "2", "apart", None),
    ],
)
def test_json_is_compared_as_data(scripts: Page, expected: str, answer: str, form: str, shown: str | None) -> None:
    found = scripts.evaluate("([one, other]) => compareAnswers(one, other)", [expected, answer])
    marks = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}
    assert found["form"] == form
    assert shown in (None, "".join(marks[kind].format(text) for kind, text in found["parts"]))


def test_unrelated_texts_are_side_by_side(shop: Path, visit: Visit) -> None:
    page = visit(shop, "#case=refund-after-window&suite=evals%2Frefunds.test.yaml&target=support-agent-mini")
    texts = page.locator("#answer .apart .text").all_inner_texts()
    assert [each[:35] for each in texts] == [
        "I am sorry that they broke. The 30 ",
        "I am sorry that they broke. I have ",
    ]


def test_page_begins_with_why_it_failed(shop: Path, visit: Visit) -> None:
    page = visit(shop, REFUND)
    first = page.locator("#trial section").first
    expect(first.get_by_role("heading", level=2)).to_have_text("Why it failed")
    assert first.locator(".evaluator-head h3").all_inner_texts() == ["judge", "rules", "no-false-promise", "facts"]
    expect(first).to_contain_text("says how long the refund takes")
    assert first.locator(".settings").first.inner_text().split("\n")[1:] == ["target: judge", "judge_retries: 1"]
    first.get_by_text("Question to the judge").click()
    expect(first.get_by_text("Compare the answer with the policy of the shop.")).to_be_visible()
    page.get_by_role("tab").nth(3).click()
    expect(page.locator("#why")).to_have_count(0)
    expect(page.get_by_role("heading", name="Evaluators")).to_be_visible()
    page.get_by_role("link", name="support-agent-mini: fail").click()
    expect(page.locator("#case .facts")).to_contain_text("target support-agent-mini")


def test_guidelines_are_texts(visit: Visit, tmp_path: Path) -> None:
    asked = InputMessageRecord(role="user", content="<Attached: rules/a.md>\n\nHello")
    run = reported([row(of=case("one"), input_messages=(asked,))])
    guidelines = tuple(GuidelineText(path=path, text=f"<b>{path}</b>") for path in ("rules/a.md", "rules/b.md"))
    file = tmp_path / "report.html"
    file.write_bytes(b"".join(render(replace(run, report=run.report.model_copy(update={"guidelines": guidelines})))))
    page = visit(file, ADDRESS.format("one"))
    page.locator("summary", has_text="rules/a.md").click()
    expect(page.get_by_text("<b>rules/a.md</b>")).to_be_visible()
    expect(page.get_by_text("rules/b.md")).to_have_count(0)


def test_failed_trial_is_shown_first(visit: Visit, written: Write) -> None:
    of = case("one", trials=3)
    page = visit(written(*rows_of(of, "pff")), "#q=one")
    page.locator("tbody a").click()
    expect(page.get_by_role("tab", selected=True)).to_contain_text("Trial 2 fail")
    assert "trial" not in page.evaluate("location.hash")


def test_command_link_evaluators_baseline_and_tool_calls(shop: Path, visit: Visit) -> None:
    page = visit(shop, REFUND)
    expect(page.locator(".command code")).to_have_text(
        "agentv-ci eval evals/refunds.test.yaml --eval-id=refund-within-window --target=support-agent"
    )
    link = page.get_by_role("link", name="evals/refunds.test.yaml:8")
    assert link.get_attribute("href") == "https://github.com/example/shop/blob/4f2c9d1/evals/refunds.test.yaml#L8"
    expect(page.get_by_text("no promise that cannot be kept")).to_be_visible()
    expect(page.get_by_text("5/5 passed, mean 0.980")).to_be_visible()
    page.get_by_text("find_order").click()
    expect(page.get_by_text('"customer": "c-9931"').first).to_be_visible()


def test_trials_are_tabs(shop: Path, visit: Visit) -> None:
    page = visit(shop, f"{REFUND}&trial=4")
    selected = page.get_by_role("tab", selected=True)
    expect(selected).to_contain_text("Trial 4 pass")
    expect(page.get_by_text("word for word")).to_be_visible()
    selected.press("ArrowRight")
    expect(selected).to_contain_text("Trial 5")
    page.keyboard.press("Home")
    expect(selected).to_contain_text("Trial 1")
    expect(page.locator("#answer ins").first).to_be_visible()
    assert page.get_by_role("tabpanel").get_attribute("aria-labelledby") == "tab-1"
    assert page.evaluate("location.hash") == REFUND


def test_selected_tab_is_in_view(visit: Visit, written: Write) -> None:
    rows = [row(of=case("one", trials=60), trial=number) for number in range(1, 61)]
    page = visit(written(*rows), f"{ADDRESS.format('one')}&trial=55")
    expect(page.get_by_role("tab", selected=True)).to_contain_text("Trial 55")
    assert page.evaluate("document.querySelector('[aria-selected=true]').getBoundingClientRect().right <= innerWidth")


def test_error_shows_printed_output(shop: Path, visit: Visit) -> None:
    page = visit(shop, "#case=customs-for-norway&suite=evals%2Fshipping.test.yaml&target=support-agent-mini")
    expect(page.get_by_text("the agent ended with status 1: KeyError: 'NO'", exact=True)).to_be_visible()
    expect(page.get_by_text("Traceback")).to_be_visible()


def test_unknown_case(page: Page) -> None:
    page.locator(".cases tbody a").first.click()
    page.evaluate("location.hash = '#case=other&suite=x&target=y'")
    expect(page.get_by_role("heading", name="No such case")).to_be_visible()
    assert page.title() == "No such case: other"
    expect(page.locator("h1:focus")).to_be_visible()
    page.get_by_role("link", name="All cases").click()
    expect(page.get_by_role("status")).to_have_text("28 of 28 cases")


def test_similar_names_lead_to_their_own_cases(visit: Visit, written: Write) -> None:
    places = [(name, suite, target) for name in NAMES for suite in ("evals/a", "evals/A") for target in ("t", "t ")]
    rows = [
        row("fail", of=case(name, suite=suite, line=line), target=target, candidate_answer=f"answer {line}")
        for line, (name, suite, target) in enumerate(places, 1)
    ]
    answers = visit(written(*rows), "#view=list").evaluate(
        """async () => {
        const links = [...document.querySelectorAll(".cases tbody a")]
            .map((link) => [link.getAttribute("href"), link.closest("[data-case]").dataset.case]);
        const cases = JSON.parse(document.getElementById("cases").textContent);
        const lines = new Map(cases.map((each) => [String(each.n), each.line]));
        return links.map(([address, number]) => {
            history.replaceState(null, "", address);
            dispatchEvent(new Event("hashchange"));
            return [document.querySelector("#answer .text").textContent, `answer ${lines.get(number)}`];
        });
        }"""
    )
    assert len(answers) == len(rows)
    assert [shown for shown, expected in answers if shown != expected] == []


def test_texts_of_agents_stay_text(visit: Visit, written: Write) -> None:
    rows = [
        row(
            "fail",
            of=case(text, line=line, suite=f"evals/{text}.yaml"),
            candidate_answer=text,
            reference_answer=f"{text} expected",
            misses=(text,),
            evaluator_results=(finding(text),),
            target=text,
            metadata={text: text},
        )
        for line, text in enumerate(MARKUP, 1)
    ]
    file = written(*rows)
    page = visit(file)
    assert page.locator("tbody a").count() == len(MARKUP)
    for key in ("j", "j", "Enter"):
        page.keyboard.press(key)
    for _ in MARKUP:
        expect(page.locator("#case .count")).to_contain_text(" of 6")
        page.locator("#answer").get_by_role("button", name="Answer", exact=True).click()
        page.keyboard.press("j")
    assert page.evaluate("window.pwned") is None
    assert page.locator("main img, main script, main svg[onload], main a[href^=javascript]").count() == 0
    page.goto(f"{file.as_uri()}#q=txt.exe")
    page.locator("tbody a").first.click()
    expect(page.locator("#case h1 .control").first).to_have_text("U+202E")


def test_row_without_contents(visit: Visit, written: Write) -> None:
    blank = EvaluatorResult.model_construct(**{**dict(finding("")), "type": "", "hits": ("",), "misses": ()})
    turns = (OutputMessage(role="", tool_calls=(ToolCall(tool=""),)), OutputMessage(role="", content=""))
    empty: dict[str, Any] = dict.fromkeys(("candidate_answer", "provider", "timestamp", "digest"), "")
    asked = (InputMessageRecord(role="", content=""),)
    page = visit(written(row(**empty, input_messages=asked, evaluator_results=(blank,), output_messages=turns)))
    page.locator("tbody a").click()
    expect(page.get_by_text("The answer is empty.")).to_be_visible()
    expect(page.get_by_role("heading", name="Figures")).to_be_visible()


def test_long_names_fit_a_narrow_screen(visit: Visit, written: Write) -> None:
    calls = (ToolCall(tool=LONG, input={}),)
    traced = row(
        "fail",
        of=case("traced", line=1),
        evaluator_results=(finding("x", name=LONG),),
        input_messages=(InputMessageRecord(role="user", name=LONG, content=LONG),),
        output_messages=(OutputMessage(role="assistant", content="", tool_calls=calls),),
    )
    counted = row("fail", of=case("counted", line=2), trace_summary=TraceSummary.of([LONG]))
    page = visit(written(traced, counted), ADDRESS.format("traced"), width=360)
    for name in ("traced", "counted"):
        page.evaluate("address => { location.hash = address; }", ADDRESS.format(name))
        expect(page.locator("#case h1")).to_have_text(name)
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert page.evaluate(TOO_WIDE) == []


@pytest.mark.parametrize(
    ("name", "selector", "shown"),
    [
        # Line ends and colours are not differences.
        ("windows", "#answer .text ins, #answer .text del", []),
        ("coloured", "#answer .text ins", ["pear"]),
        ("hindi", "#answer .text ins", ["किताबें"]),
        ("joined", "#answer .text", [TEXTS["joined"][0]]),
        ("hidden", "#answer .text .control", ["U+E0068", "U+E0069"]),
        ("emoji", "#answer .warning", ["Cut here: the first 100,000 of 100,001 characters."]),
        (
            "cut-alike",
            "#answer p",
            [
                "The part of the answer that was kept is the same as that of the expected one.",
                "Cut here: the first 100,000 of 100,007 characters.",
                "Only part of the expected answer was compared: the first 100,000 of 100,011 characters.",
            ],
        ),
        ("cut", "#answer .warning", ["Cut here: the first 100,000 of 100,003 characters."]),
    ],
)
def test_answers(texts: Path, visit: Visit, name: str, selector: str, shown: list[str]) -> None:
    page = visit(texts, ADDRESS.format(name))
    expect(page.locator("#case h1")).to_have_text(name)
    assert [each.strip() for each in page.locator(selector).all_inner_texts()] == shown


def test_line_ends_are_spaces_in_the_table(texts: Path, visit: Visit) -> None:
    assert visit(texts, "#q=windows").locator(".cases .why").inner_text() == "a b"


def test_difference_with_many_parts(scripts: Page) -> None:
    reference, answer = "\n\n".join([".," * 490] * 100), "\n\n".join([".;" * 490] * 100)
    trial = {"reference_answer": reference, "candidate_answer": answer}
    assert scripts.evaluate("trial => differenceView(trial).textContent.length", trial) > len(answer)


def test_parts_of_a_text_are_appended_before_its_direction_is_resolved(scripts: Page) -> None:
    appended = scripts.evaluate(
        """() => {
        const append = Element.prototype.append;
        let appended = 0;
        Element.prototype.append = function (...nodes) {
            if (this.dir === "auto") appended += nodes.length;
            return append.apply(this, nodes);
        };
        textBox("a\\u0000".repeat(2000));
        return appended;
        }"""
    )
    assert appended == 0


def test_skipped_case_has_its_reason_and_no_score(visit: Visit, written: Write) -> None:
    skipped = row("skipped", of=case("later", line=2), skip=MARKUP[0])
    file = written(row(of=case("a", line=1)), skipped)
    page = visit(file)
    expect(page.locator("dl.figures")).to_contain_text("skipped")
    cells = page.locator(".cases tbody tr", has_text="later")
    expect(cells.locator(".verdict")).to_have_text("skipped")
    expect(cells).to_contain_text(MARKUP[0])
    page = visit(file, ADDRESS.format("later"))
    expect(page.locator("#case")).to_contain_text(MARKUP[0])
    assert page.evaluate("window.pwned") is None


def test_changes_in_a_workspace(visit: Visit, written: Write) -> None:
    record = WorkspaceRecord(
        isolation="namespaces",
        network="off",
        changed=("a.py", ".env"),
        withheld=(".env (guarded)",),
        diff=f"--- a/a.py\n+++ b/a.py\n+{MARKUP[1]}\n",
    )
    page = visit(written(row("fail", workspace=record)), ADDRESS.format("one"))
    changes = page.locator("#changes")
    expect(changes.get_by_role("heading")).to_have_text("Changes 2 files")
    expect(changes).to_contain_text("namespaces, no network")
    expect(changes.locator(".text").first).to_contain_text(MARKUP[1])
    changes.get_by_text("Not given to graders").click()
    expect(changes).to_contain_text(".env (guarded)")
