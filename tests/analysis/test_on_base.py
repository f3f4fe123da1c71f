"""What a case does on the base branch, by its last runs there."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agentv_ci.analysis.cases.on_base import OnBase, in_history
from agentv_ci.contracts.ledger import CaseLine
from tests.support.ledgers import case_line, ledger_of
from tests.support.runs import case as planned
from tests.support.runs import outcomes_of, plan, rows_of

PASS, FAIL, ERROR = case_line(passed=3, graded=3), case_line(passed=0, graded=3), case_line(graded=0)
CRASH = case_line(passed=0, graded=3, crashed=3, verdict="error")
DISAGREE = case_line(passed=2, graded=3)
(KNOWN,) = outcomes_of(plan(planned("one", suite="evals/a.yaml")), rows_of(planned("one", suite="evals/a.yaml"), "f"))
BEFORE_EDIT = case_line(passed=0, graded=3, digest="e" * 64)


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        ([PASS] * 3, OnBase("green", 9, 9)),
        ([PASS] * 12, OnBase("green", 30, 30)),
        ([FAIL] + [PASS] * 10, OnBase("green", 30, 30, "2026-01-02")),
        ([FAIL] * 8 + [PASS] * 2, OnBase("green", 6, 6, "2026-01-09")),
        ([PASS] * 2 + [FAIL] * 3, OnBase("red", 9, 0, "2026-01-03")),
        ([FAIL] * 3, OnBase("red", 9, 0)),
        ([PASS] * 2 + [CRASH] * 3, OnBase("red", 9, 0, "2026-01-03")),
        ([PASS, FAIL, PASS], OnBase("flaky", 9, 6)),
        ([PASS] * 2 + [DISAGREE], OnBase("flaky", 9, 8)),
        ([PASS, ERROR, PASS], OnBase("green", 6, 6)),
        ([BEFORE_EDIT, PASS, BEFORE_EDIT, PASS, PASS], OnBase("green", 6, 6, "2026-01-04")),
        ([PASS, BEFORE_EDIT, ERROR], None),
        ([ERROR] * 3, None),
    ],
)
def test_state_of_a_case(lines: Sequence[CaseLine], state: OnBase | None) -> None:
    known = in_history([KNOWN], ledger_of(*([each] for each in lines)))
    assert known.get(KNOWN.key) == state
