"""The plan: everything a run needs, compiled from the documents alone.

It contains no time, no tool version, no secret and no absolute path that the author did not write.
Paths are relative to the repository and use `/`.
"""
# ruff: noqa: PLC0414  # exports

import json
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from agentv_ci.contracts.attachments import AttachmentType
from agentv_ci.contracts.base import (
    AtLeastOne,
    ByKind,
    Compiled,
    Integer,
    Items,
    JsonObject,
    JsonValue,
    Name,
    NonNegative,
    Positive,
    Require,
    Share,
)
from agentv_ci.contracts.case_head import CaseHead
from agentv_ci.contracts.case_key import CaseKey
from agentv_ci.contracts.config import Price
from agentv_ci.contracts.evals import Role
from agentv_ci.contracts.evaluator_settings import EvaluatorFacts
from agentv_ci.contracts.evaluators import EmbeddedEvaluator, PluginEvaluator
from agentv_ci.contracts.increases import Increases, WhenUndecided
from agentv_ci.contracts.later import later
from agentv_ci.contracts.targets import CliTarget, Target
from agentv_ci.contracts.wrong_answers import NullAgentsGate, WrongAnswer

if TYPE_CHECKING:
    from agentv_ci.contracts.plan_evaluators import PlanAggregator
    from agentv_ci.contracts.plan_evaluators import PlanCodeAggregator as PlanCodeAggregator
    from agentv_ci.contracts.plan_evaluators import PlanCodeEvaluator as PlanCodeEvaluator
    from agentv_ci.contracts.plan_evaluators import PlanCommandEvaluator as PlanCommandEvaluator
    from agentv_ci.contracts.plan_evaluators import PlanCompositeEvaluator as PlanCompositeEvaluator
    from agentv_ci.contracts.plan_evaluators import PlanDiffEvaluator as PlanDiffEvaluator
    from agentv_ci.contracts.plan_evaluators import PlanJunitEvaluator as PlanJunitEvaluator
    from agentv_ci.contracts.plan_evaluators import PlanLlmJudgeAggregator as PlanLlmJudgeAggregator
    from agentv_ci.contracts.plan_evaluators import PlanPairwiseJudgeEvaluator as PlanPairwiseJudgeEvaluator
    from agentv_ci.contracts.plan_evaluators import PlanSchemaEvaluator as PlanSchemaEvaluator
    from agentv_ci.contracts.plan_evaluators import PlanScript as PlanScript
    from agentv_ci.contracts.plan_evaluators import PlanWeightedAverage as PlanWeightedAverage
    from agentv_ci.contracts.plan_judges import PlanLlmJudgeEvaluator as PlanLlmJudgeEvaluator
    from agentv_ci.contracts.plan_judges import PlanRubric as PlanRubric
    from agentv_ci.contracts.plan_judges import PlanRubricEvaluator as PlanRubricEvaluator
    from agentv_ci.contracts.plan_workspace import PlanCommit as PlanCommit
    from agentv_ci.contracts.plan_workspace import PlanFolder as PlanFolder
    from agentv_ci.contracts.plan_workspace import PlanWorkspace as PlanWorkspace
else:
    PlanCommit = later("PlanCommit", "plan_workspace")
    PlanFolder = later("PlanFolder", "plan_workspace")
    PlanWorkspace = later("PlanWorkspace", "plan_workspace")
    PlanCodeAggregator = later("PlanCodeAggregator", "plan_evaluators")
    PlanCodeEvaluator = later("PlanCodeEvaluator", "plan_evaluators", "code")
    PlanCommandEvaluator = later("PlanCommandEvaluator", "plan_evaluators", "command")
    PlanCompositeEvaluator = later("PlanCompositeEvaluator", "plan_evaluators", "composite")
    PlanDiffEvaluator = later("PlanDiffEvaluator", "plan_evaluators", "diff")
    PlanJunitEvaluator = later("PlanJunitEvaluator", "plan_evaluators", "junit")
    PlanLlmJudgeAggregator = later("PlanLlmJudgeAggregator", "plan_evaluators")
    PlanSchemaEvaluator = later("PlanSchemaEvaluator", "plan_evaluators", "schema")
    PlanScript = later("PlanScript", "plan_evaluators")
    PlanWeightedAverage = later("PlanWeightedAverage", "plan_evaluators")
    PlanLlmJudgeEvaluator = later("PlanLlmJudgeEvaluator", "plan_judges", "llm_judge")
    PlanPairwiseJudgeEvaluator = later("PlanPairwiseJudgeEvaluator", "plan_evaluators", "pairwise_judge")
    PlanRubric = later("PlanRubric", "plan_judges")
    PlanRubricEvaluator = later("PlanRubricEvaluator", "plan_judges", "rubric")

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class FileText(Compiled):
    """The content of a referenced file."""

    path: str = Field(description="Path relative to the repository.")
    text: str = Field(description="Content of the file.")

    @property
    def content(self) -> bytes:
        """The content as bytes."""
        return self.text.encode("utf-8")


