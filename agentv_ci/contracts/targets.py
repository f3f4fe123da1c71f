"""The targets document: what answers the questions. One class per `provider`.

Any scalar but `name` and `provider` may be a reference to the environment, written `${{ NAME }}`.
"""

import re
from collections.abc import Collection, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from agentv_ci.contracts.base import (
    WHOLE,
    AtLeastOne,
    Authored,
    Items,
    JsonObject,
    JsonValue,
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
ApiFormat = Literal["chat", "responses"] | Reference
Milliseconds = Annotated[float, Field(ge=0)] | Reference


class TargetSettings(Authored):
    """What every target has."""

    hoists_settings: ClassVar[bool] = True
    outside_digest: ClassVar[frozenset[str]] = frozenset({"name", "judge_target", "workers", "provider_batching"})
    """Fields that cannot change an answer, only when, how often and under which name it is asked for.

    Who judges stands at the evaluators that are judged.
    """
    secrets: ClassVar[frozenset[str]] = frozenset()
    """Fields whose values are secret."""
    essential: ClassVar[frozenset[str]] = frozenset()
    """Optional fields that may not silently be absent because a variable is not set."""
    paths: ClassVar[frozenset[str]] = frozenset()
    """Fields that hold a path, relative to the targets file."""
    implied: ClassVar[Mapping[str, JsonValue]] = {}
    """Field → the value that its absence means."""
    judges_itself: ClassVar[bool] = False
    """Whether it may judge its own answers: models may, agents and commands may not."""

    name: Name = Field(description="How evals and the command line call this target.")
    judge_target: Maybe[Name] = Field(None, description="The target that judges this one's answers.")
    workers: Maybe[Count] = Field(None, description="Questions at once; default 1. `--workers` wins.")
    provider_batching: Maybe[Flag] = Field(
        None, description="Ask all questions in one session, where the provider can."
    )

    def says_nothing(self, field: str, value: JsonValue) -> bool:
        """Whether a field might as well be absent: it has the value that its absence means."""
        return field in self.implied and value == self.implied[field]


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
    implied: ClassVar[Mapping[str, JsonValue]] = {"files_format": "{path}", "attachments_format": "{path}", "env": {}}

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
        TargetSettings.outside_digest | RetrySettings.model_fields.keys() | {"api_key", "ca_bundle"}
    )
    secrets: ClassVar[frozenset[str]] = frozenset({"api_key", "headers"})
    essential: ClassVar[frozenset[str]] = frozenset({"api_key", "base_url"})
    paths: ClassVar[frozenset[str]] = frozenset({"ca_bundle"})
    implied: ClassVar[Mapping[str, JsonValue]] = {"headers": {}, "extra_body": {}}

    api_key: Maybe[str] = Field(None, description="A reference such as ${{ OPENAI_API_KEY }}, never the key itself.")
    base_url: Maybe[Name] = Field(None, description="The API's root, used as given.")
    temperature: Maybe[Annotated[float, Field(ge=0)] | Reference] = Field(None, description="Sampling temperature.")
    max_output_tokens: Maybe[Count] = Field(None, description="Longest answer, in tokens.")
    max_tokens_param: Maybe[Literal["max_tokens", "max_completion_tokens"] | Reference] = Field(
        None, description="How the API calls the limit; default: max_completion_tokens at OpenAI, else max_tokens."
    )
    thinking_budget: Maybe[Natural] = Field(None, description="Most tokens the model may think.")
    headers: Maybe[dict[str, str]] = Field(None, description="Further request headers.")
    extra_body: Maybe[JsonObject] = Field(None, description="Further keys of the request's body.")
    ca_bundle: Maybe[Name] = Field(None, description="A PEM file of certificate authorities to trust.")

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {"max_output_tokens": ("max_tokens",)}


class AzureOpenAITarget(HttpTarget):
    """A deployment at Azure OpenAI."""

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **HttpTarget.older_names,
        "endpoint": ("resource", "resource_name"),
        "deployment": ("deployment_name", "model"),
        "version": ("api_version",),
    }
    essential: ClassVar[frozenset[str]] = HttpTarget.essential | {"endpoint", "deployment"}
    implied: ClassVar[Mapping[str, JsonValue]] = {
        **HttpTarget.implied,
        "version": "2024-12-01-preview",
        "api_format": "chat",
    }

    provider: Literal["azure-openai", "azure"] = Field(description="Ask a deployment at Azure OpenAI.")
    endpoint: Maybe[Name] = Field(
        None, description="The resource's address or name; default: the variable AZURE_OPENAI_ENDPOINT."
    )
    deployment: Maybe[Name] = Field(
        None, description="The deployment's name; default: the variable AZURE_DEPLOYMENT_NAME."
    )
    version: Maybe[Name] = Field(None, description="The API's version, or v1; default 2024-12-01-preview.")
    api_format: Maybe[ApiFormat] = Field(None, description="Which of its two APIs is spoken; default chat.")


class OpenAITarget(HttpTarget):
    """OpenAI, or any server that speaks its chat completions."""

    implied: ClassVar[Mapping[str, JsonValue]] = {**HttpTarget.implied, "api_format": "chat"}

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

    provider: Literal["gemini", "google", "google-gemini"] = Field(description="Ask the Gemini API of Google.")
    model: Maybe[Name] = Field(None, description="The model's name; default: the variable GOOGLE_GEMINI_MODEL.")
    api_version: Maybe[Name] = Field(None, description="The version in the path; default v1beta.")


