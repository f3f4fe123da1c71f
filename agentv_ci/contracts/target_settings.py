"""Settings of every target, and the types of their fields."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field

from agentv_ci.contracts.base import (
    WHOLE,
    AtLeastOne,
    Authored,
    JsonValue,
    Maybe,
    Name,
    NonNegative,
    Positive,
)
from agentv_ci.contracts.environment_references import EnvironmentReference

StatusCode = Annotated[int, Field(ge=100, le=599), WHOLE]
Flag = bool | EnvironmentReference
Count = AtLeastOne | EnvironmentReference
Natural = NonNegative | EnvironmentReference
Seconds = Positive | EnvironmentReference
ApiFormat = Literal["chat", "responses"] | EnvironmentReference
Milliseconds = Annotated[float, Field(ge=0)] | EnvironmentReference


def number(value: float | str | None, default: float) -> float:
    """Return a number of a resolved target, or its default."""
    return default if value is None else float(value)


class TargetSettings(Authored):
    """Settings of every target."""

    hoists_settings: ClassVar[bool] = True
    outside_digest: ClassVar[frozenset[str]] = frozenset(
        {"name", "judge_target", "workers", "provider_batching", "resources"}
    )
    """Fields that cannot change an answer. The judge is part of the evaluators that use it."""
    secrets: ClassVar[frozenset[str]] = frozenset()
    """Fields with secret values."""
    essential: ClassVar[frozenset[str]] = frozenset()
    """Optional fields whose environment variable must be set if they refer to one."""
    paths: ClassVar[frozenset[str]] = frozenset()
    """Fields with a path, relative to the targets file."""
    programs: ClassVar[frozenset[str]] = frozenset()
    """Fields with a program: a name to look up, or, with a `/`, a path."""
    implied: ClassVar[Mapping[str, JsonValue]] = {}
    """Field → its default."""
    variables: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Field → the environment variables that set it if it is absent; the first one wins."""
    fallbacks: ClassVar[Mapping[str, str]] = {}
    """Field → its value if it is absent and no variable is set."""
    most_workers: ClassVar[int | None] = None
    """Maximum number of concurrent requests."""
    charges: ClassVar[bool] = True
    """Whether its answers cost money."""
    judges_itself: ClassVar[bool] = False
    """Whether it may judge its own answers: models, but not agents and commands."""

    reports: ClassVar[frozenset[str]] = frozenset({"cost", "tokens", "tool_calls"})
    """What it reports besides answers."""

    name: Name = Field(description="Name of the target in eval files and on the command line.")
    judge_target: Maybe[Name] = Field(
        None, description="Target that judges the answers of this one."
    )
    workers: Maybe[Count] = Field(
        None, description="Concurrent requests; default 1. `--workers` overrides it."
    )
    resources: Maybe[dict[str, Positive]] = Field(
        None,
        description="What a case takes of a cluster's workers, such as `GPU: 1`; unused without a "
        "cluster.",
    )
    provider_batching: Maybe[Flag] = Field(
        None, description="Send all questions in one session, if supported."
    )

    @classmethod
    def kind(cls) -> str:
        """Return the canonical name of the provider."""
        return str(get_args(cls.model_fields["provider"].annotation)[0])

    @classmethod
    def needs(cls, data: Mapping[str, JsonValue]) -> frozenset[str]:  # noqa: ARG003  # used by subclasses
        """Return the optional fields that a target with this data needs."""
        return frozenset()

    @classmethod
    def reads(cls, field: str, data: Mapping[str, JsonValue]) -> bool:
        """Return whether a field is read from its variables."""
        return field not in data

    def fallback(self, field: str) -> str | None:
        """Return the value of a field if it is absent and no variable is set."""
        return self.fallbacks.get(field)

    @property
    def takes(self) -> frozenset[str]:
        """Images and documents that it takes: media types of files, and URLs."""
        return frozenset()

    def is_default(self, field: str, value: JsonValue) -> bool:
        """Whether a value is the default of its field."""
        return field in self.implied and value == self.implied[field]
