"""OpenAI's Responses: https://platform.openai.com/docs/api-reference/responses."""

from __future__ import annotations

from collections.abc import Iterator

from agentv_ci.contracts.api_targets import AzureOpenAITarget, OpenAITarget
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import ChatMessage, ProviderError, Request, Response
from agentv_ci.contracts.results import ToolCall
from agentv_ci.execute.answers import answered, openai_usage
from agentv_ci.execute.apis.chat_completions import arguments
from agentv_ci.execute.apis.question import budget_of, effort, instructions_and_turns, temperature_of, whole_limit_of
from agentv_ci.execute.apis.refusals import inner_error
from agentv_ci.json_access import objects_at, text_at, value_at

UNFINISHED = ("failed", "cancelled", "queued", "in_progress")


def responses_body(
    target: OpenAITarget | AzureOpenAITarget,
    model: str,
    request: Request,
    *,
    limit_name: str,  # noqa: ARG001  # this API has one name only
) -> JsonObject:
    """Return the body of a question. The API takes no seed, and nothing is stored at the vendor's."""
    system, turns = instructions_and_turns(request)
    # The API wants to be asked something, also when the instructions say all.
    asked = turns or [ChatMessage("user", "Begin.")]
    said: list[JsonValue] = [{"role": each.role, "content": each.content} for each in asked]
    body: JsonObject = {"model": model, "instructions": system, "input": said, "store": False}
    if (temperature := temperature_of(target, request)) is not None:
        body["temperature"] = temperature
    if (limit := whole_limit_of(target, request)) is not None:
        body["max_output_tokens"] = limit
    if (budget := budget_of(target)) is not None:
        body["reasoning"] = {"effort": effort(budget)}
    return body


def read_responses(body: JsonObject) -> Response:
    """Return the answer of a response; raises ProviderError for a refusal, a failure, or no answer at all.

    A failure too comes with HTTP status 200.
    """
    if error := inner_error(body):
        raise error
    status = text_at(body, "status")
    if status in UNFINISHED:
        raise ProviderError("server", f"the API answered with status {status}")
    if not isinstance(body.get("output"), list):
        raise ProviderError("malformed", "the answer has no output")
    reason = text_at(body, "incomplete_details", "reason")
    parts = [part for item in objects_at(body, "output") for part in objects_at(item, "content")]
    answer = "".join(text_at(part, "text") or "" for part in parts if value_at(part, "type") == "output_text")
    if reason == "content_filter":
        raise ProviderError("request", "the API's content filter withheld the answer")
    refusals = [text_at(part, "refusal") or "" for part in parts if value_at(part, "type") == "refusal"]
    if not answer and refusals:
        raise ProviderError("request", f"the model refused to answer: {' '.join(refusals)}")
    return answered(
        answer,
        _calls(body),
        model=text_at(body, "model"),
        usage=openai_usage(body.get("usage"), "input_tokens", "output_tokens"),
        finish_reason=reason or status,
    )


def _calls(body: JsonObject) -> Iterator[ToolCall]:
    for item in objects_at(body, "output"):
        if value_at(item, "type") == "function_call" and (name := text_at(item, "name")):
            yield ToolCall(tool=name, input=arguments(value_at(item, "arguments")))
