"""The HTML report in a browser, against those who mean it no good."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from agentv_ci.contracts.results import InputMessageRecord, OutputMessage, ResultRow, RowSource, ToolCall, TraceSummary
from agentv_ci.report.renderers.html.document import TEMPLATES, render
from agentv_ci.report.renderers.html.payload import MAX_TEXT
from tests.browser.conftest import Open
from tests.browser.test_report import contrast
from tests.report.builders import case, finding, reported, row
from tests.report.shop import shop_run

LONG = "x" * 120
SUITE = "packages/customer-support/evals/{}-refund-policy.test.yaml"
ADDRESS = "#case={}&suite=evals%2Fa.yaml&target=default"
LARGE = {
    "emoji": ("😀" * (MAX_TEXT + 1), None),
    "cut-alike": (f"{'a b ' * (MAX_TEXT // 4)}one end", f"{'a b ' * (MAX_TEXT // 4)}another end"),
    "cut": (f"{'a b ' * (MAX_TEXT // 4)}end", f"c {'a b ' * (MAX_TEXT // 5)}"),
    "dense": ("\n\n".join([".," * 490] * 100), "\n\n".join([".;" * 490] * 100)),
}
TEXTS = {
    "windows": ("one two three\r\nfour five six\r\nseven", "one two three\nfour five six\nseven"),
    "joined": ("می\u200cخواهم 👨\u200d👩\u200d👧", None),
    "hidden": ("ok \U000e0068\U000e0069 ok", None),
    "hindi": ("यह किताबें है और वह भी", "यह किताब है और वह भी"),
    "coloured": ("\x1b[31mred\x1b[0m apple and a pear", "red apple and a plum"),
}
NAMES = (
    "__proto__", "constructor", "toString", "a", "A", " a", "a ", "a\nb", "a\r\nb", "nul\x00x", "\u202etxt", "%41", "#",
    "&case=x", "a+b", "</script>", "é", "e\u0301",
)  # fmt: skip
OPEN = "document.querySelectorAll('details').forEach(each => { each.open = true; })"
TOO_WIDE = """[...document.querySelectorAll("#case h3, #case code, #case bdi")]
    .filter((each) => each.closest(".command") === null)
    .filter((each) => each.getBoundingClientRect().right > 361 || each.scrollWidth > each.clientWidth)
    .map((each) => `${each.parentElement.className || each.parentElement.tagName} ${each.tagName}`)"""


def written(folder: Path, *rows: ResultRow) -> Path:
    # A place that an address has to quote.
    file = folder / "report #1 %41?.html"
    file.write_bytes(b"".join(render(reported(rows))))
    return file


def answers(folder: Path, texts: Mapping[str, tuple[str, str | None]]) -> Path:
    rows = [
        row(
            "fail",
            of=case(name, line=line),
            candidate_answer=answer,
            reference_answer=reference,
            reasoning="first\r\nsecond" if name == "windows" else "",
        )
        for line, (name, (answer, reference)) in enumerate(texts.items(), 1)
    ]
    return written(folder, *rows)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return answers(tmp_path_factory.mktemp("texts"), TEXTS)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return answers(tmp_path_factory.mktemp("large"), LARGE)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "shop.html"
    file.write_bytes(b"".join(render(shop_run())))
    return file


@pytest.fixture
def scripts(browser: Browser) -> Iterator[Page]:
    """A page in which the functions of the report's scripts can be called."""
    page = browser.new_page()
    names = ("elements.js", "figures.js", "difference.js", "case.js")
    page.add_script_tag(content="".join((TEMPLATES / name).read_text("utf-8") for name in names))
    yield page
    page.close()


