"""`provider: azure-openai`: a deployment at Azure OpenAI.

Two styles of addresses: {endpoint}/openai/deployments/{deployment}/chat/completions?api-version=…, and, without
a version, {endpoint}/openai/v1/… with the deployment as the model.
https://learn.microsoft.com/azure/ai-foundry/openai/reference
"""

from __future__ import annotations

from urllib.parse import quote

from agentv_ci.contracts.api_targets import AzureOpenAITarget, azure_root
from agentv_ci.execute.apis.openai_formats import RESPONSES, api_in_format, format_of
from agentv_ci.execute.apis.provider import Api, ApiProvider
from agentv_ci.execute.services import ProviderServices

DEFAULT_VERSION = str(AzureOpenAITarget.implied["version"])


def open_provider(target: AzureOpenAITarget, services: ProviderServices) -> ApiProvider:
    """Return the provider of a resolved target."""
    return ApiProvider(target, azure_openai_api(target), services)


def azure_openai_api(target: AzureOpenAITarget) -> Api:
    """Return the API; the deployment stands in the body of a question too, as in the vendor's own clients."""
    address = target.endpoint or target.base_url
    assert address is not None, "a resolved target has an endpoint"
    base_url, ends_in_v1 = azure_root(address)
    headers = {"api-key": target.api_key} if target.api_key else {}
    return api_in_format(target, base_url, _path(target, ends_in_v1=ends_in_v1), headers)


def _path(target: AzureOpenAITarget, *, ends_in_v1: bool) -> str:
    form, version = format_of(target), _version(target.version, ends_in_v1=ends_in_v1)
    if version == "v1":
        return f"/openai/v1{form.operation}"
    # Responses name the deployment as the model, as in v1.
    place = "" if form is RESPONSES else f"/deployments/{quote(target.deployment or '', safe='')}"
    return f"/openai{place}{form.operation}?api-version={quote(version, safe='')}"


def _version(written: str | None, *, ends_in_v1: bool) -> str:
    if written is None:
        return "v1" if ends_in_v1 else DEFAULT_VERSION
    return written.strip().removeprefix("api-version=")
