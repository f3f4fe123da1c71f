"""Mistakes in answers that are texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain

from agentv_ci.contracts.gate import Operator
from agentv_ci.prove.answers import sentences_of
from agentv_ci.prove.damaged_words import in_the_case_of, opposites, other_units
from agentv_ci.prove.edits import FIGURE, LONGEST, Edit, became, other_figure

_LIST_MARKER = re.compile(r"(?m)^[ \t]*(?P<number>\d+)[.)][ \t]")
_IN_WORDS: Mapping[str, str] = {
    "two": "five",
    "three": "seven",
    "four": "nine",
    "five": "eleven",
    "six": "thirteen",
    "seven": "fifteen",
    "eight": "seventeen",
    "nine": "nineteen",
    "ten": "twenty-one",
}
"""Figures in words, without `one`, which is often a pronoun."""
_WORD_FIGURE = re.compile(rf"\b(?:{'|'.join(_IN_WORDS)})\b", re.IGNORECASE)

_QUOTED = re.compile(r"`[^`\n]+`|\"[^\"\n]+\"|“[^”\n]+”|«[^»\n]+»")
_WORD = re.compile(r"\w(?:[\w@./:+'’-]*\w)?")
_BEFORE_A_SENTENCE = ".!?:;|"

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_BULLET = re.compile(r"(?m)^[ \t]*[-*+•] ")
_COURTESY = re.compile(
    r"\b(?:let (?:me|us) know|feel free|(?:happy|glad|pleased|delighted) to (?:help|assist|hear)"
    r"|hesitate|(?:thank you|thanks)\b|you['’]re welcome|you are welcome"
    r"|hope (?:this|that|it) helps|anything else|have a (?:nice|good|great|lovely)|(?:best|kind"
    r"|warm) regards|(?:sorry|apologi[sz]e) for)\b",
    re.IGNORECASE,
)
"""What a sentence says to be polite: its opposite would be rude, and no mistake."""

Replacements = tuple[tuple[re.Pattern[str], str], ...]
"""Patterns and what replaces them."""
_NEGATIONS: Replacements = (
    (re.compile(r"\b([Cc])an(?:not|['’]t)\b"), r"\1an"),
    (re.compile(r"\b([Ww])on['’]t\b"), r"\1ill"),
    (re.compile(r"\b(\w+)n['’]t\b"), r"\1"),
    (re.compile(r"\s+not\b(?! only)"), ""),
    (re.compile(r"\b[Nn]ot\s+"), ""),
    (re.compile(r"\b[Nn]o\s+(?=[^\W\d])"), ""),
    (re.compile(r"\bNo\b(?!\. ?\d)"), "Yes"),
    (re.compile(r"\bno\b(?!\. ?\d)"), "yes"),
    (re.compile(r"\bNever\b"), "Always"),
    (re.compile(r"\bnever\b"), "always"),
    (re.compile(r"\bwithout\b"), "with"),
)
_ASSERTIONS: Replacements = (
    (
        re.compile(
            r"\b(is|are|was|were|am|can|could|will|would|shall|should|must|may|might)\b(?= \w)"
        ),
        r"\1 not",
    ),
    (re.compile(r"\bYes\b"), "No"),
    (re.compile(r"\byes\b"), "no"),
    (re.compile(r"\bAlways\b"), "Never"),
    (re.compile(r"\balways\b"), "never"),
    (re.compile(r"\bTrue\b"), "False"),
    (re.compile(r"\btrue\b"), "false"),
    (re.compile(r"\bFalse\b"), "True"),
    (re.compile(r"\bfalse\b"), "true"),
)


def text_edits(text: str, question: str = "") -> Iterator[Edit]:
    """Yield every mistake that can be made in a text.

    What the question names, an answer need not repeat. Code and the entries of a list may be in any
    order.
    """
    yield from _figures(text)
    for span, other in other_units(text):
        yield _edit("unit", text, *span, other)
    for entity in _entities(text):
        if text[entity.begin : entity.end].strip() not in question:
            yield entity
    yield from _opposites(text)
    yield from _negations(text)
    yield from _orders(text)


def _orders(text: str) -> Iterator[Edit]:
    """Yield only the first sentence, and another order of the sentences or lines."""
    sentences = sentences_of(text)
    if len(sentences) > 1:
        yield Edit("first-sentence", "only the first sentence is left", 0, len(text), sentences[0])
    if "```" in text or _BULLET.search(text) is not None:
        return
    between, parts = " ", sentences
    if "\n" in text.strip():
        between, parts = "\n", list(filter(str.strip, text.splitlines()))
    if len(parts) > 1:
        other = between.join([*parts[1:], parts[0]])
        yield Edit("sentence-order", "the beginning is at the end", 0, len(text), other)


def _edit(operator: Operator, text: str, begin: int, end: int, other: str) -> Edit:
    after = other.strip()
    change = became(f"'{text[begin:end].strip()}'", after and f"'{after}'")
    return Edit(operator, change, begin, end, other)


def _figures(text: str) -> Iterator[Edit]:
    markers = {marker.start("number") for marker in _LIST_MARKER.finditer(text)}
    for figure in FIGURE.finditer(text):
        if figure.start() not in markers:
            yield _edit("number", text, *figure.span(), other_figure(figure[0]))
    for word in _WORD_FIGURE.finditer(text):
        other = in_the_case_of(word[0], _IN_WORDS[word[0].lower()])
        yield _edit("number", text, *word.span(), other)


def _entities(text: str) -> Iterator[Edit]:
    """Yield names, identifiers and quotations, each with the space before it."""
    quotations = (quotation.span() for quotation in _QUOTED.finditer(text))
    taken = bytearray(len(text))
    for begin, end in chain(quotations, _names(text)):
        if not any(taken[begin:end]):
            taken[begin:end] = b"x" * (end - begin)
            space = int(text[begin - 1 : begin] == " ")
            yield _edit("entity", text, begin - space, end, "")


def _names(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of identifiers and of names, of which several words in a row are one."""
    last: tuple[int, int] | None = None
    for word in _WORD.finditer(text):
        if not _names_something(word, text):
            continue
        if last is not None and text[last[1] : word.start()] == " ":
            last = last[0], word.end()
            continue
        if last is not None:
            yield last
        last = word.span()
    if last is not None:
        yield last


