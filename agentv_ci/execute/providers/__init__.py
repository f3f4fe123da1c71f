"""Providers: what targets are at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, assert_never, runtime_checkable

from agentv_ci.contracts.agent_targets import (
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
from agentv_ci.contracts.cli_target import CliTarget
from agentv_ci.contracts.exchange import Request, Response
from agentv_ci.contracts.targets import MockTarget, PluginTarget, Target
from agentv_ci.execute.provider_services import ProviderServices


class Provider(Protocol):
    """Answers questions. Opened once per target and run; asked many questions at once."""

    async def check(self) -> None:
        """Check the target before the first case.

        Raises ProviderError when it cannot be asked at all.
        """
        ...

    async def ask(self, request: Request) -> Response:
        """Return the answer; raises ProviderError.

        Enforces the request's time limit itself, so that it can end gracefully and report how far
        it got. May be cancelled at any time and then leaves nothing behind.
        """
        ...

    async def close(self) -> None:
        """Close connections and files."""
        ...


@runtime_checkable
class BatchProvider(Provider, Protocol):
    """A provider that can take all questions of a run in one session."""

    async def ask_together(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Return one answer per question, in order; raises ProviderError when one is missing."""
        ...


def open_provider(  # noqa: C901, PLR0912  # a branch per kind
    target: Target,
    services: ProviderServices,
) -> Provider:
    """Return the provider of a resolved target; imports only its module."""
    match target:
        case AnthropicTarget():
            from agentv_ci.execute.providers import anthropic

            return anthropic.open_provider(target, services)
        case AzureOpenAITarget():
            from agentv_ci.execute.providers import azure_openai

            return azure_openai.open_provider(target, services)
        case ClaudeCodeTarget():
            from agentv_ci.execute.providers import claude_code

            return claude_code.open_provider(target, services)
        case CliTarget():
            from agentv_ci.execute.providers import cli

            return cli.CliProvider(target, services)
        case CodexTarget():
            from agentv_ci.execute.providers import codex

            return codex.open_provider(target, services)
        case CopilotCliTarget():
            from agentv_ci.execute.providers import copilot_cli

            return copilot_cli.open_provider(target, services)
        case GeminiTarget():
            from agentv_ci.execute.providers import gemini

            return gemini.open_provider(target, services)
        case GeminiCliTarget():
            from agentv_ci.execute.providers import gemini_cli

            return gemini_cli.open_provider(target, services)
        case MockTarget():
            from agentv_ci.execute.providers import mock

            return mock.MockProvider(target, services)
        case OpenAITarget():
            from agentv_ci.execute.providers import openai

            return openai.open_provider(target, services)
        case VsCodeTarget():
            from agentv_ci.execute.providers import vscode_copilot

            return vscode_copilot.VsCodeProvider(target, services)
        case PluginTarget():
            from agentv_ci.execute.providers import plugin

            return plugin.open_provider(target, services)
        case _:
            assert_never(target)
