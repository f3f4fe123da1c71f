"""What every target has, and the types of its fields."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field

from agentv_ci.contracts.base import WHOLE, AtLeastOne, Authored, JsonValue, Maybe, Name, NonNegative, Positive
from agentv_ci.contracts.environment_references import EnvironmentReference

StatusCode = Annotated[int, Field(ge=100, le=599), WHOLE]
Flag = bool | EnvironmentReference
Count = AtLeastOne | EnvironmentReference
Natural = NonNegative | EnvironmentReference
Seconds = Positive | EnvironmentReference
ApiFormat = Literal["chat", "responses"] | EnvironmentReference
Milliseconds = Annotated[float, Field(ge=0)] | EnvironmentReference


def number(value: float | str | None, default: float) -> float:
    """Return a number of a resolved target, or the one that its absence means."""
    return default if value is None else float(value)


class TargetSettings(Authored):
    """What every target has."""

    hoists_settings: ClassVar[bool] = True
    outside_digest: ClassVar[frozenset[str]] = frozenset({"name", "judge_target", "workers", "provider_batching"})
    """Fields that cannot change an answer, only when, how often and under which name it is asked for.

    Who judges stands at the evaluators that are judged.
    """
    secrets: ClassVar[frozenset[str]] = frozenset()
    """Fields whose values are secret."""
    essential: ClassVar[frozenset[str]] = frozenset()
    """Optional fields that may not silently be absent because a variable is not set."""
    paths: ClassVar[frozenset[str]] = frozenset()
    """Fields that hold a path, relative to the targets file."""
    programs: ClassVar[frozenset[str]] = frozenset()
    """Fields that hold a program: a name to look up, or, with a `/` in it, a path like others."""
    implied: ClassVar[Mapping[str, JsonValue]] = {}
    """Field → the value that its absence means."""
    variables: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Field → the environment variables it is read from when it is absent; the first that is set wins."""
    fallbacks: ClassVar[Mapping[str, str]] = {}
    """Field → its value when it is absent and no variable names another one."""
    most_workers: ClassVar[int | None] = None
    """Questions it can take at once at most, whatever `workers` says."""
    charges: ClassVar[bool] = True
    """Whether its answers cost money."""
    judges_itself: ClassVar[bool] = False
    """Whether it may judge its own answers: models may, agents and commands may not."""

    reports: ClassVar[frozenset[str]] = frozenset({"cost", "tokens", "tool_calls"})
    """What it can report beside its answers."""

    name: Name = Field(description="How evals and the command line call this target.")
    judge_target: Maybe[Name] = Field(None, description="The target that judges this one's answers.")
    workers: Maybe[Count] = Field(None, description="Questions at once; default 1. `--workers` wins.")
    provider_batching: Maybe[Flag] = Field(
        None, description="Ask all questions in one session, where the provider can."
    )

    @classmethod
    def kind(cls) -> str:
        """Return the name of this kind of target: of several names for its provider the first."""
        return str(get_args(cls.model_fields["provider"].annotation)[0])

    @classmethod
    def needs(cls, data: Mapping[str, JsonValue]) -> frozenset[str]:  # noqa: ARG003  # kinds that need nothing
        """Return the optional fields that a target with this data cannot do without."""
        return frozenset()

    @classmethod
    def reads(cls, field: str, data: Mapping[str, JsonValue]) -> bool:
        """Return whether a field that this data leaves open is read from its variables."""
        return field not in data

    def fallback(self, field: str) -> str | None:
        """Return what a field is when it is absent and no variable names another value."""
        return self.fallbacks.get(field)

    def says_nothing(self, field: str, value: JsonValue) -> bool:
        """Whether a field might as well be absent: it has the value that its absence means."""
        return field in self.implied and value == self.implied[field]
