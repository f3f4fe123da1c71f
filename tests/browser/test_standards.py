"""The report is valid HTML and accessible, in the judgement of others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Page

from agentv_ci.contracts.experiment_report import ExperimentReport
from agentv_ci.contracts.report import Ending, ShardRecord
from agentv_ci.report.renderers.html.document import render
from tests.browser.conftest import Visit
from tests.external.tools import node_modules, run
from tests.support import REPOSITORY
from tests.support.runs import reported, row

pytestmark = pytest.mark.slow

VALIDATOR = "html-validate@11.18.0"
AXE = "axe-core@4.14.1"
VALIDATE = REPOSITORY / "tests" / "external" / "markup.mjs"
REFUND = "#case=refund-within-window&suite=evals%2Frefunds.test.yaml&target=support-agent"
ERROR = "#case=customs-for-norway&suite=evals%2Fshipping.test.yaml&target=support-agent-mini"
VIEWS = {"table": "", "list": "#view=list", "empty": "#q=nothing+like+that", "case": REFUND, "error": ERROR}
each_view = pytest.mark.parametrize("fragment", VIEWS.values(), ids=VIEWS)
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
VIOLATIONS = """async (rules) => (await axe.run({ runOnly: rules })).violations
    .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 200)}`))"""


def problems_of(*files: Path, preset: str = "recommended") -> str:
    return run(["node", VALIDATE, node_modules(VALIDATOR), preset, *files], codes=(0,)).stdout


def violations(page: Page, rules: Sequence[str] = RULES) -> list[str]:
    page.evaluate((node_modules(AXE) / "axe-core" / "axe.min.js").read_text("utf-8"))
    found: list[str] = page.evaluate(VIOLATIONS, list(rules))
    return found


def experiment_page(name: str, folder: Path) -> Path:
    """Write the page of an experiment of the corpus."""
    found = REPOSITORY / "tests" / "corpus" / "experiments" / name / "expected" / "experiment.json"
    ending = Ending(experiment=ExperimentReport.model_validate_json(found.read_bytes()))
    page = folder / f"{name}.html"
    page.write_bytes(b"".join(render(reported([row()], ending))))
    return page


OUTSIDE = """[...document.querySelectorAll('svg.plot')].flatMap((plot) => {
    const room = plot.getBoundingClientRect();
    return [...plot.querySelectorAll('*')].filter((each) => {
        const { left, right, bottom, width } = each.getBoundingClientRect();
        return width && (left < room.left - 1 || right > room.right + 1 || bottom > room.bottom + 1);
    }).map((each) => each.outerHTML);
})"""
EXPERIMENTS = ("three-models", "pages-with-synonyms", "judges-that-differ")


def test_markup_of_experiments_is_valid(tmp_path: Path) -> None:
    assert problems_of(*(experiment_page(name, tmp_path) for name in EXPERIMENTS)) == ""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_page_of_an_experiment_is_accessible(
    visit: Visit, tmp_path: Path, name: str, width: int, *, dark: bool
) -> None:
    page = visit(experiment_page(name, tmp_path), "", width=width, dark=dark)
    page.locator("h1:visible").first.wait_for()
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert violations(page) == []
    # Nothing is drawn outside of the plots.
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_markup_is_valid(shop: Path, tmp_path: Path) -> None:
    stopped = Ending(
        dry_run=True, stopped="budget", shard=ShardRecord(index=1, total=2, cases=9), unpriced_models=("x",)
    )
    runs = {"empty": reported([]), "one": reported([row()]), "stopped": reported([row("error")], stopped)}
    for name, run_view in runs.items():
        (tmp_path / f"{name}.html").write_bytes(b"".join(render(run_view)))
    assert problems_of(shop, *tmp_path.iterdir()) == ""


@each_view
def test_markup_of_scripts_is_valid(shop: Path, visit: Visit, tmp_path: Path, fragment: str) -> None:
    page = visit(shop, fragment)
    page.locator("h1:visible").first.wait_for()
    file = tmp_path / "page.html"
    file.write_text(page.content(), "utf-8")
    # The standard only: browsers write attributes in their own style.
    assert problems_of(file, preset="standard") == ""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@each_view
def test_page_is_accessible(shop: Path, visit: Visit, fragment: str, width: int, *, dark: bool) -> None:
    page = visit(shop, fragment, width=width, dark=dark)
    page.locator("h1:visible").first.wait_for()
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert violations(page) == []


def test_list_of_keys_is_accessible(page: Page) -> None:
    page.keyboard.press("?")
    assert violations(page) == []
