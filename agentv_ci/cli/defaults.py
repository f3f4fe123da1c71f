"""Files in the `.agentv/` of the repository, which commands use unless others are named."""

from __future__ import annotations

from pathlib import Path

from agentv_ci.app.run.latest import RESULTS, latest_results
from agentv_ci.cli.console import ignoring_lost_output, short, show_line
from agentv_ci.errors import UsageError
from agentv_ci.load.discover import find_root

BASELINE = Path(".agentv", "baseline.json")


def repository(cwd: Path) -> Path:
    """Return the repository of the working directory, else the directory itself."""
    return find_root(cwd / "any", cwd)


def require_latest(cwd: Path) -> str:
    """Return the name of the latest results, and print it; raises UsageError without any."""
    latest = latest_results(repository(cwd))
    if latest is None:
        folder = short(repository(cwd) / RESULTS, cwd)
        raise UsageError(
            f"there are no results in '{folder}'",
            hint="run `agentv-ci eval`, or name a results file",
        )
    name = str(short(latest, cwd))
    with ignoring_lost_output():
        show_line(f"latest results: {name}", "plain", err=True)
    return name
