"""Evaluators in eval files: one class per `type`."""

import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, ConfigDict, Field
from typing_extensions import TypeAliasType

from agentv_ci.contracts.base import (
    AtLeastOne,
    Authored,
    ByKind,
    Items,
    JsonObject,
    JsonValue,
    Maybe,
    Name,
    NonNegative,
    PluginName,
    Positive,
    meanings,
)
from agentv_ci.contracts.evaluator_settings import EvaluatorSettings, Measure
from agentv_ci.contracts.outcome_evaluators import (
    CommandEvaluator,
    DiffEvaluator,
    FileEvaluator,
    JunitEvaluator,
    StateEvaluator,
)

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


def _looks_like_path(word: str, suffixes: tuple[str, ...]) -> bool:
    return "\n" not in word and (word.startswith(("./", "../", "/")) or word.endswith(suffixes))


def prompt_path(prompt: str | None) -> str | None:
    """Return the path in `prompt`; None if it is the text itself."""
    return prompt if prompt is not None and _looks_like_path(prompt, PROMPT_SUFFIXES) else None


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


class Script(Authored):
    """A command: a text or a list of arguments."""

    script: Name | Annotated[Items[str], Field(min_length=1)] = Field(
        description="A script path, a shell command or a list of arguments; paths are relative to this file."
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
        candidates = self.script.split(maxsplit=1)[:1] if isinstance(self.script, str) else self.script
        found = (word for word in candidates if _looks_like_path(word, SCRIPT_SUFFIXES) and not word.startswith("/"))
        return next(found, None)

    @property
    def program(self) -> str | None:
        """The absolute path of the program, if it is one."""
        first = self.script.split(maxsplit=1)[0] if isinstance(self.script, str) and self.script.strip() else ""
        first = first if isinstance(self.script, str) else self.script[0]
        return first if first.startswith("/") else None


class CodeEvaluator(Script, EvaluatorSettings):
    """A script that reads the case as JSON on stdin and prints a score as JSON on stdout."""

    short_field: ClassVar[str | None] = "script"
    older_kinds: ClassVar[frozenset[str]] = frozenset({"code_judge"})

    type: Literal["code", "code_judge"] = Field(description="Score with a script.")
    cwd: Maybe[Name] = Field(None, description="Working directory; default: the folder of this file.")
    timeout_seconds: Maybe[Positive] = Field(None, description="Time limit, in seconds; default: the case's timeout.")
    config: JsonObject = Field(default_factory=dict, description="Passed to the script as `config`.")
    files: Items[Name] = Field((), description="Other files that the script needs; part of the case's digest.")


class LlmJudgeEvaluator(EvaluatorSettings):
    """A judge that replies with a score as JSON."""

    short_field: ClassVar[str | None] = "prompt"
    stands_alone: ClassVar[bool] = True

    type: Literal["llm_judge"] = Field(description="Score with a model.")
    prompt: Maybe[Name] = Field(None, description="Prompt of the judge, or a path to it.")
    prompt_path: Maybe[Name] = Field(None, description="Path to the prompt of the judge.")
    rubrics: Maybe[Rubrics] = Field(None, description="Criteria that the judge checks one by one.")
    judge_target: Maybe[Name] = Field(None, description="Judge target; default: that of the answering target.")
    judge_retries: NonNegative = Field(2, description="Retries after an invalid reply.")
    temperature: Maybe[Annotated[float, Field(ge=0)]] = Field(None, description="Sampling temperature of the judge.")
    max_output_tokens: Maybe[AtLeastOne] = Field(None, description="Token limit of the judge's reply.")

    @property
    def prompt_file(self) -> str | None:
        """The path of the prompt; None if it is inline."""
        return self.prompt_path or prompt_path(self.prompt)


class RubricEvaluator(EvaluatorSettings):
    """Criteria that a judge checks one by one."""

    short_field: ClassVar[str | None] = "rubrics"

    type: Literal["rubric"] = Field(description="Score with a list of criteria.")
    rubrics: Rubrics = Field(description="Criteria: texts, or objects with id, description, weight, required.")
    judge_target: Maybe[Name] = Field(None, description="Judge target; default: that of the answering target.")
    judge_retries: NonNegative = Field(2, description="Retries after an invalid reply.")


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
    prompt: Maybe[Name] = Field(None, description="Prompt or path; {{ evaluator_results }} has the members' scores.")


Aggregator = Annotated[WeightedAverage | CodeAggregator | LlmJudgeAggregator, Field(discriminator="type")]


class CompositeEvaluator(EvaluatorSettings):
    """Several evaluators combined into one score."""

    type: Literal["composite"] = Field(description="Combine several evaluators.")
    evaluators: Annotated[
        Items[Annotated["AuthoredEvaluator", ByKind("type")]], Field(min_length=1), AfterValidator(named)
    ] = Field(description="Evaluators to combine.")
    aggregator: Maybe[Aggregator] = Field(None, description="How to combine the scores; default: weighted_average.")


class TextEvaluator(EvaluatorSettings):
    """Settings of text evaluators."""

    case_sensitive: bool = Field(True, description="Whether the comparison is case-sensitive.")


class ContainsEvaluator(TextEvaluator):
    """Whether the answer contains a text."""

    short_field: ClassVar[str | None] = "value"

    type: Literal["contains"] = Field(description="Look for a text in the answer.")
    value: Name = Field(description="Text to find.")


class ContainsAnyEvaluator(TextEvaluator):
    """Whether the answer contains at least one of several texts."""

    short_field: ClassVar[str | None] = "value"

    type: Literal["contains_any"] = Field(description="Look for one of several texts in the answer.")
    value: Annotated[Items[Name], Field(min_length=1)] = Field(description="Texts to find.")


class ContainsAllEvaluator(TextEvaluator):
    """How many of several texts the answer contains."""

    short_field: ClassVar[str | None] = "value"

    type: Literal["contains_all"] = Field(description="Look for all of several texts in the answer.")
    value: Annotated[Items[Name], Field(min_length=1)] = Field(
        description="Texts to find; the score is the share found."
    )


class EqualsEvaluator(TextEvaluator):
    """Whether the answer equals a text, ignoring surrounding white space."""

    short_field: ClassVar[str | None] = "value"

    type: Literal["equals"] = Field(description="Compare the answer with a text.")
    value: str = Field(description="Text to compare with.")


class RegexEvaluator(TextEvaluator):
    """Whether a pattern matches somewhere in the answer."""

    short_field: ClassVar[str | None] = "value"
    waits: ClassVar[bool] = True

    type: Literal["regex"] = Field(description="Search the answer with a regular expression.")
    value: Name = Field(description="Regular expression in Python syntax.")


class StartsWithEvaluator(TextEvaluator):
    """Whether the answer starts with a text."""

    short_field: ClassVar[str | None] = "value"

    type: Literal["starts_with"] = Field(description="Check the start of the answer.")
    value: Name = Field(description="Text to find.")


class EndsWithEvaluator(TextEvaluator):
    """Whether the answer ends with a text."""

    short_field: ClassVar[str | None] = "value"

    type: Literal["ends_with"] = Field(description="Check the end of the answer.")
    value: Name = Field(description="Text to find.")


class IsJsonEvaluator(EvaluatorSettings):
    """Whether the answer is JSON."""

    stands_alone: ClassVar[bool] = True

    type: Literal["is_json"] = Field(description="Parse the answer as JSON.")


class SchemaEvaluator(EvaluatorSettings):
    """Whether the answer is valid JSON or YAML according to a JSON Schema."""

    short_field: ClassVar[str | None] = "schema_file"

    type: Literal["schema"] = Field(description="Check the answer against a JSON Schema.")
    schema_file: Maybe[Name] = Field(None, description="Path to the schema: a .json, .yaml or .yml file.")
    schema_inline: Maybe[JsonObject | bool] = Field(None, description="Inline schema.")
    format: Literal["json", "yaml"] = Field(
        "json",
        description="Format of the answer.",
        json_schema_extra=meanings(json="The answer is JSON.", yaml="The answer is YAML."),
    )


class ExpectedCall(Authored):
    """An expected tool call."""

    tool: Name = Field(description="Name of the tool.")
    input: JsonValue = Field(None, description="Expected arguments.")


class ToolTrajectoryEvaluator(EvaluatorSettings):
    """Whether the agent called the expected tools."""

    measures: ClassVar[Measure | None] = "tool_calls"
    reads_trace: ClassVar[bool] = True

    type: Literal["tool_trajectory"] = Field(description="Compare the tool calls with the expected ones.")
    mode: Literal["any_order", "in_order", "exact", "subset", "superset"] = Field(
        description="How to compare the calls with the expected ones.",
        json_schema_extra=meanings(
            any_order="Count the calls of each tool.",
            in_order="The expected calls occur in this order; others may be between them.",
            exact="The calls are the expected ones, in this order.",
            subset="Every call is an expected one.",
            superset="Every expected call occurs.",
        ),
    )
    minimums: Maybe[dict[str, NonNegative]] = Field(None, description="Minimum number of calls per tool (any_order).")
    expected: Maybe[Items[ExpectedCall]] = Field(None, description="Expected calls in order (all other modes).")
    args_match: Maybe[Literal["exact", "subset", "ignore"]] = Field(
        None,
        description="How to compare arguments; default: exact if `input` is given.",
        json_schema_extra=meanings(
            exact="The arguments are the expected ones.",
            subset="The expected arguments are among those of the call.",
            ignore="Arguments are not compared.",
        ),
    )


FIELD_PATH = r"^(\[[0-9]{1,9}\]|[^.\[\]]+)(\[[0-9]{1,9}\]|\.[^.\[\]]+)*$"
_STEP = re.compile(r"\[(?P<position>[0-9]+)\]|\.?(?P<key>[^.\[\]]+)")


def field_steps(path: str) -> tuple[str | int, ...]:
    """Return the keys and positions of a path such as `a.b[0].c`."""
    return tuple(int(step["position"]) if step["position"] else step["key"] for step in _STEP.finditer(path))


class ComparedField(Authored):
    """A field of a structured answer."""

    path: Annotated[str, Field(pattern=FIELD_PATH)] = Field(description="Path of the field, such as a.b[0].c.")
    match: Literal["exact", "numeric_tolerance", "date"] = Field(
        "exact",
        description="How to compare values.",
        json_schema_extra=meanings(
            exact="The values are equal.",
            numeric_tolerance="The numbers differ by at most `tolerance`.",
            date="The ISO 8601 dates are equal.",
        ),
    )
    tolerance: Maybe[Annotated[float, Field(ge=0)]] = Field(None, description="Largest allowed difference of numbers.")
    weight: float = Field(1.0, ge=0, description="Weight in the score.")
    required: bool = Field(False, description="Whether the case fails if this is not met, regardless of the score.")


class FieldAccuracyEvaluator(EvaluatorSettings):
    """The share of correct fields of a structured answer."""

    type: Literal["field_accuracy"] = Field(description="Compare fields of a structured answer.")
    fields: Annotated[Items[ComparedField], Field(min_length=1)] = Field(description="Fields to compare.")
    reference: Maybe[JsonObject] = Field(None, description="Expected values; default: the expected answer as JSON.")


PACKAGE_HINT = "python -m pip install sacrebleu, or install agentv-ci with the extra 'bleu'"


class SimilarityEvaluator(EvaluatorSettings):
    """The similarity of the answer to a text."""

    short_field: ClassVar[str | None] = "metric"

    type: Literal["similarity"] = Field(description="Measure the similarity to a text.")
    metric: Literal["levenshtein", "rouge_l", "bleu", "token_f1"] = Field(
        description="Similarity metric.",
        json_schema_extra=meanings(
            levenshtein="Characters that need not be changed.",
            rouge_l="The longest common sequence of words.",
            bleu="Common sequences of up to four words.",
            token_f1="Common words, in any order.",  # noqa: S106  # no password
        ),
    )
    reference: Maybe[Name] = Field(None, description="Text to compare with; default: the expected answer.")

    @property
    def package(self) -> str | None:
        """The package of an extra that the metric needs."""
        return "sacrebleu" if self.metric == "bleu" else None


class LatencyEvaluator(EvaluatorSettings):
    """Whether the answer was fast enough."""

    short_field: ClassVar[str | None] = "max_ms"
    is_limit: ClassVar[bool] = True
    measures: ClassVar[Measure | None] = "time"

    type: Literal["latency"] = Field(description="Limit the time of the answer.")
    max_ms: Positive = Field(description="Maximum time in milliseconds.")


class CostEvaluator(EvaluatorSettings):
    """Whether the answer was cheap enough."""

    short_field: ClassVar[str | None] = "max_usd"
    is_limit: ClassVar[bool] = True
    measures: ClassVar[Measure | None] = "cost"

    type: Literal["cost"] = Field(description="Limit the cost of the answer.")
    max_usd: Annotated[float, Field(ge=0)] = Field(description="Maximum cost in US dollars.")


class TokenUsageEvaluator(EvaluatorSettings):
    """Whether the answer stayed within limits of tokens."""

    short_field: ClassVar[str | None] = "max_total"
    is_limit: ClassVar[bool] = True
    measures: ClassVar[Measure | None] = "tokens"

    type: Literal["token_usage"] = Field(description="Limit the tokens of the answer.")
    max_total: Maybe[NonNegative] = Field(None, description="Maximum number of input and output tokens.")
    max_input: Maybe[NonNegative] = Field(None, description="Maximum number of input tokens.")
    max_output: Maybe[NonNegative] = Field(None, description="Maximum number of output tokens.")
    min_output: Maybe[NonNegative] = Field(None, description="Minimum number of output tokens.")


class ToolCallsEvaluator(EvaluatorSettings):
    """Whether the agent stayed within a limit of tool calls."""

    short_field: ClassVar[str | None] = "max"
    is_limit: ClassVar[bool] = True
    measures: ClassVar[Measure | None] = "tool_calls"
    reads_trace: ClassVar[bool] = True

    type: Literal["tool_calls"] = Field(description="Limit the number of tool calls.")
    max: NonNegative = Field(description="Maximum number of calls.")


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


EmbeddedEvaluator = (
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
