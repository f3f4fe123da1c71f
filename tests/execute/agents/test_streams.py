"""What agents print, recorded from the real ones: `<agent>/<case>`; the answer is always `MOCK-ANSWER 42`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.base import ErrorKind
from agentv_ci.contracts.exchange import Response
from agentv_ci.contracts.results import ToolCall, Usage
from agentv_ci.execute.agents.events import AgentFailed, NotEvents
from agentv_ci.execute.providers import claude_code, codex, copilot_cli, gemini_cli
from agentv_ci.process import ProcessResult

STREAMS = Path(__file__).parent / "streams"
RECORDED = sorted(path.relative_to(STREAMS) for path in STREAMS.glob("*/*"))

READERS: dict[str, Callable[[ProcessResult], Response | None]] = {
    "claude": claude_code.read_output,
    "codex": codex.read_output,
    "copilot": copilot_cli.read_output,
    "gemini": gemini_cli.read_output,
}

HELLO = "hello-from-tool"
ANSWERED: dict[str, list[str]] = {
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
"""Recordings that end with an answer → the tools that were called."""

FAILED: dict[str, tuple[ErrorKind, str]] = {
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
    "codex/http-500-no-retry": ("process", "high demand"),
    "codex/incomplete": ("process", "max_output_tokens"),
    "copilot/http-400": ("request", "400"),
    "copilot/http-401": ("auth", "HTTP 401"),
    "copilot/http-429": ("rate_limit", "429"),
    "gemini/json-http-400": ("request", "mock INVALID_ARGUMENT"),
    "gemini/stream-http-429-killed": ("process", "the events end before the result"),
}
"""Recordings that end otherwise → kind and words of the failure."""


def heard(recording: str) -> Response:
    (path,) = STREAMS.glob(f"{recording}.*")
    text = path.read_text("utf-8")
    failed = recording in FAILED
    is_error = "stderr" in path.name
    response = READERS[path.parent.name](ProcessResult(int(failed), *(("", text) if is_error else (text, ""))))
    assert response is not None
    return response


def test_every_recording_has_its_expectation() -> None:
    assert {f"{path.parent}/{path.name.split('.')[0]}" for path in RECORDED} == {*ANSWERED, *FAILED}


@pytest.mark.parametrize("recording", ANSWERED)
def test_answer_and_tools_are_heard(recording: str) -> None:
    found = heard(recording)
    assert found.answer == "MOCK-ANSWER 42"
    calls = [call for message in found.messages for call in message.tool_calls]
    assert [call.tool for call in calls] == ANSWERED[recording]


@pytest.mark.parametrize("recording", FAILED)
def test_failure_is_heard(recording: str) -> None:
    kind, words = FAILED[recording]
    with pytest.raises(AgentFailed) as caught:
        heard(recording)
    assert caught.value.kind == kind
    assert words in (caught.value.sentence or "")


@pytest.mark.parametrize(
    ("recording", "usage"),
    [
        ("claude/stream-tool", Usage(input_tokens=210, output_tokens=20, total_tokens=230, cached_tokens=40)),
        ("codex/tool", Usage(input_tokens=200, output_tokens=20, total_tokens=220, cached_tokens=40)),
        ("copilot/tool", None),
        ("gemini/stream-tool", Usage(input_tokens=200, output_tokens=12, total_tokens=220, cached_tokens=40)),
    ],
)
def test_tokens_are_heard_where_they_are_told(recording: str, usage: Usage | None) -> None:
    assert heard(recording).usage == usage


@pytest.mark.parametrize(
    ("recording", "given", "returned"),
    [
        ("claude/stream-tool", {"command": f"echo {HELLO}", "description": "say hi"}, HELLO),
        ("codex/tool", {"command": f"/bin/bash -lc 'echo {HELLO}'"}, f"{HELLO}\n"),
        ("gemini/stream-tool", {"command": f"echo {HELLO}", "description": "hi"}, HELLO),
    ],
)
def test_tool_call_has_what_went_in_and_came_out(recording: str, given: dict[str, Any], returned: str) -> None:
    (call,) = [call for message in heard(recording).messages for call in message.tool_calls]
    assert call == ToolCall(tool=call.tool, input=given, output=returned)


def test_text_before_a_tool_call_is_a_message_of_its_own() -> None:
    first, second = heard("claude/stream-tool").messages
    assert (first.content, first.tool_calls) == ("Let me run it.", ())
    assert (second.content, [call.tool for call in second.tool_calls]) == ("MOCK-ANSWER 42", ["Bash"])


@pytest.mark.parametrize("agent", READERS)
@pytest.mark.parametrize("text", ["", "no JSON", "[1]\n", '{"type": "unknown"}\n', "{\n"])
def test_what_is_no_stream_is_not_taken_for_one(agent: str, text: str) -> None:
    with pytest.raises(NotEvents):
        READERS[agent](ProcessResult(0, text, ""))


@pytest.mark.parametrize("recording", ANSWERED)
def test_lines_that_are_no_events_do_no_harm(recording: str) -> None:
    (path,) = STREAMS.glob(f"{recording}.*")
    text = f"Warning: something\n{path.read_text('utf-8')}\n\x1b[31mbye\x1b[0m\n"
    response = READERS[path.parent.name](ProcessResult(0, text, ""))
    assert response is not None
    assert response.answer == "MOCK-ANSWER 42"
