"""The targets document: one class per `provider`, which is imported when a document has it.

Any scalar except `name` and `provider` may be an environment reference, `${{ NAME }}`.
"""

# ruff: noqa: PLC0414  # exports

from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import ConfigDict, Field
from typing_extensions import TypeAliasType

from agentv_ci.contracts.attachments import BY_URL, FORMATS, AttachmentType
from agentv_ci.contracts.base import Authored, ByKind, Items, JsonObject, Maybe, Name, PluginName
from agentv_ci.contracts.environment_references import variable_of
from agentv_ci.contracts.later import later
from agentv_ci.contracts.schema_names import TARGETS_SCHEMAS
from agentv_ci.contracts.target_settings import TargetSettings
from agentv_ci.contracts.workspaces import TargetWorkspace

if TYPE_CHECKING:
    from agentv_ci.contracts.agent_targets import AgentTarget as AgentTarget
    from agentv_ci.contracts.agent_targets import ClaudeCodeTarget as ClaudeCodeTarget
    from agentv_ci.contracts.agent_targets import CodexTarget as CodexTarget
    from agentv_ci.contracts.agent_targets import CopilotCliTarget as CopilotCliTarget
    from agentv_ci.contracts.agent_targets import GeminiCliTarget as GeminiCliTarget
    from agentv_ci.contracts.agent_targets import VsCodeTarget as VsCodeTarget
    from agentv_ci.contracts.api_targets import AnthropicTarget as AnthropicTarget
    from agentv_ci.contracts.api_targets import AzureOpenAITarget as AzureOpenAITarget
    from agentv_ci.contracts.api_targets import GeminiTarget as GeminiTarget
    from agentv_ci.contracts.api_targets import HttpTarget as HttpTarget
    from agentv_ci.contracts.api_targets import OpenAITarget as OpenAITarget
    from agentv_ci.contracts.cli_target import CliTarget as CliTarget
    from agentv_ci.contracts.cli_target import CommandHealthcheck as CommandHealthcheck
    from agentv_ci.contracts.cli_target import HttpHealthcheck as HttpHealthcheck
    from agentv_ci.contracts.mock_target import MockTarget as MockTarget
else:
    AgentTarget = later("AgentTarget", "agent_targets")
    ClaudeCodeTarget = later("ClaudeCodeTarget", "agent_targets", "claude-code", "claude-cli")
    CodexTarget = later("CodexTarget", "agent_targets", "codex", "codex-cli")
    CopilotCliTarget = later("CopilotCliTarget", "agent_targets", "copilot-cli", "copilot")
    GeminiCliTarget = later("GeminiCliTarget", "agent_targets", "gemini-cli")
    VsCodeTarget = later("VsCodeTarget", "agent_targets", "vscode-copilot", "vscode", "vscode-insiders")
    AnthropicTarget = later("AnthropicTarget", "api_targets", "anthropic", "claude-api")
    AzureOpenAITarget = later("AzureOpenAITarget", "api_targets", "azure-openai", "azure")
    GeminiTarget = later("GeminiTarget", "api_targets", "gemini", "google", "google-gemini")
    HttpTarget = later("HttpTarget", "api_targets")
    OpenAITarget = later("OpenAITarget", "api_targets", "openai", "openai-compatible", "ollama", "vllm", "openrouter")
    CliTarget = later("CliTarget", "cli_target", "cli")
    CommandHealthcheck = later("CommandHealthcheck", "cli_target")
    HttpHealthcheck = later("HttpHealthcheck", "cli_target")
    MockTarget = later("MockTarget", "mock_target", "mock")


class PluginTarget(TargetSettings):
    """A provider of an installed package."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": True})
    hoists_settings: ClassVar[bool] = False
    gathers_settings: ClassVar[bool] = True
    secrets: ClassVar[frozenset[str]] = frozenset({"settings"})

    provider: PluginName = Field(description="Ask a plugin: its name, such as acme/bot.")
    settings: JsonObject = Field(
        default_factory=dict, description="Settings of the plugin; they may also stand beside `provider`."
    )
    version: Maybe[Name] = Field(None, description="Version of the plugin's package that must be installed.")


Target = TypeAliasType(
    "Target",
    Annotated[
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
        ]
        | PluginTarget,
        Field(union_mode="left_to_right"),
    ],
)


class TargetsDocument(Authored):
    """A file of targets."""

    free_keys: ClassVar[bool] = True

    schema_: Maybe[str] = Field(
        None, alias="$schema", description=f"`{TARGETS_SCHEMAS[0]}` or the schema's $id.", examples=[TARGETS_SCHEMAS[0]]
    )
    targets: Annotated[Items[Annotated[Target, ByKind("provider")]], Field(min_length=1)] = Field(
        description="The targets."
    )


def judge_name(evaluator_judge: str | None, target: Target) -> str | None:
    """Return the name of the target that judges the answers of `target`, or None."""
    return evaluator_judge or target.judge_target or (target.name if target.judges_itself else None)


def refused_attachment(target: Target, kind: AttachmentType, media_type: str | None, *, by_url: bool) -> str | None:
    """Return the reason why a target does not take an image or a document; None if it does."""
    who = f"target '{target.name}' (provider {target.provider}) does not take"
    if not target.takes & {*FORMATS[kind], BY_URL[kind]}:
        return f"{who} {kind}s"
    if by_url and BY_URL[kind] not in target.takes:
        return f"{who} {BY_URL[kind]}"
    return f"{who} {kind}s of type {media_type}" if media_type in FORMATS[kind] - target.takes else None


def workspace_settings(target: Target) -> TargetWorkspace | None:
    """Return what a target sets for the workspaces in which it works."""
    return target.workspace if isinstance(target, (CliTarget, AgentTarget)) else None


def own_workers(target: Target) -> int:
    """Return the concurrent requests that a target sets; 1 for an environment reference."""
    return at_most(target, target.workers if isinstance(target.workers, int) else 1)


def at_most(target: Target, workers: int) -> int:
    """Return `workers`, limited to the concurrent requests that a target supports."""
    return min(workers, target.most_workers or workers)


def cases_at_once(workers: int | None, answering: Collection[Target]) -> int:
    """Return the number of cases to run at once: `workers`, else the sum of the targets' workers if one sets them."""
    own = [own_workers(target) for target in answering]
    return workers or (sum(own) if any(each > 1 for each in own) else 1)


def model_name(target: Target) -> str | None:
    """Return the model or deployment of a target; None without one or for an environment reference."""
    name = getattr(target, "model", None) or getattr(target, "deployment", None)
    return name if isinstance(name, str) and variable_of(name) is None else None
