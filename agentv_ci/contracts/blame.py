"""Who is to blame for an error: the agent under test, or what it runs on.

An agent's error is a failed trial with score 0, for everything that counts trials: an agent that crashes must not look
better than one that answers wrongly. An error of the infrastructure says nothing of the agent: its trial is missing.
"""

from __future__ import annotations

from typing import Literal

from agentv_ci.contracts.base import ErrorKind

Blame = Literal["agent", "infrastructure"]

MODEL_APIS = frozenset(
    (
        *("azure-openai", "azure"),
        *("openai", "openai-compatible", "ollama", "vllm", "openrouter"),
        *("anthropic", "claude-api"),
        *("gemini", "google", "google-gemini"),
    )
)
"""Providers that ask the API of a model; all others run an agent: a command, a CLI, an editor, a plugin."""


def blame_of(kind: ErrorKind | None, provider: str) -> Blame:
    """Return who is to blame for an error of this kind, from the provider of a row."""
    match kind:
        case "process":
            return "agent"
        case "timeout" | "malformed":
            return "infrastructure" if provider in MODEL_APIS else "agent"
        case _:
            return "infrastructure"