class FileBytes(Compiled):
    """The content of a referenced file that is not UTF-8."""

    path: str = Field(description="Path relative to the repository.")
    base64: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]*={0,2}$")] = Field(
        description="Content of the file in Base64 (RFC 4648)."
    )

    @property
    def content(self) -> bytes:
        """The content as bytes."""
        return b64decode(self.base64)

    @property
    def text(self) -> str:
        """The content as text, for plans that use it as a text."""
        return self.content.decode("utf-8", "replace")


PlanFile = FileText | FileBytes


class FileReference(Compiled):
    """A reference to a file in `files`."""

    path: str = Field(description="Path relative to the repository.")
    sha256: Sha256 = Field(description="Key in `files`.")


class TextPart(Compiled):
    """A text in a message, or an inline prompt."""

    type: Literal["text"] = "text"
    text: str = Field(description="The text.")


class FilePart(Compiled):
    """A file in a message; a guideline is replaced by its path, and its text comes first."""

    type: Literal["file", "guideline"] = Field(description="Whether the file is content or a guideline.")
    path: str = Field(description="Path relative to the repository.")
    sha256: Sha256 = Field(description="Key in `files`.")


class AttachmentPart(Compiled):
    """An image or a document in a message: a file, with `path`, `sha256` and `mediaType`, or a `url`."""

    type: AttachmentType = Field(description="Whether it is an image or a document.")
    path: str | None = Field(None, description="Path relative to the repository.")
    sha256: Sha256 | None = Field(None, description="Key in `files`.")
    media_type: str | None = Field(None, description="Media type of the file, or what the suffix of the URL suggests.")
    url: str | None = Field(None, description="URL of the file, which only the target reads.")

    @property
    def name(self) -> str:
        """The path or the URL."""
        return self.path or self.url or ""

    @property
    def file(self) -> FileReference | None:
        """The file; None for a URL."""
        if self.path is None or self.sha256 is None:
            return None
        return FileReference(path=self.path, sha256=self.sha256)


Prompt = TypeAliasType("Prompt", Annotated[TextPart | FilePart, Field(discriminator="type")])
Part = TypeAliasType("Part", Annotated[TextPart | FilePart | AttachmentPart, Field(discriminator="type")])


class PlanToolCall(Compiled):
    """A tool call of an expected message."""

    tool: Name = Field(description="Name of the tool.")
    input: JsonValue = Field(None, description="Arguments of the call.")
    output: JsonValue = Field(None, description="Result of the call.")


def json_text(value: JsonValue) -> str:
    """Return a structured value as text for agents and judges.

    Keys are sorted, so that their order in a plan does not matter.
    """
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)


class PlanMessage(Compiled):
    """A message of the conversation."""

    role: Role = Field(description="Role of the speaker.")
    name: Name | None = Field(None, description="Name of the speaker.")
    content: Items[Part] = Field((), description="Content of the message.")
    value: JsonObject | None = Field(None, description="Structured answer instead of `content`.")
    tool_calls: Items[PlanToolCall] = Field((), description="Tool calls the assistant should make.")

    def text(self, part_text: Callable[[Part], str]) -> str:
        """Return the content as text, each part rendered by `part_text`."""
        if self.value is not None:
            return json_text(self.value)
        return "\n\n".join(text for part in self.content if (text := part_text(part)))

    @property
    def outline(self) -> str:
        """The content as text, with paths instead of file contents."""
        return self.text(part_outline)


def part_outline(part: Part) -> str:
    """Return a part as text, with the path of a file instead of its content."""
    match part:
        case TextPart():
            return part.text.strip()
        case FilePart(type="guideline"):
            return f"<Attached: {part.path}>"
        case FilePart():
            return f'<file: path="{part.path}">'
        case AttachmentPart():
            return f"<{part.type}: {part.name}>"


class PlanEvaluatorSettings(EvaluatorFacts, Compiled):
    """Settings of every evaluator."""

    name: Name = Field(description="Name in the results.")
    weight: float = Field(1.0, ge=0, description="Weight in the score of the case.")
    required: bool = Field(
        False, description="Whether the trial fails if this evaluator does not pass, whatever the score."
    )
    min_score: Share | None = Field(None, description="Minimum score to pass; default: the case's threshold.")
    negate: bool = Field(False, description="Use 1 − score.")


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
    Items[Annotated[PlanEvaluator, ByKind("type", authored=False), AfterValidator(_with_name)]], Field(min_length=1)
]


