"""Targets that are a mock."""

from typing import ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.attachments import ALL_TAKEN
from agentv_ci.contracts.base import AtLeastOne, Authored, Items, Maybe, NonNegative, meanings
from agentv_ci.contracts.evals import AuthoredToolCall
from agentv_ci.contracts.target_settings import Milliseconds, TargetSettings


class MockError(Authored):
    """A failure that the mock simulates."""

    kind: Literal["timeout", "rate_limit", "auth", "network", "server", "request", "malformed", "process"] = Field(
        description="Kind of the failure.",
        json_schema_extra=meanings(
            timeout="No answer in time.",
            rate_limit="Too many requests.",
            auth="The key is missing or wrong.",
            network="The server cannot be reached.",
            server="The server fails.",
            request="The server refuses the request.",
            malformed="The answer cannot be read.",
            process="The command fails.",
        ),
    )
    message: str = Field("scripted failure", description="Error message.")
    attempts: Maybe[AtLeastOne] = Field(None, description="Number of attempts that fail; default all.")


class MockUsage(Authored):
    """Token counts that the mock reports."""

    input_tokens: NonNegative = Field(0, description="Input tokens.")
    output_tokens: NonNegative = Field(0, description="Output tokens.")


class MockTarget(TargetSettings):
    """Answers from the targets file; nothing leaves the machine."""

    charges: ClassVar[bool] = False
    reports: ClassVar[frozenset[str]] = frozenset({"tokens", "tool_calls"})
    judges_itself: ClassVar[bool] = True

    outside_digest: ClassVar[frozenset[str]] = TargetSettings.outside_digest | {"delay_ms"}

    provider: Literal["mock"] = Field(description="Use answers from this file.")
    response: Maybe[str] = Field(None, description="Answer to every question.")
    responses: Maybe[dict[str, str]] = Field(None, description="Case id → answer; overrides `response`.")
    tool_calls: Maybe[Items[AuthoredToolCall]] = Field(None, description="Tool calls to report with every answer.")
    delay_ms: Maybe[Milliseconds] = Field(None, description="Delay before the answer, in milliseconds.")
    error: Maybe[MockError] = Field(None, description="Fail instead of answering.")
    usage: Maybe[MockUsage] = Field(None, description="Token counts to report with every answer.")

    @property
    def takes(self) -> frozenset[str]:
        """Everything: it reads nothing."""
        return ALL_TAKEN
