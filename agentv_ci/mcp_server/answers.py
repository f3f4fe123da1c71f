"""What clients get to see: clean, short, and an error where a call cannot be answered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from agentv_ci.base.redaction import Redactor
from agentv_ci.base.text import printable, shortened
from agentv_ci.errors import CannotGoOn, InvalidInput

Answer = dict[str, Any]
"""A JSON object. Texts in it come from files and agents."""

MAX_CHARACTERS = 40_000
"""About 10,000 tokens, which clients take without cutting."""
SIZES = ((200, 1_000), (50, 500), (20, 200), (5, 100), (1, 50))
"""Items of a list that are shown, and characters of a text: the first pair that makes an answer
short enough.
"""


def presented(answer: Mapping[str, object], redactor: Redactor) -> Answer:
    """Return an answer without secrets and unprintable characters.

    `…_left_out` counts what is cut off a list.
    """
    items, _ = SIZES[0]
    # Texts are cut after the secrets in them are masked: before that, half a secret could stay.
    clean = redactor.value(json.loads(json.dumps(_cut(answer, items), default=str)))
    for items, characters in SIZES:
        short: Answer = _cut(clean, items, characters)
        if len(json.dumps(short)) <= MAX_CHARACTERS:
            return short
    return {"left_out": "everything"}


def refusal(error: CannotGoOn | OSError, redactor: Redactor) -> str:
    """Return why a call cannot be answered, with the first mistakes of documents."""
    lines = [f"cannot continue: {error}"]
    if isinstance(error, CannotGoOn):
        lines = [*_sentences(error)]
    return shortened(printable(redactor.text("\n".join(lines))), MAX_CHARACTERS // 10)


def _sentences(error: CannotGoOn) -> Iterator[str]:
    yield error.message
    if error.hint is not None:
        yield error.hint
    if isinstance(error, InvalidInput):
        for each in error.diagnostics:
            yield f"{each.path}:{each.line}:{each.column}: {each.rule} {each.message}"


def _cut(value: Any, items: int, characters: int | None = None) -> Any:  # noqa: ANN401  # JSON
    match value:
        case str() if characters is not None:
            return shortened(printable(value), characters)
        case list() | tuple():
            return [_cut(item, items, characters) for item in value[:items]]
        case dict():
            cut = {
                printable(key): _cut(item, items, characters)
                for key, item in islice(value.items(), items)
            }
            for key, item in value.items():
                left_out = _length(item) - items
                if left_out > 0:
                    counter = f"{key}_left_out"
                    cut[counter] = left_out + value.get(counter, 0)
            return cut
        case _:
            return value


def _length(value: object) -> int:
    return len(value) if isinstance(value, (list, tuple)) else 0
