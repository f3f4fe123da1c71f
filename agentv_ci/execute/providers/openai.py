"""`provider: openai`: OpenAI, and every server that speaks its chat completions or Responses.

Protocol: POST {base_url}/chat/completions or {base_url}/responses,
https://platform.openai.com/docs/api-reference.
"""

from __future__ import annotations

from agentv_ci.contracts.api_targets import OpenAITarget
from agentv_ci.execute.apis.openai_formats import openai_api
from agentv_ci.execute.apis.provider import ApiProvider
from agentv_ci.execute.provider_services import ProviderServices


def open_provider(target: OpenAITarget, services: ProviderServices) -> ApiProvider:
    """Return the provider of a resolved target."""
    assert target.base_url is not None, "a resolved target has a base_url"
    headers = {}
    if target.api_key:
        headers = {"authorization": f"Bearer {target.api_key}"}
    return ApiProvider(target, openai_api(target, target.base_url, headers), services)
