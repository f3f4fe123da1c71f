"""The renderers: each turns a finished run into one kind of file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, assert_never

from agentv_ci.report.view import RunView

ReportFormat = Literal["html", "junit", "markdown", "sarif"]


Renderer = Callable[[RunView], Iterable[bytes]]
"""Turn a run into a file, in pieces; raises what reading the rows raises."""


def renderer(name: ReportFormat) -> Renderer:
    """Return the renderer of a format."""
    match name:
        case "html":
            from agentv_ci.report.renderers.html import document as html

            return html.render
        case "junit":
            from agentv_ci.report.renderers import junit

            return junit.render
        case "markdown":
            from agentv_ci.report.renderers import markdown

            return markdown.render
        case "sarif":
            from agentv_ci.report.renderers import sarif

            return sarif.render
        case _:
            assert_never(name)
