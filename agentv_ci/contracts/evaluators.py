"""Evaluators in eval files: one class per `type`, which is imported when a document has it."""
# ruff: noqa: PLC0414  # exports

import re
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias, TypeVar

from pydantic import AfterValidator, ConfigDict, Field
from typing_extensions import TypeAliasType

from agentv_ci.contracts.base import Authored, ByKind, Items, JsonObject, Maybe, Name, PluginName
from agentv_ci.contracts.evaluator_settings import EvaluatorSettings
from agentv_ci.contracts.later import later

if TYPE_CHECKING:
    from agentv_ci.contracts.code_evaluator import CodeEvaluator as CodeEvaluator
    from agentv_ci.contracts.composite_evaluator import CodeAggregator as CodeAggregator
    from agentv_ci.contracts.composite_evaluator import CompositeEvaluator as CompositeEvaluator
    from agentv_ci.contracts.composite_evaluator import LlmJudgeAggregator as LlmJudgeAggregator
    from agentv_ci.contracts.composite_evaluator import WeightedAverage as WeightedAverage
    from agentv_ci.contracts.judge_evaluators import LlmJudgeEvaluator as LlmJudgeEvaluator
    from agentv_ci.contracts.judge_evaluators import RubricEvaluator as RubricEvaluator
    from agentv_ci.contracts.limit_evaluators import CostEvaluator as CostEvaluator
    from agentv_ci.contracts.limit_evaluators import LatencyEvaluator as LatencyEvaluator
    from agentv_ci.contracts.limit_evaluators import TokenUsageEvaluator as TokenUsageEvaluator
    from agentv_ci.contracts.limit_evaluators import ToolCallsEvaluator as ToolCallsEvaluator
    from agentv_ci.contracts.outcome_evaluators import CommandEvaluator as CommandEvaluator
    from agentv_ci.contracts.outcome_evaluators import DiffEvaluator as DiffEvaluator
    from agentv_ci.contracts.outcome_evaluators import FileEvaluator as FileEvaluator
    from agentv_ci.contracts.outcome_evaluators import JunitEvaluator as JunitEvaluator
    from agentv_ci.contracts.outcome_evaluators import StateEvaluator as StateEvaluator
    from agentv_ci.contracts.similarity_evaluator import SimilarityEvaluator as SimilarityEvaluator
    from agentv_ci.contracts.structured_evaluators import ComparedField as ComparedField
    from agentv_ci.contracts.structured_evaluators import FieldAccuracyEvaluator as FieldAccuracyEvaluator
    from agentv_ci.contracts.structured_evaluators import IsJsonEvaluator as IsJsonEvaluator
    from agentv_ci.contracts.structured_evaluators import SchemaEvaluator as SchemaEvaluator
    from agentv_ci.contracts.text_evaluators import ContainsAllEvaluator as ContainsAllEvaluator
    from agentv_ci.contracts.text_evaluators import ContainsAnyEvaluator as ContainsAnyEvaluator
    from agentv_ci.contracts.text_evaluators import ContainsEvaluator as ContainsEvaluator
    from agentv_ci.contracts.text_evaluators import EndsWithEvaluator as EndsWithEvaluator
    from agentv_ci.contracts.text_evaluators import EqualsEvaluator as EqualsEvaluator
    from agentv_ci.contracts.text_evaluators import RegexEvaluator as RegexEvaluator
    from agentv_ci.contracts.text_evaluators import StartsWithEvaluator as StartsWithEvaluator
    from agentv_ci.contracts.text_evaluators import TextEvaluator as TextEvaluator
    from agentv_ci.contracts.tool_evaluators import ExpectedCall as ExpectedCall
    from agentv_ci.contracts.tool_evaluators import ToolTrajectoryEvaluator as ToolTrajectoryEvaluator
