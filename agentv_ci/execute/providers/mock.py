"""`provider: mock`: fixed answers from the targets file."""

from __future__ import annotations

import json

from agentv_ci.contracts.exchange import ProviderError, Request, Response
from agentv_ci.contracts.results import OutputMessage, ToolCall
from agentv_ci.contracts.targets import MockTarget
from agentv_ci.execute.answers import summed
from agentv_ci.execute.provider_services import ProviderServices

DEFAULT_RESPONSE = json.dumps(
    {"score": 1.0, "hits": ["mock"], "misses": [], "reasoning": "a mock answer; nothing was asked"}
)
"""The answer when the target sets none and the request has no sample."""


class MockProvider:
    """See Provider."""

    def __init__(self, target: MockTarget, services: ProviderServices) -> None:
        self._target = target
        self._environment = services.environment
        self._failures: dict[str, int] = {}

    async def check(self) -> None:
        """A mock is always ready."""

    async def ask(self, request: Request) -> Response:
        """Return the case's response, the target's, or a default one: of a judge a valid reply."""
        await self._wait(request.timeout_s)
        self._fail(request)
        answer = (self._target.responses or {}).get(request.case_id, self._target.response)
        if answer is None:
            answer = DEFAULT_RESPONSE if request.sample is None else request.sample
        called = self._called(request)
        usage = None
        if (given := self._target.usage) is not None:
            usage = summed(given.input_tokens, given.output_tokens, None)
        return Response(
            answer=answer,
            messages=(OutputMessage(role="assistant", content=answer, tool_calls=called or ()),),
            has_trace=called is not None,
            usage=usage,
            request={"prompt": request.prompt},
        )

    def _called(self, request: Request) -> tuple[ToolCall, ...] | None:
        calls = self._target.tool_calls
        if calls is None:
            return request.sample_calls
        return tuple(
            ToolCall(tool=call.tool, input=call.input, output=call.output) for call in calls
        )

    async def _wait(self, timeout_s: float) -> None:
        delay_s = 0.0
        if isinstance(self._target.delay_ms, (int, float)):
            delay_s = self._target.delay_ms / 1000
        if delay_s:
            await self._environment.sleep(min(delay_s, timeout_s))
        if delay_s > timeout_s:
            raise ProviderError("timeout", f"no answer within {timeout_s:g} s")

    def _fail(self, request: Request) -> None:
        error = self._target.error
        if error is None:
            return
        failed = self._failures.get(request.case_id, 0)
        if error.attempts is None or failed < error.attempts:
            self._failures[request.case_id] = failed + 1
            raise ProviderError(error.kind, error.message)

    async def close(self) -> None:
        """A mock holds nothing."""
