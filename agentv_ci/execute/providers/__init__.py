"""The family of providers: what a target is at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, assert_never, runtime_checkable

from agentv_ci.contracts.exchange import Request, Response
from agentv_ci.contracts.targets import (
    AnthropicTarget,
    AzureOpenAITarget,
    ClaudeCodeTarget,
    CliTarget,
    CodexTarget,
    CopilotCliTarget,
    GeminiCliTarget,
    GeminiTarget,
    MockTarget,
    OpenAITarget,
    Target,
    VsCodeTarget,
)
from agentv_ci.execute.services import ProviderServices


class Provider(Protocol):
    """Answers questions. Opened once per target and run; asked many at once."""

    async def check(self) -> None:
        """Probe the target before the first case; raises ProviderError when it cannot be asked at all."""
        ...

    async def ask(self, request: Request) -> Response:
        """Return the answer; raises ProviderError.

        Keeps the request's time by itself, so that it can end gently what it has begun and say how far it came. May
        be cancelled at any time and then leaves nothing behind.
        """
        ...

    async def close(self) -> None:
        """Let go of connections and files."""
        ...


@runtime_checkable
class BatchProvider(Provider, Protocol):
    """A provider that can take all questions of a run in one session."""

    async def ask_together(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Return one answer per question, in their order; raises ProviderError when there are not as many."""
        ...


def open_provider(target: Target, services: ProviderServices) -> Provider:  # noqa: C901  # one arm a kind
    """Return the provider of a resolved target. The modules load when they are needed."""
    match target:
        case AnthropicTarget():
            from agentv_ci.execute.providers.anthropic import open_anthropic

            return open_anthropic(target, services)
        case AzureOpenAITarget():
            from agentv_ci.execute.providers.azure_openai import open_azure_openai

            return open_azure_openai(target, services)
        case ClaudeCodeTarget():
            from agentv_ci.execute.providers.claude_code import open_claude_code

            return open_claude_code(target, services)
        case CliTarget():
            from agentv_ci.execute.providers.cli import CliProvider

            return CliProvider(target, services)
        case CodexTarget():
            from agentv_ci.execute.providers.codex import open_codex

            return open_codex(target, services)
        case CopilotCliTarget():
            from agentv_ci.execute.providers.copilot_cli import open_copilot_cli

            return open_copilot_cli(target, services)
        case GeminiTarget():
            from agentv_ci.execute.providers.gemini import open_gemini

            return open_gemini(target, services)
        case GeminiCliTarget():
            from agentv_ci.execute.providers.gemini_cli import open_gemini_cli

            return open_gemini_cli(target, services)
        case MockTarget():
            from agentv_ci.execute.providers.mock import MockProvider

            return MockProvider(target, services)
        case OpenAITarget():
            from agentv_ci.execute.providers.openai import open_openai

            return open_openai(target, services)
        case VsCodeTarget():
            from agentv_ci.execute.providers.vscode_copilot import VsCodeProvider

            return VsCodeProvider(target, services)
        case _:
            assert_never(target)
