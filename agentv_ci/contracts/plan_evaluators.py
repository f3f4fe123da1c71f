"""Evaluators of the plan: those that differ from what authors write, and the union of all."""

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from agentv_ci.contracts.base import (
    ByKind,
    Compiled,
    Integer,
    Items,
    JsonObject,
    Name,
    NonNegative,
    Positive,
    Share,
)
from agentv_ci.contracts.evaluator_settings import SCALE, EvaluatorFacts, Scale, Texts
from agentv_ci.contracts.evaluators import EmbeddedEvaluator, PluginEvaluator
from agentv_ci.contracts.plan_parts import FileReference, Prompt
from agentv_ci.contracts.workspaces import Argv, Globs, RelativePath


class PlanEvaluatorSettings(EvaluatorFacts, Compiled):
    """Settings of every evaluator."""

    name: Name = Field(description="Name in the results.")
    weight: float = Field(1.0, ge=0, description="Weight in the score of the case.")
    required: bool = Field(
        False,
        description="Whether the trial fails if this evaluator does not pass, whatever the score.",
    )
    min_score: Share | None = Field(
        None, description="Minimum score to pass; default: the case's threshold."
    )
    negate: bool = Field(False, description="Use 1 − score.")


class PlanRubric(Compiled):
    """A criterion that an answer meets or not."""

    id: Name = Field(description="Id, unique in the list.")
    description: Name = Field(description="What must be true of the answer.")
    weight: float = Field(1.0, ge=0, description="Weight in the score.")
    required: bool = Field(
        True, description="Whether the case fails if this is not met, regardless of the score."
    )


class PlanLlmJudgeEvaluator(PlanEvaluatorSettings):
    """A judge."""

    waits: ClassVar[bool] = True

    type: Literal["llm_judge"] = "llm_judge"
    prompt: Prompt | None = Field(None, description="Custom prompt; default: the built-in prompt.")
    rubrics: Items[PlanRubric] | None = Field(
        None, description="Criteria that the judge checks one by one."
    )
    target: str = Field(description="Key of the target that judges.")
    judge_retries: NonNegative = Field(2, description="Retries after an invalid reply.")
    temperature: float | None = Field(None, description="Sampling temperature of the judge.")
    max_output_tokens: Integer | None = Field(None, description="Token limit of the judge's reply.")
    scale: Scale | None = Field(None, description=SCALE)


class PlanRubricEvaluator(PlanEvaluatorSettings):
    """Criteria that a judge checks one by one."""

    waits: ClassVar[bool] = True

    type: Literal["rubric"] = "rubric"
    rubrics: Items[PlanRubric] = Field(description="Criteria.")
    target: str = Field(description="Key of the target that judges.")
    judge_retries: NonNegative = Field(2, description="Retries after an invalid reply.")


class PlanScript(Compiled):
    """A command with its files."""

    argv: Annotated[Items[str], Field(min_length=1)] | None = Field(
        None, description="Program and arguments; a path in `files` refers to that file."
    )
    command: str | None = Field(None, description="Shell command instead of `argv`.")
    files: Items[FileReference] = Field((), description="The script and its other files.")


class PlanCodeEvaluator(PlanScript, PlanEvaluatorSettings):
    """A script that scores."""

    waits: ClassVar[bool] = True
    reads_trace: ClassVar[bool] = True

    type: Literal["code"] = "code"
    cwd: str | None = Field(
        None, description="Working directory; default: the folder of the suite."
    )
    timeout_seconds: Positive | None = Field(
        None, description="Time limit, in seconds; default: the case's timeout."
    )
    config: JsonObject = Field(
        default_factory=dict, description="Passed to the script as `config`."
    )


class PlanPairwiseJudgeEvaluator(PlanEvaluatorSettings):
    """A judge that says which of the answers of two arms is better; it does not count in the score of the case."""

    waits: ClassVar[bool] = True

    type: Literal["pairwise_judge"] = "pairwise_judge"
    weight: float = Field(0.0, ge=0, description="Weight in the score of the case: none.")
    min_score: Share | None = Field(0.0, description="Minimum score to pass: any.")
    base: str = Field(description="Arm that all others are compared with.")
    target: str = Field(description="Key of the target that judges.")
    judge_retries: NonNegative = Field(2, description="Retries after an invalid reply.")
    temperature: float | None = Field(None, description="Sampling temperature of the judge.")
    max_output_tokens: Integer | None = Field(None, description="Token limit of the judge's reply.")


class PlanSchemaEvaluator(PlanEvaluatorSettings):
    """A bundled JSON Schema, without references to other files."""

    waits: ClassVar[bool] = True

    type: Literal["schema"] = "schema"
    schema_: JsonObject | bool = Field(alias="schema", description="Bundled schema.")
    format: Literal["json", "yaml"] = Field(description="Format of the answer.")


class PlanWeightedAverage(Compiled):
    """The weighted mean of the members."""

    type: Literal["weighted_average"] = "weighted_average"
    weights: dict[str, float] = Field(description="Member → weight, for all members.")


class PlanCodeAggregator(PlanScript):
    """A script that combines the members' scores; runs in the folder of the suite."""

    type: Literal["code"] = "code"


