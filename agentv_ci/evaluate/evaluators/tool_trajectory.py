"""`type: tool_trajectory`: the tools an agent called against those it should have called.

any_order: met minimums / minimums. in_order: longest common subsequence / expected. exact: positional matches /
max(expected, actual). superset: expected calls that occur / expected. subset: actual calls that are expected / actual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Literal

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.evaluators import ExpectedCall, ToolTrajectoryEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.results import ToolCall
from agentv_ci.evaluate.services import EvaluatorServices
from agentv_ci.evaluate.submission import Submission
from agentv_ci.json_values import is_same

Fits = Callable[[ExpectedCall, ToolCall], bool]
"""Whether a call is the expected one."""


async def tool_trajectory(
    settings: ToolTrajectoryEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Compare; an answer without a trace is an error, because no calls and unknown calls are not the same."""
    if not submission.response.has_trace:
        return Score(error="no trace: the target, or the stored row, does not tell of tool calls")
    calls = submission.response.calls
    expected = settings.expected or ()
    fits = partial(_fits, args_match=settings.args_match or "exact")
    match settings.mode:
        case "any_order":
            return _any_order(settings.minimums or {}, calls)
        case "in_order":
            matched = _common(len(expected), len(calls), lambda i, j: fits(expected[i], calls[j]))
            return _matched(expected, {*matched}, "in order", "not in order")
        case "exact":
            return _exact(expected, calls, fits)
        case "superset":
            partners = _partners(len(expected), len(calls), lambda i, j: fits(expected[i], calls[j]))
            return _matched(expected, partners, "was called", "was not called as expected")
        case "subset":
            partners = _partners(len(calls), len(expected), lambda i, j: fits(expected[j], calls[i]))
            return _matched(calls, partners, "is expected", "was called and is not expected")


def _any_order(minimums: Mapping[str, int], calls: Sequence[ToolCall]) -> Score:
    counts = Counter(call.tool for call in calls)
    hits: list[str] = []
    misses: list[str] = []
    for tool, least in minimums.items():
        (hits if counts[tool] >= least else misses).append(f"{tool}: {counts[tool]} of at least {least}")
    return _score(hits, misses)


def _matched(calls: Sequence[ExpectedCall | ToolCall], matched: Container[int], hit: str, miss: str) -> Score:
    """Return the share of calls that are matched; `hit` and `miss` say what that means."""
    hits: list[str] = []
    misses: list[str] = []
    for index, each in enumerate(calls):
        (hits if index in matched else misses).append(f"{each.tool} {hit if index in matched else miss}")
    return _score(hits, misses)


def _exact(expected: Sequence[ExpectedCall], calls: Sequence[ToolCall], fits: Fits) -> Score:
    hits: list[str] = []
    misses: list[str] = []
    for index in range(max(len(expected), len(calls))):
        wanted = expected[index] if index < len(expected) else None
        made = calls[index] if index < len(calls) else None
        place = f"call {index + 1}"
        if wanted is not None and made is not None and fits(wanted, made):
            hits.append(f"{place}: {wanted.tool}")
        else:
            misses.append(f"{place}: {_name(made)} instead of {_name(wanted)}{_about_input(wanted, made)}")
    return _score(hits, misses)


def _fits(wanted: ExpectedCall, made: ToolCall, *, args_match: Literal["exact", "subset", "ignore"]) -> bool:
    if wanted.tool != made.tool:
        return False
    match "ignore" if wanted.input is None else args_match:
        case "ignore":
            return True
        case "exact":
            return is_same(wanted.input, made.input)
        case "subset":
            return _is_part(wanted.input, made.input)


def _is_part(part: JsonValue, whole: JsonValue) -> bool:
    """Whether every key that is asked for is there with what is asked for."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and _is_part(part[key], whole[key]) for key in part)
    return is_same(part, whole)


def _partners(rows: int, columns: int, fits: Callable[[int, int], bool]) -> set[int]:
    """Return the rows that find a column of their own in a largest matching (augmenting paths, Kuhn 1955)."""
    fitting = [[column for column in range(columns) if fits(row, column)] for row in range(rows)]
    partner: dict[int, int] = {}  # column → its row
    dead: set[int] = set()  # columns from which no free one can be reached; no later row changes that
    for row in range(rows):
        partner |= {column: each for each, column in _augmenting_path(row, fitting, partner, dead)}
    return set(partner.values())


def _augmenting_path(
    row: int, fitting: Sequence[Sequence[int]], partner: Mapping[int, int], dead: set[int]
) -> list[tuple[int, int]]:
    """Return the moves, row → column, that give a row a column and leave all others one; [] when there are none."""
    came_from: dict[int, int] = {}
    waiting = [row]
    while waiting:
        each = waiting.pop()
        for column in fitting[each]:
            if column in came_from or column in dead:
                continue
            came_from[column] = each
            if column in partner:
                waiting.append(partner[column])
                continue
            return _moves(column, row, came_from, {taker: taken for taken, taker in partner.items()})
    dead.update(came_from)
    return []


def _moves(
    column: int, first: int, came_from: Mapping[int, int], column_of: Mapping[int, int]
) -> list[tuple[int, int]]:
    moves = [(came_from[column], column)]
    while moves[-1][0] != first:
        column = column_of[moves[-1][0]]
        moves.append((came_from[column], column))
    return moves


def _common(rows: int, columns: int, same: Callable[[int, int], bool]) -> list[int]:
    """Return which rows belong to a longest common subsequence."""
    lengths = [[0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            if same(i, j):
                lengths[i][j] = lengths[i + 1][j + 1] + 1
            else:
                lengths[i][j] = max(lengths[i + 1][j], lengths[i][j + 1])
    found, i, j = [], 0, 0
    while i < rows and j < columns:
        if same(i, j):
            found.append(i)
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return found


def _score(hits: list[str], misses: list[str]) -> Score:
    number = len(hits) + len(misses)
    return Score(len(hits) / number if number else 1.0, hits=tuple(hits), misses=tuple(misses))


def _name(call: ExpectedCall | ToolCall | None) -> str:
    return call.tool if call is not None else "nothing"


def _about_input(wanted: ExpectedCall | None, made: ToolCall | None) -> str:
    return " (other input)" if wanted is not None and made is not None and wanted.tool == made.tool else ""
