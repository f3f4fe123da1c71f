"""The proof of a plan: which wrong answers its cases let pass."""

from typing import Annotated, Literal

from pydantic import Field

from agentv_ci.contracts.base import AtLeastOne, Items, Name, NonNegative, Recorded, Share
from agentv_ci.contracts.diagnostics import Severity
from agentv_ci.contracts.gate import NullAgent, Operator, WrongAnswer
from agentv_ci.contracts.plan_parts import Sha256

Outcome = Literal["passes", "caught", "undecided"]
"""What becomes of a wrong answer; `undecided` if it depends on a judge, or an outcome, that was not
scored.
"""
Judges = Literal["skip", "replay", "live"]


class NullAgentRecord(Recorded):
    """A null agent and its answer to a case."""

    agent: NullAgent = Field(description="The null agent.")
    outcome: Outcome = Field(description="`undecided` if it depends on what was not scored.")
    evaluators: Items[Name] = Field(
        (), description="Of an answer that passes: the evaluators that let it through."
    )
    answer: str | None = Field(None, description="The answer that passes, shortened.")


class LeftOut(Recorded):
    """A null agent or an operator that is not tried, although it could be."""

    name: WrongAnswer = Field(description="The null agent or the operator.")
    reason: str = Field(description="Why it is not tried.")


class Survivor(Recorded):
    """A mutant that passes."""

    operator: Operator = Field(description="What was done to the reference answer.")
    change: str = Field(description="The change in a few words.")
    diff: str = Field(
        description="Unified diff from the reference answer to the mutant, shortened."
    )
    evaluators: Items[Name] = Field(description="The evaluators that let it through.")


class EvaluatorRecord(Recorded):
    """What the proof shows of an evaluator."""

    name: Name = Field(description="Name of the evaluator.")
    state: Literal["needed", "vacuous", "redundant", "untried", "unjudged"] = Field(
        description="`vacuous`: it passes every answer; `redundant`: without it each answer gets "
        "the same verdict; `untried`: no answer shows whether it is needed; `unjudged`: it needs a "
        "judge, which scored no answer."
    )
    errors: Items[Name] = Field(
        (), description="Null agents and operators whose answers it cannot score."
    )
    reason: str | None = Field(
        None, description="Why it, or its judge, cannot score the first of them, shortened."
    )
    same_as: Name | None = Field(
        None, description="An evaluator that gives each answer the same verdict."
    )
    judged: NonNegative = Field(0, description="Answers that its judge scored.")
    unjudged: NonNegative = Field(0, description="Answers that its judge did not score.")


class CaseProof(Recorded):
    """The proof of one case."""

    suite: Name = Field(description="The eval file, relative to the repository.")
    id: Name = Field(description="The case's id.")
    path: Name = Field(description="The file of the case, which may be one of data rows.")
    line: AtLeastOne = Field(description="First line of the case in that file.")
    template: AtLeastOne | None = Field(
        None, description="Of a data row: the line of its template in the eval file."
    )
    proven: bool = Field(
        description="Whether any answer that was scored passes or fails, whatever judges say that "
        "did not score."
    )
    reference: Literal["passes", "fails", "undecided", "none"] = Field(
        description="Whether the reference answer passes its own evaluators."
    )
    failed_by: Items[Name] = Field(
        (), description="The evaluators that the reference answer fails."
    )
    reference_error: str | None = Field(None, description="What the first of them says, shortened.")
    null_agents: Items[NullAgentRecord] = Field(description="The null agents that answered.")
    left_out: Items[LeftOut] = Field(
        (), description="Null agents and operators that are not tried."
    )
    mutants: NonNegative = Field(description="Mutants of a reference answer that passes.")
    killed: NonNegative = Field(description="Mutants that do not pass.")
    survived: NonNegative = Field(description="Mutants that pass; the others depend on a judge.")
    survivors: Items[Survivor] = Field((), description="The mutants that pass.")
    evaluators: Items[EvaluatorRecord] = Field(description="The evaluators of the case.")

    @property
    def passing(self) -> tuple[NullAgentRecord, ...]:
        """The null agents that pass."""
        return tuple(agent for agent in self.null_agents if agent.outcome == "passes")

    @property
    def kill_rate(self) -> float | None:
        """The share of killed mutants; None without any that could be judged."""
        return kill_rate(self.killed, self.survived)


