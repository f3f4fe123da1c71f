"""`type: tool_trajectory`: compare the tool calls of an agent with the expected ones.

any_order: met minimums / minimums. in_order: longest common subsequence / expected. exact:
positional matches / max(expected, actual). superset: expected calls that occur / expected. subset:
actual calls that are expected / actual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Literal

from agentv_ci.base.json_values import is_same
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.results import ToolCall
from agentv_ci.contracts.trace_evaluators import ExpectedCall, ToolTrajectoryEvaluator
from agentv_ci.evaluate.scoring import share_met
from agentv_ci.evaluate.submission import EvaluatorServices, Submission

Fits = Callable[[ExpectedCall, ToolCall], bool]
"""Returns whether a call is the expected one."""


async def tool_trajectory(
    settings: ToolTrajectoryEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Compare calls; without a trace the calls are unknown, which is an error."""
    if not submission.response.has_trace:
        return Score(error="no trace: the target, or the stored row, does not report tool calls")
    calls = submission.response.calls
    expected = settings.expected or ()
    fits = partial(_fits, args_match=settings.args_match or "exact")
    match settings.mode:
        case "any_order":
            counts = Counter(call.tool for call in calls)
            return share_met(
                (counts[tool] >= least, f"{tool}: {counts[tool]} of at least {least}")
                for tool, least in (settings.minimums or {}).items()
            )
        case "in_order":
            matched = _common(len(expected), len(calls), lambda i, j: fits(expected[i], calls[j]))
            return _matched(expected, matched, "in order", "not in order")
        case "exact":
            return share_met(
                _in_place(f"call {number}", each, call, fits)
                for number, (each, call) in enumerate(zip_longest(expected, calls), 1)
            )
        case "superset":
            partners = _partners(
                len(expected), len(calls), lambda i, j: fits(expected[i], calls[j])
            )
            return _matched(expected, partners, "was called", "was not called as expected")
        case "subset":
            partners = _partners(
                len(calls), len(expected), lambda i, j: fits(expected[j], calls[i])
            )
            return _matched(calls, partners, "is expected", "was called and is not expected")


def _matched(
    calls: Sequence[ExpectedCall | ToolCall], matched: Container[int], hit: str, miss: str
) -> Score:
    """Return the share of matched calls; findings end with `hit` or `miss`."""
    return share_met(
        (index in matched, f"{call.tool} {hit if index in matched else miss}")
        for index, call in enumerate(calls)
    )


def _in_place(
    place: str, expected: ExpectedCall | None, made: ToolCall | None, fits: Fits
) -> tuple[bool, str]:
    """Return whether the call at a position is the expected one, and the finding."""
    if expected is None or made is None:
        return False, f"{place}: {_name(made)} instead of {_name(expected)}"
    if fits(expected, made):
        return True, f"{place}: {expected.tool}"
    other_input = " (other input)" if expected.tool == made.tool else ""
    return False, f"{place}: {made.tool} instead of {expected.tool}{other_input}"


def _name(call: ExpectedCall | ToolCall | None) -> str:
    if call is None:
        return "nothing"
    return call.tool


def _fits(
    expected: ExpectedCall, made: ToolCall, *, args_match: Literal["exact", "subset", "ignore"]
) -> bool:
    if expected.tool != made.tool:
        return False
    match "ignore" if expected.input is None else args_match:
        case "ignore":
            return True
        case "exact":
            return is_same(expected.input, made.input)
        case "subset":
            return _is_part(expected.input, made.input)


def _is_part(part: JsonValue, whole: JsonValue) -> bool:
    """Whether every key of `part` is in `whole` with the same value."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and _is_part(part[key], whole[key]) for key in part
        )
    return is_same(part, whole)


def _partners(rows: int, columns: int, fits: Callable[[int, int], bool]) -> set[int]:
    """Return the rows that have a column in a maximum matching (augmenting paths, Kuhn 1955)."""
    fitting = [[column for column in range(columns) if fits(row, column)] for row in range(rows)]
    row_of: dict[int, int] = {}
    column_of: dict[int, int] = {}
    dead: set[int] = set()  # columns that lead to no free column; later rows cannot change that
    for row in range(rows):
        came_from: dict[int, int] = {}
        column = _free_column(row, fitting, row_of, came_from, dead)
        if column is None:
            dead |= came_from.keys()
        while column is not None:  # flip the path: each row takes the column it led to
            taker = came_from[column]
            row_of[column] = taker
            column_of[taker], column = column, column_of.get(taker)
    return {*column_of}


def _free_column(
    row: int,
    fitting: Sequence[Sequence[int]],
    row_of: Mapping[int, int],
    came_from: dict[int, int],
    dead: set[int],
) -> int | None:
    """Return a free column at the end of an augmenting path from a row.

    Fills `came_from` with the path.
    """
    waiting = [row]
    while waiting:
        each = waiting.pop()
        for column in fitting[each]:
            if column in came_from or column in dead:
                continue
            came_from[column] = each
            if column not in row_of:
                return column
            waiting.append(row_of[column])
    return None


def _common(rows: int, columns: int, same: Callable[[int, int], bool]) -> set[int]:
    """Return which rows belong to a longest common subsequence."""
    lengths = [[0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            if same(i, j):
                lengths[i][j] = lengths[i + 1][j + 1] + 1
            else:
                lengths[i][j] = max(lengths[i + 1][j], lengths[i][j + 1])
    found: set[int] = set()
    i = j = 0
    while i < rows and j < columns:
        if same(i, j):
            found.add(i)
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return found
