"""The targets document: what answers the questions. One class per `provider`.

Any scalar but `name` and `provider` may be a reference to the environment, written `${{ NAME }}`.
"""

from collections.abc import Collection, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from agentv_ci.contracts.agent_targets import (
    ClaudeCodeTarget,
    CodexTarget,
    CopilotCliTarget,
    GeminiCliTarget,
    VsCodeTarget,
)
from agentv_ci.contracts.api_targets import AnthropicTarget, AzureOpenAITarget, GeminiTarget, OpenAITarget
from agentv_ci.contracts.base import AtLeastOne, Authored, ByKind, Items, JsonValue, Maybe, Name, NonNegative
from agentv_ci.contracts.environment_references import variable_of
from agentv_ci.contracts.evals import AuthoredToolCall
from agentv_ci.contracts.target_settings import Flag, Milliseconds, Seconds, TargetSettings

TARGETS_SCHEMAS = ("agentv-targets-v2.2", "agentv-targets-v2")


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


Healthcheck = Annotated[HttpHealthcheck | CommandHealthcheck, Field(discriminator="type")]


class CliTarget(TargetSettings):
    """A command that prints the answer."""

    outside_digest: ClassVar[frozenset[str]] = TargetSettings.outside_digest | {
        "timeout_seconds",
        "healthcheck",
        "verbose",
        "keep_temp_files",
    }
    charges: ClassVar[bool] = False
    reports: ClassVar[frozenset[str]] = frozenset({"tool_calls"})
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
    verbose: Maybe[Flag] = Field(None, description="Show the command too, under --verbose.")
    keep_temp_files: Maybe[Flag] = Field(None, description="Keep prompt and output files.")

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "verbose": ("cli_verbose",),
        "keep_temp_files": ("keep_output_files",),
    }


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

    charges: ClassVar[bool] = False
    reports: ClassVar[frozenset[str]] = frozenset({"tokens", "tool_calls"})
    judges_itself: ClassVar[bool] = True

    outside_digest: ClassVar[frozenset[str]] = TargetSettings.outside_digest | {"delay_ms"}

    provider: Literal["mock"] = Field(description="Answer from this file.")
    response: Maybe[str] = Field(None, description="The answer to every question.")
    responses: Maybe[dict[str, str]] = Field(None, description="Case id → answer; wins over `response`.")
    tool_calls: Maybe[Items[AuthoredToolCall]] = Field(None, description="Tool calls reported with every answer.")
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
    targets: Annotated[Items[Annotated[Target, ByKind("provider")]], Field(min_length=1)] = Field(
        description="The targets."
    )


def judge_name(evaluator_judge: str | None, target: Target) -> str | None:
    """Return the name of the target that judges `target`'s answers; None when there is none."""
    return evaluator_judge or target.judge_target or (target.name if target.judges_itself else None)


def own_workers(target: Target) -> int:
    """Return how many questions a target says it takes at once; a reference to the environment counts as one."""
    return at_most(target, target.workers if isinstance(target.workers, int) else 1)


def at_most(target: Target, workers: int) -> int:
    """Return how many of `workers` questions at once a target can take."""
    return min(workers, target.most_workers or workers)


def cases_at_once(workers: int | None, answering: Collection[Target]) -> int:
    """Return how many cases a run works on at once: as many as it was told, else as its targets take together.

    With nothing said anywhere it is 1: in order, one at a time.
    """
    own = [own_workers(target) for target in answering]
    return workers or (sum(own) if any(each > 1 for each in own) else 1)


def model_name(target: Target) -> str | None:
    """Return the model that a target asks, or its deployment; None when it has none or the environment names it."""
    name = getattr(target, "model", None) or getattr(target, "deployment", None)
    return name if isinstance(name, str) and variable_of(name) is None else None
