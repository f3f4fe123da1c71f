"""Whether a case can still pass."""

from __future__ import annotations

from itertools import product
from typing import Literal

import pytest

from agentv_ci.analysis.run_report import report
from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.report import Ending
from agentv_ci.execute.trials import can_pass
from tests.report.builders import case, plan, row

VERDICTS: tuple[Verdict, ...] = ("pass", "fail", "error")


@pytest.mark.parametrize("require", ["majority", "all", "any"])
@pytest.mark.parametrize("trials", [1, 2, 3, 4])
def test_a_case_is_given_up_exactly_when_the_gate_could_not_pass_it(
    trials: int, require: Literal["majority", "all", "any"]
) -> None:
    one = case(trials=trials, require=require)
    for verdicts in product(VERDICTS, repeat=trials):
        for number in range(1, trials + 1):
            missed = sum(verdict != "pass" for verdict in verdicts[:number])
            known = [row(each, of=one, trial=n) for n, each in enumerate(verdicts[:number], 1)]
            best = known + [row("pass", of=one, trial=n) for n in range(number + 1, trials + 1)]
            (outcome,) = report(plan(one), best, Ending())[1]
            if missed:
                assert can_pass(one, missed) == (outcome.verdict == "pass"), verdicts[:number]
