"""Targets behind an HTTP API."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field

from agentv_ci.contracts.attachments import ALL_TAKEN, BY_URL, TEXT
from agentv_ci.contracts.base import Authored, Items, JsonObject, JsonValue, Maybe, Name, meanings
from agentv_ci.contracts.environment_references import EnvironmentReference
from agentv_ci.contracts.target_settings import (
    ApiFormat,
    Count,
    Milliseconds,
    Natural,
    StatusCode,
    TargetSettings,
)

FRAMING_HEADERS = frozenset({"content-length", "transfer-encoding", "connection", "upgrade"})
"""Headers that the HTTP client sets itself."""
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
INVALID_ADDRESS = "must begin with http:// or https:// and a host"
KEY_HEADERS = frozenset({"authorization", "api-key", "x-api-key", "x-goog-api-key"})
"""Headers that authenticate, so that no `api_key` is needed."""


API_FORMATS = meanings(chat="Chat completions.", responses="The Responses API.")


class RetrySettings(Authored):
    """Retries of requests after transient failures."""

    max_retries: Maybe[Natural] = Field(None, description="Retries of a request; default 3.")
    retry_initial_delay_ms: Maybe[Milliseconds] = Field(
        None, description="First delay; default 1000."
    )
    retry_max_delay_ms: Maybe[Milliseconds] = Field(
        None, description="Longest delay; default 60000."
    )
    retry_backoff_factor: Maybe[Annotated[float, Field(ge=1)] | EnvironmentReference] = Field(
        None, description="Growth of the delay; default 2."
    )
    retry_status_codes: Maybe[Items[StatusCode | EnvironmentReference]] = Field(
        None,
        description="HTTP statuses to retry; default 408 429 500 502 503 504. 401 and 403 are "
        "never retried.",
    )


class HttpTarget(TargetSettings, RetrySettings):
    """Settings of every HTTP provider."""

    judges_itself: ClassVar[bool] = True

    outside_digest: ClassVar[frozenset[str]] = (
        TargetSettings.outside_digest | RetrySettings.model_fields.keys() | {"api_key", "ca_bundle"}
    )
    secrets: ClassVar[frozenset[str]] = frozenset({"api_key", "headers"})
    essential: ClassVar[frozenset[str]] = frozenset({"api_key", "base_url"})
    paths: ClassVar[frozenset[str]] = frozenset({"ca_bundle"})
    implied: ClassVar[Mapping[str, JsonValue]] = {"headers": {}, "extra_body": {}}

    api_key: Maybe[str] = Field(
        None, description="A reference such as ${{ OPENAI_API_KEY }}, never the key itself."
    )
    base_url: Maybe[Name] = Field(None, description="Base URL of the API, used unchanged.")
    temperature: Maybe[Annotated[float, Field(ge=0)] | EnvironmentReference] = Field(
        None, description="Sampling temperature."
    )
    max_output_tokens: Maybe[Count] = Field(None, description="Token limit of an answer.")
    max_tokens_param: Maybe[
        Literal["max_tokens", "max_completion_tokens"] | EnvironmentReference
    ] = Field(
        None,
        description="Name of the token limit in chat completions; default: max_completion_tokens "
        "for OpenAI and Azure, else max_tokens.",
        json_schema_extra=meanings(
            max_tokens="What most compatible servers read.",
            max_completion_tokens="What OpenAI and Azure read.",
        ),
    )
    thinking_budget: Maybe[Natural] = Field(
        None,
        description="Approximate tokens for reasoning; models with fixed levels get the nearest "
        "one.",
    )
    system_prompt: Maybe[Name] = Field(
        None, description="System prompt instead of the built-in one: a text, a path, or `none`."
    )
    headers: Maybe[dict[str, str]] = Field(None, description="Additional request headers.")
    extra_body: Maybe[JsonObject] = Field(None, description="Additional keys of the request body.")
    ca_bundle: Maybe[Name] = Field(
        None, description="PEM file with trusted certificate authorities."
    )

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {"max_output_tokens": ("max_tokens",)}

    @property
    def takes(self) -> frozenset[str]:
        """Everything."""
        return ALL_TAKEN

    def address(self) -> str | None:
        """Return the base URL; None if it comes from the environment."""
        return self.base_url

    @classmethod
    def needs(cls, data: Mapping[str, JsonValue]) -> frozenset[str]:
        """The vendor's own API needs a key; other servers may not."""
        is_vendor = str(data.get("base_url", "")).rstrip("/") == cls.fallbacks.get("base_url")
        return frozenset({"api_key"}) if is_vendor and not _has_key_header(data) else frozenset()

    @classmethod
    def reads(cls, field: str, data: Mapping[str, JsonValue]) -> bool:
        """A target with a header that authenticates sends no other key."""
        return super().reads(field, data) and not (field == "api_key" and _has_key_header(data))


