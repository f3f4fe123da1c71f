"""The plan: everything a run needs, compiled from the documents and nothing else.

It holds no time, no tool version, no secret and no absolute path that the author did not write.
Paths are relative to the repository and use `/`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from agentv_ci.contracts.base import (
    AtLeastOne,
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
from agentv_ci.contracts.config import Price
from agentv_ci.contracts.evals import Role
from agentv_ci.contracts.evaluators import EmbeddedEvaluator, EvaluatorFacts
from agentv_ci.contracts.targets import CliTarget, Target

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class FileText(Compiled):
    """The text of a referenced file."""

    path: str = Field(description="Where it lies.")
    text: str = Field(description="Its content.")


class FileReference(Compiled):
    """A file of the plan's `files`."""

    path: str = Field(description="Where it lies.")
    sha256: Sha256 = Field(description="Its key in `files`.")


class TextPart(Compiled):
    """A text inside a message or a prompt written in place."""

    type: Literal["text"] = "text"
    text: str = Field(description="The text.")


class FilePart(Compiled):
    """A file inside a message; a guideline is split off and only named where it stood."""

    type: Literal["file", "guideline"] = Field(description="Whether the agent gets it as content or as a guideline.")
    path: str = Field(description="Where it lies.")
    sha256: Sha256 = Field(description="Its key in `files`.")


Part = TypeAliasType("Part", Annotated[TextPart | FilePart, Field(discriminator="type")])


class PlanToolCall(Compiled):
    """A tool call of an expected answer."""

    tool: Name = Field(description="The tool's name.")
    input: JsonValue = Field(None, description="Its arguments.")
    output: JsonValue = Field(None, description="What it returned.")


def json_text(value: JsonValue) -> str:
    """Return a structured value as agents and judges read it.

    Keys are sorted: a plan that was written again by another tool has them in another order, and asks the same.
    """
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)


class PlanMessage(Compiled):
    """A turn of the conversation."""

    role: Role = Field(description="Who speaks.")
    name: Name | None = Field(None, description="A name for the speaker.")
    content: Items[Part] = Field((), description="What is said.")
    value: JsonObject | None = Field(None, description="A structured answer, in place of `content`.")
    tool_calls: Items[PlanToolCall] = Field((), description="Calls the assistant should make.")

    def text(self, part_text: Callable[[Part], str]) -> str:
        """Return what is said, each part as `part_text` has it."""
        if self.value is not None:
            return json_text(self.value)
        return "\n\n".join(text for part in self.content if (text := part_text(part)))

    @property
    def outline(self) -> str:
        """What is said; files are named, not shown."""
        return self.text(part_outline)


def part_outline(part: Part) -> str:
    """Return a part for readers who open files themselves."""
    match part:
        case TextPart():
            return part.text.strip()
        case FilePart(type="guideline"):
            return f"<Attached: {part.path}>"
        case FilePart():
            return f'<file: path="{part.path}">'


class PlanEvaluatorSettings(EvaluatorFacts, Compiled):
    """What every evaluator has."""

    name: Name = Field(description="How results call this evaluator.")
    weight: float = Field(1.0, ge=0, description="Its share in the case's score.")
    required: bool = Field(False, description="Failing it fails the case whatever the mean.")
    min_score: Share | None = Field(None, description="Its own pass line; default: the case's threshold.")
    negate: bool = Field(False, description="Count 1 − score.")


class PlanScript(Compiled):
    """A command, with the files of the repository that belong to it."""

    argv: Annotated[Items[str], Field(min_length=1)] | None = Field(
        None, description="Program and arguments; a path of `files` means that file."
    )
    command: str | None = Field(None, description="A command for a shell; in place of `argv`.")
    files: Items[FileReference] = Field((), description="The script and the files that belong to it.")


class PlanCodeEvaluator(PlanScript, PlanEvaluatorSettings):
    """A script that scores."""

    waits: ClassVar[bool] = True
    reads_trace: ClassVar[bool] = True

    type: Literal["code"] = "code"
    cwd: str | None = Field(None, description="Where it runs; default: the folder of the suite.")
    timeout_seconds: Positive | None = Field(None, description="Longest run; default: the case's timeout.")
    config: JsonObject = Field(default_factory=dict, description="Handed to the script as `config`.")


class PlanRubric(Compiled):
    """One criterion that is met or not."""

    id: Name = Field(description="Unique in its list.")
    description: Name = Field(description="What must be true of the answer.")
    weight: float = Field(1.0, ge=0, description="Its share in the score.")
    required: bool = Field(True, description="Missing it fails the case, whatever the score.")


