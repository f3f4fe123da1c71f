"""Chat completions and Responses: bodies of questions, and what answers are read as."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentv_ci.contracts.api_targets import OpenAITarget
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import ChatMessage, ProviderError
from agentv_ci.contracts.results import ToolCall, Usage
from agentv_ci.execute.apis.openai_formats import chat_body, read_chat, read_responses, responses_body
from agentv_ci.execute.apis.provider import DEFAULT_SYSTEM_PROMPT
from tests.execute.builders import question

CHAT = (ChatMessage("system", "S"), ChatMessage("user", "Grüße \u2028 🎉"), ChatMessage("assistant", ""))


def target(**given: Any) -> OpenAITarget:
    settings = {"name": "gpt", "provider": "openai", "model": "gpt-mock", "base_url": "http://127.0.0.1:1/v1"}
    return OpenAITarget.model_validate({**settings, **given})


@pytest.mark.parametrize(
    ("given", "asked", "sent"),
    [
        ({}, {}, {}),
        ({"temperature": 0.2}, {}, {"temperature": 0.2}),
        ({"temperature": 0.2}, {"temperature": 0.0}, {"temperature": 0.0}),
        ({}, {"seed": 0}, {"seed": 0}),
        ({"max_output_tokens": 100}, {}, {"max_tokens": 100}),
        ({"max_output_tokens": 100}, {"max_output_tokens": 50}, {"max_tokens": 50}),
        ({"max_output_tokens": 9, "max_tokens_param": "max_completion_tokens"}, {}, {"max_completion_tokens": 9}),
        ({"max_output_tokens": 9, "base_url": "https://api.openai.com/v1"}, {}, {"max_completion_tokens": 9}),
        ({"max_output_tokens": 9, "thinking_budget": 0}, {}, {"max_tokens": 9, "reasoning_effort": "none"}),
        ({"max_output_tokens": 9, "thinking_budget": 2048}, {}, {"max_tokens": 2057, "reasoning_effort": "low"}),
        ({"thinking_budget": 2049}, {}, {"reasoning_effort": "medium"}),
        ({"thinking_budget": 24_576}, {}, {"reasoning_effort": "high"}),
        ({"thinking_budget": 24_577}, {}, {"reasoning_effort": "xhigh"}),
    ],
)
def test_chat_body(given: dict[str, Any], asked: dict[str, Any], sent: JsonObject) -> None:
    body = chat_body(target(**given), question(chat=CHAT, **asked))
    messages = [{"role": each.role, "content": each.content} for each in CHAT]
    assert body == {"model": "gpt-mock", "messages": messages, **sent}


def test_a_chat_without_a_system_message_gets_a_default_one() -> None:
    blank = question(chat=(ChatMessage("system", " \n"), ChatMessage("user", "Hello")))
    messages = [{"role": "system", "content": DEFAULT_SYSTEM_PROMPT}, {"role": "user", "content": "Hello"}]
    assert chat_body(target(), blank)["messages"] == messages


def test_responses_body() -> None:
    given = {"temperature": 0.2, "max_output_tokens": 9, "thinking_budget": 100}
    assert responses_body(target(**given), question(chat=CHAT[:2], seed=7)) == {
        "model": "gpt-mock",
        "instructions": "S",
        "input": [{"role": "user", "content": "Grüße \u2028 🎉"}],
        "store": False,
        "temperature": 0.2,
        "max_output_tokens": 109,
        "reasoning": {"effort": "low"},
    }
    assert responses_body(target(), question(chat=CHAT[:1]))["input"] == [{"role": "user", "content": "Begin."}]


def completion(message: object, reason: str | None = "stop", **more: Any) -> JsonObject:
    choice: Any = {"message": message, "finish_reason": reason, **more.pop("choice", {})}
    return {"model": "m", "choices": [choice], **more}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ([], None),
        ({}, Usage()),
        ({"prompt_tokens": 3, "completion_tokens": None, "total_tokens": "many"}, Usage(input_tokens=3)),
        ({"prompt_tokens": "7", "completion_tokens": 1.5, "total_tokens": True, "prompt_tokens_details": []}, Usage()),
        ({"prompt_tokens": -5}, Usage()),
    ],
)
def test_usage_that_is_not_a_count_is_absent(usage: Any, expected: Usage | None) -> None:
    assert read_chat(completion({"content": "42"}, usage=usage)).usage == expected


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (None, ""),
        ("", ""),
        ([], ""),
        ([{"type": "text", "text": "4"}, {"text": "2"}], "42"),
        ([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "42"}], "42"),
        ([{"type": "image", "url": "é"}], '[{"type": "image", "url": "é"}]'),
    ],
)
def test_content_of_every_form_is_read(content: Any, answer: str) -> None:
    assert read_chat(completion({"content": content})).answer == answer


MISSING = "malformed: choices[0].message is missing in the answer"
# https://openrouter.ai/docs/api-reference/errors
WENT_AWAY = {"error": {"code": 502, "message": "went away"}}


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        ({}, MISSING),
        *(({"choices": choices}, MISSING) for choices in (None, [None], {"0": 1}, [{"message": None}])),
        (completion({"refusal": "I cannot."}), "request: the model refused to answer: I cannot."),
        (completion({"content": "half"}, "content_filter"), "request: the API's content filter withheld the answer"),
        ({"error": "down"}, "server: the API answered with an error: down"),
        (completion({"content": ""}, "error", choice=WENT_AWAY), "server: the API answered with an error: went away"),
    ],
)
def test_a_completion_without_an_answer_is_an_error(body: JsonObject, failure: str) -> None:
    with pytest.raises(ProviderError) as caught:
        read_chat(body)
    assert f"{caught.value.kind}: {caught.value.detail}" == failure


def test_arguments_of_tool_calls_may_be_anything() -> None:
    written = ['{"a": 1}', "{", "", "NaN", '"\\ud800"', "[" * 100_000, None, {"b": 2}]
    calls: Any = [{"function": {"name": "f", "arguments": each}} for each in written]
    found = read_chat(completion({"content": None, "tool_calls": [*calls, None, 5, {"function": None}]}))
    expected: Any = [{"a": 1}, "{", "", None, "\ufffd", "[" * 100_000, None, {"b": 2}]
    assert found.calls == tuple(ToolCall(tool="f", input=each) for each in expected)
    assert found.has_trace


FILTERED = {"incomplete_details": {"reason": "content_filter"}}


@pytest.mark.parametrize(
    ("output", "more", "expected"),
    [
        ([{"content": [{"type": "output_text", "text": "4"}, {"type": "output_text", "text": "2"}]}], {}, "42"),
        ([{"type": "reasoning", "content": [{"type": "text", "text": "hm"}]}], {}, ""),
        ([{"content": [{"type": "refusal", "refusal": "No."}]}], {}, "request: the model refused to answer: No."),
        *(
            ([], {"status": status}, f"server: the API answered with status {status}")
            for status in ("queued", "in_progress", "failed", "cancelled")
        ),
        ([], {"error": {"message": "down"}}, "server: the API answered with an error: down"),
        ([], FILTERED, "request: the API's content filter withheld the answer"),
        *((output, {}, "malformed: output is missing in the answer") for output in (None, "42", {"type": "message"})),
    ],
)
def test_a_response_is_its_texts_or_an_error(output: Any, more: dict[str, Any], expected: str) -> None:
    try:
        found = read_responses({"status": "completed", "output": output, **more}).answer
    except ProviderError as error:
        found = f"{error.kind}: {error.detail}"
    assert found == expected


def test_a_response_has_tool_calls_and_why_it_ended() -> None:
    call: Any = {"type": "function_call", "name": "f", "arguments": json.dumps({"a": 1})}
    body: Any = {"status": "incomplete", "output": [call, {"type": "function_call"}, 7]}
    assert read_responses(body).calls == (ToolCall(tool="f", input={"a": 1}),)
    assert read_responses(body).finish_reason == "incomplete"
    assert read_responses({**body, "incomplete_details": {"reason": "max_output_tokens"}}).finish_reason == (
        "max_output_tokens"
    )
