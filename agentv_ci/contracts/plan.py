"""The plan: everything a run needs, compiled from the documents alone.

It contains no time, no tool version, no secret and no absolute path that the author did not write.
Paths are relative to the repository and use `/`.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Annotated, Literal

from pydantic import Field

from agentv_ci.contracts.base import (
    AtLeastOne,
    ByKind,
    Compiled,
    Integer,
    Items,
    JsonObject,
    Name,
    NonNegative,
    Positive,
    Require,
    Share,
)
from agentv_ci.contracts.cases import CaseHead, CaseKey
from agentv_ci.contracts.cli_target import CliTarget
from agentv_ci.contracts.config import Price
from agentv_ci.contracts.gate import Increases, NullAgentsGate, WhenUndecided, WrongAnswer
from agentv_ci.contracts.plan_evaluators import (
    JUDGED,
    PlanCommandEvaluator,
    PlanDiffEvaluator,
    PlanEvaluators,
    PlanJunitEvaluator,
    PlanLlmJudgeAggregator,
    PlanLlmJudgeEvaluator,
    PlanScript,
    flat,
    scoring_parts,
)
from agentv_ci.contracts.plan_parts import (
    AttachmentPart,
    FilePart,
    FileReference,
    PlanFile,
    PlanMessage,
    PlanToolCall,
    PlanWorkspace,
    Sha256,
)
from agentv_ci.contracts.targets import Target


class PlanGate(Compiled):
    """Thresholds that the suite must meet."""

    min_pass_rate: Share = Field(1.0, description="Minimum share of graded cases that pass.")
    min_mean_score: Share | None = Field(None, description="Minimum mean score of graded cases.")
    max_errors: NonNegative = Field(0, description="Maximum number of errors.")
    max_cost_usd: Annotated[float, Field(ge=0)] | None = Field(
        None, description="Maximum cost, including judges."
    )
    max_increases: Increases | None = Field(
        None, description="Metric → maximum increase against a baseline, as a share."
    )
    undecided: WhenUndecided | None = Field(
        None, description="What an undecided comparison counts as; null: neither."
    )
    validators: Literal["error", "warn"] = Field(
        "error", description="Whether validator errors fail the gate."
    )
    min_kill_rate: Share | None = Field(
        None, description="Minimum share of killed mutants in a proof."
    )
    null_agents: NullAgentsGate | None = Field(
        None, description="Whether cases that null agents pass fail a proof."
    )
    accept: Items[WrongAnswer] | None = Field(
        None, description="Null agents and operators that a proof does not try."
    )


class PlanValidator(Compiled):
    """A validator with its settings."""

    key: Name = Field(description="Name of the validator.")
    context: JsonObject = Field(default_factory=dict, description="Settings of the validator.")


class PlanSuite(Compiled):
    """An eval file."""

    path: str = Field(description="Path relative to the repository.")
    dataset: str = Field(description="Name in the results.")
    description: str | None = Field(None, description="Description of the eval file.")
    validators: Items[PlanValidator] = Field(
        (), description="Validators that check the finished run."
    )
    prices: dict[str, Price] = Field(
        default_factory=dict,
        description="Model → price set by the author; other prices are those of the tool that runs "
        "the plan.",
    )
    gate: PlanGate = Field(description="Thresholds of the suite.")


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
    digest: Sha256 = Field(
        description="Changes if and only if something changes that can affect a result."
    )
    source: PlanSource = Field(description="Position in the eval file.")
    conversation_id: str | None = Field(
        None, description="Id that groups the cases of one conversation."
    )
    target: str = Field(description="Key of the target that answers.")
    arm: Name | None = Field(None, description="Arm of an experiment that it belongs to.")
    judge_target: str | None = Field(None, description="Key of the target that judges.")
    system_prompt: str | None = Field(
        None, description="System prompt of model APIs; default: the target's."
    )
    input_messages: Items[PlanMessage] = Field(description="Messages for the agent.")
    expected_messages: Items[PlanMessage] = Field(description="Messages of a good answer.")
    expected_outcome: str = Field(description="What a good answer achieves.")
    reference_answer: str = Field(description="Last expected assistant message, as text.")
    guidelines: Items[FileReference] = Field(description="Guideline files.")
    evaluators: PlanEvaluators = Field(description="Evaluators of the answer.")
    trials: AtLeastOne = Field(description="Number of trials.")
    require: Require = Field(description="Trials that must pass.")
    stop_when: Literal["decided"] | None = Field(
        None,
        description="`decided`: skip the remaining trials when they cannot change whether the case "
        "passes.",
    )
    seeds: Items[Integer] = Field(
        description="Seeds of the trials; the n-th trial uses the n-th seed."
    )
    timeout_seconds: Positive = Field(description="Time limit of an attempt, in seconds.")
    max_retries: NonNegative = Field(description="Retries after a timeout or a failed command.")
    max_cost_usd: Positive | None = Field(
        None, description="Most that its trials may cost before no more begin."
    )
    max_requests: AtLeastOne | None = Field(
        None, description="Most requests of its trials before no more begin."
    )
    threshold: Share = Field(description="Minimum score to pass.")
    workspace: PlanWorkspace | None = Field(None, description="Folder in which the agent works.")
    tags: Items[Name] | None = Field(None, description="Labels of the case.")
    skip: Name | None = Field(None, description="Why the case is not run.")
    accept: dict[WrongAnswer, Name] | None = Field(
        None,
        description="Null agents and operators that `prove` does not try, each with the reason.",
    )
    metadata: JsonObject = Field(description="The author's data.")

    @property
    def reference_calls(self) -> tuple[PlanToolCall, ...]:
        """Tool calls of a good answer, in order."""
        calls = (message.tool_calls for message in self.expected_messages)
        return tuple(chain.from_iterable(calls))

    @property
    def judges(self) -> tuple[str, ...]:
        """Keys of the targets that judge its answers."""
        return tuple(
            part.target for part in scoring_parts(self.evaluators) if isinstance(part, JUDGED)
        )


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
    cases: Items[PlanCase] = Field(
        description="The cases, in order; one for each target that is asked, or arm."
    )

    def key_of(self, case: CaseHead) -> CaseKey:
        """Return the key of a case."""
        return case.suite, case.id, case.arm or self.targets[case.target].name


def suites_by_path(plan: Plan) -> dict[str, PlanSuite]:
    """Return path → suite of a plan."""
    return {suite.path: suite for suite in plan.suites}


def seed_of(case: PlanCase, trial: int) -> int | None:
    """Return the seed of a trial; trials count from 1."""
    return case.seeds[trial - 1] if trial <= len(case.seeds) else None


def targets_of(case: CaseHead) -> Iterator[str]:
    """Yield the keys of all targets that a case uses.

    Not `judge_target` if no evaluator uses it.
    """
    yield case.target
    yield from case.judges


def outcomes_of(case: PlanCase) -> frozenset[str]:
    """Return the names of the evaluators that score what the agent leaves behind.

    A composite does if one of its members does.
    """
    return frozenset(
        evaluator.name
        for evaluator in case.evaluators
        if any(part.needs_workspace for part in flat([evaluator]))
    )


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
    for part in scoring_parts(case.evaluators):
        if isinstance(part, PlanScript):
            yield from part.files
        elif isinstance(part, (PlanCommandEvaluator, PlanJunitEvaluator)):
            yield from part.files.values()
        elif isinstance(part, PlanDiffEvaluator) and part.golden is not None:
            yield part.golden
        elif isinstance(part, (PlanLlmJudgeEvaluator, PlanLlmJudgeAggregator)) and isinstance(
            part.prompt, FilePart
        ):
            yield part.prompt


def attached_files(messages: Iterable[PlanMessage]) -> Iterator[FileReference]:
    """Yield the files of the images and documents in messages."""
    for part in chain.from_iterable(message.content for message in messages):
        if isinstance(part, AttachmentPart) and part.file is not None:
            yield part.file


def runs_in_suite(case: PlanCase, target: Target | None) -> bool:
    """Whether a command of a case or of the target that answers it runs in the suite's folder."""
    scripts = (part for part in scoring_parts(case.evaluators) if isinstance(part, PlanScript))
    commands = [target] if isinstance(target, CliTarget) else []
    return any(getattr(part, "cwd", None) is None for part in (*scripts, *commands))
