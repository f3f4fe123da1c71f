"""What is known of each kind of target before anybody has written one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Starter:
    """One kind of target, as a newcomer meets it."""

    says: str
    """What answers, in a few words."""
    takes_model: bool = True
    model: str | None = None
    """What the model is called by default; None leaves it to the agent."""
    variables: tuple[str, ...] = ()
    """What identifies the user."""
    is_agent: bool = False
    """Whether it is a program of its own, to which people also log in."""
    judges: bool = False
    """Whether it answers as a judge without anything more to be set up."""
    package: str | None = None
    """How npm installs it, in the version that it was tried with."""
    runs_on_servers: bool = True


STARTERS: Mapping[str, Starter] = {
    "mock": Starter("answers written down beforehand, for a look around", takes_model=False, judges=True),
    "cli": Starter("any command that prints an answer", takes_model=False),
    "openai": Starter(
        "OpenAI, and servers that speak its API", model="gpt-5.6-luna", variables=("OPENAI_API_KEY",), judges=True
    ),
    "azure-openai": Starter(
        "a deployment at Azure OpenAI",
        model="${{ AZURE_DEPLOYMENT_NAME }}",
        variables=("AZURE_OPENAI_ENDPOINT", "AZURE_DEPLOYMENT_NAME", "AZURE_OPENAI_API_KEY"),
        judges=True,
    ),
    "anthropic": Starter(
        "a model of Anthropic", model="claude-haiku-5-5", variables=("ANTHROPIC_API_KEY",), judges=True
    ),
    "gemini": Starter(
        "a Gemini model of Google", model="gemini-3.5-flash-lite", variables=("GOOGLE_API_KEY",), judges=True
    ),
    "codex": Starter("OpenAI's Codex", variables=("CODEX_API_KEY",), is_agent=True, package="@openai/codex@0.169.0"),
    "claude-code": Starter(
        "Claude Code", variables=("ANTHROPIC_API_KEY",), is_agent=True, package="@anthropic-ai/claude-code@2.1.197"
    ),
    "copilot-cli": Starter(
        "the Copilot CLI", variables=("COPILOT_GITHUB_TOKEN",), is_agent=True, package="@github/copilot@1.0.102"
    ),
    "gemini-cli": Starter(
        "the Gemini CLI", variables=("GEMINI_API_KEY",), is_agent=True, package="@google/gemini-cli@0.61.0"
    ),
    "vscode-copilot": Starter(
        "Copilot in a window of VS Code", takes_model=False, is_agent=True, runs_on_servers=False
    ),
}
