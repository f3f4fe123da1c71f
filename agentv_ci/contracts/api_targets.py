"""Targets behind an HTTP API."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field

from agentv_ci.contracts.base import Authored, Items, JsonObject, JsonValue, Maybe, Name
from agentv_ci.contracts.environment_references import EnvironmentReference
from agentv_ci.contracts.target_settings import ApiFormat, Count, Milliseconds, Natural, StatusCode, TargetSettings

KEY_HEADERS = frozenset({"authorization", "api-key", "x-api-key", "x-goog-api-key"})
"""Headers that identify whoever asks, so that no `api_key` is needed."""


class RetrySettings(Authored):
    """How a provider repeats a request that failed for a passing reason."""

    max_retries: Maybe[Natural] = Field(None, description="Requests again; default 3.")
    retry_initial_delay_ms: Maybe[Milliseconds] = Field(None, description="First wait; default 1000.")
    retry_max_delay_ms: Maybe[Milliseconds] = Field(None, description="Longest wait; default 60000.")
    retry_backoff_factor: Maybe[Annotated[float, Field(ge=1)] | EnvironmentReference] = Field(
        None, description="Growth of the wait; default 2."
    )
    retry_status_codes: Maybe[Items[StatusCode | EnvironmentReference]] = Field(
        None, description="HTTP statuses worth repeating; default 408 429 500 502 503 504. 401 and 403 never are."
    )


class HttpTarget(TargetSettings, RetrySettings):
    """What every HTTP provider has."""

    judges_itself: ClassVar[bool] = True

    outside_digest: ClassVar[frozenset[str]] = (
        TargetSettings.outside_digest | RetrySettings.model_fields.keys() | {"api_key", "ca_bundle"}
    )
    secrets: ClassVar[frozenset[str]] = frozenset({"api_key", "headers"})
    essential: ClassVar[frozenset[str]] = frozenset({"api_key", "base_url"})
    paths: ClassVar[frozenset[str]] = frozenset({"ca_bundle"})
    implied: ClassVar[Mapping[str, JsonValue]] = {"headers": {}, "extra_body": {}}

    api_key: Maybe[str] = Field(None, description="A reference such as ${{ OPENAI_API_KEY }}, never the key itself.")
    base_url: Maybe[Name] = Field(None, description="The API's root, used as given.")
    temperature: Maybe[Annotated[float, Field(ge=0)] | EnvironmentReference] = Field(
        None, description="Sampling temperature."
    )
    max_output_tokens: Maybe[Count] = Field(None, description="Longest answer, in tokens.")
    max_tokens_param: Maybe[Literal["max_tokens", "max_completion_tokens"] | EnvironmentReference] = Field(
        None,
        description="How chat completions call the limit; default: max_completion_tokens at OpenAI and Azure, "
        "else max_tokens.",
    )
    thinking_budget: Maybe[Natural] = Field(
        None, description="About how many tokens the model may think; models that know only levels get the nearest."
    )
    headers: Maybe[dict[str, str]] = Field(None, description="Further request headers.")
    extra_body: Maybe[JsonObject] = Field(None, description="Further keys of the request's body.")
    ca_bundle: Maybe[Name] = Field(None, description="A PEM file of certificate authorities to trust.")

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {"max_output_tokens": ("max_tokens",)}

    def address(self) -> str | None:
        """Return the API's root; None when it is left to the environment."""
        return self.base_url

    @classmethod
    def needs(cls, data: Mapping[str, JsonValue]) -> frozenset[str]:
        """The vendor's own API needs a key; a server of one's own may do without."""
        is_vendor = str(data.get("base_url", "")).rstrip("/") == cls.fallbacks.get("base_url")
        return frozenset({"api_key"}) if is_vendor and not _has_key_header(data) else frozenset()

    @classmethod
    def reads(cls, field: str, data: Mapping[str, JsonValue]) -> bool:
        """A target that identifies itself by a header sends no other key."""
        return super().reads(field, data) and not (field == "api_key" and _has_key_header(data))


def azure_root(address: str) -> tuple[str, bool]:
    """Return the root of a resource at Azure, and whether its address already chose v1.

    A name alone is a resource of Azure's. People paste whole addresses of operations, too. Raises ValueError for what
    is no address.
    """
    address = address.strip()
    if "://" not in address:
        address = f"https://{address}" if "." in address or ":" in address else f"https://{address}.openai.azure.com"
    split = urlsplit(address)
    before, _, behind = f"{split.path.rstrip('/')}/".partition("/openai/")
    root = urlunsplit((split.scheme.lower(), split.netloc, before.rstrip("/"), "", ""))
    return root, behind.split("/")[0] == "v1"


def _azure_root(data: Mapping[str, JsonValue]) -> tuple[str, bool]:
    written = data.get("endpoint") or data.get("base_url")
    try:
        return azure_root(written) if isinstance(written, str) else ("", False)
    except ValueError:
        return "", False


def _has_key_header(data: Mapping[str, JsonValue]) -> bool:
    headers = data.get("headers")
    names = {name.lower() for name in headers} if isinstance(headers, dict) else set()
    return bool(names & KEY_HEADERS)


