"""The results of the last run, which commands read unless others are named."""

from __future__ import annotations

import contextlib
from pathlib import Path

from agentv_ci.app.report_files import report_path
from agentv_ci.results.files import form_of

RESULTS = Path(".agentv", "results")
"""The folder of results in a repository."""
LATEST = RESULTS / "latest.jsonl"
NAMES = (LATEST.name, "latest.yaml")


def latest_results(root: Path) -> Path | None:
    """Return the results of the last run in a repository, by their own name; None without any."""
    links = (root / RESULTS / name for name in NAMES)
    latest = next((link for link in links if link.is_file()), None)
    return latest.parent / latest.readlink() if latest is not None and latest.is_symlink() else latest


def link_latest(results: Path) -> None:
    """Make `latest.jsonl` or `latest.yaml` beside results lead to them, and `latest.report.json` to their run report.

    Files of these names that are no links stay; file systems without links go without.
    """
    links = [results.with_name(name) for name in (*NAMES, report_path(LATEST).name)]
    if any(link.exists() and not link.is_symlink() for link in links):
        return
    with contextlib.suppress(OSError):
        for link in links:
            link.unlink(missing_ok=True)
        results.with_name(f"latest.{form_of(results)}").symlink_to(results.name)
        links[-1].symlink_to(report_path(results).name)
