"""`provider: mock` gives the answers that were written down."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.exchange import ProviderError, Request, Response
from agentv_ci.contracts.results import OutputMessage, ToolCall, Usage
from agentv_ci.contracts.targets import MockTarget
from agentv_ci.evaluate.replies import first_object, read_score
from agentv_ci.execute.providers import open_provider
from tests.execute.builders import context
from tests.support import FakeClock


def question(case_id: str = "one") -> Request:
    return Request(case_id=case_id, prompt="What?", guidelines="", chat=(), timeout_s=30, cwd=Path("/"))


def ask(*case_ids: str, waits: FakeClock | None = None, **given: Any) -> list[Response | ProviderError]:
    """Ask for one case after the other; return answers and failures."""
    target = MockTarget.model_validate({"name": "mock", "provider": "mock", **given})

    async def main() -> list[Response | ProviderError]:
        provider = open_provider(target, context(environment=(waits or FakeClock()).environment()))
        await provider.check()
        found: list[Response | ProviderError] = []
        for case_id in case_ids:
            try:
                found.append(await provider.ask(question(case_id)))
            except ProviderError as error:
                found.append(error)
        await provider.close()
        return found

    return asyncio.run(main())


def answer(case_id: str = "one", *, waits: FakeClock | None = None, **given: Any) -> Response:
    (found,) = ask(case_id, waits=waits, **given)
    assert isinstance(found, Response)
    return found


def test_the_response_of_the_target_answers_every_question() -> None:
    assert answer(response="42") == Response(
        answer="42",
        messages=(OutputMessage(role="assistant", content="42"),),
        has_trace=False,
        request={"prompt": "What?"},
    )


def test_the_response_of_a_case_wins() -> None:
    given: dict[str, Any] = {"response": "else", "responses": {"one": "42", "empty": ""}}
    assert [answer(case_id, **given).answer for case_id in ("one", "two", "empty")] == ["42", "else", ""]


def test_the_default_response_reads_as_a_judges_reply_that_passes() -> None:
    reply = first_object(answer().answer)
    assert reply is not None
    score = read_score(reply, most=4)
    assert score is not None
    assert (score.score, score.error) == (1.0, None)


def test_tool_calls_come_back_as_a_trace() -> None:
    found = answer(response="42", tool_calls=[{"tool": "search", "input": {"q": 1}, "output": [2]}, {"tool": "stop"}])
    assert found.has_trace
    assert found.messages[0].tool_calls == (ToolCall(tool="search", input={"q": 1}, output=[2]), ToolCall(tool="stop"))


@pytest.mark.parametrize(("given", "has_trace"), [({}, False), ({"tool_calls": []}, True)])
def test_no_tool_called_and_no_trace_are_two_things(given: dict[str, Any], has_trace: bool) -> None:
    assert answer(**given).has_trace is has_trace


def test_usage_is_reported() -> None:
    assert answer(usage={"input_tokens": 3, "output_tokens": 4}).usage == Usage(
        input_tokens=3, output_tokens=4, total_tokens=7
    )


def test_the_delay_is_waited_for_before_every_answer(waits: FakeClock) -> None:
    ask("one", "two", waits=waits, delay_ms=1500)
    assert waits.slept == [1.5, 1.5]


KINDS = ["timeout", "rate_limit", "auth", "network", "server", "request", "malformed", "process"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_failure_is_played_with_its_kind_and_its_message(kind: str) -> None:
    (error,) = ask("one", error={"kind": kind, "message": "as told"})
    assert isinstance(error, ProviderError)
    assert (error.kind, error.detail) == (kind, "as told")


def test_a_failure_is_played_every_time_when_nothing_else_is_said() -> None:
    found = ask("one", "one", "one", error={"kind": "server"})
    assert all(isinstance(each, ProviderError) for each in found)


def test_a_failure_is_played_as_often_as_it_says_for_each_case() -> None:
    found = ask("one", "one", "one", "two", "two", response="42", error={"kind": "timeout", "attempts": 2})
    assert ["42" if isinstance(each, Response) else each.kind for each in found] == [
        "timeout",
        "timeout",
        "42",
        "timeout",
        "timeout",
    ]