class PlanLlmJudgeEvaluator(PlanEvaluatorSettings):
    """A model that judges."""

    waits: ClassVar[bool] = True

    type: Literal["llm_judge"] = "llm_judge"
    prompt: Part | None = Field(None, description="A custom prompt; absent = the built-in one.")
    rubrics: Items[PlanRubric] | None = Field(None, description="Criteria to go through one by one.")
    target: str = Field(description="Key of the judging target.")
    judge_retries: NonNegative = Field(2, description="Asks again after an unreadable reply.")
    temperature: float | None = Field(None, description="Sampling temperature of the judge.")
    max_output_tokens: Integer | None = Field(None, description="Longest reply of the judge.")


class PlanRubricEvaluator(PlanEvaluatorSettings):
    """Criteria that a model checks one by one."""

    waits: ClassVar[bool] = True

    type: Literal["rubric"] = "rubric"
    rubrics: Items[PlanRubric] = Field(description="The criteria.")
    target: str = Field(description="Key of the judging target.")
    judge_retries: NonNegative = Field(2, description="Asks again after an unreadable reply.")


class PlanSchemaEvaluator(PlanEvaluatorSettings):
    """A JSON Schema, bundled: it refers to nothing outside itself."""

    waits: ClassVar[bool] = True

    type: Literal["schema"] = "schema"
    schema_: JsonObject | bool = Field(alias="schema", description="The schema.")
    format: Literal["json", "yaml"] = Field(description="How the answer is written.")


class PlanWeightedAverage(Compiled):
    """The members' weighted mean."""

    type: Literal["weighted_average"] = "weighted_average"
    weights: dict[str, float] = Field(description="Member → weight; all members are named.")


class PlanCodeAggregator(PlanScript):
    """A script that makes one score of the members' scores; it runs in the folder of the suite."""

    type: Literal["code"] = "code"


class PlanLlmJudgeAggregator(Compiled):
    """A model that makes one score of the members' scores."""

    type: Literal["llm_judge"] = "llm_judge"
    prompt: Part | None = Field(None, description="A custom prompt; absent = the built-in one.")
    target: str = Field(description="Key of the judging target.")


PlanAggregator = Annotated[
    PlanWeightedAverage | PlanCodeAggregator | PlanLlmJudgeAggregator, Field(discriminator="type")
]


class PlanCompositeEvaluator(PlanEvaluatorSettings):
    """Several evaluators that make one score."""

    waits: ClassVar[bool] = True

    type: Literal["composite"] = "composite"
    evaluators: Annotated[Items[PlanEvaluator], Field(min_length=1)] = Field(description="The members.")
    aggregator: PlanAggregator = Field(description="How members make one score.")


PlanEvaluator = TypeAliasType(
    "PlanEvaluator",
    Annotated[
        PlanCodeEvaluator
        | PlanLlmJudgeEvaluator
        | PlanRubricEvaluator
        | PlanCompositeEvaluator
        | PlanSchemaEvaluator
        | EmbeddedEvaluator,
        Field(discriminator="type"),
    ],
)


class PlanGate(Compiled):
    """What the suite must reach."""

    min_pass_rate: Share = Field(1.0, description="Least share of graded cases that pass.")
    min_mean_score: Share | None = Field(None, description="Least mean score of graded cases.")
    max_errors: NonNegative = Field(0, description="Most errors.")
    max_cost_usd: Annotated[float, Field(ge=0)] | None = Field(
        None, description="Most the run may cost, judges included."
    )
    validators: Literal["error", "warn"] = Field(
        "error", description="Whether errors that validators find fail the gate."
    )


class PlanValidator(Compiled):
    """A check of the finished run."""

    key: Name = Field(description="The validator's name.")
    context: JsonObject = Field(default_factory=dict, description="Its settings.")


class PlanSuite(Compiled):
    """An eval file."""

    path: str = Field(description="Where it lies.")
    dataset: str = Field(description="A name for the results.")
    description: str | None = Field(None, description="What it checks.")
    validators: Items[PlanValidator] = Field((), description="Checks of its finished run.")
    prices: dict[str, Price] = Field(
        default_factory=dict, description="Model → the price the author set; other models have that of the reader."
    )
    gate: PlanGate = Field(description="What it must reach.")


class PlanSource(Compiled):
    """Where a case stands in its eval file, from 1."""

    path: str = Field(description="The eval file.")
    line: AtLeastOne = Field(description="First line.")
    column: AtLeastOne = Field(description="First column.")
    end_line: AtLeastOne = Field(description="Last line.")


