"""A browser in which pages must not log errors or send requests."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from agentv_ci.contracts.results import ResultRow
from agentv_ci.report.renderers.html.document import render
from agentv_ci.report.renderers.html.page import TEMPLATES
from tests.support.runs import reported
from tests.support.shop import shop_run

CHROMIUM = shutil.which("chromium")
# As root, as in most containers, Chromium has no sandbox.
FLAGS = ("--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb", "--font-render-hinting=none")


Visit = Callable[..., Page]
"""Takes a file and the fragment of its address."""
Write = Callable[..., Path]
"""Takes rows, and returns the file of their report."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for one module: while Playwright runs, no other event loop can start in this process."""
    if CHROMIUM is None:
        pytest.skip("chromium is missing: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Open files; at the end of the test no page may have logged an error or sent a request."""
    opened: list[Page] = []
    errors: list[str] = []
    requests: list[str] = []

    def open_file(
        file: Path, fragment: str = "", *, width: int = 1280, script: bool = True, dark: bool = False
    ) -> Page:
        size: ViewportSize = {"width": width, "height": 800}
        scheme: Literal["dark", "light"] = "dark" if dark else "light"
        page = browser.new_page(viewport=size, java_script_enabled=script, color_scheme=scheme)
        opened.append(page)
        page.set_default_timeout(15_000)
        page.on("console", lambda message: errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{file.as_uri()}{fragment}")
        return page

    yield open_file
    for each in opened:
        each.close()
    assert (errors, [url for url in requests if not url.startswith(("file:", "blob:"))]) == ([], [])


@pytest.fixture
def scripts(browser: Browser) -> Iterator[Page]:
    """A page in which the functions of the report's scripts can be called."""
    page = browser.new_page()
    names = ("elements.js", "figures.js", "difference.js", "evaluators.js", "case.js")
    page.add_script_tag(content="".join((TEMPLATES / name).read_text("utf-8") for name in names))
    yield page
    page.close()


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "shop.html"
    file.write_bytes(b"".join(render(shop_run())))
    return file


@pytest.fixture
def page(shop: Path, visit: Visit) -> Page:
    """The report of the shop, opened, with one row per answer."""
    return visit(shop, "#view=list")


@pytest.fixture
def written(tmp_path: Path) -> Write:
    def write(*rows: ResultRow) -> Path:
        # A name that an address must quote.
        file = tmp_path / "report #1 %41?.html"
        file.write_bytes(b"".join(render(reported(rows))))
        return file

    return write
