"""`provider: openai`: OpenAI, and every server that speaks its chat completions or Responses.

Protocol: POST {base_url}/chat/completions or {base_url}/responses, https://platform.openai.com/docs/api-reference.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from agentv_ci.contracts.api_targets import OpenAITarget
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Request, Response
from agentv_ci.execute.apis.openai_formats import format_of
from agentv_ci.execute.apis.provider import ApiProvider
from agentv_ci.execute.services import ProviderServices
from agentv_ci.retry import DEFAULT_STATUS_CODES

VENDOR = urlsplit(OpenAITarget.fallbacks["base_url"]).hostname


def open_openai(target: OpenAITarget, services: ProviderServices) -> ApiProvider:
    """Return the provider of a resolved target."""
    return ApiProvider(target, OpenAIApi(target), services)


class OpenAIApi:
    """See Api."""

    status_codes = DEFAULT_STATUS_CODES

    def __init__(self, target: OpenAITarget) -> None:
        assert target.base_url is not None, "a resolved target has a base_url"
        self._target = target
        self._format = format_of(target)
        self.base_url = target.base_url
        self.path = self._format.operation
        self.question = self._format.question
        self.takes_seed = self._format.takes_seed
        self.headers = {"authorization": f"Bearer {target.api_key}"} if target.api_key else {}

    def body(self, request: Request) -> JsonObject:
        """Return the body of a question."""
        return self._format.body(self._target, self._target.model, request, limit_name=self._limit_name())

    def _limit_name(self) -> str:
        if self._target.max_tokens_param is not None:
            return self._target.max_tokens_param
        # OpenAI's newer models refuse max_tokens; many compatible servers know nothing else.
        return "max_completion_tokens" if urlsplit(self.base_url).hostname == VENDOR else "max_tokens"

    def response(self, body: JsonObject) -> Response:
        """Return what an answer says."""
        return self._format.read(body)