class AzureOpenAITarget(HttpTarget):
    """A deployment at Azure OpenAI."""

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **HttpTarget.older_names,
        "endpoint": ("resource", "resource_name"),
        "deployment": ("deployment_name", "model"),
        "version": ("api_version",),
    }
    essential: ClassVar[frozenset[str]] = HttpTarget.essential | {"endpoint", "deployment", "version", "api_format"}
    implied: ClassVar[Mapping[str, JsonValue]] = {
        **HttpTarget.implied,
        "version": "2024-12-01-preview",
        "api_format": "chat",
    }
    variables: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "endpoint": ("AZURE_OPENAI_ENDPOINT",),
        "api_key": ("AZURE_OPENAI_API_KEY",),
        "deployment": ("AZURE_DEPLOYMENT_NAME",),
        "version": ("AZURE_OPENAI_API_VERSION",),
    }

    provider: Literal["azure-openai", "azure"] = Field(description="Ask a deployment at Azure OpenAI.")
    endpoint: Maybe[Name] = Field(None, description="The resource's address, or its name alone.")
    deployment: Maybe[Name] = Field(None, description="The deployment's name.")
    version: Maybe[Name] = Field(
        None, description="The API's version, or v1; default 2024-12-01-preview, and v1 for an endpoint in /openai/v1."
    )
    api_format: Maybe[ApiFormat] = Field(None, description="Which of its two APIs is spoken; default chat.")

    @classmethod
    def needs(cls, data: Mapping[str, JsonValue]) -> frozenset[str]:
        """A deployment has no default, and neither has the resource it stands in."""
        address = frozenset[str]() if "base_url" in data else frozenset({"endpoint"})
        root = _azure_root(data)[0]
        is_azure = not root or (urlsplit(root).hostname or "").endswith(".azure.com")
        key = frozenset({"api_key"}) if is_azure and not _has_key_header(data) else frozenset[str]()
        return address | key | {"deployment"}

    def address(self) -> str | None:
        """Return the resource's root."""
        written = self.endpoint or self.base_url
        return None if written is None else azure_root(written)[0]

    @classmethod
    def reads(cls, field: str, data: Mapping[str, JsonValue]) -> bool:
        """An address that the target names, and the version in it, count before the environment."""
        is_said = (field == "endpoint" and "base_url" in data) or (field == "version" and _azure_root(data)[1])
        return super().reads(field, data) and not is_said


class OpenAITarget(HttpTarget):
    """OpenAI, or any server that speaks its chat completions."""

    implied: ClassVar[Mapping[str, JsonValue]] = {**HttpTarget.implied, "api_format": "chat"}
    variables: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "api_key": ("OPENAI_API_KEY",),
        "base_url": ("OPENAI_BASE_URL",),
    }
    fallbacks: ClassVar[Mapping[str, str]] = {"base_url": "https://api.openai.com/v1"}
    brands: ClassVar[Mapping[str, str]] = {
        "ollama": "http://localhost:11434/v1",
        "vllm": "http://localhost:8000/v1",
        "openrouter": "https://openrouter.ai/api/v1",
    }
    """Other names of this provider that stand for a server → where it is when nothing says so."""

    def fallback(self, field: str) -> str | None:
        """Return what a field is when it is absent; a server's name brings its address."""
        return self.brands.get(self.provider, self.fallbacks["base_url"]) if field == "base_url" else None

    provider: Literal["openai", "openai-compatible", "ollama", "vllm", "openrouter"] = Field(
        description="Ask an OpenAI-compatible API."
    )
    model: Name = Field(description="The model's name.")
    api_format: Maybe[ApiFormat] = Field(None, description="Which of its two APIs is spoken; default chat.")


class AnthropicTarget(HttpTarget):
    """A model of Anthropic."""

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **HttpTarget.older_names,
        "model": ("deployment", "variant"),
    }

    implied: ClassVar[Mapping[str, JsonValue]] = {**HttpTarget.implied, "version": "2023-06-01"}
    variables: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "api_key": ("ANTHROPIC_API_KEY",),
        "base_url": ("ANTHROPIC_BASE_URL",),
    }
    fallbacks: ClassVar[Mapping[str, str]] = {"base_url": "https://api.anthropic.com"}

    provider: Literal["anthropic", "claude-api"] = Field(description="Ask the Messages API of Anthropic.")
    model: Name = Field(description="The model's name.")
    version: Maybe[Name] = Field(None, description="The header anthropic-version; default 2023-06-01.")


class GeminiTarget(HttpTarget):
    """A Gemini model of Google."""

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **HttpTarget.older_names,
        "model": ("deployment", "variant"),
    }

    implied: ClassVar[Mapping[str, JsonValue]] = {**HttpTarget.implied, "api_version": "v1beta"}
    variables: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "api_key": ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
        "model": ("GOOGLE_GEMINI_MODEL",),
        "base_url": ("GOOGLE_GEMINI_BASE_URL",),
    }
    fallbacks: ClassVar[Mapping[str, str]] = {
        "base_url": "https://generativelanguage.googleapis.com",
        "model": "gemini-3.5-flash-lite",
    }

    essential: ClassVar[frozenset[str]] = HttpTarget.essential | {"model"}

    provider: Literal["gemini", "google", "google-gemini"] = Field(description="Ask the Gemini API of Google.")
    model: Maybe[Name] = Field(None, description="The model's name; default gemini-3.5-flash-lite.")
    api_version: Maybe[Name] = Field(None, description="The version in the path; default v1beta.")
