"""Which cases are selected: by id, tag, suite and metadata."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from glob import escape, has_magic
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.base.json_access import found_at
from agentv_ci.base.text import did_you_mean
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.cases import is_suite, matches
from agentv_ci.contracts.documents import CaseFacts
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.errors import UsageError

Predicate = Callable[[CaseFacts], bool]

KEYS = ("tag", "id", "suite", "meta.KEY")
SYNTAX = (
    "write tag:NAME, id:GLOB, suite:GLOB or meta.KEY=VALUE, joined by and, or, not and parentheses"
)
MAX_DEPTH = 100
_TOKEN = re.compile(r"""\s*(?:([()])|((?:"[^"]*"|[^\s()"])+)|(\S))""")


def matches_id(case_id: str, eval_ids: Sequence[str]) -> bool:
    """Whether an id is one of these, or matches one of these globs."""
    return any(matches(case_id, pattern) for pattern in eval_ids)


def facts_of(case: PlanCase) -> CaseFacts:
    """Return what a compiled case is selected by."""
    return CaseFacts(case.id, case.suite, case.tags or (), case.metadata)


class CaseFilter(Struct, frozen=True, dict=True):
    """The cases to run: those that meet all conditions that are given."""

    eval_ids: Sequence[str] = ()
    """Ids or globs, of which one matches."""
    tags: Sequence[str] = ()
    """Tags, of which the case has one."""
    not_tags: Sequence[str] = ()
    """Tags, of which the case has none."""
    expression: str | None = None
    """Such as `tag:smoke and not suite:nightly and meta.team=payments`."""

    def __bool__(self) -> bool:
        """Whether there are conditions."""
        return bool(self.eval_ids or self.tags or self.not_tags or self.expression is not None)

    def __str__(self) -> str:
        """Return the options that were given."""
        words: list[str] = []
        given = (("eval-id", self.eval_ids), ("tag", self.tags), ("not-tag", self.not_tags))
        for option, values in given:
            words += (f"--{option} {value}" for value in values)
        if self.expression is not None:
            words.append(f"--filter '{self.expression}'")
        return " ".join(words)

    def selects(self, case: CaseFacts) -> bool:
        """Whether a case is selected; raises UsageError for an invalid expression."""
        return (
            (not self.eval_ids or matches_id(case.id, self.eval_ids))
            and (not self.tags or _has_one(case.tags, self.tags))
            and not _has_one(case.tags, self.not_tags)
            and self.predicate(case)
        )

    @property
    def has_globs(self) -> bool:
        """Whether an id may select other cases than the one of that id."""
        return any(map(has_magic, self.eval_ids))

    def preferring(self, known_ids: Collection[str]) -> CaseFilter:
        """Return the filter in which an id that a case has selects that case alone.

        It does so even if it is a glob, too.
        """
        eval_ids = [
            escape(pattern) if pattern in known_ids else pattern for pattern in self.eval_ids
        ]
        return replace(self, eval_ids=eval_ids)

    @cached_property
    def predicate(self) -> Predicate:
        """What the expression says; raises UsageError if it is invalid."""
        if self.expression is None:
            return lambda _: True
        return _Parser(self.expression).parse()


EVERY_CASE = CaseFilter()


def _has_one(tags: Collection[str], patterns: Sequence[str]) -> bool:
    return any(matches_id(tag, patterns) for tag in tags)


class _Parser:
    """A parser by recursive descent: `or` binds least, then `and`, then `not`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [
            (token[1] or token[2] or token[3], token.end()) for token in _TOKEN.finditer(text)
        ]
        self._next = 0
        self._depth = 0

    def parse(self) -> Predicate:
        found = self._or()
        if self._next < len(self._tokens):
            raise self._error(f"unexpected '{self._peek()}'")
        return found

    def _or(self) -> Predicate:
        parts = self._joined("or", self._and)
        if len(parts) == 1:
            return parts[0]
        return lambda case: any(part(case) for part in parts)

    def _and(self) -> Predicate:
        parts = self._joined("and", self._not)
        if len(parts) == 1:
            return parts[0]
        return lambda case: all(part(case) for part in parts)

    def _joined(self, by: str, part: Callable[[], Predicate]) -> list[Predicate]:
        parts = [part()]
        while self._peek() == by:
            self._next += 1
            parts.append(part())
        return parts

    def _not(self) -> Predicate:
        word = self._peek()
        if word in (None, ")", "and", "or"):
            where = f"before '{word}'" if word else "at the end"
            raise self._error(f"a condition is missing {where}")
        self._next += 1
        if word == "not":
            inner = self._nested(self._not)
            return lambda case: not inner(case)
        if word == "(":
            inner = self._nested(self._or)
            if self._peek() != ")":
                raise self._error("')' is missing")
            self._next += 1
            return inner
        assert word is not None, "checked above"
        return self._condition(word)

    def _nested(self, part: Callable[[], Predicate]) -> Predicate:
        if self._depth == MAX_DEPTH:
            raise self._error(f"more than {MAX_DEPTH} conditions are nested")
        self._depth += 1
        found = part()
        self._depth -= 1
        return found

    def _condition(self, word: str) -> Predicate:
        key, separator, quoted = word.partition("=" if word.startswith("meta.") else ":")
        key, value = key.replace('"', ""), quoted.replace('"', "")
        if not separator or not value or key.endswith("!") or quoted.startswith("="):
            raise self._error(f"'{word}' is not a condition")
        if key.startswith("meta."):
            path = key.split(".")[1:]
            return lambda case: any(matches(text, value) for text in _metadata(case, path))
        match key:
            case "tag":
                return lambda case: _has_one(case.tags, [value])
            case "id":
                return lambda case: matches_id(case.id, [value])
            case "suite":
                return lambda case: is_suite(case.suite, value)
            case _:
                raise self._error(f"unknown condition '{key}'{did_you_mean(key, KEYS)}")

    def _peek(self) -> str | None:
        if self._next == len(self._tokens):
            return None
        return self._tokens[self._next][0]

    def _error(self, message: str) -> UsageError:
        return UsageError(f"--filter '{self._text}': {message}", hint=SYNTAX)


def _metadata(case: CaseFacts, path: Sequence[str]) -> Iterator[str]:
    """Yield what the metadata of a case at a path is matched as."""
    for value in found_at(case.metadata, *path):
        yield from _texts(value)


def _texts(value: JsonValue) -> Iterator[str]:
    """Yield what a value of metadata is matched as; one of a list suffices."""
    match value:
        case list():
            yield from chain.from_iterable(map(_texts, value))
        case str():
            yield value
        case bool():
            yield str(value).lower()
        case None:
            yield ""
        case int():
            yield from (str(value), f"{value}.0")
        case float() if value.is_integer():
            yield from (str(value), str(int(value)))
        case _:
            yield str(value)
