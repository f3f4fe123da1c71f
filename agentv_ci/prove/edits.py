"""Mistakes as edits of a text."""

from __future__ import annotations

import re

from msgspec import Struct

from agentv_ci.base.text import shortened
from agentv_ci.contracts.gate import Operator

LONGEST = 60
"""Characters of a text that a change quotes."""
FIGURE = re.compile(r"\d+(?:[.,]\d+)*")


class Edit(Struct, frozen=True):
    """One mistake: another text at a place."""

    operator: Operator
    change: str
    """What is done, in a few words."""
    begin: int
    end: int
    other: str

    def of(self, text: str) -> str:
        """Return a text with this mistake."""
        return text[: self.begin] + self.other + text[self.end :]


def became(before: str, after: str) -> str:
    """Return a change in a few words."""
    change = f"{before} became {after}" if after else f"{before} is missing"
    return shortened(change, 2 * LONGEST)


def other_figure(figure: str) -> str:
    """Return another number in the same form: of as many digits, unless it has become larger."""
    whole = re.match(r"\d+", figure)
    assert whole is not None, "a figure begins with a digit"
    digits = whole[0]
    head, last = digits[:-SIGNIFICANT], digits[-SIGNIFICANT:]
    return f"{head}{2 * int(last) + 1:0{len(last)}d}{figure[whole.end() :]}"


SIGNIFICANT = 15
"""Last digits of a figure that become others."""
