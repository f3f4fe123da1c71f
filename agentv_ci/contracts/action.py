"""What the steps of the GitHub Action hand on: one runs and has no token, the next one publishes what it left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from agentv_ci.contracts.base import Items, Recorded

ActionVerdict = Literal["pass", "fail", "error", "invalid", "nothing", "budget"]
Level = Literal["error", "warning", "notice"]

RESULTS = "results.jsonl"
JUNIT = "junit.xml"
HTML = "report.html"
PLAN = "plan.json"
PLAN_DIFF = "plan-diff.json"
DIAGNOSTICS = "diagnostics.json"
RUN = "run.json"
COMMENT = "comment.md"


class ActionRun(Recorded):
    """How a run in a workflow ended."""

    exit_code: Annotated[int, Field(ge=0, le=255)] = Field(description="As `eval` or `validate` would end with.")
    verdict: ActionVerdict = Field(description="The same in a word.")
    reason: str | None = Field(None, description="Why there is no run report, or nothing in it.")
    hint: str | None = Field(None, description="What to do about it.")
    validate_only: bool = Field(False, description="Whether documents were checked and nobody was asked.")
    use: str | None = Field(None, description="Digest of what tells this use of the action from all others.")
    run_id: int = Field(0, description="GitHub's number of the workflow run; 0: it was none.")
    root: str = Field(description="The repository's folder, where the run was; paths are relative to it.")


class PastRun(Recorded):
    """What a comment remembers of a run: figures, never anybody's text."""

    run_id: Annotated[int, Field(ge=0)] = Field(description="GitHub's number of the workflow run.")
    attempt: Annotated[int, Field(ge=0)] = Field(description="Which attempt at it.")
    sha: Annotated[str, Field(pattern=r"^[0-9a-f]{7,64}$")] = Field(description="The commit.")
    at: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}$")] = Field(description="When, in UTC.")
    verdict: ActionVerdict = Field(description="What it came to.")
    passed: int | None = Field(None, description="Cases that passed.")
    total: int | None = Field(None, description="Cases.")
    mean: float | None = Field(None, description="Mean score.")
    cost_usd: float | None = Field(None, description="Cost, as far as it is known.")


class History(Recorded):
    """The last runs of a pull request, the newest first."""

    runs: Items[PastRun] = Field(description="The runs.")


@dataclass(frozen=True, slots=True)
class Annotation:
    """A remark that GitHub shows on a line of a file."""

    level: Level
    title: str
    message: str
    path: str | None = None
    """Relative to the repository; None: of no file."""
    line: int | None = None
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None
    is_failure: bool = False
    """Whether it is of a case that did not pass; where the gate allows that, it is a warning."""
