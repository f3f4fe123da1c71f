"""The eval document: what people ask of an agent and how they want it judged."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from agentv_ci.contracts.base import (
    AtLeastOne,
    Authored,
    ByKind,
    Integer,
    Items,
    JsonObject,
    JsonValue,
    Maybe,
    Name,
    NonNegative,
    Positive,
    Require,
    Share,
)
from agentv_ci.contracts.evaluators import AuthoredEvaluator, Rubrics

EVAL_SCHEMA = "agentv-eval-v2"

Role = Literal["system", "user", "assistant", "tool"]


class ContentBlock(Authored):
    """A piece of a message."""

    type: Literal["text", "file"] = Field(
        description="`text`: the value itself; `file`: a path whose text is put here."
    )
    value: str = Field(description="The text, or the path (relative to this file; a leading / is the repository).")


Content = str | Items[str | ContentBlock]


class AuthoredToolCall(Authored):
    """A call the agent made or should make."""

    tool: Name = Field(description="The tool's name.")
    input: JsonValue = Field(None, description="Its arguments.")
    output: JsonValue = Field(None, description="What it returned.")


class InputMessage(Authored):
    """A turn of the conversation that the agent gets."""

    role: Role = Field(description="Who speaks.")
    name: Maybe[Name] = Field(None, description="A name for the speaker.")
    content: Content = Field(description="A text, or a list of texts and blocks.")


class ExpectedMessage(Authored):
    """A turn of a good answer, for judges to compare with."""

    role: Role = Field(description="Who speaks.")
    name: Maybe[Name] = Field(None, description="A name for the speaker.")
    content: Maybe[Content | JsonObject] = Field(
        None, description="A text, a list of texts and blocks, or (assistant only) an object."
    )
    tool_calls: Maybe[Items[AuthoredToolCall]] = Field(None, description="Calls the assistant should make.")


class Repeat(Authored):
    """Several trials of a case and how they make one verdict."""

    max: AtLeastOne = Field(description="Number of trials.")
    require: Require = Field("majority", description="How many trials must pass.")
    stop_when: Maybe[Literal["decided"]] = Field(
        None, description="`decided`: end the case's trials when the rest cannot change the verdict."
    )


class Gate(Authored):
    """What a run must reach to pass."""

    min_pass_rate: Maybe[Share] = Field(None, description="Least share of graded cases that pass; default 1.0.")
    min_mean_score: Maybe[Share] = Field(None, description="Least mean score of graded cases; default: none.")
    max_errors: Maybe[NonNegative] = Field(
        None, description="Most cases and trials that may end in an error; default 0."
    )
    max_cost_usd: Maybe[Annotated[float, Field(ge=0)]] = Field(
        None, description="Most the run may cost, judges included; default: no limit."
    )
    validators: Maybe[Literal["error", "warn"]] = Field(
        None, description="Whether errors that validators find fail the gate; default error."
    )


class ValidatorUse(Authored):
    """A check of the finished run, with its settings."""

    model_config = ConfigDict(extra="allow")

    key: Name = Field(description="The validator's name; all other keys are its settings.")


class CaseExecution(Authored):
    """How one case runs."""

    target: Maybe[Name] = Field(None, description="The target that answers.")
    evaluators: Maybe[Items[Annotated[AuthoredEvaluator, ByKind("type")]]] = Field(
        None, description="How answers are scored."
    )
    repeat: Maybe[AtLeastOne | Repeat] = Field(None, description="Trials per case; default 1.")
    seeds: Maybe[Items[Integer]] = Field(None, description="Seeds; the n-th trial uses the n-th.")
    threshold: Maybe[Share] = Field(None, description="Score at which a case passes; default 0.8.")
    timeout_seconds: Maybe[Positive] = Field(None, description="Longest attempt, in seconds; default 600.")
    max_retries: Maybe[NonNegative] = Field(
        None, description="Attempts again after a timeout or a failed command; default 2."
    )


class SuiteExecution(CaseExecution):
    """Defaults for every case of the file, and the gate."""

    validators: Maybe[Items[Name | ValidatorUse]] = Field(None, description="Checks of the finished run.")
    gate: Maybe[Gate] = Field(None, description="What the run must reach.")


class EvalCase(Authored):
    """One question to the agent and what a good answer is."""

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {"expected_outcome": ("outcome",)}

    id: Name = Field(description="Unique in the file.")
    expected_outcome: str = Field(description="What a good answer achieves, in words.")
    note: Maybe[str] = Field(None, description="A remark for readers of this file.")
    conversation_id: Maybe[str] = Field(None, description="Groups cases of one conversation.")
    input_messages: Annotated[Items[InputMessage], Field(min_length=1)] = Field(description="What the agent gets.")
    expected_messages: Items[ExpectedMessage] = Field(description="A good answer; [] when criteria alone decide.")
    rubrics: Maybe[Rubrics] = Field(None, description="Criteria a judge goes through, before the other evaluators.")
    evaluators: Maybe[Items[Annotated[AuthoredEvaluator, ByKind("type")]]] = Field(
        None, description="Same as `execution.evaluators`."
    )
    execution: Maybe[CaseExecution] = Field(None, description="Overrides the file's `execution` key by key.")
    metadata: JsonObject = Field(default_factory=dict, description="Anything; copied to the results.")


class EvalDocument(Authored):
    """A file of eval cases."""

    free_keys: ClassVar[bool] = True

    schema_: Maybe[str] = Field(None, alias="$schema", description=f"`{EVAL_SCHEMA}`, or the published schema's $id.")
    description: Maybe[str] = Field(None, description="What this file checks.")
    dataset: Maybe[Name] = Field(None, description="A name for the results; default: the file's name.")
    target: Maybe[Name] = Field(None, description="Same as `execution.target`, which wins.")
    execution: Maybe[SuiteExecution] = Field(None, description="Defaults for every case, and the gate.")
    evalcases: Annotated[Items[EvalCase], Field(min_length=1)] = Field(description="The cases.")

    def execution_of(self, case: EvalCase) -> CaseExecution:
        """Return how a case runs: its own settings, then the file's, key by key."""
        settings = (
            self._defaults | ({"evaluators": case.evaluators} if case.evaluators else {}) | _given(case.execution)
        )
        # All of it was validated where it was read.
        return CaseExecution.model_construct(**settings)

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        """What holds for every case."""
        return ({"target": self.target} if self.target else {}) | _given(self.execution)


def _given(execution: CaseExecution | None) -> dict[str, Any]:
    """Return the settings that are given; an empty list of evaluators declares none."""
    if execution is None:
        return {}
    given = {name: getattr(execution, name) for name in CaseExecution.model_fields}
    return {name: value for name, value in given.items() if value is not None and (name, value) != ("evaluators", ())}