else:
    CodeEvaluator = later("CodeEvaluator", "code_evaluator", "code", "code_judge")
    CodeAggregator = later("CodeAggregator", "composite_evaluator")
    CompositeEvaluator = later("CompositeEvaluator", "composite_evaluator", "composite")
    LlmJudgeAggregator = later("LlmJudgeAggregator", "composite_evaluator")
    WeightedAverage = later("WeightedAverage", "composite_evaluator")
    LlmJudgeEvaluator = later("LlmJudgeEvaluator", "judge_evaluators", "llm_judge")
    RubricEvaluator = later("RubricEvaluator", "judge_evaluators", "rubric")
    CostEvaluator = later("CostEvaluator", "limit_evaluators", "cost")
    LatencyEvaluator = later("LatencyEvaluator", "limit_evaluators", "latency")
    TokenUsageEvaluator = later("TokenUsageEvaluator", "limit_evaluators", "token_usage")
    ToolCallsEvaluator = later("ToolCallsEvaluator", "limit_evaluators", "tool_calls")
    CommandEvaluator = later("CommandEvaluator", "outcome_evaluators", "command")
    DiffEvaluator = later("DiffEvaluator", "outcome_evaluators", "diff")
    FileEvaluator = later("FileEvaluator", "outcome_evaluators", "file")
    JunitEvaluator = later("JunitEvaluator", "outcome_evaluators", "junit")
    StateEvaluator = later("StateEvaluator", "outcome_evaluators", "state")
    SimilarityEvaluator = later("SimilarityEvaluator", "similarity_evaluator", "similarity")
    ComparedField = later("ComparedField", "structured_evaluators")
    FieldAccuracyEvaluator = later("FieldAccuracyEvaluator", "structured_evaluators", "field_accuracy")
    IsJsonEvaluator = later("IsJsonEvaluator", "structured_evaluators", "is_json")
    SchemaEvaluator = later("SchemaEvaluator", "structured_evaluators", "schema")
    ContainsAllEvaluator = later("ContainsAllEvaluator", "text_evaluators", "contains_all")
    ContainsAnyEvaluator = later("ContainsAnyEvaluator", "text_evaluators", "contains_any")
    ContainsEvaluator = later("ContainsEvaluator", "text_evaluators", "contains")
    EndsWithEvaluator = later("EndsWithEvaluator", "text_evaluators", "ends_with")
    EqualsEvaluator = later("EqualsEvaluator", "text_evaluators", "equals")
    RegexEvaluator = later("RegexEvaluator", "text_evaluators", "regex")
    StartsWithEvaluator = later("StartsWithEvaluator", "text_evaluators", "starts_with")
    TextEvaluator = later("TextEvaluator", "text_evaluators")
    ExpectedCall = later("ExpectedCall", "tool_evaluators")
    ToolTrajectoryEvaluator = later("ToolTrajectoryEvaluator", "tool_evaluators", "tool_trajectory")

PROMPT_SUFFIXES = (".md", ".txt", ".j2")
SCRIPT_SUFFIXES = (".py", ".js", ".mjs", ".sh")

PROMPT_VARIABLES = (
    "candidate_answer",
    "expected_messages",
    "question",
    "expected_outcome",
    "reference_answer",
    "input_messages",
    "output_messages",
    "request",
    "generated_answer",
)
"""Variables of a judge's prompt."""
AGGREGATOR_VARIABLES = ("evaluator_results", "EVALUATOR_RESULTS_JSON", *PROMPT_VARIABLES)
"""Variables of an aggregator's prompt."""


def looks_like_path(word: str, suffixes: tuple[str, ...]) -> bool:
    """Whether a word of a document is a path, and no text or command."""
    return "\n" not in word and (word.startswith(("./", "../", "/")) or word.endswith(suffixes))


def prompt_path(prompt: str | None) -> str | None:
    """Return the path in `prompt`; None if it is the text itself."""
    return prompt if prompt is not None and looks_like_path(prompt, PROMPT_SUFFIXES) else None


class RubricItem(Authored):
    """A criterion that an answer meets or not."""

    id: Maybe[Name] = Field(None, description="Id, unique in the list; default: rubric-1, rubric-2 …")
    description: Name = Field(description="What must be true of the answer.")
    weight: float = Field(1.0, ge=0, description="Weight in the score.")
    required: bool = Field(True, description="Whether the case fails if this is not met, regardless of the score.")


Rubrics = Annotated[Items[Name | RubricItem], Field(min_length=1)]

