"""The eval document: cases for an agent and how to score its answers."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field

from agentv_ci.contracts.base import (
    AtLeastOne,
    Authored,
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
    meanings,
)
from agentv_ci.contracts.evaluator_settings import named
from agentv_ci.contracts.evaluators import AuthoredEvaluator, Evaluators
from agentv_ci.contracts.gate import DescribedWrongAnswer, Gate, ValidatorUse
from agentv_ci.contracts.judge_evaluators import Rubrics
from agentv_ci.contracts.source import EVAL_SCHEMA, SHORT_FORMS, Pointer
from agentv_ci.contracts.workspaces import Workspace

Role = Annotated[
    Literal["system", "user", "assistant", "tool"],
    Field(
        json_schema_extra=meanings(
            system="Instructions for the agent.",
            user="The person who asks.",
            assistant="The agent.",
            tool="The result of a tool call.",
        )
    ),
]
ROLES: tuple[str, ...] = get_args(get_args(Role)[0])


class ContentBlock(Authored):
    """A piece of a message."""

    type: Literal["text", "file", "image", "document"] = Field(
        description="`text`: the value is the text; `file`: the value is a path, and the content "
        "of the file is used; `image` and `document`: the value is a path or a URL, and the model "
        "gets the file.",
        json_schema_extra=meanings(
            text="The value is the text.",
            file="The value is the path of a text file.",
            image="The value is the path or the URL of a PNG, JPEG, GIF or WebP image.",
            document="The value is the path or the URL of a PDF or text file.",
        ),
    )
    value: str = Field(
        description="The text, the URL, or the path: relative to this file, or with a leading / to "
        "the repository."
    )


Content = str | Items[str | ContentBlock]


class AuthoredToolCall(Authored):
    """A tool call that the agent made or should make."""

    tool: Name = Field(description="Name of the tool.")
    input: JsonValue = Field(None, description="Arguments of the call.")
    output: JsonValue = Field(None, description="Result of the call.")


class InputMessage(Authored):
    """A message of the conversation for the agent."""

    role: Role = Field(description="Role of the speaker.")
    name: Maybe[Name] = Field(None, description="Name of the speaker.")
    content: Content = Field(description="A text, or a list of texts and blocks.")


class ExpectedMessage(Authored):
    """A message of a good answer, for evaluators to compare with."""

    role: Role = Field(description="Role of the speaker.")
    name: Maybe[Name] = Field(None, description="Name of the speaker.")
    content: Maybe[Content | JsonObject] = Field(
        None, description="A text, a list of texts and blocks, or, for the assistant, an object."
    )
    tool_calls: Maybe[Items[AuthoredToolCall]] = Field(
        None, description="Tool calls the assistant should make."
    )


class Repeat(Authored):
    """Trials of a case, and how they are combined into one verdict."""

    max: AtLeastOne = Field(description="Number of trials.")
    require: Require = Field(
        "majority",
        description="Trials that must pass.",
        json_schema_extra=meanings(
            majority="More than half of the trials.", all="Every trial.", any="At least one trial."
        ),
    )
    stop_when: Maybe[Literal["decided"]] = Field(
        None,
        description="`decided`: skip the remaining trials when they cannot change whether the case "
        "passes.",
    )


TargetNames = Annotated[Items[Name], Field(min_length=1)]


class CaseExecution(Authored):
    """How a case is run and scored."""

    target: Maybe[Name] = Field(None, description="Target that answers.")
    targets: Maybe[TargetNames] = Field(
        None, description="Targets that each answer every case; instead of `target`."
    )
    evaluators: Maybe[Evaluators] = Field(None, description="Evaluators that score the answer.")
    repeat: Maybe[AtLeastOne | Repeat] = Field(
        None, description="Trials per case; default 1.", examples=[1]
    )
    seeds: Maybe[Items[Integer]] = Field(
        None, description="Seeds of the trials; the n-th trial uses the n-th seed."
    )
    threshold: Maybe[Share] = Field(
        None, description="Minimum score to pass; default 0.8.", examples=[0.8]
    )
    timeout_seconds: Maybe[Positive] = Field(
        None, description="Time limit of an attempt, in seconds; default 600.", examples=[600]
    )
    max_retries: Maybe[NonNegative] = Field(
        None, description="Retries after a timeout or a failed command; default 2.", examples=[2]
    )
    max_cost_usd: Maybe[Positive] = Field(
        None,
        description="No trial or attempt begins once those of the case, judges included, have cost "
        "this much.",
        examples=[0.5, 2.0],
    )
    max_requests: Maybe[AtLeastOne] = Field(
        None,
        description="No trial or attempt begins once those of the case have made so many requests, "
        "with retries.",
        examples=[10, 50],
    )
    workspace: Maybe[Workspace] = Field(
        None,
        description="Folder that each trial gets fresh, and in which the agent works; that of a "
        "case replaces it.",
    )


class SuiteExecution(CaseExecution):
    """Defaults for every case of the file, and the gate."""

    validators: Maybe[Items[Name | ValidatorUse]] = Field(
        None, description="Validators that check the finished run."
    )
    gate: Maybe[Gate] = Field(None, description="Thresholds that the run must meet.")


class Sample(Authored):
    """A random part of the rows."""

    n: AtLeastOne = Field(description="Number of rows.")
    seed: Integer = Field(
        0, description="Seed of the choice; a row added to the file changes it by one row at most."
    )


class CasesFrom(Authored):
    """A file of rows, each of which makes a case."""

    file: Name = Field(
        description="Path of a .csv, .jsonl, .json or .yaml file: relative to this file, or with a "
        "leading / to the repository."
    )
    vars: JsonObject = Field(
        default_factory=dict, description="Values for every row; those of the row win."
    )
    limit: Maybe[AtLeastOne] = Field(
        None, description="Number of rows to read; default: all.", examples=[10]
    )
    sample: Maybe[Sample] = Field(None, description="Choose some of the rows at random.")


class EvalCase(Authored):
    """A task for the agent, and what a good answer is."""

    older_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "expected_outcome": ("outcome",),
        **{field: (short,) for field, short in SHORT_FORMS.items()},
    }

    id: Name = Field(description="Id of the case, unique in the file.")
    expected_outcome: str = Field(description="What a good answer achieves, in one sentence.")
    description: Maybe[str] = Field(
        None, description="Description of the case, for readers of the file."
    )
    note: Maybe[str] = Field(None, description="Comment for readers of the file.")
    tags: Maybe[Items[Name]] = Field(None, description="Labels of the case; copied to the results.")
    skip: Maybe[Name] = Field(
        None, description="Why the case is not run; it is listed in every report."
    )
    only: Maybe[bool] = Field(
        None,
        description="Whether only this case, and others with it, run of the file: while you work "
        "on it.",
    )
    conversation_id: Maybe[str] = Field(
        None, description="Id that groups the cases of one conversation."
    )
    input_messages: Name | Annotated[Items[InputMessage], Field(min_length=1)] = Field(
        description="Messages for the agent; a text is one message of the user."
    )
    expected_messages: Name | Items[ExpectedMessage] = Field(
        description="Messages of a good answer; a text is one message of the assistant, [] is none."
    )
    rubrics: Maybe[Rubrics] = Field(
        None, description="Criteria that a judge checks, in addition to the evaluators."
    )
    evaluators: Maybe[Evaluators] = Field(
        None, description="Same as `execution.evaluators`; they cannot be combined."
    )
    inherit_evaluators: Maybe[bool] = Field(
        None,
        description="Whether the evaluators of the file score the answer, too; default true.",
        examples=[False],
    )
    execution: Maybe[CaseExecution] = Field(
        None, description="Overrides the file's `execution`, key by key; evaluators are added."
    )
    accept: Maybe[dict[DescribedWrongAnswer, Name]] = Field(
        None,
        description="For `prove`: null agents and operators that are not tried because their "
        "answers are right here, each with the reason.",
        examples=[{"sentence-order": "Either order is fine."}],
    )
    metadata: JsonObject = Field(
        default_factory=dict, description="Any data; copied to the results."
    )
    cases_from: Maybe[CasesFrom] = Field(
        None,
        description="Make a case of each row of a file: `{{ name }}` in texts is replaced by the "
        "row's value.",
    )
    vars: Maybe[Annotated[Items[JsonObject], Field(min_length=1)]] = Field(
        None, description="Rows, instead of those of a file: each makes a case."
    )

    @property
    def is_template(self) -> bool:
        """Whether rows of data make cases of it."""
        return self.cases_from is not None or self.vars is not None

    @property
    def inputs(self) -> tuple[InputMessage, ...]:
        """The messages for the agent."""
        given = self.input_messages
        return given if isinstance(given, tuple) else (InputMessage(role="user", content=given),)

    @property
    def expectations(self) -> tuple[ExpectedMessage, ...]:
        """The messages of a good answer."""
        given = self.expected_messages
        return (
            given
            if isinstance(given, tuple)
            else (ExpectedMessage(role="assistant", content=given),)
        )

    @property
    def own_evaluators(self) -> tuple[AuthoredEvaluator, ...]:
        """The evaluators that the case lists itself."""
        return (self.execution and self.execution.evaluators) or self.evaluators or ()


class EvalDocument(Authored):
    """A file of eval cases."""

    free_keys: ClassVar[bool] = True

    schema_: Maybe[str] = Field(
        None,
        alias="$schema",
        description=f"`{EVAL_SCHEMA}` or the schema's $id.",
        examples=[EVAL_SCHEMA],
    )
    description: Maybe[str] = Field(None, description="Description of the file.")
    tags: Maybe[Items[Name]] = Field(
        None, description="Labels of every case, in addition to its own."
    )
    dataset: Maybe[Name] = Field(None, description="Name in the results; default: the file name.")
    target: Maybe[Name] = Field(None, description="Same as `execution.target`, which wins.")
    targets: Maybe[TargetNames] = Field(
        None, description="Same as `execution.targets`, which wins."
    )
    system_prompt: Maybe[Name] = Field(
        None,
        description="System prompt of model APIs, instead of the target's: a text, a path, or "
        "`none`.",
    )
    execution: Maybe[SuiteExecution] = Field(
        None, description="Defaults for every case, and the gate."
    )
    evalcases: Annotated[Items[EvalCase], Field(min_length=1)] = Field(description="The cases.")

    @cached_property
    def left_out(self) -> tuple[EvalCase, ...]:
        """The cases that do not run because others have `only`."""
        others = tuple(case for case in self.evalcases if not case.only)
        return others if len(others) < len(self.evalcases) else ()

    def tags_of(self, case: EvalCase) -> tuple[str, ...]:
        """Return the tags of the file and of a case, each once."""
        return tuple(dict.fromkeys((*(self.tags or ()), *(case.tags or ()))))

    def targets_of(self, index: int, case: EvalCase) -> list[tuple[Pointer, str]]:
        """Return the targets that a case names, else those of the file, each with its pointer."""
        return _targets_in(("evalcases", index, "execution"), case.execution) or self._targets

    @cached_property
    def _targets(self) -> list[tuple[Pointer, str]]:
        """The targets that the file names, each with its place."""
        return _targets_in(("execution",), self.execution) or _targets_in((), self)

    def execution_of(self, case: EvalCase) -> CaseExecution:
        """Return the settings of a case but its evaluators: merged with the file's key by key."""
        own = _given(case.execution)
        return self._defaults.model_copy(update=own) if own else self._defaults

    def evaluators_of(self, case: EvalCase) -> tuple[AuthoredEvaluator, ...]:
        """Return the evaluators that score a case: those of the file, then its own."""
        inherited = tuple(
            evaluator for evaluator in self._evaluators if self.is_inherited(evaluator, case)
        )
        return named((*inherited, *case.own_evaluators)) if inherited else case.own_evaluators

    def is_inherited(self, evaluator: AuthoredEvaluator, case: EvalCase) -> bool:
        """Whether an evaluator of the file scores a case.

        Not if the case has one of the same name.
        """
        if case.inherit_evaluators is False or not evaluator.is_named:
            return case.inherit_evaluators is not False
        return not any(own.is_named and own.name == evaluator.name for own in case.own_evaluators)

    @cached_property
    def _defaults(self) -> CaseExecution:
        """The settings of the file."""
        # Already validated.
        return CaseExecution.model_construct(**_given(self.execution))

    @cached_property
    def _evaluators(self) -> tuple[AuthoredEvaluator, ...]:
        return (self.execution and self.execution.evaluators) or ()


def _targets_in(
    place: Pointer, owner: CaseExecution | EvalDocument | None
) -> list[tuple[Pointer, str]]:
    if owner is None:
        return []
    several = [
        ((*place, "targets", number), name) for number, name in enumerate(owner.targets or ())
    ]
    return several or ([((*place, "target"), owner.target)] if owner.target else [])


def _given(execution: CaseExecution | None) -> dict[str, Any]:
    """Return the settings that are not absent, without evaluators."""
    if execution is None:
        return {}
    given = {
        name: getattr(execution, name)
        for name in CaseExecution.model_fields
        if name != "evaluators"
    }
    return {name: value for name, value in given.items() if value is not None}
