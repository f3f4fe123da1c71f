"""What agents print: recordings of the real ones, `streams/<agent>/<case>`, and events of every other form."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.base import ErrorKind
from agentv_ci.contracts.exchange import ProcessResult, Response
from agentv_ci.contracts.results import OutputMessage, ToolCall, Usage
from agentv_ci.execute.agents.events import AgentFailed, NotEvents
from agentv_ci.execute.providers import claude_code, codex, copilot_cli, gemini_cli
from tests.execute.agents.builders import events

STREAMS = Path(__file__).parent / "streams"
READERS: Mapping[str, Callable[[ProcessResult], Response | None]] = {
    "claude": claude_code.read_output,
    "codex": codex.read_output,
    "copilot": copilot_cli.read_output,
    "gemini": gemini_cli.read_output,
}
ANSWERED: Mapping[str, list[str]] = {
    "claude/stream-ok": [],
    "claude/stream-tool": ["Bash"],
    "claude/stream-write-denied": ["Bash"],
    "codex/ok": [],
    "codex/tool": ["command_execution"],
    "codex/tool-exit-3": ["command_execution"],
    "codex/file-change": ["file_change"],
    "copilot/ok": [],
    "copilot/tool": ["bash"],
    "gemini/stream-ok": [],
    "gemini/stream-tool": ["run_shell_command"],
}
"""Recordings with the answer `MOCK-ANSWER 42` → the tools that were called."""
FAILED: Mapping[str, tuple[ErrorKind, str]] = {
    "claude/stream-http-500-killed": ("process", "the events end before the result"),
    "claude/stream-http-529": ("server", "API Error: 529 mock overloaded_error"),
    "codex/cut": ("network", "stream disconnected"),
    "codex/cut-killed-early": ("process", "before the turn is completed"),
    "codex/cut-no-retry": ("network", "stream disconnected"),
    "codex/failed": ("network", "mock model failure"),
    "codex/garbage": ("network", "stream closed before response.completed"),
    "codex/http-400": ("request", "mock 400"),
    "codex/http-401": ("auth", "unexpected status 401 Unauthorized"),
    "codex/http-429": ("rate_limit", "last status: 429 Too Many Requests"),
    "codex/http-500-no-retry": ("server", "high demand"),
    "codex/incomplete": ("process", "max_output_tokens"),
    "copilot/http-400": ("request", "400"),
    "copilot/http-401": ("auth", "HTTP 401"),
    "copilot/http-429": ("rate_limit", "429"),
    "gemini/json-http-400": ("request", "mock INVALID_ARGUMENT"),
    "gemini/stream-http-429-killed": ("process", "the events end before the result"),
}
"""Other recordings → kind and message of the failure."""


def recorded(recording: str) -> str:
    (path,) = STREAMS.glob(f"{recording}.*")
    return path.read_text("utf-8")


def read(agent: str, stdout: str, stderr: str = "", status: int = 0) -> Response:
    response = READERS[agent](ProcessResult(status, stdout, stderr))
    assert response is not None
    return response


def replay(recording: str) -> Response:
    return read(recording.split("/", maxsplit=1)[0], recorded(recording))


def test_every_recording_has_its_expectation() -> None:
    found = {f"{path.parent.name}/{path.name.split('.')[0]}" for path in STREAMS.glob("*/*")}
    assert found == {*ANSWERED, *FAILED}


@pytest.mark.parametrize("recording", ANSWERED)
def test_an_answer_and_its_tool_calls_are_read_among_other_lines(recording: str) -> None:
    found = read(recording.split("/", maxsplit=1)[0], f"Warning: x\n{recorded(recording)}\n\x1b[31mbye\x1b[0m\n")
    assert (found.answer, found.has_trace) == ("MOCK-ANSWER 42", True)
    assert [call.tool for call in found.calls] == ANSWERED[recording]


@pytest.mark.parametrize("recording", FAILED)
def test_a_failure_has_its_kind_and_message(recording: str) -> None:
    kind, message = FAILED[recording]
    outputs = ("", recorded(recording)) if "json-" in recording else (recorded(recording), "")
    with pytest.raises(AgentFailed) as caught:
        read(recording.split("/", maxsplit=1)[0], *outputs, status=1)
    assert caught.value.kind == kind
    assert message in (caught.value.sentence or "")


@pytest.mark.parametrize(
    ("recording", "tokens"),
    [
        ("claude/stream-tool", (210, 20, 230, 40)),
        ("codex/tool", (200, 20, 220, 40)),
        ("copilot/tool", None),
        ("gemini/stream-tool", (200, 20, 220, 40)),
    ],
)
def test_tokens_are_read_if_they_are_reported(recording: str, tokens: tuple[int, int, int, int] | None) -> None:
    names = ("input_tokens", "output_tokens", "total_tokens", "cached_tokens")
    expected = None if tokens is None else Usage(**dict(zip(names, tokens, strict=True)))
    assert replay(recording).usage == expected


@pytest.mark.parametrize(
    "usage",
    [{}, {"usage": {"input_tokens": 0, "output_tokens": 0}}, {"usage": {"input_tokens": 0, "output_tokens": 6}}],
)
def test_claude_counts_by_model_where_the_sum_is_zero(usage: dict[str, Any]) -> None:
    counts = {"inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 3, "cacheCreationInputTokens": 2}
    by_model = {"opus": {**counts, "costUSD": 0.1}, "haiku": {"inputTokens": 1, "outputTokens": 1}}
    found = read("claude", lines(events("claude", "x", modelUsage=by_model, **usage)))
    assert found is not None
    assert found.usage == Usage(input_tokens=16, output_tokens=6, total_tokens=22, cached_tokens=3)
    without = read("claude", lines(events("claude", "x", modelUsage={}, usage={"output_tokens": 6})))
    assert without is not None
    assert without.usage == Usage(output_tokens=6)


@pytest.mark.parametrize(
    ("recording", "given", "ending"),
    [
        ("claude/stream-tool", {"command": "echo hello-from-tool", "description": "say hi"}, ""),
        ("codex/tool", {"command": "/bin/bash -lc 'echo hello-from-tool'"}, "\n"),
        ("gemini/stream-tool", {"command": "echo hello-from-tool", "description": "hi"}, ""),
    ],
)
def test_a_tool_call_has_its_input_and_output(recording: str, given: dict[str, Any], ending: str) -> None:
    (call,) = replay(recording).calls
    assert call == ToolCall(tool=call.tool, input=given, output=f"hello-from-tool{ending}")


def test_text_before_a_tool_call_is_a_message_of_its_own() -> None:
    first, second = replay("claude/stream-tool").messages
    assert (first.content, first.tool_calls) == ("Let me run it.", ())
    assert (second.content, [call.tool for call in second.tool_calls]) == ("MOCK-ANSWER 42", ["Bash"])


def lines(each: Sequence[object]) -> str:
    return "\n".join(json.dumps(event, ensure_ascii=False) for event in each)


@pytest.mark.parametrize("agent", READERS)
def test_an_answer_may_hold_line_separators_and_broken_lines_are_skipped(agent: str) -> None:
    text = "one\u2028two\u2029three\u0085four"
    around = (
        f'Warning: x\n\x1b[31m{{"type": "half\n[1]\n{"[" * 100_000}\n{lines(events(agent, text))}\n{{"type": "result"'
    )
    assert read(agent, around).answer == text


@pytest.mark.parametrize("agent", READERS)
def test_events_without_their_end_are_not_an_answer(agent: str) -> None:
    with pytest.raises(AgentFailed):
        read(agent, lines([{"type": "system"}, {"type": "init"}, *events(agent, "hello")[:-1]]))


@pytest.mark.parametrize("agent", READERS)
@pytest.mark.parametrize("text", ["", "not JSON", "[1]\n", '{"type": "unknown"}\n', "{\n"])
def test_output_without_events_is_recognised(agent: str, text: str) -> None:
    with pytest.raises(NotEvents):
        read(agent, text)


@pytest.mark.parametrize("mark", [{"agentId": "a"}, {"data": {"content": "no", "parentToolCallId": "c"}}])
def test_what_a_subagent_of_copilot_says_is_not_the_answer(mark: dict[str, Any]) -> None:
    said, end = events("copilot", "42")
    assert read("copilot", lines([said, {**events("copilot", "no")[0], **mark}, end])).answer == "42"


CODEX_TOOLS: list[dict[str, Any]] = [
    {"type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": {"a": 1}, "result": "r"},
    {"type": "mcp_tool_call", "server": "s", "tool": "t", "error": "broken"},
    {"type": "web_search", "query": "q"},
    {"type": "file_change", "changes": ["c"]},
    {"type": "todo_list"},
]


def test_every_tool_of_codex_is_in_the_trace() -> None:
    called = [{"type": "item.completed", "item": item} for item in CODEX_TOOLS]
    *messages, rest = read("codex", lines([*events("codex", "42")[:1], *called, events("codex", "")[1]])).messages
    assert messages == [OutputMessage(role="assistant", content="42")]
    assert (rest.role, rest.content) == ("assistant", None)
    assert rest.tool_calls == (
        ToolCall(tool="s.t", input={"a": 1}, output="r"),
        ToolCall(tool="s.t", input=None, output="broken"),
        ToolCall(tool="web_search", input={"query": "q"}),
        ToolCall(tool="file_change", input={"changes": ["c"]}),
    )


DEMAND = "We're currently experiencing high demand, which may cause temporary errors."
BUSY = {"type": "session.error", "data": {"message": "no", "statusCode": 429}}


def claude_failed(text: str, **last: Any) -> list[dict[str, Any]]:
    return events("claude", text, is_error=True, **last)


def gemini_failed(**error: Any) -> list[dict[str, Any]]:
    return events("gemini", "x", status="error", **({"error": error} if error else {}))


@pytest.mark.parametrize(
    ("agent", "printed", "kind", "message"),
    [
        ("codex", [{"type": "turn.failed"}], "process", "the turn failed"),
        ("codex", [{"type": "turn.failed", "error": {"message": '{"detail": "no"}'}}], "request", "no"),
        ("codex", [{"type": "turn.failed", "error": {"message": DEMAND}}], "server", DEMAND),
        ("codex", [{"type": "error", "message": each} for each in ("gone", "Reconnecting 1/5")], "process", "gone"),
        ("claude", claude_failed("", subtype="odd"), "process", "odd"),
        ("claude", claude_failed("", errors=["a", "b"]), "process", "a; b"),
        ("claude", claude_failed("", subtype=None), "process", "no reason given"),
        ("claude", claude_failed("x", terminal_reason="max_turns"), "process", "x"),
        ("claude", claude_failed("x", stop_reason="refusal"), "request", "x"),
        ("claude", claude_failed("x", api_error_status=401), "auth", "x"),
        ("copilot", events("copilot", "x", exitCode=3), "process", "the session ended with exit code 3"),
        ("copilot", [BUSY, *events("copilot", "", exitCode=1)], "rate_limit", "no"),
        ("gemini", gemini_failed(message="no", code=503), "server", "no"),
        ("gemini", gemini_failed(message='[API Error: {"error": {"code": 401, "message": "key"}}]'), "auth", "key"),
        ("gemini", gemini_failed(message='{"error": {"message": "API_KEY_INVALID"}}'), "auth", "API_KEY_INVALID"),
        ("gemini", [{"type": "error", "message": "safety settings"}, *gemini_failed()], "request", "safety settings"),
        ("gemini", gemini_failed(), "process", "no reason given"),
    ],
)
def test_a_reported_failure_has_its_kind(agent: str, printed: list[Any], kind: str, message: str) -> None:
    with pytest.raises(AgentFailed) as caught:
        read(agent, lines(printed))
    assert (caught.value.kind, caught.value.sentence) == (kind, message)


RECORDED = [
    json.loads(line)
    for path in sorted(STREAMS.glob("*/*.jsonl"))
    for line in path.read_text("utf-8").splitlines()
    if line.startswith("{")
]
JUNK = st.sampled_from([None, True, -1, 1.5, "", "x", [], [None], {}, {"type": 5}])


@st.composite
def damaged(draw: st.DrawFn, value: Any) -> Any:
    """Replace a value, or one inside of it."""
    keys = [*value] if isinstance(value, dict) else [*range(len(value))] if isinstance(value, list) else []
    if not keys or draw(st.integers(0, 3)) == 0:
        return draw(JUNK)
    key = draw(st.sampled_from(keys))
    copy = value.copy()
    copy[key] = draw(damaged(value[key]))
    return copy


@settings(max_examples=50)
@given(events=st.lists(st.sampled_from(RECORDED).flatmap(damaged), max_size=5), status=st.sampled_from([0, 1]))
def test_events_of_every_form_are_read(events: list[Any], status: int) -> None:
    for reader in READERS.values():
        with suppress(NotEvents, AgentFailed):
            reader(ProcessResult(status, lines(events), ""))
