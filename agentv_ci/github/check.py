"""The check run: the verdict on a commit, and all annotations.

The runner keeps only ten of them.

Limits: GitHub Docs, "REST API endpoints for check runs".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from agentv_ci.base.text import on_one_line, shortened
from agentv_ci.contracts.action import Annotation, Level
from agentv_ci.contracts.base import JsonObject

Conclusion = Literal["success", "failure", "neutral"]

BATCH = 50
"""Annotations in one request."""
MAX_SHOWN = 1_000
MAX_SUMMARY = 60_000
"""Characters; GitHub refuses more than 65,535."""
MAX_TITLE = 255
MAX_MESSAGE = 15_000
"""Characters, of up to four bytes; GitHub refuses more than 64 KB."""
MAX_NAME = 200
LEVELS: Mapping[Level, str] = {"error": "failure", "warning": "warning", "notice": "notice"}


class Check(Struct, frozen=True):
    """A check run to create."""

    key: str
    """Distinguishes it from others on the same commit."""
    conclusion: Conclusion
    summary: str
    """Markdown whose first line is the title."""
    annotations: Sequence[Annotation]
    """Each with a path."""
    url: str
    """The address of the workflow run."""

    def creation(self, commit: str) -> JsonObject:
        """Return the request that creates it on a commit, complete if one batch is enough."""
        name = on_one_line(f"agentv-ci: {self.key}")[:MAX_NAME]
        return {"name": name, "head_sha": commit, "details_url": self.url, **self._state(0)}

    def ending(self) -> JsonObject:
        """Return the request that completes it without the annotations that GitHub refuses."""
        return {"status": "completed", "conclusion": self.conclusion}

    def updates(self) -> Iterator[JsonObject]:
        """Yield the requests that add the other annotations; the last one completes it."""
        for begin in range(BATCH, len(self.annotations), BATCH):
            yield self._state(begin)

    def _state(self, begin: int) -> JsonObject:
        title = self.summary.partition("\n")[0].lstrip("# ") or "agentv-ci"
        output: JsonObject = {
            "title": shortened(title, MAX_TITLE),
            "summary": shortened(self.summary, MAX_SUMMARY),
            "annotations": list(map(_annotation, self.annotations[begin : begin + BATCH])),
        }
        if begin + BATCH < len(self.annotations):
            return {"status": "in_progress", "output": output}
        return {"status": "completed", "conclusion": self.conclusion, "output": output}


def _annotation(annotation: Annotation) -> JsonObject:
    line = annotation.line or 1
    end_line = annotation.end_line or line
    shown: JsonObject = {
        "path": annotation.path,
        "start_line": line,
        "end_line": end_line,
        "annotation_level": LEVELS[annotation.level],
        "title": shortened(annotation.title, MAX_TITLE),
        "message": shortened(annotation.message or annotation.title, MAX_MESSAGE),
    }
    # GitHub refuses columns of annotations that span several lines.
    if line == end_line and annotation.column is not None:
        shown |= {
            "start_column": annotation.column,
            "end_column": annotation.end_column or annotation.column,
        }
    return shown