class PlanGate(Compiled):
    """Thresholds that the suite must meet."""

    min_pass_rate: Share = Field(1.0, description="Minimum share of graded cases that pass.")
    min_mean_score: Share | None = Field(None, description="Minimum mean score of graded cases.")
    max_errors: NonNegative = Field(0, description="Maximum number of errors.")
    max_cost_usd: Annotated[float, Field(ge=0)] | None = Field(None, description="Maximum cost, including judges.")
    max_increases: Increases | None = Field(
        None, description="Metric → maximum increase against a baseline, as a share."
    )
    undecided: WhenUndecided | None = Field(None, description="What an undecided comparison counts as; null: neither.")
    validators: Literal["error", "warn"] = Field("error", description="Whether validator errors fail the gate.")
    min_kill_rate: Share | None = Field(None, description="Minimum share of killed mutants in a proof.")
    null_agents: NullAgentsGate | None = Field(None, description="Whether cases that null agents pass fail a proof.")
    accept: Items[WrongAnswer] | None = Field(None, description="Null agents and operators that a proof does not try.")


class PlanValidator(Compiled):
    """A validator with its settings."""

    key: Name = Field(description="Name of the validator.")
    context: JsonObject = Field(default_factory=dict, description="Settings of the validator.")


class PlanSuite(Compiled):
    """An eval file."""

    path: str = Field(description="Path relative to the repository.")
    dataset: str = Field(description="Name in the results.")
    description: str | None = Field(None, description="Description of the eval file.")
    validators: Items[PlanValidator] = Field((), description="Validators that check the finished run.")
    prices: dict[str, Price] = Field(
        default_factory=dict,
        description="Model → price set by the author; other prices are those of the tool that runs the plan.",
    )
    gate: PlanGate = Field(description="Thresholds of the suite.")


JUDGED = (PlanLlmJudgeEvaluator, PlanRubricEvaluator, PlanPairwiseJudgeEvaluator, PlanLlmJudgeAggregator)
"""What a judge scores."""


class PlanSource(Compiled):
    """Position of a case in its eval file, from 1."""

    path: str = Field(description="The eval file.")
    line: AtLeastOne = Field(description="First line.")
    column: AtLeastOne = Field(description="First column.")
    end_line: AtLeastOne = Field(description="Last line.")


class PlanCase(Compiled):
    """One case, with all defaults filled in."""

    id: Name = Field(description="Id, unique in the suite for each target or arm.")
    suite: str = Field(description="Path of its suite.")
    digest: Sha256 = Field(description="Changes if and only if something changes that can affect a result.")
    source: PlanSource = Field(description="Position in the eval file.")
    conversation_id: str | None = Field(None, description="Id that groups the cases of one conversation.")
    target: str = Field(description="Key of the target that answers.")
    arm: Name | None = Field(None, description="Arm of an experiment that it belongs to.")
    judge_target: str | None = Field(None, description="Key of the target that judges.")
    system_prompt: str | None = Field(None, description="System prompt of model APIs; default: the target's.")
    input_messages: Items[PlanMessage] = Field(description="Messages for the agent.")
    expected_messages: Items[PlanMessage] = Field(description="Messages of a good answer.")
    expected_outcome: str = Field(description="What a good answer achieves.")
    reference_answer: str = Field(description="Last expected assistant message, as text.")
    guidelines: Items[FileReference] = Field(description="Guideline files.")
    evaluators: PlanEvaluators = Field(description="Evaluators of the answer.")
    trials: AtLeastOne = Field(description="Number of trials.")
    require: Require = Field(description="Trials that must pass.")
    stop_when: Literal["decided"] | None = Field(
        None, description="`decided`: skip the remaining trials when they cannot change whether the case passes."
    )
    seeds: Items[Integer] = Field(description="Seeds of the trials; the n-th trial uses the n-th seed.")
    timeout_seconds: Positive = Field(description="Time limit of an attempt, in seconds.")
    max_retries: NonNegative = Field(description="Retries after a timeout or a failed command.")
    max_cost_usd: Positive | None = Field(None, description="Most that its trials may cost before no more begin.")
    max_requests: AtLeastOne | None = Field(None, description="Most requests of its trials before no more begin.")
    threshold: Share = Field(description="Minimum score to pass.")
    workspace: PlanWorkspace | None = Field(None, description="Folder in which the agent works.")
    tags: Items[Name] | None = Field(None, description="Labels of the case.")
    skip: Name | None = Field(None, description="Why the case is not run.")
    accept: dict[WrongAnswer, Name] | None = Field(
        None, description="Null agents and operators that `prove` does not try, each with the reason."
    )
    metadata: JsonObject = Field(description="The author's data.")

    @property
    def reference_calls(self) -> tuple[PlanToolCall, ...]:
        """Tool calls of a good answer, in order."""
        return tuple(call for message in self.expected_messages for call in message.tool_calls)

    @property
    def judges(self) -> tuple[str, ...]:
        """Keys of the targets that judge its answers."""
        return tuple(part.target for part in _scoring(self.evaluators) if isinstance(part, JUDGED))


