"""Wrong answers: null agents, and mutants of the reference answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv_ci.contracts.exchange import ChatMessage
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.prove.answers import WrittenAnswer, reference_of
from agentv_ci.prove.damaged_json import json_edits
from agentv_ci.prove.damaged_text import text_edits
from agentv_ci.prove.mutants import MOST, MOST_PROBES, mutants_of, probes_of
from agentv_ci.prove.null_agents import null_answers
from tests.prove.builders import case, request_of
from tests.support.runs import any_text

CONTAINS = {"type": "contains", "name": "contains", "value": "x"}


def answers(of: PlanCase, *others: str) -> dict[str, WrittenAnswer]:
    tried, _ = null_answers(of, request_of(of), list(map(WrittenAnswer, others)), "0")
    return {each.agent: each.answer for each in tried}


def test_null_agents_of_a_text() -> None:
    found = answers(case("Paris is it. Not Rome."), "Paris is it. Not Rome.", "Oslo")
    assert {name: answer.text for name, answer in found.items()} == {
        "empty": "",
        "echo-prompt": "Which city?",
        "echo-last-message": "Which city?",
        "refusal": "I'm sorry, but I can't help with that request.",
        "dont-know": "I don't know.",
        "other-reference": "Oslo",
    }


@pytest.mark.parametrize(
    ("reference", "evaluator", "left_out"),
    [
        ("Which city?", CONTAINS, {"echo-prompt", "echo-last-message"}),
        ("I can't say that.", CONTAINS, {"refusal", "dont-know"}),
        ("We do not know the city.", CONTAINS, {"refusal", "dont-know"}),
        ("", {"type": "equals", "name": "equals", "value": " "}, {"empty"}),
        ("[]", {"type": "is_json", "name": "is_json"}, {"empty-array"}),
        ("```json\n{}\n```", {"type": "is_json", "name": "is_json"}, {"empty-object"}),
    ],
)
def test_a_right_answer_is_not_that_of_a_null_agent(
    reference: str, evaluator: dict[str, Any], left_out: set[str]
) -> None:
    every = {"empty", "echo-prompt", "echo-last-message", "refusal", "dont-know"}
    every |= {"empty-object", "empty-array"} if evaluator["type"] == "is_json" else set()
    assert answers(case(reference, evaluators=[evaluator])).keys() == every - left_out


def test_a_case_that_asks_for_a_refusal_has_no_agent_that_refuses() -> None:
    found = answers(case("", expected_outcome="Declines to give medical advice"))
    assert "refusal" not in found
    assert "empty" in found


def test_the_same_answer_in_more_words_is_not_that_of_another_case() -> None:
    found = answers(case("4"), "4", "It is 4.", "It is 5.")
    assert found["other-reference"].text == "It is 5."
    assert "other-reference" not in answers(case("It is 4."), "It is 4.", "4", "is 4, it is")


def test_the_last_message_of_a_conversation_is_echoed() -> None:
    one = case("Paris")
    chat = (ChatMessage("user", "Hello"), ChatMessage("assistant", "Yes?"), ChatMessage("user", "Which city?"))
    tried, _ = null_answers(one, replace(request_of(one), chat=chat), [], "0")
    found = {each.agent: each.answer.text for each in tried}
    assert found["echo-last-message"] == "Which city?"


def test_mutants_of_tool_calls() -> None:
    given = {"id": 7, "offset": -1, "all": True, "in": ["a"], "by": None, "most": 1e308, "of": [], "at": [None]}
    calls = [{"tool": "find", "input": given}, {"tool": "pay", "input": {}}]
    found = {each.operator: each.answer for each in mutants_of(case("Paid.", calls=calls), "", "0")}
    assert [each.tool for each in found["tool-swapped"].calls] == ["pay", "find"]
    wrong, _ = found["tool-arguments"].calls
    assert wrong.input == {
        "id": 15, "offset": 3, "all": False, "in": ["not a"], "by": "nothing", "most": 0, "of": ["nothing"],
        "at": ["nothing"],
    }  # fmt: skip


@pytest.mark.parametrize("calls", [[{"tool": "find"}], [{"tool": "find"}, {"tool": "find"}]])
def test_calls_that_cannot_be_wrong_are_left_alone(calls: list[Any]) -> None:
    found = mutants_of(case("Done.", calls=calls), "", "0")
    assert {"tool-swapped", "tool-arguments"}.isdisjoint(each.operator for each in found)


@pytest.mark.parametrize(
    ("text", "operator", "damaged"),
    [
        ("It costs 0.99 EUR", "number", {"It costs 1.99 EUR"}),
        ("Call 0142", "number", {"Call 0285"}),
        ("1. Wait two days", "number", {"1. Wait five days"}),
        ("Two of them", "number", {"Five of them"}),
        ("We met Ada Lovelace, not I", "entity", {"We met, not I"}),
        ("Use `x = 1` and T-900 at a@b.example", "entity", {"Use and T-900 at a@b.example"} | {
            "Use `x = 1` and at a@b.example", "Use `x = 1` and T-900 at"}),
        ("Ada is here. Bob too", "entity", set()),
        ("It is safe", "negation", {"It is not safe"}),
        ("It isn't safe, is it", "negation", {"It is safe, is it"}),
        ("No, we can't", "negation", {"Yes, we can't", "No, we can"}),
        ("It goes with us", "negation", set()),
        ("First this. Then that", "sentence-order", {"Then that First this."}),
        ("a\nb\nc", "sentence-order", {"b\nc\na"}),
        ("Only this.", "sentence-order", set()),
        ("```js\na()\nb()\n```", "sentence-order", set()),
        ("We have:\n- red\n- blue", "sentence-order", set()),
        ("One. Two.", "first-sentence", {"One."}),
        ("Table no. 12 is free", "negation", {"Table no. 12 is not free"}),
        ("1234567890123456789", "number", {"12341135780246913579"}),
        ("At most 1200 kg", "unit", {"At most 1200 g"}),
        ("From $5 to 7 EUR", "unit", {"From €5 to 7 EUR", "From $5 to 7 USD"}),
        ("A 30-day trial, two hours of 5min", "unit", {
            "A 30-week trial, two hours of 5min", "A 30-day trial, two minutes of 5min",
            "A 30-day trial, two hours of 5h"}),
        ("20 °C and 5%", "unit", {"20 °F and 5%", "20 °C and 5‰"}),
        ("In the 1990s, 4 G of 3D on the 5th", "unit", set()),
        ("Dogs are allowed. At least 3 of them", "antonym", {
            "Dogs are forbidden. At least 3 of them", "Dogs are allowed. At most 3 of them"}),
        ("```\nadd(1)\n# before\n```\nAdd one", "antonym", {"```\nadd(1)\n# before\n```\nRemove one"}),
        ("First, look before. Is it higher?", "antonym", {"First, look after. Is it higher?"}),
        ("Ms. Lee is here, e.g. at J. Smith vs. Co. Ltd.", "first-sentence", set()),
        ("It is here. Dr. Who left", "first-sentence", {"It is here."}),
        ("So am I. And you?", "first-sentence", {"So am I."}),
        ("Can I help? I am happy to help. It is open", "negation", {"Can I help? I am happy to help. It is not open"}),
        ("Please let me know if it is late. Do not wait", "negation", {"Please let me know if it is late. Do wait"}),
    ],
)  # fmt: skip
def test_damaged_texts(text: str, operator: str, damaged: set[str]) -> None:
    assert {each.of(text) for each in text_edits(text) if each.operator == operator} == damaged


def test_what_the_question_names_is_not_left_out() -> None:
    edits = text_edits("It is Ada of Rome", "Who is of Rome?")
    found = [each.change for each in edits if each.operator == "entity"]
    assert found == ["'Ada' is missing"]


def test_damaged_json_keeps_its_layout() -> None:
    value: Any = {"a": 1, "b": {"c": [True, "d 2"]}}
    text = json.dumps(value)
    found = [(each.operator, each.change, json.loads(each.of(text))) for each in json_edits(text, {})]
    assert found == [
        ("json-field-removed", "'a' is missing", {"b": {"c": [True, "d 2"]}}),
        ("json-field-retyped", "'a' became a list", {"a": [1], "b": {"c": [True, "d 2"]}}),
        ("number", "'a' became 3", {"a": 3, "b": {"c": [True, "d 2"]}}),
        ("json-field-removed", "'b' is missing", {"a": 1}),
        ("json-field-retyped", "'b' became a list", {"a": 1, "b": [{"c": [True, "d 2"]}]}),
        ("json-field-removed", "'c' is missing", {"a": 1, "b": {}}),
        ("json-field-retyped", "'c' became an object", {"a": 1, "b": {"c": {"items": [True, "d 2"]}}}),
        ("negation", "[0] became false", {"a": 1, "b": {"c": [False, "d 2"]}}),
        ("number", "[1] became 'd 5'", {"a": 1, "b": {"c": [True, "d 5"]}}),
        ("json-text", "[1] became 'e 2'", {"a": 1, "b": {"c": [True, "e 2"]}}),
    ]


@pytest.mark.parametrize(
    ("text", "damaged"),
    [
        ('```json\n{"a":1}\n```', ["```json\n{}\n```", '```json\n{"a":[1]}\n```', '```json\n{"a":3}\n```']),
        ('{"a": 12.50,\n "b": -1}', [
            '{"b": -1}', '{"a": [12.50],\n "b": -1}', '{"a": 25.50,\n "b": -1}',
            '{"a": 12.50}', '{"a": 12.50,\n "b": [-1]}', '{"a": 12.50,\n "b": -3}']),
        ("[1e308, null]", ["[1, null]"]),
        ('["no", "\\u00e9b"]', ['["yes", "\\u00e9b"]', '["no", "\\u00e9c"]']),
        ('[ "Paris" ]', ['[ "Qbsjt" ]']),
    ],
)  # fmt: skip
def test_only_the_value_with_the_mistake_is_written_anew(text: str, damaged: list[str]) -> None:
    assert [each.of(text) for each in json_edits(text, {})] == damaged


def test_a_text_becomes_one_that_its_key_has_elsewhere() -> None:
    text = '{"city": "Paris", "note": ""}'
    edits = json_edits(text, {"city": ["Paris", "Rome"]})
    assert [each.of(text) for each in edits if each.operator == "json-text"] == ['{"city": "Rome", "note": ""}']


def test_texts_in_json_get_other_units() -> None:
    edits = json_edits('{"load": "1200 kg", "name": "4 G"}', {})
    assert [each.of('{"load": "1200 kg", "name": "4 G"}') for each in edits if each.operator == "unit"] == [
        '{"load": "1200 g", "name": "4 G"}'
    ]


def test_mutants_are_few_and_the_same_for_a_seed() -> None:
    many = case(" and ".join(map(str, range(100, 130))))
    first, again, other = (mutants_of(many, "", seed) for seed in ("0", "0", "1"))
    assert len(first) == MOST
    assert first == again != other


def test_an_equivalent_mutant_is_not_made() -> None:
    assert mutants_of(case("same\nsame"), "", "0", accepted=["first-sentence"]) == []
    assert mutants_of(case(""), "", "0") == []
    calls = [{"tool": "find", "input": {"id": 1}}, {"tool": "find", "input": {"id": 1}}]
    found = {each.operator for each in mutants_of(case("", calls=calls), "", "0")}
    assert found == {"tool-added", "tool-dropped", "tool-arguments"}


def test_long_answers_take_no_time() -> None:
    text = " ".join(f"Ada is not {number}." for number in range(5_000))
    assert len(mutants_of(case(text), "", "0")) == 2 + 2 * MOST
    assert len(probes_of(case(text))) <= MOST_PROBES
    data = json.dumps([{"id": number, "name": "Ada"} for number in range(1_000)])
    assert len(mutants_of(case(data), "", "0")) == 4 * MOST


@pytest.mark.parametrize(
    ("settings", "tools"),
    [
        ({"mode": "in_order", "expected": [{"tool": "find"}, {"tool": "pay"}]}, ["find", "pay"]),
        ({"mode": "any_order", "minimums": {"find": 2, "pay": 1}}, ["find", "find", "pay"]),
        ({"mode": "any_order", "minimums": {"find": 25}}, ["find"] * 25),
        ({"mode": "subset", "expected": [{"tool": "find"}]}, []),
        ({"mode": "superset", "expected": [{"tool": "find"}], "negate": True}, []),
    ],
)
def test_a_reference_without_calls_makes_those_that_are_expected(settings: dict[str, Any], tools: list[str]) -> None:
    one = case("Paid.", evaluators=[{"type": "tool_trajectory", "name": "calls", **settings}])
    reference = reference_of(one)
    assert reference is not None
    assert [each.tool for each in reference.calls] == tools
    assert {each.operator for each in mutants_of(one, "", "0")} == ({"tool-dropped"} if tools else set())


@given(any_text, any_text)
def test_any_text_can_be_damaged(text: str, question: str) -> None:
    reference = WrittenAnswer(text)
    found = mutants_of(case(text), question, "0")
    assert not any(each.answer.is_like(reference) for each in found)
    assert len({each.answer.text for each in found}) == len(found)
    assert all(isinstance(each.text, str) for each in (*probes_of(case(text)), *answers(case(text), text).values()))


LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
JSON = st.recursive(LEAVES, lambda each: st.lists(each) | st.dictionaries(st.text(max_size=3), each), max_leaves=8)


@given(JSON)
def test_any_json_can_be_damaged(value: Any) -> None:
    text = json.dumps(value)
    found = mutants_of(case(text), "", "0")
    assert not any(each.answer.is_like(WrittenAnswer(text)) for each in found)
    if isinstance(value, (dict, list)):
        for each in found:
            json.loads(each.answer.text)
