"""The result of Claude Code beside its other events: they agree, or it is an error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentv_ci.contracts.exchange import ProcessResult, Response
from agentv_ci.contracts.results import Usage
from agentv_ci.execute.agents.events import AgentFailed
from agentv_ci.execute.providers.claude_code import DISAGREES, read_output

Event = dict[str, Any]


def assistant(*blocks: Event, message: str = "m1", parent: str | None = None, **more: Any) -> list[Event]:
    """Return the events of a message: one for each block, with what it has used so far."""
    given = {"id": message, "role": "assistant", "model": "claude-haiku-4-5", **more}
    return [
        {"type": "assistant", "message": {**given, "content": [block]}, "parent_tool_use_id": parent}
        for block in blocks
    ]


def said(text: str) -> Event:
    return {"type": "text", "text": text}


def used(name: str = "Bash") -> Event:
    return {"type": "tool_use", "id": f"t-{name}", "name": name, "input": {}}


def returned(name: str = "Bash") -> Event:
    block = {"type": "tool_result", "tool_use_id": f"t-{name}", "content": "done"}
    return {"type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": None}


def result(text: str | None, **more: Any) -> Event:
    given = {} if text is None else {"result": text}
    return {"type": "result", "subtype": "success", "is_error": False, **given, "stop_reason": "end_turn", **more}


def read(*events: Event) -> Response | None:
    first = {"type": "system", "subtype": "init", "session_id": "s", "model": "claude-haiku-4-5"}
    return read_output(ProcessResult(0, "\n".join(json.dumps(event) for event in (first, *events)), ""))


def answer(*events: Event) -> str | None:
    found = read(*events)
    return None if found is None else found.answer


TWO = assistant(said("The capital of France "), said("is Paris."))
CITED = assistant(said("It is "), {"type": "thinking", "thinking": "hm"}, said("Paris"), said("."))
LISTED = [*assistant(said("Done: Paris"), used("TodoWrite")), returned("TodoWrite")]
OF_SUBAGENT = assistant(said("Search results: London"), message="m9", parent="t-Task")
SEARCHED = assistant(said("I search."), {"type": "server_tool_use", "id": "s", "name": "web_search"}, said("Paris"))
NOTE = assistant(said("No response requested."), message="m8", model="<synthetic>")


@pytest.mark.parametrize(
    ("events", "text", "expected"),
    [
        (assistant(said("Paris")), "Paris", "Paris"),
        (assistant(said("Paris\n")), " Paris", "Paris"),
        (assistant(said("Paris")), "", "Paris"),
        (assistant(said("Paris")), None, "Paris"),
        (TWO, "The capital of France ", "The capital of France is Paris."),
        (TWO, "is Paris.", "The capital of France is Paris."),
        (TWO, "The capital of France is Paris.", "The capital of France is Paris."),
        (CITED, ".", "It is Paris."),
        (LISTED, "", "Done: Paris"),
        ([*assistant(said("Look.")), *assistant(said("Paris"), message="m2")], "", "Paris"),
        ([*assistant(said("Paris")), *OF_SUBAGENT], "", "Paris"),
        (SEARCHED, "", "Paris"),
        ([*assistant(said("Paris")), *NOTE], "Paris", "Paris"),
        (assistant(said("is Paris.")), "The capital is Paris.", "The capital is Paris."),
        ([], "The session costs $0.01", "The session costs $0.01"),
        ([*assistant(used()), returned()], "", ""),
        ([], "", None),
        ([], None, None),
        (OF_SUBAGENT, "", None),
        ([*assistant(used()), returned()], None, None),
    ],
)
def test_a_result_that_is_empty_or_cut_is_that_of_the_last_message(
    events: list[Event], text: str | None, expected: str | None
) -> None:
    assert answer(*events, result(text)) == expected


def test_a_message_of_several_blocks_is_one_message() -> None:
    found = read(*TWO, result("is Paris."))
    assert found is not None
    assert [message.content for message in found.messages] == ["The capital of France is Paris."]


FORM = {"city": "Paris", "of": ["France"]}


@pytest.mark.parametrize("text", ["", None, "Here it is.", json.dumps(FORM), json.dumps(FORM, indent=2)])
def test_structured_output_is_the_answer(text: str | None) -> None:
    events = [*assistant(used("StructuredOutput")), returned("StructuredOutput")]
    assert answer(*events, result(text, structured_output=FORM)) == json.dumps(FORM)


@pytest.mark.parametrize(
    "events",
    [
        [*assistant(said("London")), result("Paris")],
        [*assistant(said("It is London, not here.")), result("Paris")],
        [*assistant(said("Paris")), result("It is London, as everybody knows")],
        [*assistant(said("x")), result('{"city": "London"}', structured_output=FORM)],
    ],
)
def test_sources_that_contradict_each_other_are_an_error(events: list[Event]) -> None:
    with pytest.raises(AgentFailed) as caught:
        read(*events)
    assert (caught.value.kind, caught.value.sentence) == ("malformed", DISAGREES)


@pytest.mark.parametrize(
    ("last", "sentence"),
    [
        ({"subtype": "error_max_turns"}, "error_max_turns"),
        ({"subtype": "error_max_turns", "errors": ["Reached maximum number of turns (3)"]}, "maximum number of turns"),
        ({"subtype": "error_max_turns", "is_error": None}, "error_max_turns"),
        ({"subtype": "error_max_budget_usd", "errors": []}, "error_max_budget_usd"),
        ({"subtype": "error_during_execution"}, "error_during_execution"),
        ({"subtype": "error_max_structured_output_retries"}, "error_max_structured_output_retries"),
        ({"terminal_reason": "max_turns"}, "max_turns"),
        ({"terminal_reason": "aborted_streaming"}, "aborted_streaming"),
    ],
)
@pytest.mark.parametrize("text", ["", None, "The capital is"])
def test_a_run_that_was_stopped_is_an_error_whatever_it_says_of_errors(
    last: Event, sentence: str, text: str | None
) -> None:
    with pytest.raises(AgentFailed) as caught:
        read(*assistant(said("The capital is")), result(text, **last))
    assert caught.value.kind == "process"
    assert sentence in (caught.value.sentence or "")


def counts(read: int, written: int, **more: int) -> dict[str, int]:
    return {"input_tokens": read, "output_tokens": written, **more}


BY_MODEL = {
    "haiku": {"inputTokens": 60_000, "outputTokens": 8_000, "cacheReadInputTokens": 6_000, "costUSD": 0.2},
    "opus": {"inputTokens": 900, "outputTokens": 50, "cacheCreationInputTokens": 100},
}
SPENT_BY_SUBAGENT = [
    *assistant(used("Task"), usage=counts(30, 1)),
    *assistant(said("hm"), said("found"), message="m2", parent="t-Task", usage=counts(5_000, 700)),
    *assistant(said("Paris"), message="m3", usage=counts(40, 2)),
]


@pytest.mark.parametrize(
    ("events", "last", "expected"),
    [
        ([], {"usage": counts(30, 13)}, (30, 13, 43, None)),
        ([], {"usage": counts(30, 13), "modelUsage": BY_MODEL}, (67_000, 8_050, 75_050, 6_000)),
        ([], {"modelUsage": BY_MODEL}, (67_000, 8_050, 75_050, 6_000)),
        ([], {"usage": counts(90_000, 13), "modelUsage": BY_MODEL}, (90_000, 8_050, 98_050, 6_000)),
        ([], {"usage": counts(30, 13), "modelUsage": {"haiku": {}}}, (30, 13, 43, None)),
        ([], {"usage": counts(30, 13), "modelUsage": "none"}, (30, 13, 43, None)),
        (SPENT_BY_SUBAGENT, {"usage": counts(70, 50)}, (5_070, 703, 5_773, None)),
        (SPENT_BY_SUBAGENT, {}, None),
    ],
)
def test_tokens_are_those_of_subagents_too(
    events: list[Event], last: Event, expected: tuple[int, int, int, int | None] | None
) -> None:
    found = read(*events, result("Paris", **last))
    assert found is not None
    names = ("input_tokens", "output_tokens", "total_tokens", "cached_tokens")
    assert found.usage == (None if expected is None else Usage(**dict(zip(names, expected, strict=True))))


@pytest.mark.parametrize(
    ("last", "cost_usd"),
    [
        ({"total_cost_usd": 0.05}, 0.05),
        ({"total_cost_usd": 0.05, "modelUsage": BY_MODEL}, 0.2),
        ({"total_cost_usd": 0.3, "modelUsage": BY_MODEL}, 0.3),
        ({"modelUsage": BY_MODEL}, 0.2),
        ({"total_cost_usd": 0.0}, 0.0),
        ({"modelUsage": {"haiku": {"costUSD": None}}}, None),
        ({}, None),
    ],
)
def test_cost_is_that_of_subagents_too(last: Event, cost_usd: float | None) -> None:
    found = read(*assistant(said("Paris")), result("Paris", **last))
    assert found is not None
    assert found.cost_usd == cost_usd
