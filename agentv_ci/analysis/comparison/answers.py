"""Rows of both sides of a comparison → the answers of the cases that got worse."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from agentv_ci.base.text import shortened
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.comparison import ComparedCase, Comparison, ShownAnswer
from agentv_ci.contracts.results import ResultRow

MAX_CASES = 20
MAX_ANSWER = 2_000
"""Characters."""
MAX_CALLS = 50

Rows = Callable[[], Iterable[ResultRow]]
"""Reads rows, of which only fields and properties are used."""


def with_answers(comparison: Comparison, base: Rows | None, head: Rows | None) -> Comparison:
    """Return a comparison with an answer of each side of the cases that got worse.

    Of the older side it is one that passed, of the newer side one that did not, if there are any.
    A side without rows is None. Raises what reading the rows raises.
    """
    worse = [case.key for case in comparison.cases if _is_worse(case)][:MAX_CASES]
    if base is None or head is None or not worse:
        return comparison

    def key_of_base(key: CaseKey) -> tuple[str, ...]:
        return key if comparison.by_target else key[:2]

    before = _chosen(base(), key_of_base, set(map(key_of_base, worse)), passing=True)
    now = _chosen(head(), lambda key: key, set(worse), passing=False)

    def shown(case: ComparedCase) -> ComparedCase:
        if case.key not in worse:
            return case
        old, new = before.get(key_of_base(case.key)), now.get(case.key)
        return case.model_copy(update={"answer_before": old, "answer_now": new})

    return comparison.model_copy(update={"cases": tuple(map(shown, comparison.cases))})


def _is_worse(case: ComparedCase) -> bool:
    if case.base is None or case.head is None or case.left_out:
        return False
    before, now = case.base, case.head
    return case.change == "regressed" or now.passed * before.graded < before.passed * now.graded


def _chosen(
    rows: Iterable[ResultRow],
    key_of: Callable[[CaseKey], tuple[str, ...]],
    wanted: Collection[tuple[str, ...]],
    *,
    passing: bool,
) -> dict[tuple[str, ...], ShownAnswer]:
    """Return the first answer of each case that passed, or that did not; else its first one."""
    chosen: dict[tuple[str, ...], ResultRow] = {}
    for row in rows:
        key = key_of(row.case_key)
        if key not in wanted:
            continue
        known = chosen.setdefault(key, row)
        if (known.verdict == "pass") != passing and (row.verdict == "pass") == passing:
            chosen[key] = row
    return {key: _shown(row) for key, row in chosen.items()}


def _shown(row: ResultRow) -> ShownAnswer:
    return ShownAnswer(
        trial=row.trial,
        answer=shortened(row.candidate_answer, MAX_ANSWER),
        error=shortened(row.error, MAX_ANSWER) if row.error is not None else None,
        tool_calls=tuple(call.tool for call in row.tool_calls[:MAX_CALLS]),
    )
