"""Evaluators in eval files: those that run a script, combine others or are plugins.

And the union of all.
"""

import shlex
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field
from typing_extensions import TypeAliasType

from agentv_ci.contracts.answer_evaluators import (
    ContainsAllEvaluator,
    ContainsAnyEvaluator,
    ContainsEvaluator,
    EndsWithEvaluator,
    EqualsEvaluator,
    FieldAccuracyEvaluator,
    IsJsonEvaluator,
    RegexEvaluator,
    SchemaEvaluator,
    SimilarityEvaluator,
    StartsWithEvaluator,
)
from agentv_ci.contracts.base import (
    Authored,
    ByKind,
    Items,
    JsonObject,
    Maybe,
    Name,
    PluginName,
    Positive,
)
from agentv_ci.contracts.evaluator_settings import (
    SCALE,
    EvaluatorSettings,
    Scale,
    looks_like_path,
    named,
)
from agentv_ci.contracts.judge_evaluators import (
    LlmJudgeEvaluator,
    RubricEvaluator,
)
from agentv_ci.contracts.outcome_evaluators import (
    CommandEvaluator,
    DiffEvaluator,
    FileEvaluator,
    JunitEvaluator,
    StateEvaluator,
)
from agentv_ci.contracts.trace_evaluators import (
    CostEvaluator,
    LatencyEvaluator,
    TokenUsageEvaluator,
    ToolCallsEvaluator,
    ToolTrajectoryEvaluator,
)

SCRIPT_SUFFIXES = (".py", ".js", ".mjs", ".sh")


class Script(Authored):
    """A command: a text or a list of arguments."""

    script: Name | Annotated[Items[str], Field(min_length=1)] = Field(
        description="A script path, a shell command or a list of arguments; paths are relative to "
        "this file."
    )

    @property
    def words(self) -> tuple[str, ...]:
        """The command as a list of arguments."""
        return tuple(shlex.split(self.script)) if isinstance(self.script, str) else self.script

    @property
    def script_path(self) -> str | None:
        """The path of the script, if any: the first word of a text, or any word of a list.

        An absolute path is not a script of the repository.
        """
        candidates = (
            self.script.split(maxsplit=1)[:1] if isinstance(self.script, str) else self.script
        )
        found = (
            word
            for word in candidates
            if looks_like_path(word, SCRIPT_SUFFIXES) and not word.startswith("/")
        )
        return next(found, None)

    @property
    def program(self) -> str | None:
        """The absolute path of the program, if it is one."""
        first = (
            self.script.split(maxsplit=1)[0]
            if isinstance(self.script, str) and self.script.strip()
            else ""
        )
        first = first if isinstance(self.script, str) else self.script[0]
        return first if first.startswith("/") else None


class CodeEvaluator(Script, EvaluatorSettings):
    """A script that reads the case as JSON on stdin and prints a score as JSON on stdout."""

    short_field: ClassVar[str | None] = "script"
    older_kinds: ClassVar[frozenset[str]] = frozenset({"code_judge"})

    type: Literal["code", "code_judge"] = Field(description="Score with a script.")
    cwd: Maybe[Name] = Field(
        None, description="Working directory; default: the folder of this file."
    )
    timeout_seconds: Maybe[Positive] = Field(
        None, description="Time limit, in seconds; default: the case's timeout."
    )
    config: JsonObject = Field(
        default_factory=dict, description="Passed to the script as `config`."
    )
    files: Items[Name] = Field(
        (), description="Other files that the script needs; part of the case's digest."
    )


class WeightedAverage(Authored):
    """The weighted mean of the members."""

    type: Literal["weighted_average"] = Field(description="Use the weighted mean.")
    weights: Maybe[dict[str, Annotated[float, Field(ge=0)]]] = Field(
        None, description="Member → weight; default: the members' own weights."
    )


class CodeAggregator(Script):
    """A script that reads the members' scores as JSON, `{"results": …}`, and prints one score as JSON."""

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {"script": ("path",)}

    older_kinds: ClassVar[frozenset[str]] = frozenset({"code_judge"})

    type: Literal["code", "code_judge"] = Field(description="Use a script.")


class LlmJudgeAggregator(Authored):
    """A judge that combines the members' scores."""

    type: Literal["llm_judge"] = Field(description="Use a model.")
    prompt: Maybe[Name] = Field(
        None, description="Prompt or path; {{ evaluator_results }} has the members' scores."
    )
    scale: Maybe[Scale] = Field(None, description=SCALE, examples=[[1, 5], [0, 100]])


Aggregator = Annotated[
    WeightedAverage | CodeAggregator | LlmJudgeAggregator, Field(discriminator="type")
]


class CompositeEvaluator(EvaluatorSettings):
    """Several evaluators combined into one score."""

    type: Literal["composite"] = Field(description="Combine several evaluators.")
    evaluators: Annotated[
        Items[Annotated["AuthoredEvaluator", ByKind("type")]],
        Field(min_length=1),
        AfterValidator(named),
    ] = Field(description="Evaluators to combine.")
    aggregator: Maybe[Aggregator] = Field(
        None, description="How to combine the scores; default: weighted_average."
    )


class PluginEvaluator(EvaluatorSettings):
    """A way to score that an installed package provides."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": True})
    gathers_settings: ClassVar[bool] = True
    waits: ClassVar[bool] = True
    reads_trace: ClassVar[bool] = True

    type: PluginName = Field(description="Score with a plugin: its name, such as acme/politeness.")
    settings: JsonObject = Field(
        default_factory=dict,
        description="Settings of the plugin; they may also stand beside `type`.",
    )
    version: Maybe[Name] = Field(
        None, description="Version of the plugin's package that must be installed."
    )

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