class Plan(Compiled):
    """A compiled run."""

    schema_: str = Field(alias="$schema", description="This schema's $id.")
    digest: Sha256 = Field(description="Digest of everything else in the plan.")
    suites: Items[PlanSuite] = Field(description="The eval files, in order.")
    targets: dict[str, Annotated[Target, ByKind("provider", authored=False)]] = Field(
        description="Key → target, with environment references."
    )
    files: dict[Sha256, PlanFile] = Field(
        description="SHA-256 → text of a referenced file, or Base64 if it is not text."
    )
    cases: Items[PlanCase] = Field(description="The cases, in order; one for each target that is asked, or arm.")

    def key_of(self, case: CaseHead) -> CaseKey:
        """Return the key of a case."""
        return case.suite, case.id, case.arm or self.targets[case.target].name


def seed_of(case: PlanCase, trial: int) -> int | None:
    """Return the seed of a trial; trials count from 1."""
    return case.seeds[trial - 1] if trial <= len(case.seeds) else None


def flat(evaluators: Iterable[PlanEvaluator]) -> Iterator[PlanEvaluator]:
    """Yield evaluators, each followed by its members."""
    for each in evaluators:
        yield each
        if isinstance(each, PlanCompositeEvaluator):
            yield from flat(each.evaluators)


def targets_of(case: CaseHead) -> Iterator[str]:
    """Yield the keys of all targets that a case uses; not `judge_target` if no evaluator uses it."""
    yield case.target
    yield from case.judges


def outcomes_of(case: PlanCase) -> frozenset[str]:
    """Return the names of the evaluators that score what the agent leaves behind, themselves or with a member."""
    return frozenset(each.name for each in case.evaluators if any(one.needs_workspace for one in flat([each])))


def needs_judge(evaluator: PlanEvaluator) -> bool:
    """Whether a judge scores, or scores for a member."""
    return any(isinstance(part, JUDGED) for part in _scoring([evaluator]))


def named_targets(case: PlanCase) -> Iterator[str]:
    """Yield the keys of all targets that a case names, used or not."""
    yield from targets_of(case)
    if case.judge_target is not None:
        yield case.judge_target


def files_of(case: PlanCase) -> Iterator[FileReference | FilePart]:
    """Yield all files that a case needs."""
    for message in (*case.input_messages, *case.expected_messages):
        yield from (part for part in message.content if isinstance(part, FilePart))
    yield from attached_files(case.input_messages)
    yield from case.guidelines
    if case.workspace is not None:
        yield from case.workspace.references
    for part in _scoring(case.evaluators):
        if isinstance(part, PlanScript):
            yield from part.files
        elif isinstance(part, (PlanCommandEvaluator, PlanJunitEvaluator)):
            yield from part.files.values()
        elif isinstance(part, PlanDiffEvaluator) and part.golden is not None:
            yield part.golden
        elif isinstance(part, (PlanLlmJudgeEvaluator, PlanLlmJudgeAggregator)) and isinstance(part.prompt, FilePart):
            yield part.prompt


def attached_files(messages: Iterable[PlanMessage]) -> Iterator[FileReference]:
    """Yield the files of the images and documents in messages."""
    for part in (part for message in messages for part in message.content):
        if isinstance(part, AttachmentPart) and part.file is not None:
            yield part.file


def runs_in_suite(case: PlanCase, target: Target | None) -> bool:
    """Whether a command of a case, or of the target that answers it, runs in the folder of its suite."""
    scripts = (part for part in _scoring(case.evaluators) if isinstance(part, PlanScript))
    commands = [target] if isinstance(target, CliTarget) else []
    return any(getattr(part, "cwd", None) is None for part in (*scripts, *commands))


def _scoring(evaluators: Iterable[PlanEvaluator]) -> "Iterator[PlanEvaluator | PlanAggregator]":
    for each in flat(evaluators):
        yield each
        if isinstance(each, PlanCompositeEvaluator):
            yield each.aggregator
