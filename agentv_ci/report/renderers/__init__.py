"""The family of renderers: each turns a finished run into one kind of file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol, assert_never

from agentv_ci.report.view import RunView

ReportFormat = Literal["html", "junit", "markdown", "sarif"]


class Renderer(Protocol):
    """Turns a run into a file."""

    def render(self, run: RunView) -> Iterable[bytes]:
        """Return the file, in pieces; raises what reading the rows raises."""
        ...


def renderer(name: ReportFormat) -> Renderer:
    """Return a renderer by its name."""
    match name:
        case "html":
            from agentv_ci.report.renderers.html import document as html

            return html
        case "junit":
            from agentv_ci.report.renderers import junit

            return junit
        case "markdown":
            from agentv_ci.report.renderers import markdown

            return markdown
        case "sarif":
            from agentv_ci.report.renderers import sarif

            return sarif
        case _:
            assert_never(name)