class PlanCase(Compiled):
    """One case, with all defaults filled in."""

    id: Name = Field(description="Unique in its suite.")
    suite: str = Field(description="Path of its suite.")
    digest: Sha256 = Field(description="Changes with everything that can change a result, and with nothing else.")
    source: PlanSource = Field(description="Where the author wrote it.")
    conversation_id: str | None = Field(None, description="Groups cases of one conversation.")
    target: str = Field(description="Key of the answering target.")
    judge_target: str | None = Field(None, description="Key of the judging target.")
    input_messages: Items[PlanMessage] = Field(description="What the agent gets.")
    expected_messages: Items[PlanMessage] = Field(description="A good answer.")
    expected_outcome: str = Field(description="What a good answer achieves.")
    reference_answer: str = Field(description="The last expected assistant message, as text.")
    guidelines: Items[FileReference] = Field(description="Files the agent must follow.")
    evaluators: Annotated[Items[PlanEvaluator], Field(min_length=1)] = Field(description="How the answer is scored.")
    trials: AtLeastOne = Field(description="How often it runs.")
    require: Require = Field(description="How many trials must pass.")
    stop_when: Literal["decided"] | None = Field(
        None, description="Whether trials end when the rest cannot change the verdict."
    )
    seeds: Items[Integer] = Field(description="The n-th trial uses the n-th.")
    timeout_seconds: Positive = Field(description="Longest attempt.")
    max_retries: NonNegative = Field(description="Attempts again.")
    threshold: Share = Field(description="Score at which the case passes.")
    metadata: JsonObject = Field(description="The author's own.")


class Plan(Compiled):
    """A compiled run."""

    schema_: str = Field(alias="$schema", description="This schema's $id.")
    digest: Sha256 = Field(description="Of everything else in the plan.")
    suites: Items[PlanSuite] = Field(description="The eval files, in order.")
    targets: dict[str, Target] = Field(description="Key → target; environment references are kept.")
    files: dict[Sha256, FileText] = Field(description="Every referenced text once.")
    cases: Items[PlanCase] = Field(description="The cases, in order.")


CaseKey = tuple[str, str]
"""Suite and case id."""


def case_key(case: PlanCase) -> CaseKey:
    """Return what tells a case from all others of its plan."""
    return case.suite, case.id


def seed_of(case: PlanCase, trial: int) -> int | None:
    """Return the seed of a trial, which counts from 1."""
    return case.seeds[trial - 1] if trial <= len(case.seeds) else None


def flat(evaluators: Iterable[PlanEvaluator]) -> Iterator[PlanEvaluator]:
    """Yield evaluators, and the members of those that have some."""
    for each in evaluators:
        yield each
        if isinstance(each, PlanCompositeEvaluator):
            yield from flat(each.evaluators)


def targets_of(case: PlanCase) -> Iterator[str]:
    """Yield the keys of all targets that a case asks; its `judge_target` is only asked by evaluators that say so."""
    yield case.target
    yield from judges_of(case)


def judges_of(case: PlanCase) -> Iterator[str]:
    """Yield the keys of the targets that judge a case's answers."""
    for part in _scoring(case):
        if isinstance(part, (PlanLlmJudgeEvaluator, PlanRubricEvaluator, PlanLlmJudgeAggregator)):
            yield part.target


def named_targets(case: PlanCase) -> Iterator[str]:
    """Yield the keys of all targets that a case names, asked or not."""
    yield from targets_of(case)
    if case.judge_target is not None:
        yield case.judge_target


def files_of(case: PlanCase) -> Iterator[FileReference | FilePart]:
    """Yield all files that a case needs."""
    for message in (*case.input_messages, *case.expected_messages):
        yield from (part for part in message.content if isinstance(part, FilePart))
    yield from case.guidelines
    for part in _scoring(case):
        if isinstance(part, PlanScript):
            yield from part.files
        elif isinstance(part, (PlanLlmJudgeEvaluator, PlanLlmJudgeAggregator)) and isinstance(part.prompt, FilePart):
            yield part.prompt


def runs_in_suite(case: PlanCase, target: Target | None) -> bool:
    """Whether a command of a case, or of the target that answers it, runs in the folder of its suite."""
    scripts = (part for part in _scoring(case) if isinstance(part, PlanScript))
    commands = [target] if isinstance(target, CliTarget) else []
    return any(getattr(part, "cwd", None) is None for part in (*scripts, *commands))


def _scoring(case: PlanCase) -> Iterator[PlanEvaluator | PlanAggregator]:
    for each in flat(case.evaluators):
        yield each
        if isinstance(each, PlanCompositeEvaluator):
            yield each.aggregator