class PlanLlmJudgeAggregator(Compiled):
    """A judge that combines the members' scores."""

    type: Literal["llm_judge"] = "llm_judge"
    prompt: Prompt | None = Field(None, description="Custom prompt; default: the built-in prompt.")
    target: str = Field(description="Key of the target that judges.")
    scale: Scale | None = Field(None, description=SCALE)


PlanAggregator = Annotated[
    PlanWeightedAverage | PlanCodeAggregator | PlanLlmJudgeAggregator, Field(discriminator="type")
]


class PlanCompositeEvaluator(PlanEvaluatorSettings):
    """Several evaluators combined into one score."""

    waits: ClassVar[bool] = True

    type: Literal["composite"] = "composite"
    evaluators: "PlanEvaluators" = Field(description="Combined evaluators.")
    aggregator: PlanAggregator = Field(description="How the scores are combined.")


class PlanDiffEvaluator(PlanEvaluatorSettings):
    """Which files of the workspace have changed."""

    waits: ClassVar[bool] = True
    needs_workspace: ClassVar[bool] = True

    type: Literal["diff"] = "diff"
    may_change: Globs | None = Field(
        None, description="Globs of the paths that may change; no other path may."
    )
    must_change: Globs | None = Field(
        None, description="Globs, each of which a changed path must match."
    )
    must_not_change: Globs | None = Field(None, description="Globs of paths that must not change.")
    max_files: NonNegative | None = Field(None, description="Maximum number of changed files.")
    max_lines: NonNegative | None = Field(
        None, description="Maximum number of added and removed lines."
    )
    golden: FileReference | None = Field(
        None, description="Patch that says how the changed files must be."
    )


class _PlanCommandSettings(PlanEvaluatorSettings):
    waits: ClassVar[bool] = True
    needs_workspace: ClassVar[bool] = True

    argv: Argv = Field(description="Program and arguments; it starts in the graded tree.")
    files: dict[RelativePath, FileReference] = Field(
        default_factory=dict,
        description="Files that the agent never sees and that replace its own.",
    )
    timeout_seconds: Positive | None = Field(
        None, description="Time limit, in seconds; default: the case's timeout."
    )


class PlanCommandEvaluator(_PlanCommandSettings):
    """A command in a clean tree with the agent's changes."""

    type: Literal["command"] = "command"
    exit_code: Integer = Field(0, description="Expected exit code.")
    contains: Texts | None = Field(None, description="Texts that its standard output must contain.")
    regex: Name | None = Field(
        None, description="Regular expression that must match somewhere in standard output."
    )
    equals: str | None = Field(None, description="Its whole standard output.")


class PlanJunitEvaluator(_PlanCommandSettings):
    """Tests in a clean tree with the agent's changes."""

    type: Literal["junit"] = "junit"
    report: RelativePath = Field(
        "junit.xml", description="The JUnit XML file that the command writes."
    )
    fail_to_pass: Texts | None = Field(
        None, description="Tests that fail without the agent's changes."
    )
    pass_to_pass: Texts | None = Field(
        None, description="Tests that pass without the agent's changes."
    )


def _with_name(evaluator: EvaluatorFacts) -> EvaluatorFacts:
    """Refuse an evaluator that documents may embed, but plans may not."""
    if not getattr(evaluator, "name", None):
        raise PydanticCustomError("missing", "Field 'name' is required")
    return evaluator


PlanEvaluator = TypeAliasType(
    "PlanEvaluator",
    Annotated[
        Annotated[
            PlanCodeEvaluator
            | PlanLlmJudgeEvaluator
            | PlanRubricEvaluator
            | PlanPairwiseJudgeEvaluator
            | PlanCompositeEvaluator
            | PlanSchemaEvaluator
            | EmbeddedEvaluator
            | PlanDiffEvaluator
            | PlanCommandEvaluator
            | PlanJunitEvaluator,
            Field(discriminator="type"),
        ]
        | PluginEvaluator,
        Field(union_mode="left_to_right"),
    ],
)
PlanEvaluators = Annotated[
    Items[Annotated[PlanEvaluator, ByKind("type", authored=False), AfterValidator(_with_name)]],
    Field(min_length=1),
]

JUDGED = (
    PlanLlmJudgeEvaluator,
    PlanRubricEvaluator,
    PlanPairwiseJudgeEvaluator,
    PlanLlmJudgeAggregator,
)
"""What a judge scores."""


def flat(evaluators: Iterable[PlanEvaluator]) -> Iterator[PlanEvaluator]:
    """Yield evaluators, each followed by its members."""
    for evaluator in evaluators:
        yield evaluator
        if isinstance(evaluator, PlanCompositeEvaluator):
            yield from flat(evaluator.evaluators)


def needs_judge(evaluator: PlanEvaluator) -> bool:
    """Whether a judge scores, or scores for a member."""
    return any(isinstance(part, JUDGED) for part in scoring_parts([evaluator]))


def scoring_parts(evaluators: Iterable[PlanEvaluator]) -> Iterator[PlanEvaluator | PlanAggregator]:
    """Yield all that scores: evaluators, members and aggregators."""
    for evaluator in flat(evaluators):
        yield evaluator
        if isinstance(evaluator, PlanCompositeEvaluator):
            yield evaluator.aggregator
