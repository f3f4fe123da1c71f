"""How an author asks for an answer to be scored: one class per `type`."""

import re
import shlex
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field
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
    Positive,
    Share,
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
"""What `{{ name }}` in a judge's prompt may name."""
AGGREGATOR_VARIABLES = ("evaluator_results", "EVALUATOR_RESULTS_JSON", *PROMPT_VARIABLES)
"""What `{{ name }}` in an aggregator's prompt may name."""


def _looks_like_path(word: str, suffixes: tuple[str, ...]) -> bool:
    return "\n" not in word and (word.startswith(("./", "../", "/")) or word.endswith(suffixes))


def prompt_path(prompt: str | None) -> str | None:
    """Return the path a prompt consists of; None when it is the text itself."""
    return prompt if prompt is not None and _looks_like_path(prompt, PROMPT_SUFFIXES) else None


class RubricItem(Authored):
    """One criterion that is met or not."""

    id: Maybe[Name] = Field(None, description="Unique in its list; default: rubric-1, rubric-2 …")
    description: Name = Field(description="What must be true of the answer.")
    weight: float = Field(1.0, ge=0, description="Its share in the score.")
    required: bool = Field(True, description="Missing it fails the case, whatever the score.")


Rubrics = Annotated[Items[Name | RubricItem], Field(min_length=1)]

RUBRICS_NAME = "rubrics"
"""How results call the evaluator that a case's own `rubrics` make."""


def rubric_items(rubrics: tuple[str | RubricItem, ...]) -> tuple[RubricItem, ...]:
    """Return criteria in their long form, each with an id."""
    items = (RubricItem(description=each) if isinstance(each, str) else each for each in rubrics)
    return tuple(
        item if item.id is not None else item.model_copy(update={"id": f"rubric-{number}"})
        for number, item in enumerate(items, 1)
    )


Measure = Literal["time", "cost", "tokens", "tool_calls"]


class EvaluatorFacts:
    """What others have to know of a kind of evaluator, whatever its settings; authored and plan models share it."""

    waits: ClassVar[bool] = False
    """Whether scoring may wait: for a judge, a process or a thread."""
    measures: ClassVar[Measure | None] = None
    """What it measures of how the answer came about; not every target gives that."""
    reads_trace: ClassVar[bool] = False
    """Whether its score depends on the tool calls of the answer."""


class EvaluatorSettings(EvaluatorFacts, Authored):
    """What every evaluator has."""

    name: Name = Field(description="How results call this evaluator; unique in its list.")
    weight: float = Field(1.0, ge=0, description="Its share in the case's score.")
    required: bool = Field(False, description="Failing it fails the case whatever the mean.")
    min_score: Maybe[Share] = Field(None, description="Its own pass line; default: the case's threshold.")
    negate: bool = Field(False, description="Count 1 − score; an error stays an error.")


class Script(Authored):
    """A command that authors write as a text or as a list of arguments."""

    script: Name | Annotated[Items[str], Field(min_length=1)] = Field(
        description="A path or a shell command, or a list of arguments; paths are relative to this file."
    )

    @property
    def words(self) -> tuple[str, ...]:
        """The command as a list of arguments."""
        return tuple(shlex.split(self.script)) if isinstance(self.script, str) else self.script

    @property
    def script_path(self) -> str | None:
        """The path of the script, when the command names one: the first word of a text, any word of a list.

        An absolute path is the system's, and no script of the repository.
        """
        candidates = self.script.split(maxsplit=1)[:1] if isinstance(self.script, str) else self.script
        found = (word for word in candidates if _looks_like_path(word, SCRIPT_SUFFIXES) and not word.startswith("/"))
        return next(found, None)

    @property
    def program(self) -> str | None:
        """The absolute path the command begins with, if it does."""
        first = self.script.split(maxsplit=1)[0] if isinstance(self.script, str) and self.script.strip() else ""
        first = first if isinstance(self.script, str) else self.script[0]
        return first if first.startswith("/") else None


class CodeEvaluator(Script, EvaluatorSettings):
    """A script that reads the case as JSON on stdin and prints a score as JSON on stdout."""

    type: Literal["code", "code_judge"] = Field(description="Score with a script.")
    cwd: Maybe[Name] = Field(None, description="Where the script runs; default: the folder of this file.")
    timeout_seconds: Maybe[Positive] = Field(None, description="Longest run; default: the case's timeout.")
    config: JsonObject = Field(default_factory=dict, description="Handed to the script as `config`.")
    files: Items[Name] = Field((), description="Further files the script needs; they count as part of it.")


