"""The targets document: what answers the questions. One class per `provider`.

Any scalar but `name` and `provider` may be a reference to the environment, written `${{ NAME }}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from agentv_ci.contracts.base import (
    WHOLE,
    AtLeastOne,
    Authored,
    Items,
    JsonObject,
    Maybe,
    Name,
    NonNegative,
    Positive,
)
from agentv_ci.contracts.evals import ToolCall

TARGETS_SCHEMAS = ("agentv-targets-v2.2", "agentv-targets-v2")

REFERENCE_PATTERN = r"^\s*\$\{\{\s*[A-Za-z_][A-Za-z0-9_]*\s*\}\}\s*$"

Reference = Annotated[str, Field(pattern=REFERENCE_PATTERN)]
"""`${{ NAME }}`: the value of an environment variable, read when a run begins."""

StatusCode = Annotated[int, Field(ge=100, le=599), WHOLE]
Flag = bool | Reference
Count = AtLeastOne | Reference
Natural = NonNegative | Reference
Seconds = Positive | Reference
Milliseconds = Annotated[float, Field(ge=0)] | Reference


class TargetSettings(Authored):
    """What every target has."""

    hoists_settings: ClassVar[bool] = True
    outside_digest: ClassVar[frozenset[str]] = frozenset({"workers", "provider_batching"})
    """Fields that cannot change an answer, only when and how often it is asked for."""
    secrets: ClassVar[frozenset[str]] = frozenset()
    """Fields whose values are secret."""
    essential: ClassVar[frozenset[str]] = frozenset()
    """Optional fields that may not silently be absent because a variable is not set."""
    paths: ClassVar[frozenset[str]] = frozenset()
    """Fields that hold a path, relative to the targets file."""
    judges_itself: ClassVar[bool] = False
    """Whether it may judge its own answers: models may, agents and commands may not."""

    name: Name = Field(description="How evals and the command line call this target.")
    judge_target: Maybe[Name] = Field(None, description="The target that judges this one's answers.")
    workers: Maybe[Count] = Field(None, description="Questions at once; default 1. `--workers` wins.")
    provider_batching: Maybe[Flag] = Field(
        None, description="Ask all questions in one session, where the provider can."
    )


class HttpHealthcheck(Authored):
    """Ready when a GET answers with 2xx."""

    type: Literal["http"] = Field(description="Probe a URL.")
    url: Name = Field(description="The address to GET.")
    timeout_seconds: Maybe[Seconds] = Field(None, description="Longest wait; default 10.")


class CommandHealthcheck(Authored):
    """Ready when a command ends with status 0."""

    type: Literal["command"] = Field(description="Probe with a command.")
    command_template: Name = Field(description="The command; placeholders as in the target's.")
    cwd: Maybe[Name] = Field(None, description="Where it runs; default: where the target's command runs.")
    timeout_seconds: Maybe[Seconds] = Field(None, description="Longest run; default 10.")


CLI_PLACEHOLDERS = (
    "PROMPT",
    "PROMPT_FILE",
    "GUIDELINES",
    "EVAL_ID",
    "ATTEMPT",
    "FILES",
    "ATTACHMENTS",
    "OUTPUT_FILE",
)
FORMAT_PLACEHOLDERS = ("path", "basename")
CLI_PLACEHOLDER = re.compile(r"\{\{(?P<literal>[A-Z_]+)\}\}|\{(?P<name>[A-Z_]+)\}")
FORMAT_PLACEHOLDER = re.compile(r"\{(?P<name>[a-z_]+)\}")


def placeholders(template: str) -> tuple[str, ...]:
    """Return the names of the placeholders in a command template, each once; `{{NAME}}` is none."""
    names = (match["name"] for match in CLI_PLACEHOLDER.finditer(template))
    return tuple(dict.fromkeys(name for name in names if name))


Healthcheck = Annotated[HttpHealthcheck | CommandHealthcheck, Field(discriminator="type")]


class CliTarget(TargetSettings):
    """A command that prints the answer."""

    outside_digest: ClassVar[frozenset[str]] = TargetSettings.outside_digest | {
        "timeout_seconds",
        "healthcheck",
        "verbose",
        "keep_temp_files",
    }
    secrets: ClassVar[frozenset[str]] = frozenset({"env"})
    paths: ClassVar[frozenset[str]] = frozenset({"cwd"})

    provider: Literal["cli"] = Field(description="Run a command.")
    command_template: Name = Field(
        description="The command for a shell. Placeholders: {PROMPT} {PROMPT_FILE} {GUIDELINES} {EVAL_ID} {ATTEMPT} "
        "{FILES} {ATTACHMENTS} {OUTPUT_FILE}; they are quoted already. {{NAME}} is {NAME} itself."
    )
    files_format: Maybe[Name] = Field(None, description="One file of {FILES}; {path} and {basename}; default {path}.")
    attachments_format: Maybe[Name] = Field(None, description="One file of {ATTACHMENTS}; default {path}.")
    cwd: Maybe[Name] = Field(None, description="Relative to this file; default: the eval file's folder.")
    env: Maybe[dict[str, str]] = Field(None, description="Environment variables of the command.")
    timeout_seconds: Maybe[Seconds] = Field(None, description="Longest run; default: the case's timeout.")
    healthcheck: Maybe[Healthcheck] = Field(None, description="Probed once before the first case.")
    verbose: Maybe[Flag] = Field(None, description="Show the command and its stderr.")
    keep_temp_files: Maybe[Flag] = Field(None, description="Keep prompt and output files.")

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "verbose": ("cli_verbose",),
        "keep_temp_files": ("keep_output_files",),
    }


class RetrySettings(Authored):
    """How a provider repeats a request that failed for a passing reason."""

    max_retries: Maybe[Natural] = Field(None, description="Requests again; default 3.")
    retry_initial_delay_ms: Maybe[Milliseconds] = Field(None, description="First wait; default 1000.")
    retry_max_delay_ms: Maybe[Milliseconds] = Field(None, description="Longest wait; default 60000.")
    retry_backoff_factor: Maybe[Annotated[float, Field(ge=1)] | Reference] = Field(
        None, description="Growth of the wait; default 2."
    )
    retry_status_codes: Maybe[Items[StatusCode | Reference]] = Field(
        None, description="HTTP statuses worth repeating; default 408 429 500 502 503 504. 401 and 403 never are."
    )


class HttpTarget(TargetSettings, RetrySettings):
    """What every HTTP provider has."""

    judges_itself: ClassVar[bool] = True

    outside_digest: ClassVar[frozenset[str]] = (
        TargetSettings.outside_digest | RetrySettings.model_fields.keys() | {"ca_bundle"}
    )
    secrets: ClassVar[frozenset[str]] = frozenset({"api_key", "headers"})
    essential: ClassVar[frozenset[str]] = frozenset({"api_key", "base_url"})
    paths: ClassVar[frozenset[str]] = frozenset({"ca_bundle"})

    api_key: Maybe[str] = Field(None, description="A reference such as ${{ OPENAI_API_KEY }}, never the key itself.")
    base_url: Maybe[Name] = Field(None, description="The API's root, used as given.")
    temperature: Maybe[Annotated[float, Field(ge=0)] | Reference] = Field(None, description="Sampling temperature.")
    max_output_tokens: Maybe[Count] = Field(None, description="Longest answer, in tokens.")
    headers: Maybe[dict[str, str]] = Field(None, description="Further request headers.")
    extra_body: Maybe[JsonObject] = Field(None, description="Further keys of the request's body.")
    ca_bundle: Maybe[Name] = Field(None, description="A PEM file of certificate authorities to trust.")

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {"max_output_tokens": ("max_tokens",)}


class OpenAITarget(HttpTarget):
    """OpenAI, or any server that speaks its chat completions."""

    provider: Literal["openai", "openai-compatible", "ollama", "vllm", "openrouter"] = Field(
        description="Ask an OpenAI-compatible API."
    )
    model: Name = Field(description="The model's name.")
    max_tokens_param: Maybe[Literal["max_tokens", "max_completion_tokens"] | Reference] = Field(
        None, description="How the API calls the limit; default: max_completion_tokens at OpenAI, else max_tokens."
    )


class MockError(Authored):
    """A failure the mock plays."""

    kind: Literal["timeout", "rate_limit", "auth", "network", "server", "request", "malformed", "process"] = Field(
        description="What kind of failure."
    )
    message: str = Field("scripted failure", description="What it says.")
    attempts: Maybe[AtLeastOne] = Field(None, description="Fail this many attempts; default all.")


class MockUsage(Authored):
    """Tokens the mock reports."""

    input_tokens: NonNegative = Field(0, description="Tokens read.")
    output_tokens: NonNegative = Field(0, description="Tokens written.")


class MockTarget(TargetSettings):
    """Answers that were written down beforehand; nothing leaves the machine."""

    judges_itself: ClassVar[bool] = True

    outside_digest: ClassVar[frozenset[str]] = TargetSettings.outside_digest | {"delay_ms"}

    provider: Literal["mock"] = Field(description="Answer from this file.")
    response: Maybe[str] = Field(None, description="The answer to every question.")
    responses: Maybe[dict[str, str]] = Field(None, description="Case id → answer; wins over `response`.")
    tool_calls: Maybe[Items[ToolCall]] = Field(None, description="Tool calls reported with every answer.")
    delay_ms: Maybe[Milliseconds] = Field(None, description="Wait before answering.")
    error: Maybe[MockError] = Field(None, description="Fail instead of answering.")
    usage: Maybe[MockUsage] = Field(None, description="Tokens reported with every answer.")


Target = TypeAliasType("Target", Annotated[CliTarget | OpenAITarget | MockTarget, Field(discriminator="provider")])


class TargetsDocument(Authored):
    """A file of targets."""

    free_keys: ClassVar[bool] = True

    schema_: Maybe[str] = Field(
        None, alias="$schema", description=f"`{TARGETS_SCHEMAS[0]}`, or the published schema's $id."
    )
    targets: Annotated[Items[Target], Field(min_length=1)] = Field(description="The targets.")


def judge_name(evaluator_judge: str | None, target: Target) -> str | None:
    """Return the name of the target that judges `target`'s answers; None when there is none."""
    return evaluator_judge or target.judge_target or (target.name if target.judges_itself else None)