def _names_something(word: re.Match[str], text: str) -> bool:
    if _is_identifier(word[0]):
        return True
    return _is_name(word[0]) and not _begins_sentence(text, word.start())


def _is_identifier(word: str) -> bool:
    has_letters = any(map(str.isalpha, word))
    mixed = has_letters and (any(map(str.isdigit, word)) or (len(word) > 1 and word.isupper()))
    return mixed or "_" in word or "@" in word or "://" in word


def _is_name(word: str) -> bool:
    return word[0].isupper() and re.split("['’]", word)[0] != "I"


def _begins_sentence(text: str, begin: int) -> bool:
    before = text[max(0, begin - LONGEST) : begin].rstrip(" \t\"'“«(*_#>-")
    return not before or before[-1] in _BEFORE_A_SENTENCE or before[-1] == "\n"


def _opposites(text: str) -> Iterator[Edit]:
    """Yield words that become their opposites; in code they are names."""
    code = [fence.span() for fence in _CODE.finditer(text)]
    for begin, sentence in _statements(text):
        if any(start <= begin < end for start, end in code):
            continue
        for (start, end), other in opposites(sentence):
            yield _edit("antonym", text, begin + start, begin + end, other)


def _negations(text: str) -> Iterator[Edit]:
    """Yield negations that are taken out; in sentences without any, statements are negated."""
    for begin, sentence in _statements(text):
        replacements = list(_replacements(sentence, _NEGATIONS))
        for (start, end), other in replacements or _replacements(sentence, _ASSERTIONS):
            yield _edit("negation", text, begin + start, begin + end, other)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences that state something, each with where it begins.

    Questions and courtesy state nothing.
    """
    begin = 0
    for sentence in sentences_of(text):
        begin = text.index(sentence, begin)
        if not sentence.endswith("?") and _COURTESY.search(sentence) is None:
            yield begin, sentence
        begin += len(sentence)


def _replacements(sentence: str, patterns: Replacements) -> Iterator[tuple[tuple[int, int], str]]:
    taken: set[int] = set()
    for pattern, template in patterns:
        for match in pattern.finditer(sentence):
            if taken.isdisjoint(range(*match.span())):
                taken.update(range(*match.span()))
                yield match.span(), match.expand(template)