class LlmJudgeEvaluator(EvaluatorSettings):
    """A model that reads the answer and replies with a score as JSON."""

    type: Literal["llm_judge"] = Field(description="Score with a model.")
    prompt: Maybe[Name] = Field(None, description="The judge's prompt, or a path to it.")
    prompt_path: Maybe[Name] = Field(None, description="A file that holds the judge's prompt.")
    rubrics: Maybe[Rubrics] = Field(None, description="Criteria the judge goes through one by one.")
    judge_target: Maybe[Name] = Field(None, description="The target that judges; default: the target's own judge.")
    judge_retries: NonNegative = Field(2, description="Asks again after an unreadable reply.")
    temperature: Maybe[Annotated[float, Field(ge=0)]] = Field(None, description="Sampling temperature of the judge.")
    max_output_tokens: Maybe[AtLeastOne] = Field(None, description="Longest reply of the judge.")

    @property
    def prompt_file(self) -> str | None:
        """The path of the prompt, when it is not written in place."""
        return self.prompt_path or prompt_path(self.prompt)


class RubricEvaluator(EvaluatorSettings):
    """Criteria that a model checks one by one."""

    type: Literal["rubric"] = Field(description="Score by a list of criteria.")
    rubrics: Rubrics = Field(description="The criteria: texts, or mappings with id, description, weight, required.")
    judge_target: Maybe[Name] = Field(None, description="The target that judges; default: the target's own judge.")
    judge_retries: NonNegative = Field(2, description="Asks again after an unreadable reply.")


class WeightedAverage(Authored):
    """The members' weighted mean."""

    type: Literal["weighted_average"] = Field(description="Take the weighted mean.")
    weights: Maybe[dict[str, Annotated[float, Field(ge=0)]]] = Field(
        None, description="Member → weight; default: the members' own."
    )


class CodeAggregator(Script):
    """A script that reads the members' scores as JSON, `{"results": …}`, and prints one score as JSON."""

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {"script": ("path",)}

    type: Literal["code", "code_judge"] = Field(description="Ask a script.")


class LlmJudgeAggregator(Authored):
    """A model that makes one score of the members' scores."""

    type: Literal["llm_judge"] = Field(description="Ask a model.")
    prompt: Maybe[Name] = Field(
        None, description="The prompt, or a path to it; {{ evaluator_results }} holds the members' scores."
    )


Aggregator = Annotated[WeightedAverage | CodeAggregator | LlmJudgeAggregator, Field(discriminator="type")]


class CompositeEvaluator(EvaluatorSettings):
    """Several evaluators that make one score."""

    type: Literal["composite"] = Field(description="Combine several evaluators.")
    evaluators: Annotated[Items[Annotated["AuthoredEvaluator", ByKind("type")]], Field(min_length=1)] = Field(
        description="The members."
    )
    aggregator: Maybe[Aggregator] = Field(None, description="How members make one score; default: weighted_average.")


class TextEvaluator(EvaluatorSettings):
    """What evaluators have that look for text."""

    case_sensitive: bool = Field(True, description="Whether case matters.")


class ContainsEvaluator(TextEvaluator):
    """Whether the answer contains a text."""

    type: Literal["contains"] = Field(description="Look for a text in the answer.")
    value: Name = Field(description="The text to find.")


class ContainsAnyEvaluator(TextEvaluator):
    """Whether the answer contains at least one of several texts."""

    type: Literal["contains_any"] = Field(description="Look for one of several texts in the answer.")
    value: Annotated[Items[Name], Field(min_length=1)] = Field(description="The texts.")


class ContainsAllEvaluator(TextEvaluator):
    """How many of several texts the answer contains."""

    type: Literal["contains_all"] = Field(description="Look for all of several texts in the answer.")
    value: Annotated[Items[Name], Field(min_length=1)] = Field(description="The texts; the score is found / all.")


class EqualsEvaluator(TextEvaluator):
    """Whether the answer is a text, but for space at both ends."""

    type: Literal["equals"] = Field(description="Compare the answer with a text.")
    value: str = Field(description="The text.")


class RegexEvaluator(TextEvaluator):
    """Whether a pattern matches somewhere in the answer."""

    waits: ClassVar[bool] = True

    type: Literal["regex"] = Field(description="Search the answer with a regular expression.")
    value: Name = Field(description="The pattern, in Python's syntax.")


class StartsWithEvaluator(TextEvaluator):
    """Whether the answer begins with a text."""

    type: Literal["starts_with"] = Field(description="Look at the answer's beginning.")
    value: Name = Field(description="The text.")


class EndsWithEvaluator(TextEvaluator):
    """Whether the answer ends with a text."""

    type: Literal["ends_with"] = Field(description="Look at the answer's end.")
    value: Name = Field(description="The text.")


class IsJsonEvaluator(EvaluatorSettings):
    """Whether the answer is JSON."""

    type: Literal["is_json"] = Field(description="Parse the answer as JSON.")


class SchemaEvaluator(EvaluatorSettings):
    """Whether the answer is JSON or YAML that a JSON Schema accepts."""

    type: Literal["schema"] = Field(description="Check the answer against a JSON Schema.")
    schema_file: Maybe[Name] = Field(None, description="A .json, .yaml or .yml file with the schema.")
    schema_inline: Maybe[JsonObject | bool] = Field(None, description="The schema itself.")
    format: Literal["json", "yaml"] = Field("json", description="How the answer is written.")


