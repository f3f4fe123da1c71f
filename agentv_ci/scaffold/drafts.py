"""The texts of a new project's files, without writing them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from msgspec import Struct

from agentv_ci.base.text import did_you_mean, listed
from agentv_ci.contracts.cli_target import (
    CLI_PLACEHOLDERS,
    gives_prompt,
    quoted_placeholders,
    unknown_placeholders,
)
from agentv_ci.contracts.environment_references import OPENING, variable_of, variables_in
from agentv_ci.errors import UsageError
from agentv_ci.jsonschema.schemas import SchemaName, text

FILES = Path(__file__).parent / "files"

TARGETS = ".agentv/targets.yaml"
EXAMPLE = "evals/example.test.yaml"
AGENT = "agents/example.py"
WORKFLOWS = ".github/workflows/"
WORKFLOW = f"{WORKFLOWS}agentv.yml"
SETTINGS = ".vscode/settings.json"
SCHEMAS = ".agentv/schemas"

AGENT_COMMAND = f"python3 {AGENT} {{PROMPT_FILE}}"
SHELL_SYNTAX = re.compile(r"[|&;<>#()`]")
"""What makes a command more than one program with its arguments."""
MEANT: Mapping[SchemaName, tuple[str, ...]] = {
    "eval-v2": ("evals/**/*.test.yaml", "evals/**/*.test.yml"),
    "targets-v2": ("targets.yaml", "targets.yml", ".agentv/targets.yaml", ".agentv/targets.yml"),
    "config-v2": (".agentv.yaml", ".agentv/config.yaml"),
}
"""Schemas of authored documents, and the file patterns that only match such documents.

Editors look into `.agentv` only if a pattern names it.
"""


class Starter(Struct, frozen=True):
    """A provider that `init` can set up."""

    summary: str
    """What answers, in a few words."""
    takes_model: bool = True
    model: str | None = None
    """The default model; None leaves it to the agent."""
    variables: tuple[str, ...] = ()
    """Environment variables with the user's credentials."""
    is_agent: bool = False
    """Whether it is a program that users can log in to."""
    judges: bool = False
    """Whether it can judge without further setup."""
    package: str | None = None
    """Its npm package, in a tested version."""
    runs_on_servers: bool = True


STARTERS: Mapping[str, Starter] = {
    "mock": Starter("fixed answers, to try things out", takes_model=False, judges=True),
    "cli": Starter("any command that prints an answer", takes_model=False),
    "openai": Starter(
        "OpenAI and compatible servers",
        model="gpt-5.6-luna",
        variables=("OPENAI_API_KEY",),
        judges=True,
    ),
    "azure-openai": Starter(
        "a deployment in Azure OpenAI",
        model="${{ AZURE_DEPLOYMENT_NAME }}",
        variables=("AZURE_OPENAI_ENDPOINT", "AZURE_DEPLOYMENT_NAME", "AZURE_OPENAI_API_KEY"),
        judges=True,
    ),
    "anthropic": Starter(
        "a Claude model", model="claude-haiku-5-5", variables=("ANTHROPIC_API_KEY",), judges=True
    ),
    "gemini": Starter(
        "a Gemini model", model="gemini-3.5-flash-lite", variables=("GOOGLE_API_KEY",), judges=True
    ),
    "codex": Starter(
        "OpenAI's Codex",
        variables=("CODEX_API_KEY",),
        is_agent=True,
        package="@openai/codex@0.169.0",
    ),
    "claude-code": Starter(
        "Claude Code",
        variables=("ANTHROPIC_API_KEY",),
        is_agent=True,
        package="@anthropic-ai/claude-code@2.1.197",
    ),
    "copilot-cli": Starter(
        "the Copilot CLI",
        variables=("COPILOT_GITHUB_TOKEN",),
        is_agent=True,
        package="@github/copilot@1.0.102",
    ),
    "gemini-cli": Starter(
        "the Gemini CLI",
        variables=("GEMINI_API_KEY",),
        is_agent=True,
        package="@google/gemini-cli@0.61.0",
    ),
    "vscode-copilot": Starter(
        "Copilot in VS Code", takes_model=False, is_agent=True, runs_on_servers=False
    ),
}


