"""Evaluators that differ in the plan from what authors write."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.base import Compiled, Integer, Items, JsonObject, Name, NonNegative, Positive, Share
from agentv_ci.contracts.evaluator_settings import SCALE, Scale, Texts
from agentv_ci.contracts.plan import FileReference, PlanEvaluators, PlanEvaluatorSettings, Prompt
from agentv_ci.contracts.workspaces import Argv, Globs, RelativePath


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
    cwd: str | None = Field(None, description="Working directory; default: the folder of the suite.")
    timeout_seconds: Positive | None = Field(None, description="Time limit, in seconds; default: the case's timeout.")
    config: JsonObject = Field(default_factory=dict, description="Passed to the script as `config`.")


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
    evaluators: PlanEvaluators = Field(description="Combined evaluators.")
    aggregator: PlanAggregator = Field(description="How the scores are combined.")


class PlanDiffEvaluator(PlanEvaluatorSettings):
    """Which files of the workspace have changed."""

    waits: ClassVar[bool] = True
    needs_workspace: ClassVar[bool] = True

    type: Literal["diff"] = "diff"
    may_change: Globs | None = Field(None, description="Globs of the paths that may change; no other path may.")
    must_change: Globs | None = Field(None, description="Globs, each of which a changed path must match.")
    must_not_change: Globs | None = Field(None, description="Globs of paths that must not change.")
    max_files: NonNegative | None = Field(None, description="Maximum number of changed files.")
    max_lines: NonNegative | None = Field(None, description="Maximum number of added and removed lines.")
    golden: FileReference | None = Field(None, description="Patch that says how the changed files must be.")


class _PlanCommandSettings(PlanEvaluatorSettings):
    waits: ClassVar[bool] = True
    needs_workspace: ClassVar[bool] = True

    argv: Argv = Field(description="Program and arguments; it starts in the graded tree.")
    files: dict[RelativePath, FileReference] = Field(
        default_factory=dict, description="Files that the agent never sees and that replace its own."
    )
    timeout_seconds: Positive | None = Field(None, description="Time limit, in seconds; default: the case's timeout.")


class PlanCommandEvaluator(_PlanCommandSettings):
    """A command in a clean tree with the agent's changes."""

    type: Literal["command"] = "command"
    exit_code: Integer = Field(0, description="Expected exit code.")
    contains: Texts | None = Field(None, description="Texts that its standard output must contain.")
    regex: Name | None = Field(None, description="Regular expression that must match somewhere in standard output.")
    equals: str | None = Field(None, description="Its whole standard output.")


class PlanJunitEvaluator(_PlanCommandSettings):
    """Tests in a clean tree with the agent's changes."""

    type: Literal["junit"] = "junit"
    report: RelativePath = Field("junit.xml", description="The JUnit XML file that the command writes.")
    fail_to_pass: Texts | None = Field(None, description="Tests that fail without the agent's changes.")
    pass_to_pass: Texts | None = Field(None, description="Tests that pass without the agent's changes.")
