"""Write docs/report*.png, the top of a plausible report and of one case, and docs/summary-*.png, a job on GitHub."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from cmarkgfm import github_flavored_markdown_to_html
from cmarkgfm.cmark import Options
from msgspec.structs import replace
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from agentv_ci.contracts.action import ActionRun, PastRun
from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.results import NO_OUTCOME
from agentv_ci.errors import MissingVariables
from agentv_ci.report.job import Job, text
from agentv_ci.report.renderers.html.document import render
from agentv_ci.report.view import RunView
from tests.browser.conftest import CHROMIUM, FLAGS
from tests.support import REPOSITORY
from tests.support.runs import case, finding, reported, row
from tests.support.shop import LINKS, shop_run

DOCS = REPOSITORY / "docs"
WIDTH = 1280
CASE = "#case=refund-within-window&suite=evals%2Frefunds.test.yaml&target=support-agent"
VIEWS = (("report", "", 1271), ("report-case", CASE, 1225))
"""The pictures of the report, each with its view and its height, which ends between two boxes."""
SUMMARY_WIDTH = 900
PAGE = '<style>{}</style><article class="markdown-body" style="padding: 24px">{}</article>'
LAST = PastRun(
    run_id=1, attempt=1, sha="4f2c9d1", at="2030-01-01 08:00", verdict="fail", passed=10, total=12, mean=0.87
)


def main(stylesheet: str) -> int:
    """Write the pictures; `stylesheet` is the path of github-markdown-light.css."""
    style = Path(stylesheet).read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "report.html"
        file.write_bytes(b"".join(render(shop_run())))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        for name, fragment, height in VIEWS:
            page = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme="light")
            page.goto(f"{file.as_uri()}{fragment}")
            (DOCS / f"{name}.png").write_bytes(smaller(page.screenshot()))
        for name, markdown in summaries().items():
            (DOCS / f"summary-{name}.png").write_bytes(smaller(pictured(browser, markdown, style)))
        browser.close()
    return 0


def pictured(browser: Browser, markdown: str, style: str) -> bytes:
    """Return a picture of Markdown as GitHub shows it."""
    page = browser.new_page(viewport={"width": SUMMARY_WIDTH, "height": 100}, color_scheme="light")
    shown = github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE)
    page.set_content(PAGE.format(style, shown))
    return page.screenshot(full_page=True)


def summaries() -> Mapping[str, str]:
    """Return the Markdown of each state of a job."""
    fine = [row(of=case(each), cost_usd=0.002) for each in ("greets", "refunds", "leaves")]
    refused = [
        row("error", of=case(f"refund-{number}", line=number * 9 + 3), error="connection refused", error_kind="network")
        for number in range(6)
    ]
    greets = finding("does not contain 'Hello'", name="hello")
    wrong = row("fail", of=case("greets", line=70), evaluator_results=(greets,))
    dry = [
        row(of=case("greets"), dry_run=True),
        row("fail", of=case("refunds"), evaluator_results=(greets,), dry_run=True),
        row("error", of=case("leaves"), error=NO_OUTCOME, error_kind="request", dry_run=True),
    ]
    missing = MissingVariables(
        {"support-agent": {"OPENAI_API_KEY": ["api_key"]}}, places={"support-agent": ("evals/targets.yaml", 4)}
    )
    hint = "env:\n  OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY }}"
    unset = ActionRun(exit_code=2, verdict="invalid", reason=missing.message, hint=hint, root="/")
    return {
        "failed": summary(shop_run()),
        "passed": summary(reported(fine, Ending(duration_s=41))),
        "errors": summary(reported([*refused, wrong], Ending(duration_s=83))),
        "dry-run": summary(reported(dry, Ending(dry_run=True)), last=None),
        "missing-secret": text(Job(unset, None, None, None, LINKS, str), 60_000),
    }


def summary(run: RunView, last: PastRun | None = LAST) -> str:
    """Return the text of a job with a run."""
    done = ActionRun(exit_code=0, verdict="pass", root="/")
    return text(Job(done, replace(run, links=LINKS), None, None, LINKS, str), 60_000, last)


def smaller(png: bytes) -> bytes:
    """Return a picture with 256 colours, enough for a page of text."""
    written = BytesIO()
    Image.open(BytesIO(png)).quantize(256, dither=Image.Dither.NONE).save(written, "png", optimize=True)
    return written.getvalue()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