def azure_root(address: str) -> tuple[str, bool]:
    """Return the root of an Azure resource, and whether its URL selects v1.

    Accepts the name of a resource and URLs of operations. Raises ValueError for an invalid URL.
    """
    address = address.strip()
    if "://" not in address:
        address = (
            f"https://{address}"
            if "." in address or ":" in address
            else f"https://{address}.openai.azure.com"
        )
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
    """An Azure OpenAI deployment."""

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **HttpTarget.older_names,
        "endpoint": ("resource", "resource_name"),
        "deployment": ("deployment_name", "model"),
        "version": ("api_version",),
    }
    essential: ClassVar[frozenset[str]] = HttpTarget.essential | {
        "endpoint",
        "deployment",
        "version",
        "api_format",
    }
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

    older_kinds: ClassVar[frozenset[str]] = frozenset({"azure"})

    provider: Literal["azure-openai", "azure"] = Field(
        description="Use an Azure OpenAI deployment."
    )
    endpoint: Maybe[Name] = Field(None, description="URL or name of the resource.")
    deployment: Maybe[Name] = Field(None, description="Name of the deployment.")
    version: Maybe[Name] = Field(
        None,
        description="API version, or v1; default 2024-12-01-preview, or v1 for an endpoint under "
        "/openai/v1.",
    )
    api_format: Maybe[ApiFormat] = Field(
        None, description="API to use; default chat.", json_schema_extra=API_FORMATS
    )

    @classmethod
    def needs(cls, data: Mapping[str, JsonValue]) -> frozenset[str]:
        """The deployment and its resource have no default."""
        address = frozenset[str]() if "base_url" in data else frozenset({"endpoint"})
        root = _azure_root(data)[0]
        is_azure = not root or (urlsplit(root).hostname or "").endswith(".azure.com")
        key = frozenset({"api_key"}) if is_azure and not _has_key_header(data) else frozenset[str]()
        return address | key | {"deployment"}

    def address(self) -> str | None:
        """Return the root of the resource."""
        written = self.endpoint or self.base_url
        return None if written is None else azure_root(written)[0]

    @classmethod
    def reads(cls, field: str, data: Mapping[str, JsonValue]) -> bool:
        """A URL in the target, and the version in it, take precedence over the environment."""
        is_set = (field == "endpoint" and "base_url" in data) or (
            field == "version" and _azure_root(data)[1]
        )
        return super().reads(field, data) and not is_set

    @property
    def takes(self) -> frozenset[str]:
        """Chat completions take PDF files as their only documents."""
        return (
            ALL_TAKEN
            if self.api_format not in (None, "chat")
            else ALL_TAKEN - {TEXT, BY_URL["document"]}
        )


