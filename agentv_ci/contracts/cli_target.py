"""Targets that are a command, and the placeholders of its template."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.attachments import NAMES
from agentv_ci.contracts.base import Authored, Items, JsonValue, Maybe, Name
from agentv_ci.contracts.environment_references import EnvironmentReference, variable_of
from agentv_ci.contracts.target_settings import Flag, Seconds, TargetSettings
from agentv_ci.contracts.workspaces import OF_TARGET, TargetWorkspace

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
PROMPT_PLACEHOLDERS = ("PROMPT", "PROMPT_FILE")
"""Placeholders that give the prompt to the command."""
PROMPT_IN_TEMPLATE = r"(^|[^${])\{PROMPT(_FILE)?\}|\{\{PROMPT(_FILE)?\}([^}]|$)"
"""Pattern of a command template with one of them in the published schemas, without look-behind."""
FILE_PLACEHOLDERS = ("FILES", "ATTACHMENTS")
"""Placeholders that give the paths of files to the command."""
CLI_PLACEHOLDER = re.compile(r"\{\{(?P<literal>[A-Z_]+)\}\}|(?<!\$)\{(?P<name>[A-Z_]+)\}")
FORMAT_PLACEHOLDER = re.compile(r"\{(?P<name>[a-z_]+)\}")

QUOTES = ("'", '"')
COMMANDS = ("$(", "(")

_TOKEN = re.compile(
    r"""\\\{(?P<escaped>[A-Z_]+)\}
    | \\.            # an escaped character
    | \$\(             # command substitution
    | [()'"`]
    | (?<!<)<<(?!<)    # a here-document
    | (?<!\S)\#[^\n]*  # a comment
    | \{\{[A-Z_]+\}\} | (?<!\$)\{(?P<name>[A-Z_]+)\}
    | \{\{[ ]*(?P<doubled>[A-Za-z_]+)[ ]*\}\}
    | (?<![$%@])\{(?P<word>[A-Za-z_][\w-]*)\}  # not ${VAR}, %{http_code} and @{upstream}
    """,
    re.VERBOSE | re.DOTALL,
)


class HttpHealthcheck(Authored):
    """Ready when a GET request returns 2xx."""

    type: Literal["http"] = Field(description="Request a URL.")
    url: Name = Field(description="URL to request.")
    timeout_seconds: Maybe[Seconds] = Field(None, description="Time limit, in seconds; default 10.")


class CommandHealthcheck(Authored):
    """Ready when a command exits with status 0."""

    type: Literal["command"] = Field(description="Run a command.")
    command_template: Name = Field(
        description="Command, with the placeholders of the target's command."
    )
    cwd: Maybe[Name] = Field(
        None, description="Working directory; default: that of the target's command."
    )
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
        description="Shell command. Placeholders: {PROMPT} {PROMPT_FILE} {GUIDELINES} {EVAL_ID} "
        "{ATTEMPT} {FILES} {ATTACHMENTS} {OUTPUT_FILE}; their values are quoted. {{NAME}} is a "
        "literal {NAME}."
    )
    stdin: Maybe[Literal["prompt"] | EnvironmentReference] = Field(
        None, description="Standard input: `prompt`; default: nothing."
    )
    prompt: Maybe[Literal["none"] | EnvironmentReference] = Field(
        None, description="`none` for a command that needs no prompt."
    )
    files_format: Maybe[Name] = Field(
        None,
        description="Format of each file in {FILES}, with {path} and {basename}; default {path}.",
    )
    attachments_format: Maybe[Name] = Field(
        None, description="Format of each file in {ATTACHMENTS}; default {path}."
    )
    cwd: Maybe[Name] = Field(
        None, description="Working directory, relative to this file; default: the eval's folder."
    )
    env: Maybe[dict[str, str]] = Field(None, description="Environment variables for the command.")
    sources: Maybe[Items[Name]] = Field(
        None,
        description="Files of the command's own code: names, folders and globs, relative to this "
        "file. In digests.",
    )
    timeout_seconds: Maybe[Seconds] = Field(
        None, description="Time limit of a run; default: the case's timeout."
    )
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
        return (
            self.stdin is not None or self.prompt is not None or gives_prompt(self.command_template)
        )

    @property
    def takes(self) -> frozenset[str]:
        """Every file, if the command gets paths of files.

        URLs would only be words in the prompt.
        """
        template = self.command_template
        return frozenset(NAMES) if variable_of(template) or gives_files(template) else frozenset()


def placeholders(template: str) -> tuple[str, ...]:
    """Return the names of the placeholders in a command template, each once.

    `{{NAME}}` is literal.
    """
    names = (match["name"] for match in CLI_PLACEHOLDER.finditer(template))
    return tuple(dict.fromkeys(filter(None, names)))


def gives_prompt(template: str) -> bool:
    """Whether a command template has a placeholder for the prompt."""
    return not set(PROMPT_PLACEHOLDERS).isdisjoint(placeholders(template))


def gives_files(template: str) -> bool:
    """Whether a command template has a placeholder for the paths of files."""
    return not set(FILE_PLACEHOLDERS).isdisjoint(placeholders(template))


def unknown_placeholders(template: str) -> tuple[str, ...]:
    """Return what looks like a placeholder and is none, with its braces, each once.

    In quotes and in double braces, a word may belong to another language, such as awk's
    `'{print}'`; it counts only if it is a known name in another case.
    """
    found = [f"{{{name}}}" for name in placeholders(template) if name not in CLI_PLACEHOLDERS]
    for match, is_quoted in _words(template)[0]:
        name = match["word"] or match["doubled"]
        if name and (name.upper() in CLI_PLACEHOLDERS or not (is_quoted or match["doubled"])):
            found.append(match[0])
    return tuple(dict.fromkeys(found))


def quoted_placeholders(template: str) -> tuple[str, ...]:
    """Return the placeholders in quotes, here-documents or after a backslash, each once.

    All, if a quote is unclosed.

    Values are quoted automatically: inside other quotes or after a backslash, the shell would run
    part of them. A command substitution inside double quotes, `"$(…)"`, starts unquoted.
    """
    words, is_unclosed = _words(template)
    quoted = [match["escaped"] or match["name"] for match, is_quoted in words if is_quoted]
    # A shell may read unclosed quotes in any way.
    names = (*quoted, *placeholders(template)) if is_unclosed else quoted
    return tuple(dict.fromkeys(filter(None, names)))


def _words(template: str) -> tuple[Sequence[tuple[re.Match[str], bool]], bool]:
    """Return the words in braces, with whether each is quoted; and whether a quote is unclosed."""
    words: list[tuple[re.Match[str], bool]] = []
    marks: list[str] = []
    position = 0
    while match := _TOKEN.search(template, position):
        inside = marks[-1] if marks else ""
        mark = match[0]
        is_text = inside in QUOTES and mark.startswith("#")
        position = match.start() + 1 if is_text else match.end()
        if match.lastgroup is not None:
            words.append((match, match["escaped"] is not None or inside in (*QUOTES, "<<")))
        elif inside == "'":
            # Only the closing quote is special here.
            if mark.endswith("'"):
                marks.pop()
        elif mark == inside or (mark == ")" and inside in COMMANDS):
            marks.pop()
        elif mark in ("$(", '"', "`") or (inside != '"' and mark in ("'", "(", "<<")):
            marks.append(mark)
    return words, any(mark != "<<" for mark in marks)
