"""Targets that are a command."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.attachments import NAMES
from agentv_ci.contracts.base import Authored, Items, JsonValue, Maybe, Name
from agentv_ci.contracts.cli_template import gives_files, gives_prompt
from agentv_ci.contracts.environment_references import EnvironmentReference, variable_of
from agentv_ci.contracts.target_settings import Flag, Seconds, TargetSettings
from agentv_ci.contracts.workspaces import OF_TARGET, TargetWorkspace


class HttpHealthcheck(Authored):
    """Ready when a GET request returns 2xx."""

    type: Literal["http"] = Field(description="Request a URL.")
    url: Name = Field(description="URL to request.")
    timeout_seconds: Maybe[Seconds] = Field(None, description="Time limit, in seconds; default 10.")


class CommandHealthcheck(Authored):
    """Ready when a command exits with status 0."""

    type: Literal["command"] = Field(description="Run a command.")
    command_template: Name = Field(description="Command, with the placeholders of the target's command.")
    cwd: Maybe[Name] = Field(None, description="Working directory; default: that of the target's command.")
    timeout_seconds: Maybe[Seconds] = Field(None, description="Time limit, in seconds; default 10.")


Healthcheck = Annotated[HttpHealthcheck | CommandHealthcheck, Field(discriminator="type")]


class CliTarget(TargetSettings):
    """A command that prints the answer."""

    outside_digest: ClassVar[frozenset[str]] = TargetSettings.outside_digest | {
        "timeout_seconds",
        "healthcheck",
        "verbose",
        "keep_temp_files",
        "workspace",
    }
    charges: ClassVar[bool] = False
    reports: ClassVar[frozenset[str]] = frozenset({"tool_calls"})
    secrets: ClassVar[frozenset[str]] = frozenset({"env"})
    paths: ClassVar[frozenset[str]] = frozenset({"cwd"})
    implied: ClassVar[Mapping[str, JsonValue]] = {
        "files_format": "{path}",
        "attachments_format": "{path}",
        "env": {},
        "sources": [],
    }

    provider: Literal["cli"] = Field(description="Run a command.")
    command_template: Name = Field(
        description="Shell command. Placeholders: {PROMPT} {PROMPT_FILE} {GUIDELINES} {EVAL_ID} {ATTEMPT} "
        "{FILES} {ATTACHMENTS} {OUTPUT_FILE}; their values are quoted. {{NAME}} is a literal {NAME}."
    )
    stdin: Maybe[Literal["prompt"] | EnvironmentReference] = Field(
        None, description="Standard input: `prompt`; default: nothing."
    )
    prompt: Maybe[Literal["none"] | EnvironmentReference] = Field(
        None, description="`none` for a command that needs no prompt."
    )
    files_format: Maybe[Name] = Field(
        None, description="Format of each file in {FILES}, with {path} and {basename}; default {path}."
    )
    attachments_format: Maybe[Name] = Field(None, description="Format of each file in {ATTACHMENTS}; default {path}.")
    cwd: Maybe[Name] = Field(None, description="Working directory, relative to this file; default: the eval's folder.")
    env: Maybe[dict[str, str]] = Field(None, description="Environment variables for the command.")
    sources: Maybe[Items[Name]] = Field(
        None,
        description="Files of the command's own code: names, folders and globs, relative to this file. In digests.",
    )
    timeout_seconds: Maybe[Seconds] = Field(None, description="Time limit of a run; default: the case's timeout.")
    healthcheck: Maybe[Healthcheck] = Field(None, description="Check before the first case.")
    verbose: Maybe[Flag] = Field(None, description="Also print the command with --verbose.")
    keep_temp_files: Maybe[Flag] = Field(None, description="Keep prompt and output files.")
    workspace: Maybe[TargetWorkspace] = Field(None, description=OF_TARGET)

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "verbose": ("cli_verbose",),
        "keep_temp_files": ("keep_output_files",),
    }

    @property
    def gets_prompt(self) -> bool:
        """Whether the command gets the prompt, or needs none."""
        return self.stdin is not None or self.prompt is not None or gives_prompt(self.command_template)

    @property
    def takes(self) -> frozenset[str]:
        """Every file, if the command gets paths of files; URLs would only be words in the prompt."""
        template = self.command_template
        return frozenset(NAMES) if variable_of(template) or gives_files(template) else frozenset()
