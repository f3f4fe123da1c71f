"""How far a judge agrees with people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.analysis.agreement import Demands, judge_agreement, kappa, measure
from agentv_ci.contracts.judge_evaluators import LabelledAnswer
from tests.support.runs import case, finding, rows_of

pairs = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=50)


@pytest.mark.parametrize(
    ("yes_yes", "yes_no", "no_yes", "no_no", "expected"),
    [
        # The examples of the article on Cohen's kappa in Wikipedia.
        (20, 5, 10, 15, 0.4),
        (45, 15, 25, 15, 0.1304),
        (25, 35, 5, 35, 0.2593),
        (10, 0, 0, 10, 1.0),
        (0, 10, 10, 0, -1.0),
        (5, 5, 5, 5, 0.0),
        (5, 0, 5, 0, 0.0),
    ],
)
def test_kappa_is_cohens(yes_yes: int, yes_no: int, no_yes: int, no_no: int, expected: float) -> None:
    counted = ((True, True), yes_yes), ((True, False), yes_no), ((False, True), no_yes), ((False, False), no_no)
    assert kappa([pair for pair, number in counted for _ in range(number)]) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("same", [[], [(True, True)] * 3, [(False, False)]])
def test_kappa_is_not_measured_where_chance_alone_would_agree(same: list[tuple[bool, bool]]) -> None:
    assert kappa(same) is None


@given(pairs)
def test_kappa_is_symmetric_and_at_most_one(said: list[tuple[bool, bool]]) -> None:
    found = kappa(said)
    assert found == kappa([(other, one) for one, other in said])
    assert found is None or -1 <= found <= 1
    assert (found == 1) == (found is not None and all(one == other for one, other in said))


def test_judgements_are_in_the_order_of_trials_whatever_the_order_of_rows() -> None:
    of = case(trials=4, threshold=0.5)
    label = LabelledAnswer(id="one", question="q", expected_outcome="o", answer="a", score=0.5)
    rows = [each.model_copy(update={"evaluator_results": (finding("why"),)}) for each in rows_of(of, "fpep")]
    found = measure({"one": label}, [of], rows[::-1])
    (item,) = found.items
    assert [(each.verdict, each.score) for each in item.judgements] == [("fail", 0.2), ("pass", 1.0), ("pass", 1.0)]
    assert (item.expected, item.errors, item.wrong, item.flips) == ("pass", ("it broke",), 1, True)
    assert (found.judgements, found.errors, found.false_fails, found.flip_rate) == (3, 1, 1, 1.0)
    assert found.mean_absolute_error == pytest.approx(1.3 / 3)
    said = ("kappa 0 is below 0.5", "1 error, at most 0 allowed")
    assert judge_agreement(found, Demands(min_kappa=0.5)) == (1, said)
