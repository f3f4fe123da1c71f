"""The pages of a ledger in a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from agentv_ci.contracts.command_output import HealthFinding, HealthReport
from agentv_ci.contracts.ledger import CaseLine, Ledger
from agentv_ci.contracts.quarantine import Quarantine
from agentv_ci.report.site.document import SiteView, render
from tests.browser.conftest import Visit
from tests.browser.test_standards import problems_of, violations
from tests.support.ledgers import case_line, ledger_of

pytestmark = pytest.mark.slow

Written = Callable[[SiteView], Path]
CASE = "#case=steady&suite=evals%2Fa.yaml&target=small"


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def write(site: SiteView) -> Path:
        for name, content in render(site).items():
            (tmp_path / name).write_bytes(content)
        return tmp_path / "index.html"

    return write


def night(number: int) -> list[CaseLine]:
    """A run: one case always passes, one is flaky, one ends to pass, one comes later, one has no verdict at first."""
    late = [case_line("late", suite="evals/b.yaml")] if number > 20 else []
    return [
        case_line("steady", 3, 3, target="small", model="m-1", cost_usd=0.01, duration_ms=900 + number),
        case_line("flaky", 2 - number % 2, 3, target="small", cost_usd=0.02, duration_ms=2_000),
        case_line("broken", int(number < 30), digest=f"{number // 30:064}"),
        case_line("silent", *((0, 0) if number < 2 else (1, 1))),
        *late,
    ]


def nights(number: int = 40) -> Ledger:
    return ledger_of(*map(night, range(number)), commit="0123456789abcdef", run_url="https://example.com/run")


HEALTH = HealthReport(
    schema_="x",
    source="x",
    runs=40,
    first=None,
    last=None,
    cases=5,
    unjudged=0,
    false_alarms=0.01,
    damaged=(),
    findings=(
        HealthFinding(
            kind="flaky",
            severity="warning",
            suite="evals/a.yaml",
            id="flaky",
            target="small",
            message="trials of the same run disagree",
            action="raise repeat",
            runs=40,
            run_url="https://example.com/run",
        ),
        HealthFinding(
            kind="model-changed",
            severity="info",
            suite=None,
            id=None,
            target="small",
            message="now m-2",
            action="compare",
            runs=9,
        ),
    ),
)


QUARANTINE = Quarantine(
    id="bro*",
    suite=None,
    target=None,
    reason="waits for a fix",
    owner="ada",
    expires="2999-01-01",
    issue="https://example.com/7",
    state="active",
)
SITE = SiteView(nights(), HEALTH, (QUARANTINE, QUARANTINE.model_copy(update={"id": "silent", "state": "expired"})))


@pytest.fixture
def page(written: Written, visit: Visit) -> Page:
    return visit(written(SITE))


VIEWS = {"overview": "", "case": CASE, "unknown": "#case=none&suite=x&target=y"}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("fragment", VIEWS.values(), ids=VIEWS)
def test_pages_are_accessible_and_valid(
    written: Written, visit: Visit, tmp_path: Path, fragment: str, width: int, *, dark: bool
) -> None:
    page = visit(written(SITE), fragment, width=width, dark=dark)
    page.locator("h1:visible").first.wait_for()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    file = tmp_path / "live.html"
    file.write_text(page.content(), "utf-8")
    assert problems_of(file, preset="standard") == ""


def test_markup_is_valid_without_scripts(written: Written, visit: Visit) -> None:
    file = written(SITE)
    assert problems_of(file) == ""
    page = visit(file, script=False)
    expect(page.get_by_role("heading", level=1)).to_contain_text("3/5 passed")
    expect(page.get_by_text("Without JavaScript")).to_be_visible()
    expect(page.get_by_text("trials of the same run disagree")).to_be_visible()


def test_ledger_without_runs_says_how_to_add_one(written: Written, visit: Visit) -> None:
    file = written(SiteView(ledger_of()))
    assert problems_of(file) == ""
    page = visit(file)
    expect(page.get_by_text("agentv-ci history add")).to_be_visible()
    assert violations(page) == []


def rows(page: Page) -> list[str]:
    return page.locator(".tracks tbody th a").all_inner_texts()


def test_cases_are_listed_the_worst_first_and_filtered(page: Page) -> None:
    assert rows(page) == ["flaky", "broken", "silent", "steady", "late"]
    page.get_by_label("State", exact=True).select_option("bad")
    assert rows(page) == ["flaky", "broken"]
    page.get_by_label("State", exact=True).select_option("found")
    assert rows(page) == ["flaky", "broken"]
    page.get_by_label("State", exact=True).select_option("")
    page.get_by_label("Suite", exact=True).select_option("evals/b.yaml")
    assert rows(page) == ["late"]
    expect(page.get_by_role("status")).to_have_text("1 of 5 cases")
    page.get_by_label("Suite", exact=True).select_option("")
    page.get_by_label("Search the cases").fill("small STEADY")
    assert rows(page) == ["steady"]


def test_track_of_a_case_tells_verdicts_apart_without_colors(page: Page) -> None:
    track = page.get_by_role("row", name="broken").get_by_role("img")
    assert track.get_attribute("aria-label") == "passed 30 of 40 graded runs"
    assert [track.locator(f"path.{name}").get_attribute("d") for name in ("pass", "fail")] == [
        "M0 1v-0.45h30v0.45z",
        "M30 1v-1h10v1z",
    ]


def test_each_verdict_has_a_shape_of_its_own(page: Page) -> None:
    shapes = page.locator("#overview .key path").evaluate_all("all => all.map(each => each.getAttribute('d'))")
    assert (len(shapes), len({*shapes})) == (4, 4)
    tone = "each => [getComputedStyle(each).fillOpacity, getComputedStyle(each).opacity]"
    assert page.locator(".heat .pass").first.evaluate(tone) == ["1", "1"]


def test_case_has_its_plots_and_runs_and_leads_back(page: Page) -> None:
    page.get_by_role("link", name="broken").click()
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(page.get_by_text("Passed 30 of 40 graded runs")).to_be_visible()
    score = page.get_by_role("img", name="Score in 40 runs")
    said = "1.00 on 2026-01-01, 0.00 on 2026-02-12; lowest 0.00 on 2026-02-03, highest 1.00 on 2026-01-01"
    assert score.get_attribute("aria-label") == f"Score in 40 runs: {said}"
    assert score.locator(".edit title").all_text_contents() == ["2026-02-03: the case changed"]
    first = page.locator(".runs tbody tr").first
    expect(first).to_contain_text("2026-02-12 02:15:00 UTC")
    assert first.get_by_role("link").get_attribute("href") == "https://example.com/run"
    page.go_back()
    expect(page.get_by_role("heading", name="Cases", exact=True)).to_be_visible()


def test_pass_rate_of_several_trials_has_an_interval(written: Written, visit: Visit) -> None:
    page = visit(written(SiteView(nights())), "#case=flaky&suite=evals%2Fa.yaml&target=small")
    plot = page.locator("#case .chart", has_text="Pass rate")
    expect(plot.locator(".band")).to_have_count(1)
    expect(plot.locator(".reading")).to_have_text("2026-02-12: 33% (6% to 79%), 0123456")
    plot.locator("svg").hover(position={"x": 10, "y": 40})
    expect(plot.locator(".reading")).to_have_text("2026-01-01: 67% (21% to 94%), 0123456")


def test_values_of_single_runs_are_read_with_the_keyboard(written: Written, visit: Visit) -> None:
    page = visit(written(SiteView(nights())), "#case=flaky&suite=evals%2Fa.yaml&target=small")
    plot = page.locator("#case .chart", has_text="Pass rate")
    reading = plot.locator(".reading")
    plot.locator("svg").focus()
    expect(reading).to_have_attribute("aria-live", "polite")
    for key, said in (
        ("Home", "2026-01-01: 67% (21% to 94%), 0123456"),
        ("ArrowLeft", "2026-01-01: 67%"),
        ("ArrowRight", "2026-01-02: "),
        ("End", "2026-02-12: 33% (6% to 79%), 0123456"),
        ("ArrowRight", "2026-02-12: 33%"),
    ):
        page.keyboard.press(key)
        expect(reading).to_contain_text(said)
    assert violations(page) == []
    page.keyboard.press("Home")
    page.keyboard.press("Tab")
    expect(reading).to_contain_text("2026-02-12: 33%")
    assert reading.get_attribute("aria-live") is None


MARKUP = "</script><img src=x onerror=alert(1)>"


@pytest.mark.parametrize(
    "text", [MARKUP, "a\u202eb\u0000\x1b[31m", "\ud800", "__proto__", "x" * 5_000, "case=a&b#c"], ids=ascii
)
def test_texts_of_a_ledger_are_inert(written: Written, visit: Visit, text: str) -> None:
    line = case_line(text, suite=text, target=text, model=text)
    finding = HEALTH.findings[0].model_copy(update={"id": text, "suite": text, "target": text, "message": text})
    entry = QUARANTINE.model_copy(update={"id": text, "suite": text, "reason": text, "owner": text})
    health = HEALTH.model_copy(update={"findings": (finding,)})
    page = visit(written(SiteView(ledger_of([line], [line], commit=text), health, (entry,))))
    page.locator(".tracks tbody a").click()
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    assert page.locator("img:not([role])").count() == 0
