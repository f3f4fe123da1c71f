"""The loopback server of model APIs: what it refuses, how it streams, and what it keeps."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import httpx
import pytest

from tests.servers.model_api import (
    ANSWER,
    Answer,
    Asked,
    Dialect,
    ModelApi,
    Reply,
    Step,
    after,
    calls_tool,
    cuts,
    fails,
    garbage,
    hangs,
    lacks_quota,
    model_api,
    rejects,
    says,
)

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
AZURE = "/openai/deployments/d/chat/completions?api-version=2024-10-21"
MESSAGES = "/v1/messages"
GEMINI = "/v1beta/models/m:generateContent"
GEMINI_STREAM = "/v1beta/models/m:streamGenerateContent"
USER = {"role": "user", "content": "hi"}
ASKED: Mapping[str, dict[str, Any]] = {
    CHAT: {"model": "m", "messages": [USER]},
    RESPONSES: {"model": "m", "input": [USER]},
    AZURE: {"messages": [USER]},
    MESSAGES: {"model": "m", "max_tokens": 9, "messages": [USER]},
    GEMINI: {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}
"""A question that is in order, per protocol."""


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=20, headers={"anthropic-version": "2023-06-01"}) as client:
        yield client


def ask(http: httpx.Client, api: ModelApi, path: str, **changed: Any) -> httpx.Response:
    """Ask with some parameters changed; None leaves one out."""
    body = {**ASKED[path], **changed}
    return http.post(f"{api.url}{path}", json={key: value for key, value in body.items() if value is not None})


def message(answer: httpx.Response) -> str:
    return str(answer.json()["error"]["message"])


@pytest.mark.parametrize("path", ASKED)
def test_a_question_in_order_is_answered(http: httpx.Client, path: str) -> None:
    with model_api() as api:
        answer = ask(http, api, path)
    assert answer.status_code == 200
    assert ANSWER in answer.text


@pytest.mark.parametrize(
    ("path", "changed", "complaint"),
    [
        (CHAT, {"model": None}, "you must provide a model parameter"),
        (CHAT, {"messages": None}, "Missing required parameter: 'messages'."),
        (CHAT, {"messages": []}, "Invalid 'messages': empty array"),
        (CHAT, {"messages": [{"role": "bot", "content": "hi"}]}, "Invalid value: 'bot'."),
        (CHAT, {"messages": [{"role": "user", "content": None}]}, "expected a string, got null"),
        (CHAT, {"messages": [{"role": "tool", "content": "hi"}]}, "must be a response to a preceeding message"),
        (CHAT, {"max_output_tokens": 9}, "Unrecognized request argument supplied: max_output_tokens"),
        (CHAT, {"max_tokens": 9, "max_completion_tokens": 9}, "at the same time"),
        (CHAT, {"temperature": "0.2"}, "Invalid type for 'temperature'"),
        (CHAT, {"stream_options": {"include_usage": True}}, "only allowed when 'stream' is enabled"),
        (RESPONSES, {"model": None}, "Missing required parameter: 'model'."),
        (RESPONSES, {"input": None}, "must be provided"),
        (RESPONSES, {"max_output_tokens": 9}, "Expected a value >= 16"),
        (RESPONSES, {"messages": [USER]}, "Unknown parameter: 'messages'."),
        (RESPONSES, {"input": [{"role": "tool", "content": "hi"}]}, "Invalid value: 'tool'."),
        (
            RESPONSES,
            {"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "hi"}]}]},
            "Supported values are: 'output_text', 'refusal'.",
        ),
        (RESPONSES, {"input": [{"type": "function_call_output", "call_id": "c"}]}, "No tool call found"),
        (AZURE, {"messages": None}, "Missing required parameter: 'messages'."),
        (MESSAGES, {"model": None}, "model: Field required"),
        (MESSAGES, {"max_tokens": None}, "max_tokens: Field required"),
        (MESSAGES, {"messages": [{"role": "system", "content": "S"}, USER]}, 'Unexpected role "system"'),
        (MESSAGES, {"messages": [{"role": "tool", "content": "x"}]}, "Input should be 'user' or 'assistant'"),
        (MESSAGES, {"messages": [{"role": "user", "content": ""}]}, "must have non-empty content"),
        (MESSAGES, {"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]}, "non-empty"),
        (MESSAGES, {"messages": [USER, {"role": "assistant", "content": "So"}]}, "prefill"),
        (MESSAGES, {"max_completion_tokens": 9}, "max_completion_tokens: Extra inputs are not permitted"),
        (MESSAGES, {"thinking": {"type": "enabled", "budget_tokens": 1024}}, "must be greater than"),
        (GEMINI, {"contents": None}, "contents is not specified"),
        (GEMINI, {"contents": [{"role": "assistant", "parts": [{"text": "hi"}]}]}, "valid role: user, model"),
        (GEMINI, {"contents": [{"role": "user", "parts": []}]}, "must not be empty"),
        (GEMINI, {"temperature": 1}, 'Unknown name "temperature"'),
        (GEMINI, {"generationConfig": {"max_tokens": 9}}, "Unknown name \"maxTokens\" at 'generation_config'"),
    ],
)
def test_a_question_out_of_order_is_refused(
    http: httpx.Client, path: str, changed: dict[str, Any], complaint: str
) -> None:
    with model_api() as api:
        answer = ask(http, api, path, **changed)
        assert answer.status_code == 400
        assert complaint in message(answer)
        # It is one of the questions all the same.
        assert len(api.questions) == 1


def test_the_newer_version_of_anthropic_knows_no_temperature(http: httpx.Client) -> None:
    with model_api() as api:
        assert ask(http, api, MESSAGES, temperature=0.2).status_code == 200
        http.headers["anthropic-version"] = "2026-10-21"
        assert message(ask(http, api, MESSAGES, temperature=0.2)) == "temperature: Extra inputs are not permitted"
        del http.headers["anthropic-version"]
        assert message(ask(http, api, MESSAGES)) == "anthropic-version: header is required"


def test_azures_styles_differ_in_the_version(http: httpx.Client) -> None:
    with model_api() as api:
        older = http.post(f"{api.url}{AZURE.partition('?')[0]}", json=ASKED[AZURE])
        newer = http.post(f"{api.url}/openai/v1/chat/completions?api-version=2024-10-21", json=ASKED[CHAT])
    assert (older.status_code, older.json()["error"]["code"]) == (404, "404")
    assert newer.status_code == 400


@pytest.mark.parametrize(
    ("path", "missing", "wrong", "headers"),
    [
        (CHAT, 401, 401, {"authorization": "Bearer K"}),
        (RESPONSES, 401, 401, {"authorization": "Bearer K"}),
        (AZURE, 401, 401, {"api-key": "K"}),
        (AZURE, 401, 401, {"authorization": "Bearer K"}),
        (MESSAGES, 401, 401, {"x-api-key": "K"}),
        (MESSAGES, 401, 401, {"authorization": "Bearer K"}),
        (GEMINI, 403, 400, {"x-goog-api-key": "K"}),
    ],
)
def test_a_key_is_required_in_the_vendors_header(
    http: httpx.Client, path: str, missing: int, wrong: int, headers: dict[str, str]
) -> None:
    with model_api(requires_key="K") as api:
        assert ask(http, api, path).status_code == missing
        http.headers.update({name: value.replace("K", "L") for name, value in headers.items()})
        assert ask(http, api, path).status_code == wrong
        http.headers.update(headers)
        assert ask(http, api, path).status_code == 200


def test_what_is_no_json_or_no_route_is_refused(http: httpx.Client) -> None:
    with model_api() as api:
        broken = http.post(f"{api.url}{CHAT}", content="{", headers={"content-type": "application/json"})
        form = http.post(f"{api.url}{CHAT}", data={"model": "m"})
        nowhere = http.post(f"{api.url}/chat/completions", json={})
        assert [broken.status_code, form.status_code, nowhere.status_code] == [400, 400, 404]
        assert len(api.questions) == 2
        assert len(api.requests) == 3


def test_bodies_may_be_compressed_and_chunked(http: httpx.Client) -> None:
    raw = json.dumps(ASKED[CHAT]).encode()
    headers = {"content-type": "application/json"}
    with model_api() as api:
        http.post(f"{api.url}{CHAT}", content=gzip.compress(raw), headers={**headers, "content-encoding": "gzip"})
        http.post(f"{api.url}{CHAT}", content=iter([raw[:7], raw[7:]]), headers=headers)
        assert [asked.body for asked in api.questions] == [ASKED[CHAT], ASKED[CHAT]]


def test_what_is_not_a_question_takes_no_step(http: httpx.Client) -> None:
    with model_api(fails(500), says()) as api:
        assert http.head(api.url).status_code == 200
        assert http.get(f"{api.url}/v1/models").json()["data"][0]["id"] == "mock-model"
        counted = http.post(f"{api.url}{MESSAGES}/count_tokens", json=ASKED[MESSAGES])
        totalled = http.post(f"{api.url}/v1beta/models/m:countTokens", json=ASKED[GEMINI])
        assert (counted.json(), totalled.json()) == ({"input_tokens": 42}, {"totalTokens": 42})
        assert ask(http, api, CHAT, model=None).status_code == 400
        assert [ask(http, api, CHAT).status_code for _ in range(3)] == [500, 200, 200]
        assert [asked.method for asked in api.requests][:2] == ["HEAD", "GET"]
        assert len(api.questions) == 4


TOOL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
LISTED = {"type": "object", "properties": {"command": {"type": "array"}}}


@pytest.mark.parametrize(
    ("declared", "called"),
    [
        ({"read": TOOL, "shell": LISTED}, ("shell", {"command": ["bash", "-lc", "ls"]})),
        ({"read": TOOL, "shell": TOOL}, ("shell", {"command": "ls"})),
        ({"read": TOOL, "exec_command": {}}, ("exec_command", {"cmd": "ls"})),
        ({"read": {"required": ["path"]}, "write": TOOL}, ("read", {"path": "ls"})),
    ],
)
def test_the_tool_that_is_called_is_the_shell(
    http: httpx.Client, declared: Mapping[str, Any], called: tuple[str, Any]
) -> None:
    tools = [{"type": "function", "name": name, "parameters": schema} for name, schema in declared.items()]
    with model_api(calls_tool("ls")) as api:
        (item,) = ask(http, api, RESPONSES, tools=tools).json()["output"]
        assert (item["name"], json.loads(item["arguments"])) == called
        result = {"type": "function_call_output", "call_id": item["call_id"], "output": "a.txt"}
        told = ask(http, api, RESPONSES, tools=tools, input=[USER, item, result]).json()
        assert told["output"][0]["content"][0]["text"] == ANSWER
        assert ask(http, api, RESPONSES).json()["output"][0]["type"] == "message"


def test_results_of_tools_are_seen_in_every_protocol(http: httpx.Client) -> None:
    with model_api(calls_tool("ls")) as api:
        tools: Any = [{"type": "function", "function": {"name": "bash"}}]
        said = ask(http, api, CHAT, tools=tools).json()["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "a.txt"}
        chat = ask(http, api, CHAT, tools=tools, messages=[USER, said, result])
        tools = [{"name": "Bash", "input_schema": TOOL}]
        said = ask(http, api, MESSAGES, tools=tools).json()["content"]
        result = {"type": "tool_result", "tool_use_id": said[-1]["id"], "content": "a.txt"}
        turns = [USER, {"role": "assistant", "content": said}, {"role": "user", "content": [result]}]
        messages = ask(http, api, MESSAGES, tools=tools, messages=turns)
        tools = [{"functionDeclarations": [{"name": "run_shell_command"}]}]
        part = ask(http, api, GEMINI, tools=tools).json()["candidates"][0]["content"]["parts"][0]
        answered = {"functionResponse": {"name": "run_shell_command", "response": {}}}
        contents = [{"role": "model", "parts": [part]}, {"role": "user", "parts": [answered]}]
        gemini = ask(http, api, GEMINI, tools=tools, contents=contents)
    assert chat.json()["choices"][0]["message"]["content"] == ANSWER
    assert messages.json()["content"][0]["text"] == ANSWER
    assert gemini.json()["candidates"][0]["content"]["parts"] == [{"text": ANSWER}]


def events(answer: httpx.Response) -> Sequence[tuple[str, Any]]:
    """The events of a stream: name and data, each a block of its own."""
    assert answer.headers["content-type"].startswith("text/event-stream")
    told = []
    for block in answer.text.replace("\r\n", "\n").removesuffix("\n\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        data = fields.pop("data")
        told.append((fields.pop("event", ""), data if data == "[DONE]" else json.loads(data)))
        assert not fields
    return told


def test_chat_completions_stream(http: httpx.Client) -> None:
    with model_api() as api:
        quiet = events(ask(http, api, CHAT, stream=True))
        counted = events(ask(http, api, CHAT, stream=True, stream_options={"include_usage": True}))
    assert quiet[-1] == counted[-1] == ("", "[DONE]")
    assert not any("usage" in data for _, data in quiet[:-1])
    assert [bool(data["usage"]) for _, data in counted[:-1]] == [False] * (len(counted) - 2) + [True]
    assert counted[-2][1]["choices"] == []


def test_responses_stream(http: httpx.Client) -> None:
    with model_api() as api:
        told = events(ask(http, api, RESPONSES, stream=True))
    assert all(name == data["type"] for name, data in told)
    assert [data["sequence_number"] for _, data in told] == [*range(len(told))]
    assert (told[0][0], told[-1][0]) == ("response.created", "response.completed")


def test_messages_stream(http: httpx.Client) -> None:
    with model_api() as api:
        told = events(ask(http, api, MESSAGES, stream=True))
    assert all(name == data["type"] for name, data in told)
    assert (told[0][0], told[-1][0]) == ("message_start", "message_stop")
    # What is said at the start is not the whole of it.
    usage = (told[0][1]["message"]["usage"], told[-2][1]["usage"])
    assert [one["output_tokens"] for one in usage] == [1, 10]


def test_gemini_streams_events_or_one_array(http: httpx.Client) -> None:
    with model_api() as api:
        told = events(http.post(f"{api.url}{GEMINI_STREAM}?alt=sse", json=ASKED[GEMINI]))
        array = http.post(f"{api.url}{GEMINI_STREAM}", json=ASKED[GEMINI]).json()
    assert [data for _, data in told] == array
    assert ["finishReason" in chunk["candidates"][0] for chunk in array] == [False, False, True]


@pytest.mark.parametrize("path", ASKED)
def test_a_cut_loses_the_end_of_an_answer(http: httpx.Client, path: str) -> None:
    with model_api(cuts()) as api, pytest.raises(httpx.RemoteProtocolError, match="received"):
        ask(http, api, path)


@pytest.mark.parametrize(
    ("path", "end"),
    [
        (CHAT, 'finish_reason": "stop'),
        (RESPONSES, "response.completed"),
        (AZURE, 'finish_reason": "stop'),
        (MESSAGES, "message_stop"),
        (f"{GEMINI_STREAM}?alt=sse", "finishReason"),
    ],
)
def test_a_cut_loses_the_end_of_a_stream_and_not_its_beginning(http: httpx.Client, path: str, end: str) -> None:
    body = ASKED[GEMINI] if "alt=sse" in path else {**ASKED[path], "stream": True}
    received: list[bytes] = []
    with (
        model_api(cuts()) as api,
        http.stream("POST", f"{api.url}{path}", json=body) as answer,
        pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"),
    ):
        received.extend(answer.iter_raw())
    text = b"".join(received).decode()
    assert "MOCK-ANSWER" in text
    assert end not in text


def test_retry_hints_stand_where_the_vendor_puts_them(http: httpx.Client) -> None:
    with model_api(fails(429, retry_after_s=0.5)) as api:
        answers = {path: ask(http, api, path) for path in ASKED}
    for path in (CHAT, RESPONSES, AZURE):
        headers = answers[path].headers
        assert (headers["retry-after"], headers["retry-after-ms"]) == ("1", "500")
    assert answers[MESSAGES].headers["retry-after"] == "1"
    assert answers[MESSAGES].headers["x-should-retry"] == "true"
    assert "retry-after" not in answers[GEMINI].headers
    (detail,) = answers[GEMINI].json()["error"]["details"]
    assert detail == {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.5s"}


def test_headers_may_be_given(http: httpx.Client) -> None:
    with model_api(fails(503, retry_after_s=2, retry_after="soon", x_should_retry="false")) as api:
        headers = ask(http, api, MESSAGES).headers
    assert (headers["retry-after"], headers["x-should-retry"]) == ("soon", "false")


def test_a_spend_limit_comes_without_hints(http: httpx.Client) -> None:
    with model_api(lacks_quota()) as api:
        answer = ask(http, api, MESSAGES)
    assert answer.json()["error"]["details"] == {"error_code": "enforced_spend_limit_reached"}
    assert not {"retry-after", "x-should-retry"} & {*answer.headers}


def test_a_parameter_is_rejected_while_it_is_there(http: httpx.Client) -> None:
    with model_api(rejects("max_tokens", new_name="max_completion_tokens")) as api:
        refused = ask(http, api, CHAT, max_tokens=9)
        healed = ask(http, api, CHAT, max_completion_tokens=9)
        gemini = ask(http, api, GEMINI)
    error = refused.json()["error"]
    assert error["message"].endswith("with this model. Use 'max_completion_tokens' instead.")
    assert (error["param"], error["code"]) == ("max_tokens", "unsupported_parameter")
    assert (healed.status_code, gemini.status_code) == (200, 200)


def test_the_default_temperature_is_never_rejected_by_chat_completions(http: httpx.Client) -> None:
    with model_api(rejects("temperature")) as api:
        assert ask(http, api, CHAT, temperature=1).status_code == 200
        assert ask(http, api, CHAT, temperature=0).json()["error"]["code"] == "unsupported_value"
        assert ask(http, api, RESPONSES, temperature=0).json()["error"]["code"] is None


def test_garbage_is_html(http: httpx.Client) -> None:
    with model_api(garbage()) as api:
        answer = ask(http, api, GEMINI)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html")


def test_a_server_that_hangs_stops_with_its_block(http: httpx.Client) -> None:
    with model_api(hangs(3600)) as api, pytest.raises(httpx.ReadTimeout):
        http.post(f"{api.url}{CHAT}", json=ASKED[CHAT], timeout=0.1)


def test_questions_asked_at_once_are_counted(http: httpx.Client) -> None:
    together = Barrier(4, timeout=20)

    def meets(dialect: Dialect, asked: Asked) -> Reply:
        together.wait()
        return dialect.answer(asked, Answer())

    with model_api(after(0.01, Step(meets))) as api, ThreadPoolExecutor(4) as threads:
        answers = [*threads.map(lambda _: ask(http, api, CHAT), range(4))]
        assert api.most_at_once == 4
    assert [answer.status_code for answer in answers] == [200] * 4
