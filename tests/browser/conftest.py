"""A browser that nothing can be hidden from: what pages complain of, and what they ask the network for."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium")
# As root, as in most containers, Chromium has no sandbox.
FLAGS = ("--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb", "--font-render-hinting=none")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for the module, not longer: while Playwright runs, nobody else in the process can start an event loop."""
    if CHROMIUM is None:
        pytest.skip("there is no browser: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@dataclass(slots=True)
class Watched:
    """A page, and what it should not have done."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


Open = Callable[..., Watched]


@pytest.fixture
def visit(browser: Browser) -> Iterator[Open]:
    """Open a file; at the end of the test it must not have complained or asked anybody for anything."""
    opened: list[Watched] = []

    def open_file(
        file: Path, fragment: str = "", *, width: int = 1280, script: bool = True, dark: bool = False
    ) -> Watched:
        context = browser.new_context(
            viewport={"width": width, "height": 800},
            java_script_enabled=script,
            color_scheme="dark" if dark else "light",
        )
        watched = Watched(context.new_page())
        watched.page.set_default_timeout(15_000)
        watched.page.on("console", lambda message: watched.complaints.append(message.text))
        watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
        watched.page.on("request", lambda request: watched.requests.append(request.url))
        watched.page.goto(f"{file.as_uri()}{fragment}")
        opened.append(watched)
        return watched

    yield open_file
    for each in opened:
        assert each.complaints == []
        assert [url for url in each.requests if not url.startswith("file:")] == []
        each.page.context.close()
