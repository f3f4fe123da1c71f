"""Mistakes in answers that are JSON. All but the value with the mistake stays as it is written."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from agentv_ci.base.text import FENCE
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.gate import Operator
from agentv_ci.prove.answers import rotated
from agentv_ci.prove.damaged_words import other_units
from agentv_ci.prove.edits import FIGURE, LONGEST, Edit, became, other_figure

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()
_CLOSING = {"{": "}", "[": "]"}
_OPPOSITES = {"yes": "no", "no": "yes", "true": "false", "false": "true"}


class Part(Struct, frozen=True):
    """A value inside of an object or a list, and its place in the text."""

    key: str | int
    value: JsonValue
    begin: int
    end: int
    member: tuple[int, int]
    """From its key to the next one, or from the end of the value before it."""

    @property
    def name(self) -> str:
        """What changes call it."""
        return f"'{self.key}'" if isinstance(self.key, str) else f"[{self.key}]"


def json_edits(text: str, elsewhere: Mapping[str, Sequence[str]]) -> Iterator[Edit]:
    """Yield every mistake that can be made in an answer that is an object or a list.

    `elsewhere` are the texts that keys have in this answer and in those to other questions.
    """
    begin = 0
    if (fenced := FENCE.match(text)) is not None:
        begin = fenced.start("inside")
    for part in _parts(text, _after_space(text, begin)):
        written = text[part.begin : part.end]
        if isinstance(part.key, str):
            yield Edit("json-field-removed", f"{part.name} is missing", *part.member, "")
            yield _retyped(part, written)
        yield from _leaf(part, written, elsewhere)


def _retyped(part: Part, written: str) -> Edit:
    kind, retyped = "a list", f"[{written}]"
    if isinstance(part.value, list):
        kind, retyped = "an object", f'{{"items": {written}}}'
    change = f"{part.name} became {kind}"
    return Edit("json-field-retyped", change, part.begin, part.end, retyped)


def _parts(text: str, begin: int) -> Iterator[Part]:
    """Yield the values in the object or the list at a place, each followed by those in it."""
    closing = _CLOSING.get(text[begin])
    if closing is None:
        return
    place, last_end, index = _after_space(text, begin + 1), begin + 1, 0
    while text[place] != closing:
        key: str | int = index
        start = place
        if closing == "}":
            key, place = _DECODER.raw_decode(text, place)
            place = _after_space(text, _after_space(text, place) + 1)
        value, end = _DECODER.raw_decode(text, place)
        next_place = _after_space(text, end)
        member = (last_end, end)
        if text[next_place] != closing:
            next_place = _after_space(text, next_place + 1)
            member = (start, next_place)
        yield Part(key, value, place, end, member)
        yield from _parts(text, place)
        place, last_end, index = next_place, end, index + 1


def _after_space(text: str, place: int) -> int:
    space = _SPACE.match(text, place)
    assert space is not None, "it also matches nothing"
    return space.end()


def _leaf(part: Part, written: str, elsewhere: Mapping[str, Sequence[str]]) -> Iterator[Edit]:
    place = part.begin, part.end
    match part.value:
        case bool():
            other = json.dumps(not part.value)
            yield Edit("negation", f"{part.name} became {other}", *place, other)
        case int() | float():
            other = _other_number(written)
            yield Edit("number", f"{part.name} became {other}", *place, other)
        case str():
            for operator, text in _other_texts(part.value, str(part.key), elsewhere):
                change = became(part.name, f"'{text}'")
                yield Edit(operator, change, *place, _quoted(text, written))
        case _:
            return


def _other_texts(
    value: str, key: str, elsewhere: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Operator, str]]:
    for figure in FIGURE.finditer(value):
        other = other_figure(figure[0])
        yield "number", value[: figure.start()] + other + value[figure.end() :]
    for (begin, end), unit in other_units(value):
        yield "unit", value[:begin] + unit + value[end:]
    if (text := _other_text(value, elsewhere.get(key, ()))) != value:
        yield "json-text", text


def _other_number(written: str) -> str:
    other = FIGURE.sub(lambda figure: other_figure(figure[0]), written, count=1)
    return other if math.isfinite(float(other)) else "1"


def _other_text(value: str, elsewhere: Sequence[str]) -> str:
    """Return a plausible text that is wrong: one from elsewhere, the opposite, or other letters.

    Long texts are prose, and stay as they are.
    """
    for other in rotated(elsewhere, value):
        if other.casefold() != value.casefold():
            return other
    if len(value) > LONGEST:
        return value
    return _OPPOSITES.get(value) or "".join(map(_next_letter, value))


def _next_letter(letter: str) -> str:
    if not letter.isascii() or not letter.isalpha():
        return letter
    first = ord("a" if letter.islower() else "A")
    return chr(first + (ord(letter) - first + 1) % 26)


def _quoted(text: str, written: str) -> str:
    return json.dumps(text, ensure_ascii=written.isascii())
