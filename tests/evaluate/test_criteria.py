"""Lists of criteria: how they are shown to a judge, and what is read of its checks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan import PlanRubric
from agentv_ci.evaluate.judging import criteria_text
from agentv_ci.evaluate.replies import read_checks

A = PlanRubric(id="a", description="Is kind")
B = PlanRubric(id="b", description="Is short", weight=3, required=False)
BOTH = (A, B)


def check(name: Any, satisfied: Any = "true", reasoning: Any = "") -> dict[str, Any]:
    return {"id": name, "satisfied": satisfied, "reasoning": reasoning}


def read(*checks: Any, rubrics: tuple[PlanRubric, ...] = BOTH, **more: Any) -> Score | None:
    return read_checks({"checks": [*checks], **more}, rubrics)


def score_of(*checks: Any, rubrics: tuple[PlanRubric, ...] = BOTH) -> float:
    found = read(*checks, rubrics=rubrics)
    assert found is not None
    return found.score


def test_criteria_stand_one_a_line_with_their_ids() -> None:
    long = PlanRubric(id="c", description="  Says\n  more\tthan one\r\nline  ")
    assert criteria_text((A, B, long)) == "[a] Is kind\n[b] Is short\n[c] Says more than one line"


@pytest.mark.parametrize(
    ("checks", "score"),
    [
        ([check("a"), check("b")], 1.0),
        ([check("a"), check("b", satisfied=False)], 0.25),
        ([check("a", satisfied=False), check("b")], 0.75),
        ([check("a", satisfied=False), check("b", satisfied=False)], 0.0),
        ([check("a")], 0.25),
        ([check("b")], 0.75),
        ([check("b"), check("a")], 1.0),
    ],
)
def test_score_is_the_weight_of_what_is_satisfied_by_the_weight_of_all(
    checks: list[dict[str, Any]], score: float
) -> None:
    assert score_of(*checks) == score


def test_findings_tell_criterion_and_reasoning_in_the_authors_order() -> None:
    found = read(
        check("b", satisfied=False, reasoning="  far\n too long "),
        check("a", reasoning="says please"),
        overall_reasoning=" kind\nbut long ",
    )
    assert found == Score(
        0.25,
        hits=("[a] Is kind: says please",),
        misses=("[b] Is short: far too long",),
        reasoning="kind but long",
    )


def test_criterion_that_is_left_out_is_a_miss_that_says_so() -> None:
    found = read(check("b"))
    assert found is not None
    assert found.misses == ("[a] Is kind: missing in the judge's reply",)


@pytest.mark.parametrize("reasoning", [None, "", "  ", 5, ["x"], {}])
def test_finding_needs_no_reasoning(reasoning: object) -> None:
    found = read(check("a", reasoning=reasoning), check("b", reasoning=reasoning), overall_reasoning=reasoning)
    assert found == Score(1.0, hits=("[a] Is kind", "[b] Is short"))


@pytest.mark.parametrize(
    ("checks", "misses_required"),
    [
        ([check("a"), check("b", satisfied=False)], False),
        ([check("a", satisfied=False), check("b")], True),
        ([check("b")], True),
        ([check("a")], False),
    ],
)
def test_required_criterion_that_is_not_met_is_told(checks: list[dict[str, Any]], misses_required: bool) -> None:
    found = read(*checks)
    assert found is not None
    assert found.misses_required is misses_required


@pytest.mark.parametrize("satisfied", [True, "true", "True", " TRUE\n"])
def test_yes_is_true_or_the_word(satisfied: object) -> None:
    assert score_of(check("a", satisfied), rubrics=(A,)) == 1.0


@pytest.mark.parametrize("satisfied", [False, "false", "False", "\tFALSE "])
def test_no_is_false_or_the_word(satisfied: object) -> None:
    assert score_of(check("a", satisfied), rubrics=(A,)) == 0.0


@pytest.mark.parametrize("satisfied", [None, 1, 0, 1.0, "", "yes", "no", "1", "true.", [True], {"value": True}])
def test_reply_is_unreadable_when_a_check_says_neither_yes_nor_no(satisfied: object) -> None:
    assert read(check("a", satisfied), check("b")) is None


def test_reply_is_unreadable_when_a_check_has_no_verdict() -> None:
    assert read({"id": "a"}, check("b")) is None


@pytest.mark.parametrize("first", [True, False, "true"])
def test_reply_is_unreadable_when_it_says_one_thing_and_its_opposite(first: object) -> None:
    second = first is False
    assert read(check("a", first), check("b"), check("a", second if first is not True else "false")) is None


def test_check_that_is_repeated_counts_once() -> None:
    found = read(check("a", reasoning="first"), check("a", satisfied="true", reasoning="second"))
    assert found is not None
    assert (found.score, found.hits) == (0.25, ("[a] Is kind: second",))


@pytest.mark.parametrize("unknown", ["c", "A", "a b", "rubric-1", "", None, 1, ["a"], {"id": "a"}])
@pytest.mark.parametrize("satisfied", [True, False, None, "maybe"])
def test_check_of_an_unknown_criterion_counts_nowhere(unknown: object, satisfied: object) -> None:
    assert score_of(check(unknown, satisfied), check("a"), check("b")) == 1.0


@pytest.mark.parametrize("name", ["a", "[a]", " a ", " [a]\n"])
def test_id_may_stand_in_brackets_as_it_is_shown(name: str) -> None:
    assert score_of(check(name), rubrics=(A,)) == 1.0


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"checks": None},
        {"checks": []},
        {"checks": {}},
        {"checks": {"a": True}},
        {"checks": "a"},
        {"checks": ["a", None, 1, ["a"]]},
        {"checks": [{}]},
        {"checks": [{"id": "c", "satisfied": True}]},
        {"id": "a", "satisfied": True},
        {"score": 1.0, "hits": ["a"], "misses": []},
        {"overall_reasoning": "all is well"},
    ],
)
def test_reply_is_unreadable_when_it_checks_nothing_that_was_asked(reply: dict[str, Any]) -> None:
    assert read_checks(reply, BOTH) is None


def test_what_is_no_object_among_the_checks_is_passed_over() -> None:
    assert score_of("a", None, check("a"), 5, check("b")) == 1.0


def test_score_is_zero_when_all_weights_are() -> None:
    found = read(check("a"), rubrics=(A.model_copy(update={"weight": 0.0}),))
    assert found == Score(0.0, hits=("[a] Is kind",), weighs_nothing=True)


def test_criterion_without_weight_may_still_be_required() -> None:
    rubrics = (A.model_copy(update={"weight": 0.0}), B)
    found = read(check("a", satisfied=False), check("b"), rubrics=rubrics)
    assert found is not None
    assert (found.score, found.misses_required) == (1.0, True)


@settings(derandomize=True, max_examples=50)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.booleans()), min_size=1, max_size=8), st.randoms())
def test_every_criterion_is_either_a_hit_or_a_miss(given_: list[tuple[bool, int, bool]], chance: Any) -> None:
    rubrics = tuple(
        PlanRubric(id=f"r{number}", description="d", weight=weight, required=required)
        for number, (_, weight, required) in enumerate(given_)
    )
    checks = [check(f"r{number}", satisfied) for number, (satisfied, _, _) in enumerate(given_)]
    chance.shuffle(checks)
    found = read(*checks, rubrics=rubrics)
    assert found is not None
    assert len(found.hits) == sum(satisfied for satisfied, _, _ in given_)
    assert len(found.hits) + len(found.misses) == len(rubrics)
    total = sum(weight for _, weight, _ in given_)
    assert found.score == pytest.approx(sum(w for yes, w, _ in given_ if yes) / total if total else 0.0, abs=1e-6)
    assert found.misses_required is any(required and not satisfied for satisfied, _, required in given_)
