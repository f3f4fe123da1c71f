"""`provider: azure-openai`: a deployment at Azure OpenAI.

Two forms of address: {endpoint}/openai/deployments/{deployment}/chat/completions?api-version=…, and
for version v1 {endpoint}/openai/v1/… with the deployment as the model.
https://learn.microsoft.com/azure/ai-foundry/openai/reference
"""

from __future__ import annotations

from urllib.parse import quote

from agentv_ci.contracts.api_targets import AzureOpenAITarget, azure_root
from agentv_ci.execute.apis.openai_formats import openai_api
from agentv_ci.execute.apis.provider import Api, ApiProvider
from agentv_ci.execute.provider_services import ProviderServices

DEFAULT_VERSION = str(AzureOpenAITarget.implied["version"])


def open_provider(target: AzureOpenAITarget, services: ProviderServices) -> ApiProvider:
    """Return the provider of a resolved target."""
    return ApiProvider(target, azure_openai_api(target), services)


def azure_openai_api(target: AzureOpenAITarget) -> Api:
    """Return the API; the body names the deployment too, as the vendor's own clients do."""
    address = target.endpoint or target.base_url
    assert address is not None, "a resolved target has an endpoint"
    base_url, ends_in_v1 = azure_root(address)
    headers = {}
    if target.api_key:
        headers = {"api-key": target.api_key}
    version = (
        (target.version or ("v1" if ends_in_v1 else DEFAULT_VERSION))
        .strip()
        .removeprefix("api-version=")
    )
    if version == "v1":
        return openai_api(target, base_url, headers, place="/openai/v1")
    # Responses name the deployment as the model, as in v1.
    names_model = target.api_format == "responses"
    deployment = "" if names_model else f"/deployments/{quote(target.deployment or '', safe='')}"
    query = f"?api-version={quote(version, safe='')}"
    return openai_api(target, base_url, headers, place=f"/openai{deployment}", query=query)