class OpenAITarget(HttpTarget):
    """OpenAI, or any server with a compatible API."""

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
    """Names of this provider that imply a server → its default URL."""

    def fallback(self, field: str) -> str | None:
        """Return the default of a field; the name of a server implies its URL."""
        return (
            self.brands.get(self.provider, self.fallbacks["base_url"])
            if field == "base_url"
            else None
        )

    older_kinds: ClassVar[frozenset[str]] = frozenset({"openai-compatible"})

    provider: Literal["openai", "openai-compatible", "ollama", "vllm", "openrouter"] = Field(
        description="Use an OpenAI-compatible API.",
        json_schema_extra=meanings(
            ollama="Use a local Ollama server.",
            vllm="Use a vLLM server.",
            openrouter="Use OpenRouter.",
        ),
    )
    model: Name = Field(description="Name of the model.")
    api_format: Maybe[ApiFormat] = Field(
        None, description="API to use; default chat.", json_schema_extra=API_FORMATS
    )

    @property
    def takes(self) -> frozenset[str]:
        """Chat completions take PDF files as their only documents."""
        return (
            ALL_TAKEN
            if self.api_format not in (None, "chat")
            else ALL_TAKEN - {TEXT, BY_URL["document"]}
        )


class AnthropicTarget(HttpTarget):
    """An Anthropic model."""

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

    older_kinds: ClassVar[frozenset[str]] = frozenset({"claude-api"})

    provider: Literal["anthropic", "claude-api"] = Field(
        description="Use the Anthropic Messages API."
    )
    model: Name = Field(description="Name of the model.")
    version: Maybe[Name] = Field(
        None, description="Value of the header anthropic-version; default 2023-06-01."
    )


class GeminiTarget(HttpTarget):
    """A Google Gemini model."""

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

    older_kinds: ClassVar[frozenset[str]] = frozenset({"google", "google-gemini"})

    provider: Literal["gemini", "google", "google-gemini"] = Field(
        description="Use the Google Gemini API."
    )
    model: Maybe[Name] = Field(
        None, description="Name of the model; default gemini-3.5-flash-lite."
    )
    api_version: Maybe[Name] = Field(None, description="API version in the path; default v1beta.")

    @property
    def takes(self) -> frozenset[str]:
        """Everything but GIF."""
        return ALL_TAKEN - {"image/gif"}


def refused_settings(target: HttpTarget) -> Iterator[tuple[str, str]]:
    """Yield the fields of a target with values that cannot be used, and why.

    Never the value itself.
    """
    yield from _of_address(target)
    yield from _of_headers(target)


def is_address(address: str) -> bool:
    """Whether a URL has the scheme of HTTP and a host."""
    try:
        split = urlsplit(address)
        _ = split.port  # raises ValueError
    except ValueError:
        return False
    host = split.hostname or ""
    has_host = bool(host.strip(".")) and host[0] != "."
    return split.scheme in ("http", "https") and has_host and not re.search(r"\s", address)


def _of_address(target: HttpTarget) -> Iterator[tuple[str, str]]:
    endpoint = target.endpoint if isinstance(target, AzureOpenAITarget) else None
    field = "base_url" if endpoint is None else "endpoint"
    if endpoint is not None and target.base_url is not None:
        yield "base_url", "it is an alias of endpoint, which is set too"
    try:
        address = target.address()
    except ValueError:
        yield field, INVALID_ADDRESS
        return
    if address is None:
        return
    if not is_address(address):
        yield field, INVALID_ADDRESS
    elif "?" in address or "#" in address:
        yield field, "must not have a query or a fragment; use extra_body or headers"


def _of_headers(target: HttpTarget) -> Iterator[tuple[str, str]]:
    headers = target.headers or {}
    for name in headers:
        if name.lower() in FRAMING_HEADERS or not HEADER_NAME.fullmatch(name):
            yield f"headers.{name}", "this header cannot be set"
    values = {
        "api_key": target.api_key,
        **{f"headers.{name}": value for name, value in headers.items()},
    }
    for field, value in values.items():
        if value is not None and not (value.isascii() and value.isprintable()):
            yield field, "has characters that are not allowed in a header"
