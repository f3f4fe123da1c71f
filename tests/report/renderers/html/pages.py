"""HTML reports, parsed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.results import ResultRow
from agentv_ci.report.renderers.html import document as html
from agentv_ci.report.view import RunView
from tests.support.runs import reported


class Document(HTMLParser):
    """A page as a parser of HTML sees it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.attributes: list[tuple[str, str, str]] = []
        self.elements: list[str] = []
        self.blocks: dict[str, str] = {}
        """Data by the id of its element."""
        self.parts: dict[str, list[str]] = {"script": [], "style": [], "title": [], "text": []}
        self._into = "text"
        self.feed(text)
        self.close()
        self.text = " ".join("".join(self.parts["text"]).split())
        self.title = "".join(self.parts["title"])

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        given = dict(attrs)
        if tag == "script" and given.get("type") == "application/json":
            assert given["id"] not in self.blocks
            self._into = f"#{given['id']}"
        elif tag in ("script", "style", "title") and self._into == "text":
            self._into = tag

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style", "title"):
            self._into = "text"

    def handle_data(self, data: str) -> None:
        if self._into.startswith("#"):
            self.blocks[self._into[1:]] = data
        else:
            self.parts[self._into].append(data)

    def data(self, name: str) -> Any:
        return json.loads(self.blocks[name])

    @property
    def trials(self) -> set[str]:
        """The trials whose texts are in the page."""
        return {name for name in self.blocks if name.startswith("trial-")}

    @property
    def policy(self) -> str:
        (policy,) = (value for _, name, value in self.attributes if name == "content" and "default-src" in value)
        return policy


def rendered(run: RunView) -> bytes:
    return b"".join(html.render(run))


def document_of(run: RunView) -> Document:
    return Document(rendered(run).decode())


def page(*rows: ResultRow, ending: Ending | None = None) -> Document:
    return document_of(reported(rows, ending))
