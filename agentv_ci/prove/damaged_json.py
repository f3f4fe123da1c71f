"""Mistakes in answers that are JSON. All but the value with the mistake stays as it is written."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from agentv_ci.base.text import FENCE
from agentv_ci.contracts.base import JsonValue
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
    fenced = FENCE.match(text)
    for part in _parts(text, _after_space(text, fenced.start("inside") if fenced else 0)):
        written = text[part.begin : part.end]
        if isinstance(part.key, str):
            is_list = isinstance(part.value, list)
            retyped = f'{{"items": {written}}}' if is_list else f"[{written}]"
            kind = "an object" if is_list else "a list"
            yield Edit("json-field-removed", f"{part.name} is missing", *part.member, "")
            yield Edit(
                "json-field-retyped", f"{part.name} became {kind}", part.begin, part.end, retyped
            )
        yield from _leaf(part, written, elsewhere)


def _parts(text: str, begin: int) -> Iterator[Part]:
    """Yield the values inside of the object or the list at a place, each followed by those inside of it."""
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
        after = _after_space(text, end)
        is_last = text[after] == closing
        next_place = after if is_last else _after_space(text, after + 1)
        yield Part(key, value, place, end, (last_end, end) if is_last else (start, next_place))
        yield from _parts(text, place)
        place, last_end, index = next_place, end, index + 1


def _after_space(text: str, place: int) -> int:
    space = _SPACE.match(text, place)
    return space.end() if space is not None else place


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
            for figure in FIGURE.finditer(part.value):
                text = (
                    part.value[: figure.start()]
                    + other_figure(figure[0])
                    + part.value[figure.end() :]
                )
                yield Edit("number", became(part.name, f"'{text}'"), *place, _quoted(text, written))
            for (begin, end), unit in other_units(part.value):
                text = part.value[:begin] + unit + part.value[end:]
                yield Edit("unit", became(part.name, f"'{text}'"), *place, _quoted(text, written))
            if (text := _other_text(part, elsewhere)) != part.value:
                yield Edit(
                    "json-text", became(part.name, f"'{text}'"), *place, _quoted(text, written)
                )
        case _:
            return


def _other_number(written: str) -> str:
    other = FIGURE.sub(lambda figure: other_figure(figure[0]), written, count=1)
    return other if math.isfinite(float(other)) else "1"


def _other_text(part: Part, elsewhere: Mapping[str, Sequence[str]]) -> str:
    """Return a plausible text that is wrong: one that the key has elsewhere, the opposite, or one of other letters.

    Long texts are prose, and stay as they are.
    """
    value = part.value
    assert isinstance(value, str)
    for other in rotated(elsewhere.get(str(part.key), ()), value):
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