class ExpectedCall(Authored):
    """One tool call that should occur."""

    tool: Name = Field(description="The tool's name.")
    input: JsonValue = Field(None, description="The arguments it should get.")


class ToolTrajectoryEvaluator(EvaluatorSettings):
    """Whether the agent called the tools it should have called."""

    measures: ClassVar[Measure | None] = "tool_calls"
    reads_trace: ClassVar[bool] = True

    type: Literal["tool_trajectory"] = Field(description="Compare the tool calls with the expected ones.")
    mode: Literal["any_order", "in_order", "exact", "subset", "superset"] = Field(
        description="How strictly the calls must follow the expectation."
    )
    minimums: Maybe[dict[str, NonNegative]] = Field(None, description="Least number of calls per tool (any_order).")
    expected: Maybe[Items[ExpectedCall]] = Field(None, description="The calls, in order (all other modes).")
    args_match: Maybe[Literal["exact", "subset", "ignore"]] = Field(
        None, description="How arguments are compared; default: exact where `input` is given."
    )


FIELD_PATH = r"^(\[[0-9]{1,9}\]|[^.\[\]]+)(\[[0-9]{1,9}\]|\.[^.\[\]]+)*$"
_STEP = re.compile(r"\[(?P<position>[0-9]+)\]|\.?(?P<key>[^.\[\]]+)")


def field_steps(path: str) -> tuple[str | int, ...]:
    """Return the keys and positions of a path such as `a.b[0].c`."""
    return tuple(int(step["position"]) if step["position"] else step["key"] for step in _STEP.finditer(path))


class ComparedField(Authored):
    """One field of a structured answer."""

    path: Annotated[str, Field(pattern=FIELD_PATH)] = Field(description="Where it stands: a.b[0].c")
    match: Literal["exact", "numeric_tolerance", "date"] = Field("exact", description="How values are compared.")
    tolerance: Maybe[Annotated[float, Field(ge=0)]] = Field(None, description="Largest difference of numbers.")
    weight: float = Field(1.0, ge=0, description="Its share in the score.")
    required: bool = Field(False, description="Missing it fails the case, whatever the score.")


class FieldAccuracyEvaluator(EvaluatorSettings):
    """How many fields of a structured answer are right."""

    type: Literal["field_accuracy"] = Field(description="Compare fields of a structured answer.")
    fields: Annotated[Items[ComparedField], Field(min_length=1)] = Field(description="The fields.")
    reference: Maybe[JsonObject] = Field(None, description="What is right; default: the expected answer as JSON.")


class SimilarityEvaluator(EvaluatorSettings):
    """How near the answer comes to a text."""

    type: Literal["similarity"] = Field(description="Measure how near the answer comes to a text.")
    metric: Literal["levenshtein", "rouge_l", "bleu", "token_f1"] = Field(description="The measure.")
    reference: Maybe[Name] = Field(None, description="The text; default: the expected answer.")


class LatencyEvaluator(EvaluatorSettings):
    """Whether the answer came in time."""

    measures: ClassVar[Measure | None] = "time"

    type: Literal["latency"] = Field(description="Limit the time of the answer.")
    max_ms: Positive = Field(description="Longest time, in milliseconds.")


class CostEvaluator(EvaluatorSettings):
    """Whether the answer was cheap enough."""

    measures: ClassVar[Measure | None] = "cost"

    type: Literal["cost"] = Field(description="Limit the cost of the answer.")
    max_usd: Annotated[float, Field(ge=0)] = Field(description="Most it may cost, in US dollars.")


class TokenUsageEvaluator(EvaluatorSettings):
    """Whether the answer took as many tokens as it may."""

    measures: ClassVar[Measure | None] = "tokens"

    type: Literal["token_usage"] = Field(description="Limit the tokens of the answer.")
    max_total: Maybe[NonNegative] = Field(None, description="Most tokens read and written.")
    max_input: Maybe[NonNegative] = Field(None, description="Most tokens read.")
    max_output: Maybe[NonNegative] = Field(None, description="Most tokens written.")
    min_output: Maybe[NonNegative] = Field(None, description="Fewest tokens written.")


class ToolCallsEvaluator(EvaluatorSettings):
    """Whether the agent called tools as often as it may."""

    measures: ClassVar[Measure | None] = "tool_calls"
    reads_trace: ClassVar[bool] = True

    type: Literal["tool_calls"] = Field(description="Limit the number of tool calls.")
    max: NonNegative = Field(description="Most calls.")


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
)
"""What the plan holds as it is written: it needs no file and no judge."""

AuthoredEvaluator = TypeAliasType(
    "AuthoredEvaluator",
    Annotated[
        CodeEvaluator | LlmJudgeEvaluator | RubricEvaluator | CompositeEvaluator | SchemaEvaluator | EmbeddedEvaluator,
        Field(discriminator="type"),
    ],
)
