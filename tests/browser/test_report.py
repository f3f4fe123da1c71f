"""The HTML report as people use it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from agentv_ci.contracts.results import EvaluatorResult, InputMessageRecord, OutputMessage, ToolCall
from agentv_ci.report.renderers.html.document import TEMPLATES, render
from tests.browser.conftest import Open
from tests.report.builders import Verdict, case, finding, reported, row
from tests.report.renderers.html.figures import EXAMPLES, IN_SCRIPTS
from tests.report.shop import TARGETS, shop_run

REFUND = "#case=refund-within-window&suite=evals%2Frefunds.test.yaml&target=support-agent"
HOSTILE = (
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    '<a href="javascript:window.pwned=1">x</a>',
    '"><svg onload=window.pwned=1>',
    "{{ 1 }}<!--<script>",
    "a\u202etxt.exe\u2066",
)


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "shop.html"
    file.write_bytes(b"".join(render(shop_run())))
    return file


def ids(page: Page) -> list[str]:
    return page.locator("table.cases tbody a").all_inner_texts()


def status(page: Page) -> str:
    return page.get_by_role("status").inner_text()


def test_it_tells_the_verdict_and_lists_every_case(shop: Path, visit: Open) -> None:
    page = visit(shop).page
    expect(page.get_by_role("heading", level=1, name="Not passed")).to_be_visible()
    assert page.title() == "✗ Not passed: 21 of 28 cases passed"
    assert status(page) == "28 of 28 cases"
    assert ids(page)[:2] == ["customs-for-norway", "markup-in-a-review"]
    expect(page.get_by_text("Without JavaScript")).to_be_hidden()


def test_filters_and_search_narrow_the_table_and_stand_in_the_address(shop: Path, visit: Open) -> None:
    page = visit(shop).page
    page.get_by_label(re.compile("^fail")).check()
    expect(page.get_by_role("status")).to_have_text("4 of 28 cases")
    page.get_by_label("Target", exact=True).select_option(TARGETS[1])
    expect(page.get_by_role("status")).to_have_text("3 of 28 cases")
    page.get_by_role("searchbox").fill("Great!")
    expect(page.get_by_role("status")).to_have_text("1 of 28 cases")
    assert page.evaluate("location.hash") == "#q=Great%21&verdict=fail&target=support-agent-mini"
    page.get_by_role("searchbox").fill("nothing like that")
    page.get_by_role("button", name="Clear search and filters").click()
    assert status(page) == "28 of 28 cases"
    assert page.evaluate("document.activeElement.type") == "search"
    page.get_by_label("Change against the baseline").select_option("regressed")
    assert ids(page) == ["refund-within-window", "change-of-address-after-dispatch"]
    page.go_back()
    expect(page.get_by_role("status")).to_have_text("28 of 28 cases")
    page.get_by_label(re.compile("^flaky")).check()
    expect(page.get_by_role("status")).to_have_text("5 of 28 cases")


def test_a_search_is_typed_without_losing_the_box(shop: Path, visit: Open) -> None:
    page = visit(shop).page
    page.get_by_role("searchbox").click()
    page.keyboard.type("window jk", delay=60)
    assert page.get_by_role("searchbox").input_value() == "window jk"
    assert page.evaluate("document.activeElement.type") == "search"
    page.get_by_role("searchbox").fill("")
    page.keyboard.type("window", delay=60)
    expect(page).to_have_url(re.compile("#q=window$"))
    assert status(page) == "5 of 28 cases"


def test_what_filters_and_sorts_keeps_the_focus(shop: Path, visit: Open) -> None:
    page = visit(shop).page
    for used in (
        page.get_by_label("Suite", exact=True),
        page.get_by_role("button", name="Score"),
        page.get_by_label(re.compile("^fail")),
    ):
        used.focus()
        page.keyboard.press("ArrowDown" if used.evaluate("each => each.tagName") == "SELECT" else "Space")
        expect(used).to_be_focused()
    assert page.evaluate("location.hash") == "#verdict=fail&suite=evals%2Faccount.test.yaml&sort=score"


def test_errors_of_trials_are_seen_and_found(shop: Path, visit: Open) -> None:
    page = visit(shop).page
    page.get_by_label(re.compile("^errors in trials")).check()
    assert ids(page) == ["where-is-my-parcel"]
    expect(page.locator(".cases td").filter(has_text="4/4 · 1 error")).to_be_visible()
    page.locator(".cases tbody a").click()
    expect(page.get_by_text("4 of 4 graded passed (95%: 51% to 100%), 1 error; a majority must pass")).to_be_visible()


def test_a_link_at_the_top_leads_to_what_did_not_pass(shop: Path, visit: Open) -> None:
    page = visit(shop).page
    page.get_by_role("link", name="Jump to what did not pass").click()
    expect(page.get_by_role("status")).to_have_text("7 of 28 cases")
    expect(page.get_by_role("searchbox")).to_be_in_viewport()
    assert page.evaluate("location.hash") == "#verdict=error%2Cfail%2Cborderline"


def test_letters_are_no_shortcuts_where_somebody_says_so(shop: Path, visit: Open) -> None:
    page = visit(shop).page
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


def test_all_rows_are_printed(tmp_path: Path, visit: Open) -> None:
    file = tmp_path / "long.html"
    file.write_bytes(b"".join(render(reported([row(of=case(f"{line}", line=line)) for line in range(1, 6_001)]))))
    page = visit(file).page
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".cases tbody tr").count() == 5_000
    expect(page.get_by_text("1,000 more cases not printed")).to_be_visible()


def test_figures_of_scripts_are_those_of_the_page(browser: Browser) -> None:
    page = browser.new_page()
    page.add_script_tag(
        content="".join((TEMPLATES / name).read_text("utf-8") for name in ("elements.js", "figures.js"))
    )
    for name, examples in EXAMPLES.items():
        said = page.evaluate(f"values => values.map({IN_SCRIPTS.get(name, name)})", [value for value, _ in examples])
        assert said == [text for _, text in examples]
    page.close()


def test_a_view_can_be_shared(shop: Path, visit: Open) -> None:
    page = visit(shop, "#q=refund&verdict=fail,pass&sort=score&down=1").page
    assert page.get_by_role("searchbox").input_value() == "refund"
    assert page.get_by_label(re.compile("^pass")).is_checked()
    expect(page.get_by_role("columnheader", name="Score")).to_have_attribute("aria-sort", "descending")
    scores = [float(text) for text in page.locator("td:has(.score)").all_inner_texts()]
    assert scores == sorted(scores, reverse=True)
    assert scores


def test_every_column_sorts_by_click_and_by_key(shop: Path, visit: Open) -> None:
    page = visit(shop).page
    for name in page.locator(".cases thead button").all_inner_texts():
        page.get_by_role("button", name=name, exact=True).press("Enter")
        header = page.locator(".cases").get_by_role("columnheader", name=name)
        first = header.get_attribute("aria-sort")
        assert first in ("ascending", "descending")
        page.get_by_role("button", name=name, exact=True).click()
        assert header.get_attribute("aria-sort") != first
    assert page.locator("[aria-sort]").count() == 1


def test_keys_lead_through_the_table_into_a_case_and_back(shop: Path, visit: Open) -> None:
    page = visit(shop).page
    page.keyboard.press("/")
    page.keyboard.type("refund-")
    expect(page.get_by_role("status")).to_have_text("8 of 28 cases")
    page.keyboard.press("Escape")
    for key in ("j", "j", "ArrowDown", "k"):
        page.keyboard.press(key)
    second = ids(page)[1]
    assert page.evaluate("document.activeElement.textContent") == second
    page.keyboard.press("Enter")
    expect(page.locator("#case h1")).to_have_text(second)
    assert page.evaluate("document.activeElement.tagName") == "H1"
    page.keyboard.press("j")
    expect(page.locator("#case .count")).to_have_text("3 of 8")
    page.keyboard.press("Escape")
    expect(page.get_by_role("status")).to_have_text("8 of 28 cases")
    assert page.evaluate("document.activeElement.textContent") == ids(page)[2]
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_back_leads_from_a_case_to_the_table_where_it_was(shop: Path, visit: Open) -> None:
    page = visit(shop, "#verdict=pass").page
    page.mouse.wheel(0, 1_500)
    page.wait_for_function("scrollY > 500")
    at = page.evaluate("scrollY")
    page.locator(".cases tbody tr").nth(9).dispatch_event("click")
    expect(page.locator("#case h1")).to_be_visible()
    page.get_by_role("link", name="Next").click()
    page.get_by_role("link", name="Next").click()
    page.go_back()
    expect(page.get_by_role("status")).to_have_text("21 of 28 cases")
    assert page.evaluate("location.hash") == "#verdict=pass"
    assert page.evaluate("scrollY") == at


def test_a_case_shows_how_its_answer_differs_from_the_expected_one(shop: Path, visit: Open) -> None:
    page = visit(shop, REFUND).page
    answer = page.locator("#answer")
    assert answer.locator("del").all_inner_texts()[:2] == ["30", "of €89.95 "]
    assert answer.locator(".text ins").all_inner_texts() == ["14", "soon"]
    answer.get_by_role("button", name="Expected").click()
    expect(answer.locator(".text")).to_contain_text("inside the 30-day window")
    answer.get_by_role("button", name="Answer", exact=True).click()
    expect(answer.locator(".text")).to_contain_text("inside the 14-day window")
    expect(page.locator(".command code")).to_have_text(
        "agentv-ci eval evals/refunds.test.yaml --eval-id=refund-within-window --target=support-agent"
    )
    link = page.get_by_role("link", name="evals/refunds.test.yaml:8")
    assert link.get_attribute("href") == "https://github.com/example/shop/blob/4f2c9d1/evals/refunds.test.yaml#L8"
    expect(page.get_by_text("no promise that cannot be kept")).to_be_visible()
    expect(page.get_by_text("5/5 passed, mean 0.980")).to_be_visible()
    page.get_by_text("find_order").click()
    expect(page.get_by_text('"customer": "c-9931"').first).to_be_visible()


def test_trials_are_tabs(shop: Path, visit: Open) -> None:
    page = visit(shop, f"{REFUND}&trial=4").page
    expect(page.get_by_role("tab", selected=True)).to_contain_text("Trial 4 pass")
    expect(page.get_by_text("word for word")).to_be_visible()
    page.get_by_role("tab", selected=True).press("ArrowRight")
    expect(page.get_by_role("tab", selected=True)).to_contain_text("Trial 5")
    page.keyboard.press("Home")
    expect(page.get_by_role("tab", selected=True)).to_contain_text("Trial 1")
    expect(page.locator("#answer ins").first).to_be_visible()
    assert page.get_by_role("tabpanel").get_attribute("aria-labelledby") == "tab-1"
    assert page.evaluate("location.hash") == REFUND


def test_an_error_shows_what_was_printed(shop: Path, visit: Open) -> None:
    page = visit(shop, "#case=customs-for-norway&suite=evals%2Fshipping.test.yaml&target=support-agent-mini").page
    expect(page.get_by_text("the agent ended with status 1: KeyError: 'NO'", exact=True)).to_be_visible()
    expect(page.get_by_text("Traceback")).to_be_visible()


def test_a_case_that_is_not_there_is_said_to_be_missing(shop: Path, visit: Open) -> None:
    page = visit(shop, "#case=gone&suite=x&target=y").page
    expect(page.get_by_role("heading", name="No such case")).to_be_visible()
    page.get_by_role("link", name="All cases").click()
    assert status(page) == "28 of 28 cases"


def test_points_of_the_plot_and_changes_lead_to_their_cases(shop: Path, visit: Open) -> None:
    page = visit(shop).page
    page.locator("#scatter .mark.fail").first.dispatch_event("click")
    expect(page.locator("#case h1")).to_be_visible()
    page.go_back()
    page.locator("#changes a").first.click()
    expect(page.locator("#case h1")).to_have_text("refund-within-window")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_colours_follow_the_system_until_somebody_chooses(shop: Path, visit: Open, *, dark: bool) -> None:
    page = visit(shop, dark=dark).page
    grounds = {False: "rgb(247, 247, 245)", True: "rgb(14, 17, 22)"}
    expect(page.locator("body")).to_have_css("background-color", grounds[dark])
    page.locator("#theme").click()
    expect(page.locator("body")).to_have_css("background-color", grounds[not dark])
    page.reload()
    expect(page.locator("body")).to_have_css("background-color", grounds[not dark])


@pytest.mark.parametrize("fragment", ["", REFUND], ids=["table", "case"])
def test_no_screen_needs_sideways_scrolling(shop: Path, visit: Open, fragment: str) -> None:
    page = visit(shop, fragment).page
    page.locator("h1:visible").first.wait_for()
    for width in (1920, 1130, 1010, 768, 360):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        if not fragment:
            assert page.evaluate("document.querySelector('.cases .place').getBoundingClientRect().width") > 120
    wide = "[...document.querySelectorAll('main *')].filter(each => each.getBoundingClientRect().right > 361"
    assert page.evaluate(f"{wide} && !each.closest('.folded, .command, .tabs, thead, .quiet')).length") == 0


def test_without_scripts_the_failures_are_listed(shop: Path, visit: Open) -> None:
    page = visit(shop, script=False).page
    expect(page.get_by_text("Without JavaScript, this page cannot show")).to_be_visible()
    expect(page.locator(".without-script li").first).to_contain_text("customs-for-norway")
    expect(page.get_by_role("heading", name="Not passed")).to_be_visible()
    assert page.locator("#scatter").is_visible()


def test_what_agents_say_stays_text(tmp_path: Path, visit: Open) -> None:
    texts = [*HOSTILE, *map("x".__add__, HOSTILE)]
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
        for line, text in enumerate(texts, 1)
    ]
    file = tmp_path / "hostile.html"
    file.write_bytes(b"".join(render(reported(rows))))
    page = visit(file).page
    assert len(ids(page)) == len(texts)
    for _ in range(2):
        page.keyboard.press("j")
    page.keyboard.press("Enter")
    for number in range(1, len(texts) + 1):
        expect(page.locator("#case .count")).to_contain_text(" of 12")
        page.locator("#answer").get_by_role("button", name="Answer", exact=True).click()
        if number < len(texts):
            page.keyboard.press("j")
    assert page.evaluate("window.pwned") is None
    assert page.locator("main img, main script, main svg[onload], main a[href^=javascript]").count() == 0
    page.goto(f"{file.as_uri()}#q=txt.exe")
    page.locator("tbody a").first.click()
    expect(page.locator("#case h1 .control").first).to_have_text("U+202E")


def test_a_row_that_says_nothing_has_a_page(tmp_path: Path, visit: Open) -> None:
    blank = EvaluatorResult.model_construct(**{**dict(finding("")), "type": "", "hits": ("",), "misses": ()})
    turns = (
        OutputMessage(role="", tool_calls=(ToolCall(tool=""),)),
        OutputMessage(role="", content=""),
    )
    nothing = row(
        "pass",
        candidate_answer="",
        provider="",
        timestamp="",
        digest="",
        input_messages=(InputMessageRecord(role="", content=""),),
        evaluator_results=(blank,),
        output_messages=turns,
    )
    file = tmp_path / "blank.html"
    file.write_bytes(b"".join(render(reported([nothing]))))
    page = visit(file).page
    page.locator("tbody a").click()
    expect(page.get_by_text("The answer is empty.")).to_be_visible()
    expect(page.get_by_role("heading", name="Figures")).to_be_visible()


def test_ten_thousand_cases_are_searched_and_filtered(tmp_path: Path, visit: Open) -> None:
    verdicts: list[Verdict] = ["pass", "pass", "pass", "borderline", "fail"]
    rows = [
        row(
            verdicts[number % 5],
            of=case(f"case-{number}", line=number + 1),
            candidate_answer=f"answer {number:05} " * 8,
        )
        for number in range(10_000)
    ]
    file = tmp_path / "large.html"
    file.write_bytes(b"".join(render(reported(rows))))
    page = visit(file).page
    assert status(page) == "10,000 of 10,000 cases"
    assert page.locator("tbody tr").count() < 400
    page.get_by_label(re.compile("^fail")).check()
    expect(page.get_by_role("status")).to_have_text("2,000 of 10,000 cases")
    page.get_by_role("searchbox").fill("answer 01234")
    expect(page.get_by_role("status")).to_have_text("1 of 10,000 cases")
    page.locator("tbody a").click()
    expect(page.locator("#answer")).to_contain_text("answer 01234")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(theme: str) -> None:
    colours = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", (TEMPLATES / "report.css").read_text("utf-8"))
    value = {name: light if theme == "light" else dark for name, light, dark in colours}
    tones = ("pass", "borderline", "fail", "error")
    pairs = [(text, ground) for text in ("ink", "muted", "accent", *tones) for ground in ("ground", "panel", "sunken")]
    pairs += [(tone, f"{tone}-ground") for tone in tones]
    assert {
        pair: contrast(value[pair[0]], value[pair[1]])
        for pair in pairs
        if contrast(value[pair[0]], value[pair[1]]) < 4.5
    } == {}


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG counts it."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