RUBRICS_NAME = "rubrics"
"""Name of the evaluator for a case's `rubrics`."""


def rubric_items(rubrics: tuple[str | RubricItem, ...]) -> tuple[RubricItem, ...]:
    """Return criteria as objects with ids."""
    items = (RubricItem(description=each) if isinstance(each, str) else each for each in rubrics)
    return tuple(
        item if item.id is not None else item.model_copy(update={"id": f"rubric-{number}"})
        for number, item in enumerate(items, 1)
    )


AnyEvaluator = TypeVar("AnyEvaluator", bound=EvaluatorSettings)


def named(evaluators: tuple[AnyEvaluator, ...]) -> tuple[AnyEvaluator, ...]:
    """Return evaluators of which those without a name are called by their type, made unique: contains, contains-2."""
    if all(each.is_named for each in evaluators):
        return evaluators
    taken = {each.name for each in evaluators if each.is_named}
    free: dict[str, Iterator[str]] = {}

    def with_name(evaluator: AnyEvaluator) -> AnyEvaluator:
        names = free.setdefault(evaluator.kind, (name for name in numbered(evaluator.kind) if name not in taken))
        renamed = evaluator.model_copy(update={"name": next(names)})
        renamed.model_fields_set.discard("name")
        return renamed

    return tuple(each if each.is_named else with_name(each) for each in evaluators)


def numbered(kind: str) -> Iterator[str]:
    """Yield the names of evaluators of a type: contains, contains-2 and so on."""
    yield kind
    yield from (f"{kind}-{number}" for number in count(2))


FIELD_PATH = r"^(\[[0-9]{1,9}\]|[^.\[\]]+)(\[[0-9]{1,9}\]|\.[^.\[\]]+)*$"
_STEP = re.compile(r"\[(?P<position>[0-9]+)\]|\.?(?P<key>[^.\[\]]+)")


def field_steps(path: str) -> tuple[str | int, ...]:
    """Return the keys and positions of a path such as `a.b[0].c`."""
    return tuple(int(step["position"]) if step["position"] else step["key"] for step in _STEP.finditer(path))


PACKAGE_HINT = "python -m pip install sacrebleu, or install agentv-ci with the extra 'bleu'"


class PluginEvaluator(EvaluatorSettings):
    """A way to score that an installed package provides."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": True})
    gathers_settings: ClassVar[bool] = True
    waits: ClassVar[bool] = True
    reads_trace: ClassVar[bool] = True

    type: PluginName = Field(description="Score with a plugin: its name, such as acme/politeness.")
    settings: JsonObject = Field(
        default_factory=dict, description="Settings of the plugin; they may also stand beside `type`."
    )
    version: Maybe[Name] = Field(None, description="Version of the plugin's package that must be installed.")

    @property
    def kind(self) -> str:
        """The name of the plugin."""
        return self.type


EmbeddedEvaluator: TypeAlias = (
    ToolTrajectoryEvaluator
    | ContainsEvaluator
    | ContainsAnyEvaluator
    | ContainsAllEvaluator
    | EqualsEvaluator
    | RegexEvaluator
    | StartsWithEvaluator
    | EndsWithEvaluator
    | IsJsonEvaluator
    | FieldAccuracyEvaluator
    | SimilarityEvaluator
    | LatencyEvaluator
    | CostEvaluator
    | TokenUsageEvaluator
    | ToolCallsEvaluator
    | FileEvaluator
    | StateEvaluator
)
"""Evaluators that the plan contains as written: they need no file and no judge."""

AuthoredEvaluator = TypeAliasType(
    "AuthoredEvaluator",
    Annotated[
        Annotated[
            CodeEvaluator
            | LlmJudgeEvaluator
            | RubricEvaluator
            | CompositeEvaluator
            | SchemaEvaluator
            | EmbeddedEvaluator
            | DiffEvaluator
            | CommandEvaluator
            | JunitEvaluator,
            Field(discriminator="type"),
        ]
        | PluginEvaluator,
        Field(union_mode="left_to_right"),
    ],
)

Evaluators = Annotated[Items[Annotated[AuthoredEvaluator, ByKind("type")]], AfterValidator(named)]
