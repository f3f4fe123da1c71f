"""Remove what a model thinks before it replies: it is not part of the reply.

Models mark it with tags, of which servers that cannot tell thinking from replies often drop the
first one.
"""

from __future__ import annotations

import json
import re

MAX_FAILED = 100
"""Objects that cannot be read, after which no more are looked for; bounds the time."""

_NAME = r"[\w:.-]{0,40}?(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis)"
_MARK = re.compile(
    rf"<\s*(?P<slash>/?)\s*(?P<name>{_NAME})(?![\w:.-])[^<>\n]{{0,200}}>"
    r"|\[(?P<bracket>/?)think\]"
    r"|◁(?P<triangle>/?)think▷"
    r"|<\|(?P<edge>begin_of_thought|end_of_thought|start_thinking|end_thinking)\|>"
    r"|<\|channel\|>(?P<channel>[a-z]{1,20})[^<>]{0,80}<\|message\|>",
    re.IGNORECASE,
)
"""Where thinking begins or ends: tags; Magistral, Kimi, Sky-T1 and Command A, gpt-oss."""
_OBJECT = re.compile(r'\{\s*"')
_DECODER = json.JSONDecoder(strict=False)


def without_thinking(text: str) -> str:
    """Return a reply without what was thought.

    All that precedes an end without a beginning was thought, and so was all that follows a
    beginning without an end. A mark inside a JSON object is text.
    """
    kept: list[str] = []
    position, thinks_in = 0, None
    for mark in _marks(text):
        name = (mark["name"] or "").lower()
        if not _ends(mark):
            if thinks_in is None:
                kept.append(text[position : mark.start()])
                thinks_in = name
        elif thinks_in in (None, name):
            if thinks_in is None:
                kept.clear()
            thinks_in, position = None, mark.end()
    if thinks_in is None:
        kept.append(text[position:])
    return "".join(kept)


def _ends(mark: re.Match[str]) -> bool:
    """Whether a mark is the end of thinking, or the beginning of the reply."""
    is_closing = "/" in (mark["slash"], mark["bracket"], mark["triangle"])
    return (
        is_closing
        or (mark["edge"] or "").lower().startswith("end")
        or (mark["channel"] or "").lower() == "final"
    )


def _marks(text: str) -> list[re.Match[str]]:
    """Return the marks outside JSON objects, in order."""
    marks = [mark for mark in _MARK.finditer(text) if not mark[0].endswith("/>")]
    if marks:
        return _outside_objects(text, marks)
    return []


def _outside_objects(text: str, marks: list[re.Match[str]]) -> list[re.Match[str]]:
    outside, end, failed = [], 0, 0
    for mark in marks:
        while end <= mark.start() and failed < MAX_FAILED:
            begins = _OBJECT.search(text, end, mark.start())
            if begins is None:
                end = mark.start()
                break
            try:
                _, end = _DECODER.raw_decode(text, begins.start())
            except (ValueError, RecursionError):
                failed, end = failed + 1, begins.end()
        if end <= mark.start():
            outside.append(mark)
    return outside
