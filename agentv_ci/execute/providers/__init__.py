"""The family of providers: what a target is at run time."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, assert_never

from agentv_ci.contracts.exchange import Log, Request, Response, World
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
from agentv_ci.errors import UsageError


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


def open_provider(target: Target, *, root: Path, world: World, log: Log) -> Provider:
    """Return the provider of a resolved target; `root` is the repository. The modules load when they are needed.

    Raises UsageError for what this version checks and does not ask yet.
    """
    match target:
        case CliTarget():
            from agentv_ci.execute.providers.cli import CliProvider

            return CliProvider(target, root=root, world=world, log=log)
        case OpenAITarget(api_format="responses") | OpenAITarget(thinking_budget=int()):
            raise UsageError(f"target '{target.name}': 'api_format: responses' and 'thinking_budget' are not run yet")
        case OpenAITarget():
            from agentv_ci.execute.providers.openai import OpenAIProvider

            return OpenAIProvider(target, root=root, world=world, log=log)
        case MockTarget():
            from agentv_ci.execute.providers.mock import MockProvider

            return MockProvider(target, world=world)
        case (
            AzureOpenAITarget()
            | AnthropicTarget()
            | GeminiTarget()
            | VsCodeTarget()
            | CodexTarget()
            | ClaudeCodeTarget()
            | CopilotCliTarget()
            | GeminiCliTarget()
        ):
            raise UsageError(
                f"target '{target.name}': agentv-ci checks provider '{target.provider}' and does not run it yet"
            )
        case _:
            assert_never(target)
