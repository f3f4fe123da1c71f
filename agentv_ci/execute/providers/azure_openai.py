"""`provider: azure-openai`: a deployment at Azure OpenAI.

Two styles of addresses: {endpoint}/openai/deployments/{deployment}/chat/completions?api-version=…, and, without
a version, {endpoint}/openai/v1/… with the deployment as the model.
https://learn.microsoft.com/azure/ai-foundry/openai/reference
"""

from __future__ import annotations

from urllib.parse import quote, urlsplit, urlunsplit

from agentv_ci.contracts.api_targets import AzureOpenAITarget
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Request, Response
from agentv_ci.execute.apis import chat_completions, responses
from agentv_ci.execute.apis.provider import ApiProvider
from agentv_ci.execute.context import Context
from agentv_ci.retry import DEFAULT_STATUS_CODES

DEFAULT_VERSION = str(AzureOpenAITarget.implied["version"])


def open_azure_openai(target: AzureOpenAITarget, context: Context) -> ApiProvider:
    """Return the provider of a resolved target."""
    return ApiProvider(target, AzureOpenAIApi(target), context)


class AzureOpenAIApi:
    """See Api."""

    status_codes = DEFAULT_STATUS_CODES

    def __init__(self, target: AzureOpenAITarget) -> None:
        address = target.endpoint or target.base_url
        assert address is not None, "a resolved target has an endpoint"
        assert target.deployment is not None, "a resolved target has a deployment"
        self._target = target
        self._deployment = target.deployment
        self._speaks_responses = target.api_format == "responses"
        self.base_url, ends_in_v1 = _resource(address)
        self.path = self._path(_version(target.version, ends_in_v1=ends_in_v1))
        self.question = responses.QUESTION if self._speaks_responses else chat_completions.QUESTION
        self.headers = {"api-key": target.api_key} if target.api_key else {}

    def _path(self, version: str) -> str:
        operation = "/responses" if self._speaks_responses else "/chat/completions"
        if version == "v1":
            return f"/openai/v1{operation}"
        # Responses name the deployment as the model, as in v1.
        place = "" if self._speaks_responses else f"/deployments/{quote(self._deployment, safe='')}"
        return f"/openai{place}{operation}?api-version={quote(version, safe='')}"

    def body(self, request: Request) -> JsonObject:
        """Return the body of a question; the deployment stands in it too, as in the vendor's own clients."""
        if self._speaks_responses:
            return responses.responses_body(self._target, self._deployment, request)
        limit_name = self._target.max_tokens_param or "max_completion_tokens"
        return chat_completions.chat_body(self._target, self._deployment, request, limit_name=limit_name)

    def response(self, body: JsonObject) -> Response:
        """Return what an answer says."""
        return responses.read_responses(body) if self._speaks_responses else chat_completions.read_chat(body)


def _resource(address: str) -> tuple[str, bool]:
    """Return a resource's root, and whether the address already chose v1.

    A name alone is a resource of Azure's. People paste whole addresses of operations, too.
    """
    address = address.strip()
    if "://" not in address:
        address = f"https://{address}" if "." in address or ":" in address else f"https://{address}.openai.azure.com"
    split = urlsplit(address)
    before, _, behind = f"{split.path.rstrip('/')}/".partition("/openai/")
    root = urlunsplit((split.scheme.lower(), split.netloc, before.rstrip("/"), "", ""))
    return root, behind.split("/")[0] == "v1"


def _version(written: str | None, *, ends_in_v1: bool) -> str:
    if written is None:
        return "v1" if ends_in_v1 else DEFAULT_VERSION
    return written.strip().removeprefix("api-version=")
