"""What a comparison says of the older side, and of how small a drop it could have seen."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agentv_ci.analysis.baseline import outcome_of
from agentv_ci.analysis.comparison import Side, compare_sides
from agentv_ci.analysis.inference import mcnemar
from agentv_ci.contracts.comparison import BaselineCase, Comparison
from tests.support import NOW


def side(passes: list[bool], *, measured: str | None = None, digest: str = "d") -> Side:
    """A run of one trial a case."""
    cases = (
        BaselineCase(
            suite="a.yaml",
            id=f"case-{n}",
            target="t",
            verdict="pass" if each else "fail",
            mean=float(each),
            passed=(1,) if each else (),
            missed=() if each else (1,),
            digest=digest * 64,
        )
        for n, each in enumerate(passes)
    )
    return Side("base.json", tuple(map(outcome_of, cases)), measured)


def compared(base: Side, head: Side) -> Comparison:
    return compare_sides(base, head, now=NOW)


@pytest.mark.parametrize(("days", "said"), [(29, ()), (30, ()), (31, ("base.json is 31 days old",)), (-5, ())])
def test_an_old_baseline_is_named(days: int, said: tuple[str, ...]) -> None:
    base = side([True], measured=(NOW - timedelta(days=days)).isoformat())
    assert compared(base, side([True])).warnings == said


def test_cases_with_another_digest_are_named() -> None:
    found = compared(side([True, True], digest="0"), side([True, True], digest="1"))
    assert found.warnings == ("2 cases changed since base.json (case or target): case-0, case-1",)


@pytest.mark.parametrize("cases", [5, 6, 20, 100])
def test_the_smallest_drop_is_the_first_that_the_test_calls_one(cases: int) -> None:
    figure = compared(side([True] * cases), side([True] * cases)).pass_rate
    assert figure is not None
    if cases < 6:
        assert figure.detectable is None
        return
    assert figure.detectable == pytest.approx(6 / cases)
    assert mcnemar(6, 0) <= 0.05 < mcnemar(5, 0)
    lost = compared(side([True] * cases), side([False] * 6 + [True] * (cases - 6))).pass_rate
    assert lost is not None
    assert lost.falls
