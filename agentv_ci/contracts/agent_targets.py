"""Targets that are agents: programs that read files and call tools."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.base import Items, JsonValue, Maybe, Name, meanings
from agentv_ci.contracts.environment_references import EnvironmentReference
from agentv_ci.contracts.target_settings import Flag, Seconds, TargetSettings
from agentv_ci.contracts.workspaces import OF_TARGET, TargetWorkspace


class VsCodeTarget(TargetSettings):
    """Copilot in a running VS Code; requests and answers are files."""

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {"command": ("vscode_cmd",)}
    outside_digest: ClassVar[frozenset[str]] = TargetSettings.outside_digest | {
        "timeout_seconds",
        "subagent_root",
    }
    paths: ClassVar[frozenset[str]] = frozenset({"subagent_root", "workspace_template"})
    programs: ClassVar[frozenset[str]] = frozenset({"command"})
    essential: ClassVar[frozenset[str]] = frozenset(
        {"command", "subagent_root", "workspace_template"}
    )
    implied: ClassVar[Mapping[str, JsonValue]] = {"wait": True, "command": "code", "dry_run": False}
    most_workers: ClassVar[int | None] = 1
    reports: ClassVar[frozenset[str]] = frozenset()

    older_kinds: ClassVar[frozenset[str]] = frozenset({"vscode"})

    provider: Literal["vscode-copilot", "vscode", "vscode-insiders"] = Field(
        description="Use Copilot in VS Code.",
        json_schema_extra=meanings(**{"vscode-insiders": "Use Copilot in VS Code Insiders."}),
    )
    command: Maybe[Name] = Field(
        None, description="Program; default code, or code-insiders for vscode-insiders."
    )
    wait: Maybe[Flag] = Field(
        None, description="Wait for the answer; default true. With false, every answer is empty."
    )
    dry_run: Maybe[Flag] = Field(
        None, description="Only write the request; every answer is empty. Default false."
    )
    subagent_root: Maybe[Name] = Field(
        None, description="Folder of its workspaces; default ~/.subagent/vscode-agents."
    )
    workspace_template: Maybe[Name] = Field(
        None, description="A .code-workspace file to copy, relative to this file."
    )
    timeout_seconds: Maybe[Seconds] = Field(
        None, description="Time limit for an answer; default: the case's timeout."
    )


class AgentTarget(TargetSettings):
    """Settings of every agent CLI."""

    outside_digest: ClassVar[frozenset[str]] = TargetSettings.outside_digest | {
        "timeout_seconds",
        "workspace",
    }
    secrets: ClassVar[frozenset[str]] = frozenset({"env"})
    paths: ClassVar[frozenset[str]] = frozenset({"cwd"})
    programs: ClassVar[frozenset[str]] = frozenset({"executable"})
    essential: ClassVar[frozenset[str]] = frozenset({"executable", "model", "cwd"})
    implied: ClassVar[Mapping[str, JsonValue]] = {"env": {}, "args": [], "sources": []}

    executable: Maybe[Name] = Field(None, description="Program to run: a name or a path.")
    args: Maybe[Items[str]] = Field(None, description="Additional arguments.")
    model: Maybe[Name] = Field(None, description="Model to use; default: the agent's own.")
    cwd: Maybe[Name] = Field(
        None, description="Working directory, relative to this file; default: a temporary folder."
    )
    env: Maybe[dict[str, str]] = Field(None, description="Environment variables for the agent.")
    sources: Maybe[Items[Name]] = Field(
        None,
        description="Files of the agent's own code: names, folders and globs, relative to this "
        "file. In digests.",
    )
    timeout_seconds: Maybe[Seconds] = Field(
        None, description="Time limit of a run; default: the case's timeout."
    )
    workspace: Maybe[TargetWorkspace] = Field(None, description=OF_TARGET)


class CodexTarget(AgentTarget):
    """OpenAI's Codex."""

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "executable": ("command", "binary"),
        "args": ("arguments",),
        "log_dir": ("log_directory",),
        "log_format": ("log_output_format",),
    }
    outside_digest: ClassVar[frozenset[str]] = AgentTarget.outside_digest | {
        "log_dir",
        "log_format",
    }
    essential: ClassVar[frozenset[str]] = AgentTarget.essential | {"profile", "approval", "sandbox"}
    variables: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "log_format": ("AGENTV_CODEX_LOG_FORMAT",)
    }
    paths: ClassVar[frozenset[str]] = AgentTarget.paths | {"log_dir"}
    implied: ClassVar[Mapping[str, JsonValue]] = {**AgentTarget.implied, "approval": "never"}

    older_kinds: ClassVar[frozenset[str]] = frozenset({"codex-cli"})

    provider: Literal["codex", "codex-cli"] = Field(description="Use Codex.")
    profile: Maybe[Name] = Field(None, description="Profile of its configuration.")
    approval: Maybe[Name] = Field(None, description="When to ask for approval; default never.")
    sandbox: Maybe[
        Literal["read-only", "workspace-write", "danger-full-access"] | EnvironmentReference
    ] = Field(
        None,
        description="What it may access; default: the agent's own.",
        json_schema_extra=meanings(
            **{
                "read-only": "It may read files.",
                "workspace-write": "It may also write files in its working directory.",
                "danger-full-access": "It may do anything.",
            }
        ),
    )
    log_dir: Maybe[Name] = Field(
        None, description="Log folder; default .agentv/logs/codex in the working directory."
    )
    log_format: Maybe[Literal["summary", "json"] | EnvironmentReference] = Field(
        None,
        description="Log summaries (default) or raw events.",
        json_schema_extra=meanings(summary="One line per event.", json="The events as they are."),
    )


class ClaudeCodeTarget(AgentTarget):
    """Anthropic's Claude Code."""

    older_kinds: ClassVar[frozenset[str]] = frozenset({"claude-cli"})

    provider: Literal["claude-code", "claude-cli"] = Field(description="Use Claude Code.")


class CopilotCliTarget(AgentTarget):
    """GitHub's Copilot CLI."""

    reports: ClassVar[frozenset[str]] = frozenset({"tool_calls"})

    older_kinds: ClassVar[frozenset[str]] = frozenset({"copilot"})

    provider: Literal["copilot-cli", "copilot"] = Field(description="Use the Copilot CLI.")


class GeminiCliTarget(AgentTarget):
    """Google's Gemini CLI."""

    provider: Literal["gemini-cli"] = Field(description="Use the Gemini CLI.")
