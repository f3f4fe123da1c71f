"""The targets document: the union of all targets, with those that are a mock or a plugin.

Any scalar except `name` and `provider` may be an environment reference, `${{ NAME }}`.
"""

from collections.abc import Collection
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field
from typing_extensions import TypeAliasType

from agentv_ci.contracts.agent_targets import (
    AgentTarget,
    ClaudeCodeTarget,
    CodexTarget,
    CopilotCliTarget,
    GeminiCliTarget,
    VsCodeTarget,
)
from agentv_ci.contracts.api_targets import (
    AnthropicTarget,
    AzureOpenAITarget,
    GeminiTarget,
    OpenAITarget,
)
from agentv_ci.contracts.attachments import ALL_TAKEN, BY_URL, FORMATS, AttachmentType
from agentv_ci.contracts.base import (
    AtLeastOne,
    Authored,
    ByKind,
    Items,
    JsonObject,
    Maybe,
    Name,
    NonNegative,
    PluginName,
    meanings,
)
from agentv_ci.contracts.cli_target import CliTarget
from agentv_ci.contracts.environment_references import variable_of
from agentv_ci.contracts.evals import AuthoredToolCall
from agentv_ci.contracts.source import TARGETS_SCHEMAS
from agentv_ci.contracts.target_settings import Milliseconds, TargetSettings
from agentv_ci.contracts.workspaces import TargetWorkspace


class MockError(Authored):
    """A failure that the mock simulates."""

    kind: Literal[
        "timeout", "rate_limit", "auth", "network", "server", "request", "malformed", "process"
    ] = Field(
        description="Kind of the failure.",
        json_schema_extra=meanings(
            timeout="No answer in time.",
            rate_limit="Too many requests.",
            auth="The key is missing or wrong.",
            network="The server cannot be reached.",
            server="The server fails.",
            request="The server refuses the request.",
            malformed="The answer cannot be read.",
            process="The command fails.",
        ),
    )
    message: str = Field("scripted failure", description="Error message.")
    attempts: Maybe[AtLeastOne] = Field(
        None, description="Number of attempts that fail; default all."
    )


class MockUsage(Authored):
    """Token counts that the mock reports."""

    input_tokens: NonNegative = Field(0, description="Input tokens.")
    output_tokens: NonNegative = Field(0, description="Output tokens.")


class MockTarget(TargetSettings):
    """Answers from the targets file; nothing leaves the machine."""

    charges: ClassVar[bool] = False
    reports: ClassVar[frozenset[str]] = frozenset({"tokens", "tool_calls"})
    judges_itself: ClassVar[bool] = True

    outside_digest: ClassVar[frozenset[str]] = TargetSettings.outside_digest | {"delay_ms"}

    provider: Literal["mock"] = Field(description="Use answers from this file.")
    response: Maybe[str] = Field(None, description="Answer to every question.")
    responses: Maybe[dict[str, str]] = Field(
        None, description="Case id → answer; overrides `response`."
    )
    tool_calls: Maybe[Items[AuthoredToolCall]] = Field(
        None, description="Tool calls to report with every answer."
    )
    delay_ms: Maybe[Milliseconds] = Field(
        None, description="Delay before the answer, in milliseconds."
    )
    error: Maybe[MockError] = Field(None, description="Fail instead of answering.")
    usage: Maybe[MockUsage] = Field(None, description="Token counts to report with every answer.")

    @property
    def takes(self) -> frozenset[str]:
        """Everything: it reads nothing."""
        return ALL_TAKEN


class PluginTarget(TargetSettings):
    """A provider of an installed package."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": True})
    hoists_settings: ClassVar[bool] = False
    gathers_settings: ClassVar[bool] = True
    secrets: ClassVar[frozenset[str]] = frozenset({"settings"})

    provider: PluginName = Field(description="Ask a plugin: its name, such as acme/bot.")
    settings: JsonObject = Field(
        default_factory=dict,
        description="Settings of the plugin; they may also stand beside `provider`.",
    )
    version: Maybe[Name] = Field(
        None, description="Version of the plugin's package that must be installed."
    )


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
        None,
        alias="$schema",
        description=f"`{TARGETS_SCHEMAS[0]}` or the schema's $id.",
        examples=[TARGETS_SCHEMAS[0]],
    )
    targets: Annotated[Items[Annotated[Target, ByKind("provider")]], Field(min_length=1)] = Field(
        description="The targets."
    )


def judge_name(evaluator_judge: str | None, target: Target) -> str | None:
    """Return the name of the target that judges the answers of `target`, or None."""
    return evaluator_judge or target.judge_target or (target.name if target.judges_itself else None)


def refused_attachment(
    target: Target, kind: AttachmentType, media_type: str | None, *, by_url: bool
) -> str | None:
    """Return the reason why a target does not take an image or a document; None if it does."""
    who = f"target '{target.name}' (provider {target.provider}) does not take"
    if not target.takes & {*FORMATS[kind], BY_URL[kind]}:
        return f"{who} {kind}s"
    if by_url and BY_URL[kind] not in target.takes:
        return f"{who} {BY_URL[kind]}"
    return (
        f"{who} {kind}s of type {media_type}"
        if media_type in FORMATS[kind] - target.takes
        else None
    )


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
    """Return the number of cases to run at once.

    `workers` if given, else the sum of the targets' workers if one sets them.
    """
    if workers:
        return workers
    own = list(map(own_workers, answering))
    return sum(own) if any(number > 1 for number in own) else 1


def model_name(target: Target) -> str | None:
    """Return the model or deployment of a target.

    None without one or for an environment reference.
    """
    name = getattr(target, "model", None) or getattr(target, "deployment", None)
    return name if isinstance(name, str) and variable_of(name) is None else None
