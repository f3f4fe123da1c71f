"""Write docs/report.png: the top of the report of a plausible run, as a browser shows it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from agentv_ci.report.reporters.html import render
from tests.browser.conftest import CHROMIUM, FLAGS
from tests.conftest import REPOSITORY
from tests.report.shop import shop_run

PICTURE = REPOSITORY / "docs" / "report.png"
WIDTH, HEIGHT = 1280, 1500


def main() -> int:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "report.html"
        file.write_bytes(b"".join(render(shop_run())))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(file.as_uri())
        page.screenshot(path=PICTURE)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
