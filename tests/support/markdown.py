"""Markdown as GitHub's own parser shows it, and texts that try to be more than text in it."""

from __future__ import annotations

from html.parser import HTMLParser

from cmarkgfm import github_flavored_markdown_to_html
from cmarkgfm.cmark import Options

MARKUP = {"h2", "h3", "h4", "p", "strong", "em", "ul", "li", "pre", "code", "a", "details", "summary", "hr"}
MARKUP |= {"table", "thead", "tbody", "tr", "th", "td"}
"""The elements that reports write."""

MARKDOWN_ATTACKS = (
    *("@octocat", "@org/team", "#123", "GH-1", "![x](https://evil.example/x.png)", "[x](https://evil.example)"),
    *("https://evil.example", "www.evil.example", "a@evil.example", "<img src=x onerror=alert(1)>", "<b>"),
    *("</details>", "</summary>", "</code>", "<!--", "-->", "```", "````\n", "~~~", "`", "``", "|", "\\", "\\|"),
    *("\n\n", "\n# x\n", "\n- x", "\n> x", "&lt;", "&#64;octocat", "[^1]", "$x$", ":tada:", "<details>"),
    *("**x**", "~~x~~", "_x_", "\r", "\x00", "\x1b[31m", "\u202e", "\u2028", "]]>"),
)


class MarkdownPage(HTMLParser):
    """What a browser gets of a Markdown text."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.comments: list[str] = []
        self.links: list[str | None] = []
        self.loose = ""
        """Text outside code, where mentions and addresses have an effect."""
        self._open: list[str] = []
        # Unlike GitHub this keeps all elements: those that GitHub would remove must not occur.
        self.feed(github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._open.append(tag)
        self.links += [value for name, value in attrs if name == "href"]

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "code" not in self._open:
            self.loose += data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)
