"""A browser in which pages must not log errors or send requests."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from agentv_ci.contracts.results import ResultRow
from agentv_ci.report.renderers.html.document import TEMPLATES, render
from tests.support.runs import reported
from tests.support.shop import shop_run

CHROMIUM = shutil.which("chromium")
# As root, as in most containers, Chromium has no sandbox.
FLAGS = ("--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb", "--font-render-hinting=none")


@dataclass(slots=True)
class Watched:
    """A page, and what it should not have done."""

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


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
    opened: list[Watched] = []

    def open_file(
        file: Path, fragment: str = "", *, width: int = 1280, script: bool = True, dark: bool = False
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 800},
            java_script_enabled=script,
            color_scheme="dark" if dark else "light",
        )
        watched = Watched(context.new_page())
        watched.page.set_default_timeout(15_000)
        watched.page.on("console", lambda message: watched.errors.append(message.text))
        watched.page.on("pageerror", lambda error: watched.errors.append(str(error)))
        watched.page.on("request", lambda request: watched.requests.append(request.url))
        watched.page.goto(f"{file.as_uri()}{fragment}")
        opened.append(watched)
        return watched.page

    yield open_file
    for each in opened:
        each.page.context.close()
    assert [each.errors for each in opened if each.errors] == []
    assert [url for each in opened for url in each.requests if not url.startswith(("file:", "blob:"))] == []


@pytest.fixture
def scripts(browser: Browser) -> Iterator[Page]:
    """A page in which the functions of the report's scripts can be called."""
    page = browser.new_page()
    names = ("elements.js", "figures.js", "difference.js", "case.js")
    page.add_script_tag(content="".join((TEMPLATES / name).read_text("utf-8") for name in names))
    yield page
    page.close()


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "shop.html"
    file.write_bytes(b"".join(render(shop_run())))
    return file


@pytest.fixture
def written(tmp_path: Path) -> Write:
    def write(*rows: ResultRow) -> Path:
        # A name that an address must quote.
        file = tmp_path / "report #1 %41?.html"
        file.write_bytes(b"".join(render(reported(rows))))
        return file

    return write
