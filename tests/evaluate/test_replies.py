"""Scores and checks are read from the replies of scripts and judges."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan import PlanRubric
from agentv_ci.evaluate.judging import criteria_text
from agentv_ci.evaluate.replies import first_object, last_score, read_checks, read_score

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
A = PlanRubric(id="a", description="Is kind")
B = PlanRubric(id="b", description="Is short", weight=3, required=False)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('My verdict:\n```json\n{"score": 1}\n```. Done. {"score": 2}', {"score": 1}),
        ('{not json} {"score": 1}', {"score": 1}),
        ('{{{"score": 1}}}', {"score": 1}),
        ('{"score": float, "hits": string[], "misses": string[], "reasoning": string} {"score": 1}', {"score": 1}),
        ("{}", {}),
        ('Of {a, b} and {{x}} I think: {"score": "0.2"} {"score": 0.9}', {"score": "0.2"}),
        ('{"score": 0.1, "misses": [{"score": 1}]}', {"score": 0.1, "misses": [{"score": 1}]}),
        ('{"why": "no\nno"}', {"why": "no\nno"}),
        ('"{" and {"a": "}{"}', {"a": "}{"}),
        ('{"a": "\\ud83d\\ude00 \\ud800"}', {"a": "😀 \ufffd"}),
        ('{"a": NaN, "b": [Infinity]}', {"a": None, "b": [None]}),
        ('{"score": 1', None),
        ('{"score": 0.1, "reasoning": "It only writes {"score": 1.0} and says nothing."}', None),
        ('{"score": 0.1, "misses": [{"score": 1.0}], "reasoning": "no, it on', None),
        ('{"score": 0.1, "why": ' + "[" * 300 + '{"score": 1.0}' + "]" * 300 + "}", None),
        ('{"a":' * 5000, None),
        ('{"a": ' + "1" * 5000 + '} {"score": 1}', None),
        ('{"%s": {"score": 1}, no' % ("\\u0041" * 201), None),
        ('{%s"quoted": {"score": 1}, no' % (" " * 1_001), None),
    ],
)
def test_first_object_of_a_text_is_read(text: str, found: dict[str, Any] | None) -> None:
    assert first_object(text) == found


@settings(max_examples=50)
@given(
    st.text(st.characters(exclude_characters="{")),
    st.dictionaries(st.text().filter(lambda key: len(key) < 200), VALUES, max_size=3),
    st.text(),
)
def test_first_object_is_found_in_any_text(before: str, value: dict[str, Any], after: str) -> None:
    assert first_object(before + json.dumps(value) + after) == value


@pytest.mark.parametrize(
    "text", ["{" * 200_000, "{'a': 1, 'b': 'x'}\n" * 50_000, "x" * 1_000_000 + "{x} " * 100_000], ids=len
)
def test_long_texts_are_read(text: str) -> None:
    assert first_object(text) is None


@given(st.lists(st.dictionaries(st.sampled_from(["score", "x"]), st.sampled_from([0, 0.5, 1, {"score": 1}, "y"]))))
def test_last_object_with_a_score_counts(objects: list[dict[str, Any]]) -> None:
    scores = [each["score"] for each in objects if isinstance(each.get("score"), (int, float))]
    found = last_score(" and ".join(map(json.dumps, objects)))
    assert (found.score if found else None) == (scores[-1] if scores else None)
    assert last_score(f'{json.dumps(objects)} {{"quoted": {{"score": 0.5}}, no}}') is None


@pytest.mark.parametrize(
    ("value", "score"), [(0.25, 0.25), (1, 1.0), (" 1e-1 ", 0.1), (7, 7.0), (-3.5, -3.5), ("12", 12.0)]
)
def test_score_is_any_finite_number(value: Any, score: float) -> None:
    assert read_score({"score": value}) == Score(score)


@pytest.mark.parametrize(
    "value",
    [None, True, [1], {"value": 1}, float("nan"), float("-inf"), 10**400, *("", "high", "80%", "0,5", "nan", "1e999")],
)
def test_other_scores_are_unreadable(value: Any) -> None:
    assert read_score({"score": value}) is None
    assert read_score({"hits": ["all of it"]}) is None


@pytest.mark.parametrize("key", ["hits", "misses"])
@pytest.mark.parametrize(
    ("value", "texts"), [([" a ", "", "\n", 1, None, ["b"], {"c": 1}, True], ("a",)), (None, ()), ({"a": 1}, ())]
)
def test_findings_are_the_texts_of_a_list(key: str, value: Any, texts: tuple[str, ...]) -> None:
    assert getattr(read_score({"score": 1, key: value}), key) == texts


@pytest.mark.parametrize(("most", "kept"), [({}, 4), ({"most": None}, 6)])
def test_most_findings_of_a_judge_are_four(most: dict[str, None], kept: int) -> None:
    many: Any = ["", *"abcdef"]
    found = read_score({"score": 1, "hits": many, "misses": many}, **most)
    assert found == Score(1.0, hits=tuple(many[1 : kept + 1]), misses=tuple(many[1 : kept + 1]))


@pytest.mark.parametrize(("value", "text"), [(" why ", "why"), (None, ""), (5, ""), (["why"], "")])
def test_reasoning_is_a_text_or_empty(value: Any, text: str) -> None:
    assert read_score({"score": 1, "reasoning": value}) == Score(1.0, reasoning=text)


def check(name: Any, satisfied: Any = "true", reasoning: Any = "") -> dict[str, Any]:
    return {"id": name, "satisfied": satisfied, "reasoning": reasoning}


def read(*checks: Any, rubrics: tuple[PlanRubric, ...] = (A, B), **more: Any) -> Score | None:
    return read_checks({"checks": [*checks], **more}, rubrics)


def test_criteria_are_listed_one_per_line() -> None:
    long = PlanRubric(id="c", description="  Says\n  more\tthan\r\n[d] one\u2028line  ")
    assert criteria_text((A, B, long)) == "[a] Is kind\n[b] Is short\n[c] Says more than [d] one line"


@pytest.mark.parametrize(
    ("checks", "score", "misses_required"),
    [
        ([check("a"), check("b")], 1.0, False),
        ([check("b"), "a", None, 5, check("a")], 1.0, False),
        ([check("a"), check("b", satisfied=False)], 0.25, False),
        ([check("a", satisfied=False), check("b")], 0.75, True),
        ([check("a")], 0.25, False),
        ([check("b")], 0.75, True),
        ([check("a"), check("a", satisfied=True)], 0.25, False),
    ],
)
def test_score_is_the_weight_of_met_criteria_over_all(checks: list[Any], score: float, misses_required: bool) -> None:
    found = read(*checks)
    assert found is not None
    assert (found.score, found.misses_required) == (score, misses_required)


def test_findings_have_the_reasoning_in_the_order_of_the_criteria() -> None:
    checks = check("b", satisfied=False, reasoning="  far\n too long "), check("a", reasoning="says please")
    hits, misses = ("[a] Is kind: says please",), ("[b] Is short: far too long",)
    assert read(*checks, overall_reasoning=" kind\nbut long ") == Score(
        0.25, hits=hits, misses=misses, reasoning="kind but long"
    )
    assert getattr(read(check("b")), "misses", None) == ("[a] Is kind: missing in the judge's reply",)


@pytest.mark.parametrize("reasoning", [None, "  ", 5, ["x"], {}])
def test_reasoning_of_checks_may_be_missing(reasoning: object) -> None:
    found = read(check("a", reasoning=reasoning), check("b", reasoning=reasoning), overall_reasoning=reasoning)
    assert found == Score(1.0, hits=("[a] Is kind", "[b] Is short"))


@pytest.mark.parametrize(
    ("satisfied", "score"),
    [
        (True, 1.0),
        ("true", 1.0),
        (" TRUE\n", 1.0),
        (False, 0.0),
        ("\tFalse ", 0.0),
        *((value, None) for value in (None, 1, 0, 1.0, "", "yes", "no", "1", "true.", [True], {"value": True})),
    ],
)
def test_check_is_true_or_false(satisfied: object, score: float | None) -> None:
    found = read(check("a", satisfied), rubrics=(A,))
    assert (found and found.score) == score


@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True), ("true", "false")])
def test_contradicting_checks_are_unreadable(first: object, second: object) -> None:
    assert read(check("a", first), check("b"), check("[a]", second)) is None


@pytest.mark.parametrize("unknown", ["c", "A", "a b", "rubric-1", "", None, 1, ["a"], {"id": "a"}])
def test_check_of_an_unknown_criterion_is_ignored(unknown: object) -> None:
    for satisfied in (False, None, "maybe"):
        found = read(check(unknown, satisfied), check("a"), check("b"))
        assert found is not None
        assert found.score == 1.0


@pytest.mark.parametrize("name", ["a", "[a]", " a ", " [a]\n"])
def test_id_may_be_in_brackets(name: str) -> None:
    assert read(check(name), rubrics=(A,)) == Score(1.0, hits=("[a] Is kind",))


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"checks": []},
        {"checks": {"a": True}},
        {"checks": ["a", None, 1, ["a"]]},
        {"checks": [{"id": "a"}]},
        {"checks": [{"id": "c", "satisfied": True}]},
        {"score": 1.0, "hits": ["a"], "misses": []},
    ],
)
def test_reply_without_checks_is_unreadable(reply: dict[str, Any]) -> None:
    assert read_checks(reply, (A, B)) is None


def test_weights_may_be_zero_or_extreme() -> None:
    weightless = A.model_copy(update={"weight": 0.0})
    assert read(check("a"), rubrics=(weightless,)) == Score(0.0, hits=("[a] Is kind",), weighs_nothing=True)
    found = read(check("a", satisfied=False), check("b"), rubrics=(weightless, B))
    assert found is not None
    assert (found.score, found.misses_required, found.weighs_nothing) == (1.0, True, False)
    for weight in (1e308, 5e-324):
        rubrics = tuple(each.model_copy(update={"weight": weight}) for each in (A, B))
        assert getattr(read(check("a"), check("b", satisfied=False), rubrics=rubrics), "score", None) == 0.5


@settings(max_examples=50)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.booleans()), min_size=1, max_size=8), st.randoms())
def test_every_criterion_is_a_hit_or_a_miss(criteria: list[tuple[bool, int, bool]], random: Any) -> None:
    rubrics = tuple(
        PlanRubric(id=f"r{number}", description="d", weight=weight, required=required)
        for number, (_, weight, required) in enumerate(criteria)
    )
    checks = [check(f"r{number}", satisfied) for number, (satisfied, _, _) in enumerate(criteria)]
    random.shuffle(checks)
    found = read(*checks, rubrics=rubrics)
    assert found is not None
    assert len(found.hits) == sum(satisfied for satisfied, _, _ in criteria)
    assert len(found.hits) + len(found.misses) == len(rubrics)
    total = sum(weight for _, weight, _ in criteria)
    assert found.score == pytest.approx(sum(w for yes, w, _ in criteria if yes) / total if total else 0.0, abs=1e-6)
    assert found.misses_required is any(required and not satisfied for satisfied, _, required in criteria)
