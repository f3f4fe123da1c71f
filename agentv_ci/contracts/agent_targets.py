"""Targets that are agents: programs that read files, call tools and take their time."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.base import Items, JsonValue, Maybe, Name
from agentv_ci.contracts.environment_references import EnvironmentReference
from agentv_ci.contracts.target_settings import Flag, Seconds, TargetSettings


class VsCodeTarget(TargetSettings):
    """Copilot in a running VS Code, asked through files."""

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {"command": ("vscode_cmd",)}
    outside_digest: ClassVar[frozenset[str]] = TargetSettings.outside_digest | {"timeout_seconds", "subagent_root"}
    paths: ClassVar[frozenset[str]] = frozenset({"subagent_root", "workspace_template"})
    programs: ClassVar[frozenset[str]] = frozenset({"command"})
    essential: ClassVar[frozenset[str]] = frozenset({"command", "subagent_root", "workspace_template"})
    implied: ClassVar[Mapping[str, JsonValue]] = {"wait": True, "command": "code", "dry_run": False}
    most_workers: ClassVar[int | None] = 1
    reports: ClassVar[frozenset[str]] = frozenset()

    provider: Literal["vscode-copilot", "vscode", "vscode-insiders"] = Field(description="Ask Copilot in VS Code.")
    command: Maybe[Name] = Field(None, description="The program; default code, or code-insiders for vscode-insiders.")
    wait: Maybe[Flag] = Field(None, description="Wait for the answer; default true. Without, every answer is empty.")
    dry_run: Maybe[Flag] = Field(
        None, description="Write the request and ask nothing, so that every answer is empty; default false."
    )
    subagent_root: Maybe[Name] = Field(
        None, description="The folder of its workspaces; default ~/.subagent/vscode-agents."
    )
    workspace_template: Maybe[Name] = Field(
        None, description="A .code-workspace file to begin with, relative to this file."
    )
    timeout_seconds: Maybe[Seconds] = Field(
        None, description="Longest wait for an answer; default: the case's timeout."
    )


class AgentTarget(TargetSettings):
    """What every agent on the command line has."""

    outside_digest: ClassVar[frozenset[str]] = TargetSettings.outside_digest | {"timeout_seconds"}
    secrets: ClassVar[frozenset[str]] = frozenset({"env"})
    paths: ClassVar[frozenset[str]] = frozenset({"cwd"})
    programs: ClassVar[frozenset[str]] = frozenset({"executable"})
    essential: ClassVar[frozenset[str]] = frozenset({"executable", "model", "cwd"})
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
    essential: ClassVar[frozenset[str]] = AgentTarget.essential | {"profile", "approval", "sandbox"}
    variables: ClassVar[Mapping[str, tuple[str, ...]]] = {"log_format": ("AGENTV_CODEX_LOG_FORMAT",)}
    paths: ClassVar[frozenset[str]] = AgentTarget.paths | {"log_dir"}
    implied: ClassVar[Mapping[str, JsonValue]] = {**AgentTarget.implied, "approval": "never"}

    provider: Literal["codex", "codex-cli"] = Field(description="Ask Codex.")
    profile: Maybe[Name] = Field(None, description="A profile of its configuration.")
    approval: Maybe[Name] = Field(None, description="When it asks for approval; default never.")
    sandbox: Maybe[Literal["read-only", "workspace-write", "danger-full-access"] | EnvironmentReference] = Field(
        None, description="What it may touch; default: its own."
    )
    log_dir: Maybe[Name] = Field(
        None, description="Where its logs go; default .agentv/logs/codex in the working directory."
    )
    log_format: Maybe[Literal["summary", "json"] | EnvironmentReference] = Field(
        None, description="A log of summaries (default) or of the events as they come."
    )


class ClaudeCodeTarget(AgentTarget):
    """Anthropic's Claude Code."""

    provider: Literal["claude-code", "claude-cli"] = Field(description="Ask Claude Code.")


class CopilotCliTarget(AgentTarget):
    """GitHub's Copilot CLI."""

    reports: ClassVar[frozenset[str]] = frozenset({"tool_calls"})

    provider: Literal["copilot-cli", "copilot"] = Field(description="Ask the Copilot CLI.")


class GeminiCliTarget(AgentTarget):
    """Google's Gemini CLI."""

    provider: Literal["gemini-cli"] = Field(description="Ask the Gemini CLI.")