class VsCodeTarget(TargetSettings):
    """Copilot in a running VS Code, asked through files."""

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {"command": ("vscode_cmd",)}
    outside_digest: ClassVar[frozenset[str]] = TargetSettings.outside_digest | {"timeout_seconds"}
    implied: ClassVar[Mapping[str, JsonValue]] = {"wait": True, "command": "code"}

    provider: Literal["vscode-copilot", "vscode", "vscode-insiders"] = Field(description="Ask Copilot in VS Code.")
    command: Maybe[Name] = Field(None, description="The program; default code or code-insiders.")
    wait: Maybe[Flag] = Field(None, description="Wait for the answer; default true.")
    dry_run: Maybe[Flag] = Field(None, description="Prepare everything and ask nothing.")
    subagent_root: Maybe[Name] = Field(None, description="Where its workspaces lie.")
    workspace_template: Maybe[Reference] = Field(None, description="A folder to copy: a reference to the environment.")
    timeout_seconds: Maybe[Seconds] = Field(None, description="Longest wait; default 600.")


class AgentTarget(TargetSettings):
    """What every agent on the command line has."""

    outside_digest: ClassVar[frozenset[str]] = TargetSettings.outside_digest | {"timeout_seconds"}
    secrets: ClassVar[frozenset[str]] = frozenset({"env"})
    paths: ClassVar[frozenset[str]] = frozenset({"cwd"})
    implied: ClassVar[Mapping[str, JsonValue]] = {"env": {}, "args": []}

    executable: Maybe[Name] = Field(None, description="The program, by name or path.")
    args: Maybe[Items[str]] = Field(None, description="Further arguments.")
    model: Maybe[Name] = Field(None, description="The model it uses; default: its own.")
    cwd: Maybe[Name] = Field(None, description="Where it runs, relative to this file; default: a scratch folder.")
    env: Maybe[dict[str, str]] = Field(None, description="Environment variables of the agent.")
    timeout_seconds: Maybe[Seconds] = Field(None, description="Longest run; default: the case's timeout.")


class CodexTarget(AgentTarget):
    """OpenAI's Codex."""

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "executable": ("command", "binary"),
        "args": ("arguments",),
        "log_dir": ("log_directory",),
        "log_format": ("log_output_format",),
    }
    outside_digest: ClassVar[frozenset[str]] = AgentTarget.outside_digest | {"log_dir", "log_format"}
    paths: ClassVar[frozenset[str]] = AgentTarget.paths | {"log_dir"}
    implied: ClassVar[Mapping[str, JsonValue]] = {**AgentTarget.implied, "approval": "never"}

    provider: Literal["codex", "codex-cli"] = Field(description="Ask Codex.")
    profile: Maybe[Name] = Field(None, description="A profile of its configuration.")
    approval: Maybe[Name] = Field(None, description="When it asks for approval; default never.")
    sandbox: Maybe[Literal["read-only", "workspace-write", "danger-full-access"] | Reference] = Field(
        None, description="What it may touch; default: its own."
    )
    log_dir: Maybe[Name] = Field(None, description="Where its log goes; default .agentv/logs/codex.")
    log_format: Maybe[Literal["summary", "json"] | Reference] = Field(None, description="How the log is written.")


class ClaudeCodeTarget(AgentTarget):
    """Anthropic's Claude Code."""

    provider: Literal["claude-code", "claude-cli"] = Field(description="Ask Claude Code.")


class CopilotCliTarget(AgentTarget):
    """GitHub's Copilot CLI."""

    provider: Literal["copilot-cli", "copilot"] = Field(description="Ask the Copilot CLI.")


class GeminiCliTarget(AgentTarget):
    """Google's Gemini CLI."""

    provider: Literal["gemini-cli"] = Field(description="Ask the Gemini CLI.")


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


Target = TypeAliasType(
    "Target",
    Annotated[
        AzureOpenAITarget
        | OpenAITarget
        | AnthropicTarget
        | GeminiTarget
        | VsCodeTarget
        | CodexTarget
        | ClaudeCodeTarget
        | CopilotCliTarget
        | GeminiCliTarget
        | CliTarget
        | MockTarget,
        Field(discriminator="provider"),
    ],
)


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


def own_workers(target: Target) -> int:
    """Return how many questions a target says it takes at once; a reference to the environment counts as one."""
    return target.workers if isinstance(target.workers, int) else 1


def cases_at_once(workers: int | None, answering: Collection[Target]) -> int:
    """Return how many cases a run works on at once: as many as it was told, else as its targets take together.

    With nothing said anywhere it is 1: in order, one at a time.
    """
    own = [own_workers(target) for target in answering]
    return workers or (sum(own) if any(each > 1 for each in own) else 1)


def model_name(target: Target) -> str | None:
    """Return the model that a target asks, or its deployment; None when it has none or the environment names it."""
    name = getattr(target, "model", None) or getattr(target, "deployment", None)
    return name if isinstance(name, str) and not re.search(REFERENCE_PATTERN, name) else None