def kill_rate(killed: int, survived: int) -> float | None:
    """Return the share of killed mutants, rounded down to 0.1 %: 1 means all of them."""
    tried = killed + survived
    return killed * 1_000 // tried / 1_000 if tried else None


class ProofFinding(Recorded):
    """One finding."""

    rule: Annotated[str, Field(pattern=r"^AV4\d{2}$")] = Field(description="The rule's id.")
    severity: Severity = Field(
        description="Errors fail the proof; of warnings, those that the gate names."
    )
    message: str = Field(description="What was found.")
    suite: Name = Field(description="The eval file of the case, relative to the repository.")
    path: str = Field(
        description="The file of the place: the eval file, or data rows whose template is not "
        "found."
    )
    line: AtLeastOne = Field(description="Line of the case, of its template or of the evaluator.")
    column: AtLeastOne = Field(description="Column.")
    case: str = Field(description="The case's id; of several cases of a template, the first one's.")
    cases: AtLeastOne = Field(1, description="Cases of the template that have the finding.")
    evaluators: Items[Name] = Field((), description="The evaluators that it is about.")
    hint: str | None = Field(None, description="What to do.")


class ProofSummary(Recorded):
    """Counts; undecided mutants are neither killed nor survivors."""

    cases: NonNegative = Field(description="Cases that were tried.")
    skipped: NonNegative = Field(description="Cases that their author skips, which were not tried.")
    unproven: NonNegative = Field(
        description="Cases in which no answer was scored, or none passes or fails without a judge."
    )
    without_reference: NonNegative = Field(
        description="Cases without a reference answer, and so without mutants."
    )
    without_mutants: NonNegative = Field(
        description="Cases whose reference answer passes, and in which nothing can be damaged."
    )
    passed_by_null_agents: NonNegative = Field(description="Cases that a null agent passes.")
    references_failed: NonNegative = Field(description="Cases whose reference answer fails.")
    mutants: NonNegative = Field(description="Mutants of all cases.")
    killed: NonNegative = Field(description="Mutants that do not pass.")
    survived: NonNegative = Field(description="Mutants that pass.")
    kill_rate: Share | None = Field(
        description="`killed` / (`killed` + `survived`), rounded down; null without any."
    )
    unjudged_evaluators: NonNegative = Field(
        description="Evaluators whose judge did not score all answers."
    )
    judgements: NonNegative = Field(
        description="Answers that judges scored, counted for each evaluator."
    )
    failed_judgements: NonNegative = Field(
        description="Answers that judges were to score, and did not."
    )
    judge_error: str | None = Field(None, description="Why the first of them was not scored.")

    @property
    def passed_text(self) -> str:
        """How many of the cases that are proven null agents pass."""
        proven = self.cases - self.unproven
        cases = "case" if proven == 1 else "cases"
        return f"{self.passed_by_null_agents} of {proven} {cases} can be passed by doing nothing"


class ProofGate(Recorded):
    """The decision about a proof."""

    passed: bool = Field(description="Whether it is.")
    reasons: Items[str] = Field((), description="Why it is not.")


class Proof(Recorded):
    """What `prove` writes."""

    schema_: str = Field(alias="$schema", description="This schema's $id.")
    plan_digest: Sha256 = Field(description="Digest of the plan.")
    seed: int = Field(description="Seed that chose mutants and answers of other cases.")
    judges: Judges = Field(description="Whether judges were left out, replayed or asked.")
    gate: ProofGate = Field(description="Whether the proof is good enough.")
    summary: ProofSummary = Field(description="Counts over all cases.")
    findings: Items[ProofFinding] = Field(description="The findings, by place.")
    cases: Items[CaseProof] = Field(description="The cases, in the order of the plan.")
