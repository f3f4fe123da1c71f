"""`--report acme/csv=FILE`: a report that an installed package writes."""

from __future__ import annotations

from typing import IO

from agentv_ci.base.installed_plugins import UnusablePlugin, error_line, find_plugin
from agentv_ci.errors import CannotGoOn
from agentv_ci.report.view import RunView


class ReporterFailed(Exception):
    """A plugin did not write its report."""


def write(name: str, run: RunView, out: IO[bytes]) -> None:
    """Let a plugin write a report.

    Raises ReporterFailed for its exceptions, and what reading the rows raises.
    """
    found = find_plugin("reporter", name)
    if isinstance(found, UnusablePlugin):
        raise ReporterFailed(found.message)
    try:
        found.implementation.write(run.report.model_copy(deep=True), run.rows(), out)
    except CannotGoOn:
        raise
    except (Exception, SystemExit) as error:
        raise ReporterFailed(f"{found.label} failed: {error_line(error)}") from error
