"""Settings that every evaluator has, and their names."""

from collections.abc import Iterator
from itertools import count
from typing import Annotated, ClassVar, Literal, TypeVar, get_args

from pydantic import Field

from agentv_ci.contracts.base import Authored, Items, Maybe, Name, Share

Texts = Annotated[Items[Name], Field(min_length=1)]
Scale = Annotated[
    Items[Annotated[float, Field(ge=-1_000_000, le=1_000_000)]], Field(min_length=2, max_length=2)
]
"""The lowest and the highest score of a judge; what cannot be expressed here, that they differ, is
AV320.
"""
SCALE = "Lowest and highest score that the judge gives, such as [1, 5]; default: 0 to 1."
Measure = Literal["time", "cost", "tokens", "tool_calls"]


class EvaluatorFacts:
    """Properties of a kind of evaluator, shared by authored and plan models."""

    waits: ClassVar[bool] = False
    """Whether scoring may wait for a judge, a process or a thread."""
    measures: ClassVar[Measure | None] = None
    """What it measures besides the answer; not every target reports it."""
    reads_trace: ClassVar[bool] = False
    """Whether the score depends on tool calls."""
    is_limit: ClassVar[bool] = False
    """Whether it limits what an answer takes, and says nothing of its content."""
    needs_workspace: ClassVar[bool] = False
    """Whether it scores what the agent leaves behind in its workspace."""


class EvaluatorSettings(EvaluatorFacts, Authored):
    """Settings of every evaluator."""

    filled_in: ClassVar[frozenset[str]] = frozenset({"name"})

    name: Name = Field(
        "", description="Name in the results, unique in the list; default: the type, made unique."
    )
    weight: float = Field(1.0, ge=0, description="Weight in the score of the case.")
    required: bool = Field(
        False,
        description="Whether the trial fails if this evaluator does not pass, whatever the score.",
    )
    min_score: Maybe[Share] = Field(
        None,
        description="Minimum score to pass; default: the case's threshold.",
        examples=[0.5, 0.8],
    )
    negate: bool = Field(False, description="Use 1 − score; errors stay errors.")

    @property
    def kind(self) -> str:
        """Its type in the canonical spelling."""
        # Other spellings of a type follow it.
        return str(get_args(type(self).model_fields["type"].annotation)[0])

    @property
    def is_named(self) -> bool:
        """Whether the author gave it a name."""
        return "name" in self.model_fields_set


AnyEvaluator = TypeVar("AnyEvaluator", bound=EvaluatorSettings)


def named(evaluators: tuple[AnyEvaluator, ...]) -> tuple[AnyEvaluator, ...]:
    """Return evaluators of which those without a name are called by their type.

    Such a name is made unique: contains, contains-2.
    """
    if all(each.is_named for each in evaluators):
        return evaluators
    taken = {each.name for each in evaluators if each.is_named}
    free: dict[str, Iterator[str]] = {}

    def with_name(evaluator: AnyEvaluator) -> AnyEvaluator:
        names = free.setdefault(
            evaluator.kind, (name for name in numbered(evaluator.kind) if name not in taken)
        )
        renamed = evaluator.model_copy(update={"name": next(names)})
        renamed.model_fields_set.discard("name")
        return renamed

    return tuple(each if each.is_named else with_name(each) for each in evaluators)


def numbered(kind: str) -> Iterator[str]:
    """Yield the names of evaluators of a type: contains, contains-2 and so on."""
    yield kind
    yield from (f"{kind}-{number}" for number in count(2))


def looks_like_path(word: str, suffixes: tuple[str, ...]) -> bool:
    """Whether a word of a document is a path, and no text or command."""
    return "\n" not in word and (word.startswith(("./", "../", "/")) or word.endswith(suffixes))