def wide(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth"))


def test_names_that_look_alike_lead_each_to_its_own_case(tmp_path: Path, visit: Open) -> None:
    rows = [
        row("fail", of=case(name, suite=suite, line=line), target=target, candidate_answer=f"answer {line}")
        for line, (name, suite, target) in enumerate(
            ((name, suite, target) for name in NAMES for suite in ("evals/a", "evals/A") for target in ("t", "t ")), 1
        )
    ]
    page = visit(written(tmp_path, *rows)).page
    told = page.evaluate(
        """async () => {
        const links = [...document.querySelectorAll(".cases tbody a")]
            .map((link) => [link.getAttribute("href"), link.closest("tr").dataset.case]);
        const cases = JSON.parse(document.getElementById("cases").textContent);
        const lines = new Map(cases.map((each) => [String(each.n), each.line]));
        const told = [];
        for (const [address, number] of links) {
            history.replaceState(null, "", address);
            dispatchEvent(new Event("hashchange"));
            told.push([document.querySelector("#answer .text").textContent, `answer ${lines.get(number)}`]);
        }
        return told;
        }"""
    )
    assert len(told) == len(rows)
    assert {one for one, other in told if one != other} == set()


def test_no_address_breaks_the_page(shop: Path, visit: Open) -> None:
    page = visit(shop, "#case=%FF%&suite=__proto__").page
    for address in (
        "#%",
        "#q=%E0%A4%A",
        "#verdict=toString&sort=__proto__",
        "#suite=gone",
        f"#q={'x' * 100_000}",
        "#case",
    ):
        page.evaluate("address => { location.hash = address; }", address)
        expect(page.locator("h1:visible, .empty:visible").first).to_be_visible()
    page.evaluate("location.hash = ''")
    expect(page.get_by_role("status")).to_have_text("28 of 28 cases")


def test_a_difference_with_many_parts_is_shown(scripts: Page) -> None:
    reference, answer = "\n\n".join([".," * 490] * 100), "\n\n".join([".;" * 490] * 100)
    trial = {"reference_answer": reference, "candidate_answer": answer}
    shown = scripts.evaluate("trial => differenceView(trial).textContent.length", trial)
    assert shown > len(answer)


def test_parts_of_a_text_are_appended_before_its_direction_is_asked_for(scripts: Page) -> None:
    most = scripts.evaluate(
        """() => {
        const append = Element.prototype.append;
        let most = 0;
        Element.prototype.append = function (...nodes) {
            const numbers = nodes.map((each) => (each instanceof DocumentFragment ? each.childNodes.length : 1));
            const number = numbers.reduce((sum, each) => sum + each, 0);
            if (this.dir === "auto") most = Math.max(most, number);
            return append.apply(this, nodes);
        };
        textBox("a\\u0000".repeat(2000));
        Element.prototype.append = append;
        return most;
        }"""
    )
    assert most < 1_000


def test_characters_of_a_cut_text_are_counted_alike(large: Path, visit: Open) -> None:
    page = visit(large, ADDRESS.format("emoji")).page
    assert page.locator("#answer .warning").text_content() == "Cut here: the first 100,000 of 100,001 characters."


def test_texts_of_which_the_ends_are_cut_are_not_said_to_be_the_same(large: Path, visit: Open) -> None:
    page = visit(large, ADDRESS.format("cut-alike")).page
    assert "word for word" not in (page.locator("#answer").text_content() or "")


def test_a_difference_of_cut_texts_says_that_they_are_cut(large: Path, visit: Open) -> None:
    page = visit(large, ADDRESS.format("cut")).page
    expect(page.get_by_role("button", name="Difference")).to_have_attribute("aria-pressed", "true")
    assert "Cut here" in (page.locator("#answer").text_content() or "")


def test_line_ends_are_no_difference(texts: Path, visit: Open) -> None:
    page = visit(texts, ADDRESS.format("windows")).page
    assert page.locator("#answer .text ins, #answer .text del").count() == 0


def test_line_ends_of_windows_are_spaces_in_the_table(texts: Path, visit: Open) -> None:
    page = visit(texts, "#q=windows").page
    assert page.locator(".cases .why").inner_text() == "first second"


def test_joiners_of_letters_and_emoji_join(texts: Path, visit: Open) -> None:
    page = visit(texts, ADDRESS.format("joined")).page
    assert page.locator("#answer .text").inner_text() == TEXTS["joined"][0]


def test_hidden_texts_are_shown(texts: Path, visit: Open) -> None:
    page = visit(texts, ADDRESS.format("hidden")).page
    assert "U+E0068" in (page.locator("#answer .text").text_content() or "")


def test_words_are_compared_whole_in_every_script(texts: Path, visit: Open) -> None:
    page = visit(texts, ADDRESS.format("hindi")).page
    assert page.locator("#answer .text ins").all_inner_texts() == ["किताबें"]


def test_colours_are_no_difference(texts: Path, visit: Open) -> None:
    page = visit(texts, ADDRESS.format("coloured")).page
    assert "red" not in page.locator("#answer .text ins").all_inner_texts()


def test_long_paths_of_suites_fit_a_narrow_screen(tmp_path: Path, visit: Open) -> None:
    rows = [row(of=case("a", suite=SUITE.format(number), line=number)) for number in (1, 2)]
    assert wide(visit(written(tmp_path, *rows), width=360).page) == 360


def test_long_names_fit_a_narrow_screen(tmp_path: Path, visit: Open) -> None:
    calls = (ToolCall(tool=LONG, input={}),)
    given: dict[str, Any] = {
        "evaluator_results": (finding("x").model_copy(update={"name": LONG}),),
        "input_messages": (InputMessageRecord(role="user", name=LONG, content=LONG),),
    }
    rows = [
        row("fail", of=case("with-a-trace", line=1), **given).model_copy(
            update={"output_messages": (OutputMessage(role="assistant", content="", tool_calls=calls),)}
        ),
        row("fail", of=case("without", line=2), trace_summary=TraceSummary.of([LONG])),
    ]
    page = visit(written(tmp_path, *rows), ADDRESS.format("with-a-trace"), width=360).page
    too_wide = set()
    for name in ("with-a-trace", "without"):
        page.evaluate("address => { location.hash = address; }", ADDRESS.format(name))
        expect(page.locator("#case h1")).to_have_text(name)
        page.evaluate(OPEN)
        too_wide |= set(page.evaluate(TOO_WIDE))
    assert too_wide == set()


def test_the_row_in_focus_is_never_under_the_filters(shop: Path, visit: Open) -> None:
    page = visit(shop).page
    hidden = 0
    for key in "j" * 20 + "k" * 15:
        page.keyboard.press(key)
        hidden += page.evaluate(
            """() => {
            const bar = document.querySelector(".filters").getBoundingClientRect();
            return bar.top <= 0 && document.activeElement.getBoundingClientRect().top < bar.bottom;
            }"""
        )
    assert hidden == 0


def test_a_search_does_not_close_the_case_that_was_opened_meanwhile(shop: Path, visit: Open) -> None:
    page = visit(shop).page
    page.evaluate(
        """() => {
        const search = document.querySelector("input[type=search]");
        search.value = "refund";
        search.dispatchEvent(new Event("input"));
        document.querySelector(".cases tbody a").click();
        }"""
    )
    expect(page.locator("#case h1")).to_be_visible()
    page.wait_for_timeout(300)
    assert page.locator("#case h1").is_visible()


def test_a_missing_case_has_its_own_title_and_the_focus(shop: Path, visit: Open) -> None:
    page = visit(shop).page
    page.locator(".cases tbody a").first.click()
    page.evaluate("location.hash = '#case=gone'")
    expect(page.get_by_role("heading", name="No such case")).to_be_visible()
    assert ("customs" in page.title(), page.evaluate("document.activeElement.tagName")) == (False, "H1")


def test_every_figure_of_the_plot_is_inside_of_it(tmp_path: Path, visit: Open) -> None:
    rows = [
        row(of=case(name, line=line), cost_usd=cost, duration_ms=time)
        for line, (name, cost, time) in enumerate((("a", 0.00008, 800), ("b", 0.09, 90_000)), 1)
    ]
    page = visit(written(tmp_path, *rows)).page
    outside = page.evaluate(
        """() => [...document.querySelectorAll("#scatter > text")].filter((each) => {
            const box = each.getBBox();
            return box.x < -0.5 || box.x + box.width > 360.5;
        }).map((each) => each.textContent)"""
    )
    assert outside == []


def test_paper_says_when_it_has_not_all_cases(tmp_path: Path, visit: Open) -> None:
    page = visit(written(tmp_path, *(row(of=case(f"{line}", line=line)) for line in range(1, 1_500)))).page
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    printed = page.locator(".cases tbody tr").count()
    assert printed == 1_499 or "1,499 cases" in page.locator("#cases-section").inner_text()


def test_an_id_of_blanks_has_a_link_that_can_be_seen(tmp_path: Path, visit: Open) -> None:
    page = visit(written(tmp_path, row(of=case(" ")))).page
    assert page.evaluate("document.querySelector('.cases tbody a').getBoundingClientRect().width > 0")


def test_the_tab_of_the_trial_in_the_address_is_in_view(tmp_path: Path, visit: Open) -> None:
    rows = [row(of=case("one", trials=60), trial=number) for number in range(1, 61)]
    page = visit(written(tmp_path, *rows), f"{ADDRESS.format('one')}&trial=55").page
    expect(page.get_by_role("tab", selected=True)).to_contain_text("Trial 55")
    assert page.evaluate("document.querySelector('[aria-selected=true]').getBoundingClientRect().right <= innerWidth")


def test_the_search_box_stands_out(shop: Path, visit: Open) -> None:
    page = visit(shop, dark=True).page
    hint, edge, inside = page.evaluate(
        """() => {
        const box = document.querySelector("input[type=search]");
        const digits = (part) => Number(part).toString(16).padStart(2, "0");
        const hex = (colour) => "#" + colour.match(/\\d+/g).slice(0, 3).map(digits).join("");
        const { borderTopColor, backgroundColor } = getComputedStyle(box);
        return [getComputedStyle(box, "::placeholder").color, borderTopColor, backgroundColor].map(hex);
        }"""
    )
    assert (contrast(hint, inside) >= 4.5, contrast(edge, inside) >= 3) == (True, True)


def test_a_line_number_stays_behind_a_path_from_right_to_left(tmp_path: Path, visit: Open) -> None:
    source = RowSource(path="שלום", line=12)
    page = visit(written(tmp_path, row(source=source))).page
    left, right = page.evaluate(
        """() => {
        const [path, line] = document.querySelector(".cases .place").childNodes;
        const place = (text, from) => {
            const range = document.createRange();
            range.setStart(text, from);
            range.setEnd(text, from + 1);
            return range.getBoundingClientRect().left;
        };
        return [place(path.firstChild, 0), place(line, line.length - 1)];
        }"""
    )
    assert right > left
