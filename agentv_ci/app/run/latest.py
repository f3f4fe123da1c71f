"""The results of the last run, which commands read unless others are named."""

from __future__ import annotations

import contextlib
import os
from datetime import datetime
from pathlib import Path

from agentv_ci.app.run.files import report_path
from agentv_ci.results.files import ResultsFormat, form_named

RESULTS = Path(".agentv", "results")
"""The folder of results in a repository."""
LATEST = RESULTS / "latest.jsonl"
NAMES = (LATEST.name, "latest.yaml")


def latest_results(root: Path) -> Path | None:
    """Return the results of the last run in a repository, by their own name; None without any."""
    for name in NAMES:
        link = root / RESULTS / name
        # Another run may be replacing it.
        with contextlib.suppress(OSError):
            if link.is_symlink() and link.is_file():
                return link.parent / link.readlink()
            if link.is_file():
                return link
    return None


def new_results(
    root: Path, now: datetime, *, kind: str = "eval", form: ResultsFormat = "jsonl"
) -> Path:
    """Return the path of new results in a repository; `now` is UTC, to the microsecond."""
    stamp = now.strftime("%Y%m%dT%H%M%S.%fZ").replace(".", "_")
    return root / RESULTS / f"{kind}_{stamp}.{form}"


def link_latest(results: Path) -> None:
    """Make `latest.jsonl` or `latest.yaml` beside results lead to them.

    `latest.report.json` leads to their run report. Files of these names that are no links stay;
    file systems without links go without.
    """
    links = list(map(results.with_name, (*NAMES, report_path(LATEST).name)))
    if any(link.exists() and not link.is_symlink() for link in links):
        return
    with contextlib.suppress(OSError):
        latest = results.with_name(f"latest.{form_named(results)}")
        _link(latest, results.name)
        _link(links[-1], report_path(results).name)
        for other in links[:-1]:
            if other != latest:
                other.unlink(missing_ok=True)


def _link(link: Path, name: str) -> None:
    """Replace a link atomically; raises OSError."""
    scratch = link.with_name(f".{link.name}.{os.getpid()}.new")
    scratch.unlink(missing_ok=True)
    scratch.symlink_to(name)
    try:
        scratch.replace(link)
    finally:
        scratch.unlink(missing_ok=True)
