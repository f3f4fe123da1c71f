"""The overview of the HTML report: table, search, filters, keys, plots, print."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.results import RowSource
from agentv_ci.report.renderers.html import document as html
from agentv_ci.report.renderers.html.page import TEMPLATES
from tests.browser.conftest import Visit, Write
from tests.report.renderers.html.figures import EXAMPLES, IN_SCRIPTS
from tests.support.runs import case, row
from tests.support.shop import TARGETS

pytestmark = pytest.mark.slow

REFUND = "#case=refund-within-window&suite=evals%2Frefunds.test.yaml&target=support-agent"
BROKEN = """[...document.querySelectorAll(".groups bdi, .cases th b, .cases th a, .cases .place bdi")]
    .flatMap((each) => [...each.childNodes]).filter((node) => {
        const range = document.createRange();
        range.selectNodeContents(node);
        return new Set([...range.getClientRects()].map((each) => each.top)).size > 1;
    }).map((node) => node.textContent)"""
"""The words of names and paths that are on two lines."""
SUITE = "packages/customer-support/evals/{}-refund-policy.test.yaml"


def ids(page: Page) -> list[str]:
    return page.locator("table.cases tbody a").all_inner_texts()


def expect_status(page: Page, text: str) -> None:
    expect(page.get_by_role("status")).to_have_text(text)


def test_verdict_and_all_cases(page: Page) -> None:
    expect(page.get_by_role("heading", level=1, name="Not passed")).to_be_visible()
    assert page.title() == "✗ Not passed: 21 of 28 cases passed"
    expect_status(page, "28 of 28 cases")
    assert ids(page)[:2] == ["customs-for-norway", "markup-in-a-review"]
    expect(page.get_by_text("Without JavaScript")).to_be_hidden()


def test_without_scripts_failures_are_listed(shop: Path, visit: Visit) -> None:
    page = visit(shop, script=False)
    # The browser does not find elements of a hidden page by their text.
    expect(page.locator(".without-script .warning")).to_contain_text("Without JavaScript, this page cannot show")
    expect(page.locator(".without-script li").first).to_contain_text("customs-for-norway")
    assert page.locator("#scatter").is_visible()


def test_filters_and_search_are_in_the_address(page: Page) -> None:
    page.get_by_label(re.compile("^fail")).check()
    expect_status(page, "4 of 28 cases")
    page.get_by_label("Target", exact=True).select_option(TARGETS[1])
    expect_status(page, "3 of 28 cases")
    page.get_by_role("searchbox").fill("Great!")
    expect_status(page, "1 of 28 cases")
    assert page.evaluate("location.hash") == "#q=Great%21&verdict=fail&target=support-agent-mini&view=list"
    page.get_by_role("searchbox").fill("nothing like that")
    page.get_by_role("button", name="Clear search and filters").click()
    expect_status(page, "28 of 28 cases")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.get_by_label("Change against the baseline").select_option("regressed")
    assert ids(page) == ["refund-within-window", "change-of-address-after-dispatch"]
    page.go_back()
    expect_status(page, "28 of 28 cases")
    page.get_by_label(re.compile("^flaky")).check()
    expect_status(page, "5 of 28 cases")


def test_filters_by_tag_and_by_evaluator(page: Page) -> None:
    page.get_by_label("Tag", exact=True).select_option("attack")
    expect_status(page, "6 of 28 cases")
    page.get_by_label("Evaluator that did not pass").select_option("judge")
    expect_status(page, "2 of 28 cases")
    assert page.evaluate("location.hash") == "#tag=attack&evaluator=judge&view=list"
    assert ids(page) == ["markup-in-a-review", "orders-of-somebody-else"]


def test_row_has_the_question_and_the_answer(page: Page) -> None:
    page.get_by_role("searchbox").fill("headphones")
    row = page.locator(".cases tbody tr").first
    expect(row.locator(".question")).to_have_text("My headphones broke after 7 weeks. I want my money back.")
    expect(row.locator(".answer")).to_have_text(
        "I am sorry that they broke. I have refunded the full price to your card."
    )


def test_targets_side_by_side(shop: Path, visit: Visit) -> None:
    page = visit(shop, "#q=headphones")
    heads = page.locator(".cases").get_by_role("columnheader").all_inner_texts()
    assert heads == ["Case", "support-agent gpt-5", "support-agent-mini gpt-5-mini"]
    row = page.locator(".cases tbody tr")
    assert row.locator(".verdict").all_inner_texts() == ["pass", "fail"]
    expect(row.locator(".question")).to_have_text("My headphones broke after 7 weeks. I want my money back.")
    assert [text[:35] for text in row.locator(".answer").all_inner_texts()] == [
        "I am sorry that they broke. The 30 ",
        "I am sorry that they broke. I have ",
    ]
    page.get_by_label("Target", exact=True).select_option(TARGETS[1])
    expect(page.locator(".cases").get_by_role("columnheader")).to_have_count(2)
    page.locator(".cases td").first.click()
    expect(page.locator("#case .facts")).to_contain_text("support-agent-mini")
    page.keyboard.press("Escape")
    expect(page.locator(f".cases td[data-name='{TARGETS[1]}'] :focus")).to_be_visible()
    page.get_by_label("View").select_option("One row per answer")
    expect(page.get_by_role("columnheader", name="Answer")).to_be_visible()


def test_cases_that_tell_targets_apart_come_first_on_request(written: Write, visit: Visit) -> None:
    verdicts: dict[str, tuple[Verdict, Verdict]] = {
        "both": ("pass", "pass"),
        "none": ("fail", "fail"),
        "one": ("fail", "pass"),
    }
    rows = [
        row(verdict, of=case(name), target=target)
        for name, found in verdicts.items()
        for target, verdict in zip(("z", "a"), found, strict=True)
    ]
    page = visit(written(*rows), "#sort=differs")
    assert page.locator(".cases tbody th b").all_inner_texts() == ["one", "none", "both"]
    assert page.locator(".cases thead th").all_inner_texts()[0] == "Case"


def test_address_restores_the_view(shop: Path, visit: Visit) -> None:
    page = visit(shop, "#q=refund&verdict=fail,pass&view=list&sort=score&down=1")
    assert page.get_by_role("searchbox").input_value() == "refund"
    assert page.get_by_label(re.compile("^pass")).is_checked()
    expect(page.get_by_role("columnheader", name="Score")).to_have_attribute("aria-sort", "descending")
    scores = [float(text) for text in page.locator("td .score").all_inner_texts()]
    assert scores == sorted(scores, reverse=True)
    assert scores


def test_invalid_addresses_are_ignored(shop: Path, visit: Visit) -> None:
    page = visit(shop, "#case=%FF%&suite=__proto__")
    for address in ("#%", "#q=%E0%A4%A", "#verdict=toString&sort=__proto__", "#suite=x", f"#q={'x' * 99_999}", "#case"):
        page.evaluate("address => { location.hash = address; }", address)
        expect(page.locator("h1:visible, .empty:visible").first).to_be_visible()
    page.evaluate("location.hash = ''")
    expect_status(page, "28 of 28 cases")


def test_typing_keeps_the_search_box(page: Page) -> None:
    page.get_by_role("searchbox").click()
    page.keyboard.type("window jk", delay=20)
    assert page.get_by_role("searchbox").input_value() == "window jk"
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.get_by_role("searchbox").fill("window")
    expect(page).to_have_url(re.compile("#q=window&view=list$"))
    expect_status(page, "5 of 28 cases")


def test_pending_search_does_not_close_a_case(page: Page) -> None:
    page.evaluate(
        """() => {
        const search = document.querySelector("input[type=search]");
        search.value = "refund";
        search.dispatchEvent(new Event("input"));
        document.querySelector(".cases tbody a").click();
        }"""
    )
    expect(page.locator("#case h1")).to_be_visible()
    page.wait_for_timeout(200)
    assert page.locator("#case h1").is_visible()


def test_filters_and_sorting_keep_the_focus(page: Page) -> None:
    for used in (
        page.get_by_label("Suite", exact=True),
        page.get_by_role("button", name="Score"),
        page.get_by_label(re.compile("^fail")),
    ):
        used.focus()
        page.keyboard.press("ArrowDown" if used.evaluate("each => each.tagName") == "SELECT" else "Space")
        expect(used).to_be_focused()
    assert page.evaluate("location.hash") == "#verdict=fail&suite=evals%2Faccount.test.yaml&view=list&sort=score"


def test_every_column_sorts(page: Page) -> None:
    for name in page.locator(".cases thead button").all_inner_texts():
        page.get_by_role("button", name=name, exact=True).press("Enter")
        header = page.locator(".cases").get_by_role("columnheader", name=name)
        first = header.get_attribute("aria-sort")
        assert first in ("ascending", "descending")
        page.get_by_role("button", name=name, exact=True).click()
        assert header.get_attribute("aria-sort") != first
    assert page.locator("[aria-sort]").count() == 1


def test_errors_of_trials_have_a_filter(page: Page) -> None:
    page.get_by_label(re.compile("^errors in trials")).check()
    assert ids(page) == ["where-is-my-parcel"]
    expect(page.locator(".cases td").filter(has_text="4/4 passed · 1 error")).to_be_visible()
    page.locator(".cases tbody a").click()
    expect(page.get_by_text("4 of 4 graded passed (95%: 51% to 100%), 1 error; a majority must pass")).to_be_visible()


def test_links_of_the_overview(page: Page) -> None:
    page.locator("#scatter .mark.fail").first.dispatch_event("click")
    expect(page.locator("#case h1")).to_be_visible()
    page.go_back()
    page.locator("#changes a").first.click()
    expect(page.locator("#case h1")).to_have_text("refund-within-window")
    page.go_back()
    page.get_by_role("link", name="Show what did not pass").click()
    expect_status(page, "7 of 28 cases")
    expect(page.get_by_role("searchbox")).to_be_in_viewport()
    assert page.evaluate("location.hash") == "#verdict=error%2Cfail%2Cborderline"


def test_keys(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("refund-")
    expect_status(page, "8 of 28 cases")
    page.keyboard.press("Escape")
    for key in ("j", "j", "ArrowDown", "k"):
        page.keyboard.press(key)
    second = ids(page)[1]
    expect(page.locator(":focus")).to_have_text(second)
    page.keyboard.press("Enter")
    expect(page.locator("#case h1")).to_have_text(second)
    expect(page.locator("h1:focus")).to_be_visible()
    page.keyboard.press("j")
    expect(page.locator("#case .count")).to_have_text("3 of 8")
    page.keyboard.press("Escape")
    expect_status(page, "8 of 28 cases")
    expect(page.locator(":focus")).to_have_text(ids(page)[2])
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_letter_keys_can_be_disabled(page: Page) -> None:
    page.get_by_label(re.compile("^fail")).focus()
    page.keyboard.press("j")
    expect(page.get_by_label(re.compile("^fail"))).to_be_focused()
    page.get_by_role("button", name="Keys").click()
    page.get_by_label("Single characters are shortcuts").uncheck()
    page.reload()
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.tagName") == "BODY"
    page.get_by_role("button", name="Keys").click()
    expect(page.get_by_label("Single characters are shortcuts")).not_to_be_checked()


def test_focused_row_is_not_under_the_filters(page: Page) -> None:
    bounds = "[...document.querySelectorAll('.filters, :focus')].map(each => each.getBoundingClientRect())"
    for key in "j" * 12 + "k" * 8:
        page.keyboard.press(key)
        bar, row = page.evaluate(bounds)
        assert bar["top"] > 0 or row["top"] >= bar["bottom"]


def test_back_restores_the_scroll_position(shop: Path, visit: Visit) -> None:
    page = visit(shop, "#verdict=pass&view=list")
    page.mouse.wheel(0, 1_500)
    page.wait_for_function("scrollY > 500")
    at = page.evaluate("scrollY")
    page.locator(".cases tbody tr").nth(9).dispatch_event("click")
    expect(page.locator("#case h1")).to_be_visible()
    page.get_by_role("link", name="Next").click()
    page.get_by_role("link", name="Next").click()
    page.go_back()
    expect_status(page, "21 of 28 cases")
    assert page.evaluate("location.hash") == "#verdict=pass&view=list"
    assert page.evaluate("scrollY") == at


def test_long_table_is_rendered_in_parts(visit: Visit, written: Write) -> None:
    cases = enumerate(case(f"case-{number}", line=number + 1) for number in range(1_500))
    rows = (row("pass" if number % 5 else "fail", of=of, candidate_answer=f"{of.id}.") for number, of in cases)
    page = visit(written(*rows))
    expect_status(page, "1,500 of 1,500 cases")
    assert page.locator("tbody tr").count() < 400
    page.get_by_label(re.compile("^fail")).check()
    expect_status(page, "300 of 1,500 cases")
    page.get_by_role("searchbox").fill("case-1235.")
    expect_status(page, "1 of 1,500 cases")
    page.locator("tbody a").click()
    expect(page.locator("#answer")).to_contain_text("case-1235.")


def test_print_has_rows_up_to_a_limit(visit: Visit, written: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    script = html.joined_script().replace("MAX_PRINTED = 5000", "MAX_PRINTED = 250")
    monkeypatch.setattr(html, "joined_script", lambda: script)
    page = visit(written(*(row(of=case(f"{line}", line=line)) for line in range(1, 261))))
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".cases tbody tr").count() == 250
    expect(page.get_by_text("10 more cases not printed: filter the table to print them.")).to_be_visible()


def test_figures_are_formatted_as_in_python(scripts: Page) -> None:
    for name, examples in EXAMPLES.items():
        said = scripts.evaluate(f"values => values.map({IN_SCRIPTS.get(name, name)})", [value for value, _ in examples])
        assert said == [text for _, text in examples]


def test_ticks_of_the_plot_are_inside(visit: Visit, written: Write) -> None:
    first = row(of=case("a", line=1), cost_usd=0.00008, duration_ms=800)
    second = row(of=case("b", line=2), cost_usd=0.09, duration_ms=90_000)
    ticks = visit(written(first, second)).evaluate(
        "[...document.querySelectorAll('#scatter > text')].map(each => [each.getBBox().x, each.getBBox().width])"
    )
    assert ticks
    assert [(left, width) for left, width in ticks if left < -0.5 or left + width > 360.5] == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_theme_follows_the_system_or_the_choice(shop: Path, visit: Visit, *, dark: bool) -> None:
    page = visit(shop, dark=dark)
    grounds = {False: "rgb(247, 247, 245)", True: "rgb(14, 17, 22)"}
    expect(page.locator("body")).to_have_css("background-color", grounds[dark])
    page.locator("#theme").click()
    expect(page.locator("body")).to_have_css("background-color", grounds[not dark])
    page.reload()
    expect(page.locator("body")).to_have_css("background-color", grounds[not dark])


@pytest.mark.parametrize("fragment", ["", REFUND], ids=["table", "case"])
def test_no_horizontal_scrolling(shop: Path, visit: Visit, fragment: str) -> None:
    page = visit(shop, fragment)
    page.locator("h1:visible").first.wait_for()
    for width in (1920, 1130, 1010, 768, 360):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        if not fragment:
            assert page.evaluate("document.querySelector('.cases .place').getBoundingClientRect().width") > 120
    wide = "[...document.querySelectorAll('main *')].filter(each => each.getBoundingClientRect().right > 361"
    assert page.evaluate(f"{wide} && !each.closest('.folded, .command, .tabs, thead, .quiet')).length") == 0


def test_targets_with_cases_of_their_own_are_listed(visit: Visit, written: Write) -> None:
    page = visit(written(*(row(of=case(each, line=line), target=each) for line, each in enumerate("ab", 1))))
    expect(page.get_by_role("columnheader", name="Target")).to_have_count(2)
    expect(page.get_by_label("View")).to_have_count(0)


def test_many_targets_scroll_inside_the_table(visit: Visit, written: Write) -> None:
    page = visit(written(*(row(of=case("a"), target=f"target-{letter}") for letter in "abcdefg")))
    assert page.evaluate("document.documentElement.scrollWidth") == 1280
    page.locator(".cases td a").last.focus()
    assert page.evaluate("document.querySelector('.wide').scrollLeft") > 0
    head, cell = (
        page.evaluate(f"document.querySelector('.cases tbody {each}').getBoundingClientRect().left")
        for each in ("th", "td")
    )
    assert head > cell


@pytest.mark.parametrize("view", ["", "#view=list"], ids=["side", "list"])
def test_names_break_between_words(shop: Path, visit: Visit, view: str) -> None:
    page = visit(shop, view)
    for width in (1280, 1010, 390, 360):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(BROKEN) == []


def test_long_paths_fit_a_narrow_screen(visit: Visit, written: Write) -> None:
    rows = [row(of=case("a", suite=SUITE.format(number), line=number)) for number in (1, 2)]
    assert visit(written(*rows), width=360).evaluate("document.documentElement.scrollWidth") == 360


def test_blank_id_has_a_visible_link(visit: Visit, written: Write) -> None:
    page = visit(written(row(of=case(" "))))
    assert page.evaluate("document.querySelector('.cases tbody a').getBoundingClientRect().width > 0")


def test_line_number_follows_a_right_to_left_path(visit: Visit, written: Write) -> None:
    page = visit(written(row(source=RowSource(path="שלום", line=12))))
    path, line = page.evaluate(
        """() => [...document.querySelector(".cases .place").childNodes].map((each) => {
        const range = document.createRange();
        range.selectNodeContents(each);
        return range.getBoundingClientRect();
        })"""
    )
    assert line["left"] > path["left"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast_of_texts(theme: str) -> None:
    colours = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", (TEMPLATES / "report.css").read_text("utf-8"))
    value = {name: bytes.fromhex((light if theme == "light" else dark)[1:]) for name, light, dark in colours}
    tones = ("pass", "borderline", "fail", "error")
    pairs = [(text, ground) for text in ("ink", "muted", "accent", *tones) for ground in ("ground", "panel", "sunken")]
    pairs += [(tone, f"{tone}-ground") for tone in tones]
    assert contrast(value["strong-line"], value["panel"]) >= 3
    contrasts = {(text, ground): contrast(value[text], value[ground]) for text, ground in pairs}
    assert {pair: found for pair, found in contrasts.items() if found < 4.5} == {}


def contrast(one: Sequence[int], other: Sequence[int]) -> float:
    """The contrast of two colours as defined by WCAG."""

    def luminance(colour: Sequence[int]) -> float:
        parts = (part / 255 for part in colour)
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
