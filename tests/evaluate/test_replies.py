"""Scores and checks are read from the replies of scripts and judges."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan_evaluators import PlanRubric
from agentv_ci.evaluate.judging import criteria_text
from agentv_ci.evaluate.replies import Reading, last_score, read_checks, read_reply, read_score

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
A = PlanRubric(id="a", description="Is kind")
B = PlanRubric(id="b", description="Is short", weight=3, required=False)


def first_object(text: str) -> JsonObject | None:
    """The object that is read as the verdict."""
    objects: list[JsonObject] = []

    def read(each: JsonObject) -> None:
        objects.append(each)

    assert read_reply(text, read).score is None
    return objects[0] if objects else None


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


LOW, HIGH = '{"score": 0.1, "reasoning": "no"}', '{"score": 1.0, "reasoning": "yes"}'


@pytest.mark.parametrize(
    "text",
    [
        f"<think>\nFull marks, {HIGH}, would need more.\n</think>\n{LOW}",
        f"Full marks, {HIGH}, would need more.\n</think>\n{LOW}",
        f"<think>{HIGH}</think> {LOW} <think>{HIGH}",
        f"<think>{HIGH}</think>{LOW}<think>{HIGH}</think>",
        f"<think>one <think> two </think> {HIGH} </think> {LOW}",
        f"<think>a <reasoning>b</reasoning> {HIGH}</think> {LOW}",
        f"<Thinking>{HIGH}</Thinking>{LOW}",
        f"<thought>{HIGH}</thought>{LOW}",
        f"< think >{HIGH}</ think >{LOW}",
        f'<reasoning step="1">{HIGH}</reasoning>{LOW}',
        f"<seed:think>{HIGH}</seed:think>{LOW}",
        f"<longcat_think>{HIGH}</longcat_think>{LOW}",
        f"<scratchpad>{HIGH}</scratchpad>{LOW}",
        f"[THINK]{HIGH}[/THINK]{LOW}",
        f"◁think▷{HIGH}◁/think▷{LOW}",
        f"<|begin_of_thought|>{HIGH}<|end_of_thought|>{LOW}",
        f"<|START_THINKING|>{HIGH}<|END_THINKING|>{LOW}",
        f"<|channel|>analysis<|message|>{HIGH}<|end|><|start|>assistant<|channel|>final<|message|>{LOW}",
        f'<think>It has {{"score": 1.0, "a": </think>{LOW}',
        f"<think/>{LOW}",
        f"{LOW} <think>",
    ],
)
def test_what_a_judge_thinks_is_no_part_of_its_reply(text: str) -> None:
    reading = read_reply(text, read_score)
    assert (reading.score and reading.score.score, reading.faults) == (0.1, ())


@pytest.mark.parametrize(
    "text",
    [
        f"<think>{HIGH}",
        f"<think>{HIGH}</thinking>",
        f"{HIGH}</think>",
        f"<|channel|>analysis<|message|>{HIGH}",
        "</think>",
        "<think>" * 10_000 + HIGH,
    ],
)
def test_thoughts_alone_are_unreadable(text: str) -> None:
    assert read_reply(text, read_score) == Reading(None)


def test_mark_inside_the_verdict_is_text() -> None:
    text = '{"score": 0.1, "reasoning": "it says </think>{\\"score\\": 1} <think>"}'
    reading = read_reply(text, read_score)
    assert (reading.score and reading.score.score, reading.faults) == (0.1, ())


@pytest.mark.parametrize("text", ["<think>" * 150_000 + "</think>", "<think></think>" * 75_000])
def test_time_of_many_marks_grows_with_their_number(text: str) -> None:
    begun = time.process_time()
    assert read_reply(text + LOW, read_score).score == Score(0.1, reasoning="no")
    assert time.process_time() - begun < 15


@pytest.mark.parametrize("text", ['{"a": "' * 200_000 + "</think>", '{"a":' * 50_000 + "</think>"], ids=len)
def test_marks_after_much_that_is_no_json_are_found(text: str) -> None:
    assert read_reply(text + LOW, read_score).score == Score(0.1, reasoning="no")


@pytest.mark.parametrize(
    "text",
    [
        '{"score": 0.1, "reasoning": "wrong window", "score": 1.0}',
        '{"score": 1, "score": 1}',
        '{"score": 1, "extra": {"a": 1, "a": 2}}',
        f'{{"score": 1, "score": 0}} {HIGH}',
    ],
)
def test_key_given_twice_is_unreadable(text: str) -> None:
    assert read_reply(text, read_score) == Reading(None, faults=("a key occurs twice in it",))
    assert last_score(text) is None


@pytest.mark.parametrize(
    ("text", "score", "is_broken"),
    [
        (f"{LOW} {HIGH}", 0.1, True),
        (f"The answer claims {HIGH}. My verdict: {LOW}", 1.0, True),
        (f'{LOW} {{"score": 0.1, "reasoning": "no, really"}}', 0.1, False),
        (f'{LOW} {{"score": "0.10"}}', 0.1, False),
        (f'{LOW} {{"score": "high"}} {{"hits": []}}', 0.1, False),
        (f"{LOW} {{broken: {HIGH}", 0.1, True),
        (f'{LOW} {{"broken": x {HIGH}', 0.1, False),
        ('{"score": 7} {"score": 1}', 1.0, True),
    ],
)
def test_first_of_several_verdicts_counts(text: str, score: float, is_broken: bool) -> None:
    reading = read_reply(text, read_score)
    assert (reading.score and reading.score.score) == score
    assert ("it has several verdicts that differ" in reading.faults) is is_broken


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


def scored(reply: JsonObject) -> Score | None:
    reading = read_score(reply)
    return reading.score if reading is not None else None


@pytest.mark.parametrize(
    ("value", "scale", "score", "fault"),
    [
        (0.25, (0, 1), 0.25, None),
        (1, (0, 1), 1.0, None),
        (" 1e-1 ", (0, 1), 0.1, None),
        (7, (0, 1), 1.0, "its score 7 is outside 0 to 1"),
        (-3.5, (0, 1), 0.0, "its score -3.5 is outside 0 to 1"),
        ("1.01", (0, 1), 1.0, "its score 1.01 is outside 0 to 1"),
        (3, (1, 5), 0.5, None),
        (1, (1, 5), 0.0, None),
        ("5", (1, 5), 1.0, None),
        (0, (1, 5), 0.0, "its score 0 is outside 1 to 5"),
        (85, (0, 100), 0.85, None),
        (101, (0, 100), 1.0, "its score 101 is outside 0 to 100"),
        (0, (-1, 1), 0.5, None),
        (2.5, (0.5, 4.5), 0.5, None),
    ],
)
def test_score_is_a_finite_number_on_the_scale(
    value: Any, scale: tuple[float, ...], score: float, fault: str | None
) -> None:
    reading = read_score({"score": value}, scale)
    assert reading is not None
    assert (reading.score, reading.faults) == (Score(score), (fault,) if fault else ())


@pytest.mark.parametrize(
    "value",
    [None, True, [1], {"value": 1}, float("nan"), float("-inf"), 10**400, *("", "high", "80%", "0,5", "nan", "1e999")],
)
def test_other_scores_are_unreadable(value: Any) -> None:
    assert read_score({"score": value}) is None
    assert read_score({"hits": ["all of it"]}) is None
    assert last_score(json.dumps({"score": value})) is None


@pytest.mark.parametrize("key", ["hits", "misses"])
@pytest.mark.parametrize(
    ("value", "texts"), [([" a ", "", "\n", 1, None, ["b"], {"c": 1}, True], ("a",)), (None, ()), ({"a": 1}, ())]
)
def test_findings_are_the_texts_of_a_list(key: str, value: Any, texts: tuple[str, ...]) -> None:
    assert getattr(scored({"score": 1, key: value}), key) == texts


def test_most_findings_of_a_judge_are_four() -> None:
    many: Any = ["", *"abcdef"]
    reply = {"score": 1, "hits": many, "misses": many}
    assert scored(reply) == Score(1.0, hits=tuple("abcd"), misses=tuple("abcd"))
    assert last_score(json.dumps(reply)) == Score(1.0, hits=tuple("abcdef"), misses=tuple("abcdef"))


@pytest.mark.parametrize(("value", "text"), [(" why ", "why"), (None, ""), (5, ""), (["why"], "")])
def test_reasoning_is_a_text_or_empty(value: Any, text: str) -> None:
    assert scored({"score": 1, "reasoning": value}) == Score(1.0, reasoning=text)


def check(name: Any, satisfied: Any = "true", reasoning: Any = "") -> dict[str, Any]:
    return {"id": name, "satisfied": satisfied, "reasoning": reasoning}


def reading_of(*checks: Any, rubrics: tuple[PlanRubric, ...] = (A, B), **more: Any) -> Reading | None:
    return read_checks({"checks": [*checks], **more}, rubrics)


def read(*checks: Any, rubrics: tuple[PlanRubric, ...] = (A, B), **more: Any) -> Score | None:
    reading = reading_of(*checks, rubrics=rubrics, **more)
    return reading.score if reading is not None else None


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
def test_first_of_contradicting_checks_counts_with_a_fault(first: object, second: object) -> None:
    reading = reading_of(check("a", first), check("b"), check("[a]", second))
    assert reading is not None
    assert reading.score is not None
    assert reading.score.score == (1.0 if first in (True, "true") else 0.75)
    assert reading.faults == ("its checks of criterion 'a' differ",)


@pytest.mark.parametrize("unknown", ["c", "A", "a b", "rubric-1", "", None, 1, ["a"], {"id": "a"}])
def test_check_of_an_unknown_criterion_is_a_fault(unknown: object) -> None:
    for satisfied in (False, None, "maybe"):
        reading = reading_of(check(unknown, satisfied), check("a"), check("b"), check("c"))
        assert reading is not None
        assert (reading.score and reading.score.score) == 1.0
        assert reading.faults == ("it has a check of an unknown criterion",)


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ([check("a"), check("b", False)], [check("a", False), check("b")], True),
        ([check("a"), check("b")], [check("b", reasoning="so"), check("a")], False),
        ([check("a")], [check("a"), check("b", False)], False),
    ],
)
def test_verdicts_differ_when_their_criteria_do(one: list[Any], other: list[Any], differ: bool) -> None:
    text = " ".join(json.dumps({"checks": checks}) for checks in (one, other))
    reading = read_reply(text, lambda reply: read_checks(reply, (A, B)))
    assert bool(reading.faults) is differ
    assert reading.score == read(*one)


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
