"""Which annotations are shown: of a whole action GitHub keeps ten a level (actions/runner, `ExecutionContext`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from agentv_ci.contracts.action import Annotation, Level
from agentv_ci.text import counted, shortened

Wish = Literal["all", "failures", "none"]

LIMITS: Mapping[Level, int] = {"error": 9, "warning": 9, "notice": 8}
"""The tenth error is the runner's own, that the step has failed; a notice says what is not shown, another one what
became of the comment."""
MAX_MESSAGE = 4_000
"""Characters; the runner cuts what is longer than 4,096."""


def shown(annotations: Iterable[Annotation], wish: Wish) -> Iterator[Annotation]:
    """Yield those that are to be shown, in their order, and one that counts the others."""
    if wish == "none":
        return
    seen: Counter[Level] = Counter()
    for each in annotations:
        if wish == "failures" and each.level != "error" and not each.is_failure:
            continue
        seen[each.level] += 1
        if seen[each.level] <= LIMITS[each.level]:
            yield replace(each, message=shortened(each.message, MAX_MESSAGE))
    more = [(number - LIMITS[level], level) for level, number in seen.items() if number > LIMITS[level]]
    if more:
        said = ", ".join(counted(number, level) for number, level in more)
        yield Annotation("notice", "More than is shown here", f"{said} more: see the job summary and the reports")
