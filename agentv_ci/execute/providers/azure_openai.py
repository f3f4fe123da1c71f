"""`provider: azure-openai`: a deployment at Azure OpenAI.

Two styles of addresses: {endpoint}/openai/deployments/{deployment}/chat/completions?api-version=…, and, without
a version, {endpoint}/openai/v1/… with the deployment as the model.
https://learn.microsoft.com/azure/ai-foundry/openai/reference
"""

from __future__ import annotations

from urllib.parse import quote

from agentv_ci.contracts.api_targets import AzureOpenAITarget, azure_root
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Request, Response
from agentv_ci.execute.apis.openai_formats import RESPONSES, format_of
from agentv_ci.execute.apis.provider import ApiProvider
from agentv_ci.execute.services import ProviderServices
from agentv_ci.retry import DEFAULT_STATUS_CODES

DEFAULT_VERSION = str(AzureOpenAITarget.implied["version"])


def open_azure_openai(target: AzureOpenAITarget, services: ProviderServices) -> ApiProvider:
    """Return the provider of a resolved target."""
    return ApiProvider(target, AzureOpenAIApi(target), services)


class AzureOpenAIApi:
    """See Api."""

    status_codes = DEFAULT_STATUS_CODES

    def __init__(self, target: AzureOpenAITarget) -> None:
        address = target.endpoint or target.base_url
        assert address is not None, "a resolved target has an endpoint"
        assert target.deployment is not None, "a resolved target has a deployment"
        self._target = target
        self._deployment = target.deployment
        self._format = format_of(target)
        self.base_url, ends_in_v1 = azure_root(address)
        self.path = self._path(_version(target.version, ends_in_v1=ends_in_v1))
        self.question = self._format.question
        self.takes_seed = self._format.takes_seed
        self.headers = {"api-key": target.api_key} if target.api_key else {}

    def _path(self, version: str) -> str:
        operation = self._format.operation
        if version == "v1":
            return f"/openai/v1{operation}"
        # Responses name the deployment as the model, as in v1.
        place = "" if self._format is RESPONSES else f"/deployments/{quote(self._deployment, safe='')}"
        return f"/openai{place}{operation}?api-version={quote(version, safe='')}"

    def body(self, request: Request) -> JsonObject:
        """Return the body of a question; the deployment stands in it too, as in the vendor's own clients."""
        limit_name = self._target.max_tokens_param or "max_completion_tokens"
        return self._format.body(self._target, self._deployment, request, limit_name=limit_name)

    def response(self, body: JsonObject) -> Response:
        """Return what an answer says."""
        return self._format.read(body)


def _version(written: str | None, *, ends_in_v1: bool) -> str:
    if written is None:
        return "v1" if ends_in_v1 else DEFAULT_VERSION
    return written.strip().removeprefix("api-version=")