class Choices(Struct, frozen=True):
    """The choices of a user."""

    provider: str = "mock"
    is_chosen: bool = False
    """Whether the provider was named."""
    model: str | None = None
    command: str | None = None
    workflow: bool = True
    editor: bool = True
    target: str | None = None
    """The target of an existing targets file; then none is written."""
    references: tuple[str, ...] = ()
    """The environment variables in an existing targets file."""

    def __post_init__(self) -> None:
        """Raise UsageError for invalid or contradictory choices."""
        if self.command is not None and self.provider != "cli":
            raise UsageError(f"--command requires --provider cli, not '{self.provider}'")
        if self.model is not None and not self.starter.takes_model:
            raise UsageError(f"--model cannot be used with --provider {self.provider}")
        if self.model is not None:
            _check_text("the model's name", self.model)
        if self.command is not None:
            _check_text("the command", self.command)
            _check_placeholders(self.command)

    @property
    def starter(self) -> Starter:
        """What is known of the provider."""
        return STARTERS[self.provider]

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the environment that a run needs."""
        if self.target is not None:
            return self.references
        model = self.starter.model if self.model is None else self.model
        unused = {*variables_in(self.starter.model or "")} - {*variables_in(model or "")}
        known = (name for name in self.starter.variables if name not in unused)
        return tuple(dict.fromkeys((*known, *variables_in(model or ""))))


class Draft(Struct, frozen=True):
    """A file that a project begins with."""

    path: str
    """Relative to the project, with `/`."""
    text: str
    paste: str | None = None
    """What belongs into a file of this name that is there already."""
    sign: str = ""
    """A text that such a file contains once that is done."""


def drafts(choices: Choices, *, subfolder: str | None) -> tuple[Draft, ...]:
    """Return all files of a new project.

    `subfolder` is its path in its repository, None at the root.
    """
    found: list[Draft] = []
    target = choices.target
    judges = target is None and choices.starter.judges
    if target is None:
        found.append(Draft(TARGETS, _headed(_targets(choices), TARGETS, "targets-v2", choices)))
        if choices.provider == "cli" and choices.command is None:
            found.append(Draft(AGENT, _file("agent.py")))
    found.append(
        Draft(EXAMPLE, _headed(_example(target, judges=judges), EXAMPLE, "eval-v2", choices))
    )
    if choices.workflow:
        workflow = _workflow(choices, subfolder)
        draft = Draft(_workflow_path(subfolder), workflow)
        if subfolder:
            sign = f"working-directory: {_in_workflow(subfolder)}\n"
            draft = Draft(_workflow_path(subfolder), workflow, paste=workflow, sign=sign)
        found.append(draft)
    if choices.editor:
        lines = json.dumps(
            {"yaml.schemas": {_schema(name): [*globs] for name, globs in MEANT.items()}}, indent=2
        )
        found += [Draft(_schema(name), text(name)) for name in MEANT]
        inside = lines.removeprefix("{\n").removesuffix("\n}")
        found.append(Draft(SETTINGS, f"{lines}\n", paste=f"{inside}\n", sign=_schema("eval-v2")))
    found.append(Draft(".agentv/.gitignore", _file("gitignore")))
    return tuple(found)


def _check_text(what: str, written: str) -> None:
    if not written.strip():
        raise UsageError(f"{what} is empty")
    if not written.isprintable():
        raise UsageError(f"{what} must be one line of printable text")
    if OPENING in written and variable_of(written) is None:
        raise UsageError(
            f"{what} cannot contain ${{{{ NAME }}}}; "
            "an environment reference must be the whole value"
        )


def _check_placeholders(command: str) -> None:
    for written in unknown_placeholders(command):
        known = listed(f"{{{each}}}" for each in CLI_PLACEHOLDERS)
        suggestion = did_you_mean(written.strip("{} "), CLI_PLACEHOLDERS)
        raise UsageError(
            f"unknown placeholder {written} in the command{suggestion}; available: {known}"
        )
    for name in quoted_placeholders(command):
        raise UsageError(
            f"{{{name}}} is inside quotes or escaped in the command",
            hint="remove the quotes: values of placeholders are quoted automatically",
        )
    if not _gets_prompt(command) and SHELL_SYNTAX.search(command):
        raise UsageError(
            "the command never gets the prompt",
            hint="write {PROMPT} or {PROMPT_FILE} where it belongs",
        )


def _gets_prompt(command: str) -> bool:
    return gives_prompt(command) or variable_of(command) is not None


def _with_prompt(command: str) -> str:
    return command if _gets_prompt(command) else f"{command} {{PROMPT}}"


def _targets(choices: Choices) -> str:
    written = _file(f"targets/{choices.provider}.yaml")
    model = choices.model or choices.starter.model
    if model is None:
        written = re.sub(r"^.*: MODEL\n", "", written, flags=re.MULTILINE)
    else:
        written = written.replace(": MODEL\n", f": {_scalar(model)}\n")
    return written.replace(
        ": COMMAND\n", f": {_scalar(_with_prompt(choices.command or AGENT_COMMAND))}\n"
    )


def _example(target: str | None, *, judges: bool) -> str:
    cases = _file("example.test.yaml").replace(": TARGET\n", f": {_scalar(target or 'default')}\n")
    judged = _file("judged-case.yaml").splitlines()
    if judges:
        lines = [
            "# A judge scores the answer by criteria that a text check cannot express.",
            *judged,
        ]
    else:
        first = (
            "# A judge scores the answer by criteria. "
            "Set up a judge in the targets file, then uncomment these lines."
        )
        lines = [first, *(f"# {line}" for line in judged)]
    return f"{cases}\n{_block('  ', lines)}"


def _workflow(choices: Choices, subfolder: str | None) -> str:
    starter = choices.starter
    lines: dict[str, list[str]] = {"install": [], "with": [], "env": []}
    if choices.provider == "cli":
        lines["install"] = ["# Install what the command requires here."]
    if starter.package:
        lines["install"] = [
            f"- run: npm install --global {starter.package} # zizmor: ignore[adhoc-packages]"
        ]
    if subfolder:
        lines["with"].append(f"working-directory: {_in_workflow(subfolder)}")
    if not starter.runs_on_servers:
        lines["with"] += [
            "# VS Code cannot open a window here: only check the documents.",
            "validate-only: true",
        ]
    if choices.variables:
        lines["with"] += [
            "# Pull requests from forks have no secrets: only check the documents.",
            "validate-only: ${{ github.event.pull_request.head.repo.fork == true }}",
        ]
        lines["env"] = [
            "env:",
            *(f"  {name}: ${{{{ secrets.{name} }}}}" for name in choices.variables),
        ]
    return re.sub(
        r"^( *)#: (\w+)\n",
        lambda mark: _block(mark[1], lines[mark[2]]),
        _file("workflow.yml"),
        flags=re.MULTILINE,
    )


def _workflow_path(subfolder: str | None) -> str:
    """Return the path of the workflow; each part of a repository has its own."""
    if subfolder is None:
        return WORKFLOW
    part = re.sub(r"[^A-Za-z0-9_]+", "-", subfolder).strip("-")
    return WORKFLOW.replace(".yml", f"-{part or 'part'}.yml")


def _in_workflow(text: str) -> str:
    """Return a text quoted for YAML and for GitHub's expressions."""
    return _scalar(text.replace("${{", "${{ '${{' }}"))


def _block(indent: str, lines: list[str]) -> str:
    return "".join(f"{indent}{line}\n" for line in lines)


def _headed(written: str, path: str, schema: SchemaName, choices: Choices) -> str:
    """Add the first line that names the schema to editors.

    Without it, editors take the value of `$schema:` for a file name, and ignore their settings for
    the file.
    """
    if not choices.editor:
        return written
    up = "../" * (len(PurePosixPath(path).parts) - 1)
    return f"# yaml-language-server: $schema={up}{_schema(schema)}\n{written}"


def _schema(name: SchemaName) -> str:
    return f"{SCHEMAS}/{name}.schema.json"


def _scalar(value: str) -> str:
    """Return a text as a YAML scalar, plain where that is unambiguous."""
    plain = re.fullmatch(r"(?:[A-Za-z$/]|\./)[\w./{}$@%+=,-]*( [\w./{}$@%+=,-]+)*", value, re.ASCII)
    is_word = value.lower() in ("true", "false", "null", "yes", "no", "on", "off")
    return (
        value if plain and not is_word else json.dumps(value, ensure_ascii=not value.isprintable())
    )


def _file(name: str) -> str:
    return (FILES / name).read_text("utf-8")
