"""Write docs/report.png: the top of the report of a plausible run, as a browser shows it."""

from __future__ import annotations

import sys
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from agentv_ci.report.renderers.html.document import render
from tests.browser.conftest import CHROMIUM, FLAGS
from tests.support import REPOSITORY
from tests.support.shop import shop_run

PICTURE = REPOSITORY / "docs" / "report.png"
WIDTH, HEIGHT = 1280, 1640


def main() -> int:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "report.html"
        file.write_bytes(b"".join(render(shop_run())))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(file.as_uri())
        PICTURE.write_bytes(smaller(page.screenshot()))
        browser.close()
    return 0


def smaller(png: bytes) -> bytes:
    """Return a picture with 256 colours, enough for a page of text."""
    written = BytesIO()
    Image.open(BytesIO(png)).quantize(256, dither=Image.Dither.NONE).save(written, "png", optimize=True)
    return written.getvalue()


if __name__ == "__main__":
    sys.exit(main())
