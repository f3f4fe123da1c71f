"""`provider: mock` gives the answers, failures and delays of the targets file."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.contracts.exchange import ProviderError, Response
from agentv_ci.contracts.results import OutputMessage, ToolCall, Usage
from agentv_ci.evaluate.replies import first_object, read_score
from tests.execute.builders import ask_all, context, question, target
from tests.support import FakeClock


def ask(*case_ids: str, waits: FakeClock | None = None, **given: Any) -> list[str]:
    """Ask for one case after the other; return answers, and failures as `kind: detail`."""
    services = context(environment=(waits or FakeClock()).environment())
    found = ask_all(target(provider="mock", **given), [question(case_id=each) for each in case_ids], services)
    return [each.answer if isinstance(each, Response) else f"{each.kind}: {each.detail}" for each in found]


def response(**given: Any) -> Response:
    (found,) = ask_all(target(provider="mock", **given), [question()], context())
    assert not isinstance(found, ProviderError)
    return found


def test_the_response_of_a_case_wins_over_that_of_the_target() -> None:
    given: dict[str, Any] = {"response": "else", "responses": {"one": "42", "empty": ""}}
    assert ask("one", "two", "empty", **given) == ["42", "else", ""]


def test_the_default_response_is_a_judges_reply_that_passes() -> None:
    reply = first_object(response().answer)
    assert reply is not None
    score = read_score(reply, most=4)
    assert score is not None
    assert (score.score, score.error) == (1.0, None)


def test_an_answer_has_its_prompt_tool_calls_and_tokens() -> None:
    usage = {"input_tokens": 3, "output_tokens": 4}
    calls = [{"tool": "search", "input": {"q": 1}, "output": [2]}, {"tool": "stop"}]
    called = (ToolCall(tool="search", input={"q": 1}, output=[2]), ToolCall(tool="stop"))
    assert response(response="42", tool_calls=calls, usage=usage) == Response(
        answer="42",
        messages=(OutputMessage(role="assistant", content="42", tool_calls=called),),
        has_trace=True,
        usage=Usage(input_tokens=3, output_tokens=4, total_tokens=7),
        request={"prompt": question().prompt},
    )
    assert (response().has_trace, response(tool_calls=[]).has_trace) == (False, True)


def test_the_delay_precedes_every_answer_up_to_the_time_limit(waits: FakeClock) -> None:
    assert ask("one", "two", waits=waits, response="42", delay_ms=30_000) == ["42", "42"]
    assert ask("one", waits=waits, delay_ms=30_001) == ["timeout: no answer within 30 s"]
    assert waits.slept == [30, 30, 30]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"kind": "server", "message": "down"}, ["server: down"] * 3),
        ({"kind": "auth"}, ["auth: scripted failure"] * 3),
        ({"kind": "timeout", "attempts": 1}, ["timeout: scripted failure", "42", "timeout: scripted failure"]),
    ],
)
def test_failures_are_repeated_as_often_as_the_target_sets_for_each_case(
    error: dict[str, Any], expected: list[str]
) -> None:
    assert ask("one", "one", "two", response="42", error=error) == expected
