"""Which tests of promptfoo stay templates with rows, and which are filled in while importing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.judge_evaluators import PROMPT_VARIABLES
from agentv_ci.other_tools.imports.promptfoo_asserts import (
    BY_JUDGE,
    IN_JUDGES_PROMPTS,
    has_literal_tags,
    templates_of,
)
from agentv_ci.other_tools.imports.promptfoo_prompts import Prompt
from agentv_ci.other_tools.imports.promptfoo_templates import (
    OWN_NAMES,
    FileText,
    filled,
    has_tags,
    in_row,
    is_simple,
    shows_alike,
    variables_of,
)
from agentv_ci.other_tools.imports.promptfoo_tests import Test


def prepared(prompts: Sequence[Prompt], tests: Sequence[Test]) -> list[Test]:
    """Return tests whose templates stay as they are, in groups, and the others one a row.

    Tests in a row that differ only in their variables are a group: rows of one test.
    """
    made: list[Test] = []
    for test in tests:
        if not _is_plain(prompts, test):
            rows = list(map(filled, test.rows))
            made += [replace(test, rows=[row], file=None, is_plain=False) for row in rows]
            continue
        names = _used(prompts, test)
        own = replace(test, rows=[_row(names, row) for row in test.rows])
        if made and made[-1].is_plain and made[-1].fits(own):
            made[-1].rows += own.rows
        else:
            made += _without_equal_rows(own)
    return made


def _without_equal_rows(test: Test) -> Iterator[Test]:
    """Yield a test, and each of its rows that is there twice as one of its own."""
    others: list[JsonObject] = []
    rows: list[JsonObject] = []
    for row in test.rows:
        (others if row in rows and test.file is None else rows).append(row)
    yield replace(test, rows=rows)
    yield from (replace(test, rows=[row]) for row in others)


def _row(names: set[str], row: JsonObject) -> JsonObject:
    """Return a row; in promptfoo a variable without a value is empty."""
    given = {key: in_row(value) for key, value in filled(row).items()}
    missing = [name for name in sorted(names - given.keys()) if "." not in name]
    return {**dict.fromkeys(missing, ""), **given}


def _used(prompts: Sequence[Prompt], test: Test) -> set[str]:
    """Return the names of the variables that the texts of a test have."""
    texts = [*(prompt.text for prompt in prompts), *_texts(test)]
    of_judges = set(chain.from_iterable(map(variables_of, _judge_prompts(test))))
    names = set(chain.from_iterable(map(variables_of, texts)))
    return (names - OWN_NAMES) | (of_judges - OWN_NAMES - IN_JUDGES_PROMPTS)


def _texts(test: Test) -> list[str]:
    options = map(test.options.get, ("prefix", "suffix"))
    of_options = [text for text in options if isinstance(text, str)]
    return [*chain.from_iterable(templates_of(item.value) for item in test.asserts), *of_options]


def _judge_prompts(test: Test) -> list[str]:
    own = [item.value.get("rubricPrompt") for item in test.asserts]
    return [text for text in (*own, test.options.get("rubricPrompt")) if isinstance(text, str)]


def _is_plain(prompts: Sequence[Prompt], test: Test) -> bool:
    """Whether our variables fill in the templates of a test as promptfoo does."""
    texts = [*_texts(test), *_judge_prompts(test)]
    if has_tags(json.dumps([test.description, test.metadata])):
        return False
    if any(has_literal_tags(item.value) for item in test.asserts):
        return False
    if any(isinstance(text, FileText) and has_tags(text) for text in _judge_prompts(test)):
        return False
    if not all(prompt.is_shared for prompt in prompts) or not all(map(is_simple, texts)):
        return False
    if _reads_judges_variables(test):
        return False
    names = _used(prompts, test)
    return all(shows_alike(names, filled(row)) for row in test.rows)


def _reads_judges_variables(test: Test) -> bool:
    """Whether a judge would read a variable of the test as one of its own."""
    of_judges = [
        item.value
        for item in test.asserts
        if str(item.value.get("type")).removeprefix("not-") in BY_JUDGE
    ]
    texts = [*chain.from_iterable(map(templates_of, of_judges)), *_judge_prompts(test)]
    names = set(chain.from_iterable(map(variables_of, texts)))
    return not names.isdisjoint(PROMPT_VARIABLES)
