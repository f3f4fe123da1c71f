"""The experiment: a comparison of arms that is planned, run and stopped."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentv_ci.contracts.base import AtLeastOne, Authored, Integer, Items, Maybe, Name, NonNegative
from agentv_ci.contracts.judge_evaluators import prompt_path
from agentv_ci.contracts.source import EXPERIMENT_SCHEMA, Pointer

MEASURES = ("score", "pass", "cost", "tokens", "duration")
"""Metrics that every run has; others are names of evaluators."""
DETECT = 0.1
"""The change that an experiment is made to find, unless it names another one."""
CLUSTERS = r"^(case|suite|meta\..+|tag:.+)$"

Chance = Annotated[float, Field(gt=0, lt=1)]


class Arm(Authored):
    """One of the variants that an experiment compares: what it changes, and nothing else, differs."""

    name: Name = Field(description="Name in rows and reports, unique in the file.")
    target: Maybe[Name] = Field(
        None, description="Target that answers; default: that of each case."
    )
    system_prompt: Maybe[Name] = Field(
        None,
        description="System prompt of model APIs, instead of any other: a text, a path, or `none`.",
    )
    guidelines: Maybe[Items[Name]] = Field(
        None, description="Paths of guidelines, in addition to those of each case."
    )
    files: Maybe[dict[Name, Name]] = Field(
        None,
        description="Path of a file → path of the file that is used in its place.",
        examples=[{"a.md": "b.md"}],
    )
    env: Maybe[dict[str, str]] = Field(
        None, description="Environment variables of the command or agent."
    )
    ref: Maybe[Name] = Field(
        None,
        description="Branch, tag or commit whose files are used: those of questions, the targets "
        "and the agent.",
    )

    @property
    def system_prompt_file(self) -> str | None:
        """The path of the system prompt; None if it is inline."""
        return prompt_path(self.system_prompt)

    @property
    def references(self) -> Iterator[tuple[Pointer, str]]:
        """The files that it names, each with its place in the arm."""
        if self.system_prompt_file is not None:
            yield ("system_prompt",), self.system_prompt_file
        yield from (
            (("guidelines", number), path) for number, path in enumerate(self.guidelines or ())
        )
        yield from ((("files", path), content) for path, content in (self.files or {}).items())


class PairwiseJudge(Authored):
    """A judge that says which of the answers of two arms is better; its name is a metric."""

    name: Name = Field(
        "pairwise_judge", description="Name in metrics and results, unique in the file."
    )
    type: Literal["pairwise_judge"] = Field(
        description="Let a model choose between the answers of two arms."
    )
    judge_target: Name = Field(description="Target that judges all arms.")
    judge_retries: NonNegative = Field(2, description="Retries after an invalid reply.")
    temperature: Maybe[Annotated[float, Field(ge=0)]] = Field(
        None, description="Sampling temperature of the judge."
    )
    max_output_tokens: Maybe[AtLeastOne] = Field(
        None, description="Token limit of the judge's reply."
    )


class StopRule(Authored):
    """When an experiment stops before its last trial."""

    when: Literal["decided"] = Field(
        "decided", description="`decided`: stop once the verdict is clear."
    )
    look_every: Maybe[AtLeastOne] = Field(
        None,
        description="Pairs of trials between two looks at the results; default: a fifth of the "
        "cases.",
    )


class ExperimentDocument(Authored):
    """A comparison of arms over the same cases."""

    free_keys: ClassVar[bool] = True

    schema_: Maybe[str] = Field(
        None,
        alias="$schema",
        description=f"`{EXPERIMENT_SCHEMA}` or the schema's $id.",
        examples=[EXPERIMENT_SCHEMA],
    )
    description: Maybe[str] = Field(None, description="Description of the experiment.")
    arms: Annotated[Items[Arm], Field(min_length=2)] = Field(description="The variants.")
    base: Maybe[Name] = Field(
        None, description="Arm that the others are compared with; default: the first."
    )
    evals: Annotated[Items[Name], Field(min_length=1)] = Field(
        description="Eval files, folders and globs, relative to this file."
    )
    evaluators: Maybe[Items[PairwiseJudge]] = Field(
        None,
        description="Evaluators that compare the answers of two arms, in addition to those of the "
        "cases.",
        examples=[[{"name": "preferred", "type": "pairwise_judge", "judge_target": "judge"}]],
    )
    metrics: Maybe[Annotated[Items[Name], Field(min_length=1)]] = Field(
        None,
        description="What is compared: score, pass, cost, tokens, duration, or an evaluator; "
        "default: the primary one. Those of `evaluators` always are.",
        examples=[["score", "cost"]],
    )
    primary: Maybe[Name] = Field(
        None, description="Metric that decides; default: the first, else score."
    )
    margin: Maybe[dict[Name, Chance]] = Field(
        None,
        description="Metric → change that does not matter: of scores and pass rates absolute, of "
        "others a share.",
        examples=[{"score": 0.05, "cost": 0.1}],
    )
    detect: Maybe[dict[Name, Chance]] = Field(
        None,
        description="Metric → change that it is made to find, like those of `margin`; default "
        f"{DETECT} each.",
        examples=[{"score": 0.1}],
    )
    alpha: Chance = Field(0.05, description="Chance of a wrong verdict, over all metrics and arms.")
    power: Chance = Field(
        0.8, description="Chance to find a change that `compile --power` plans for."
    )
    cluster_by: Annotated[str, Field(pattern=CLUSTERS)] = Field(
        "case",
        description="What belongs together: case, suite, meta.KEY, or tag:GLOB.",
        examples=["meta.customer"],
    )
    repeat: Maybe[AtLeastOne] = Field(
        None, description="Trials per case and arm; default: those of the eval files."
    )
    seed: Integer = Field(0, description="Seed of the order in which cases and arms run.")
    stop: Maybe[StopRule] = Field(None, description="When it stops early; default: never.")
    max_cost_usd: Maybe[Annotated[float, Field(ge=0)]] = Field(
        None, description="Maximum cost of the experiment, including judges."
    )

    @property
    def base_name(self) -> str:
        """The arm that the others are compared with."""
        return self.base or self.arms[0].name

    @property
    def primary_metric(self) -> str:
        """The metric that decides."""
        return self.primary or (self.metrics[0] if self.metrics else "score")

    @property
    def all_metrics(self) -> tuple[str, ...]:
        """The metrics that are compared, the primary one first."""
        return tuple(dict.fromkeys((self.primary_metric, *(self.metrics or ()), *self.preferences)))

    @property
    def preferences(self) -> tuple[str, ...]:
        """The metrics that are preferences between the answers of two arms."""
        return tuple(evaluator.name for evaluator in self.evaluators or ())
