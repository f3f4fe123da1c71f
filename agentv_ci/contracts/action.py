"""Files that the steps of the GitHub Action exchange.

One step runs without a token, the next one publishes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct
from pydantic import Field

from agentv_ci.contracts.base import Items, Recorded

ActionVerdict = Literal["pass", "fail", "error", "invalid", "nothing", "budget", "undecided"]
Level = Literal["error", "warning", "notice"]
Prove = Literal["off", "report", "gate"]
"""Whether cases are proven before they run, and whether the proof decides about the verdict, too.
"""

RESULTS = "results.jsonl"
JUNIT = "junit.xml"
HTML = "report.html"
PLAN = "plan.json"
PLAN_DIFF = "plan-diff.json"
PROOF = "proof.json"
DIAGNOSTICS = "diagnostics.json"
RUN = "run.json"
COMMENT = "comment.md"


class ActionRun(Recorded):
    """The result of a run in a workflow."""

    exit_code: Annotated[int, Field(ge=0, le=255)] = Field(
        description="Exit code of `eval` or `validate`."
    )
    verdict: ActionVerdict = Field(description="The exit code as a verdict.")
    reason: str | None = Field(None, description="Why there is no run report, or an empty one.")
    hint: str | None = Field(None, description="What to do about it.")
    path: str | None = Field(None, description="File that the reason is about.")
    line: Annotated[int, Field(ge=1)] | None = Field(None, description="Line in that file.")
    validate_only: bool = Field(
        False, description="Whether documents were only checked, without running them."
    )
    narrowed: bool = Field(
        False, description="Whether options left cases out; the history does not take such a run."
    )
    use: str | None = Field(
        None, description="Digest that identifies this use of the action in the workflow."
    )
    run_id: int = Field(0, description="GitHub's id of the workflow run; 0 without one.")
    root: str = Field(description="Folder of the repository in the run; paths are relative to it.")


class PastRun(Recorded):
    """The figures of an earlier run in a comment."""

    run_id: Annotated[int, Field(ge=0)] = Field(description="GitHub's id of the workflow run.")
    attempt: Annotated[int, Field(ge=0)] = Field(description="Attempt of the workflow run.")
    sha: Annotated[str, Field(pattern=r"^[0-9a-f]{7,64}$")] = Field(description="The commit.")
    at: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}$")] = Field(
        description="When, in UTC."
    )
    verdict: ActionVerdict = Field(description="Verdict of the run.")
    passed: int | None = Field(None, description="Cases that passed.")
    total: int | None = Field(None, description="All cases.")
    mean: float | None = Field(None, description="Mean score.")
    cost_usd: float | None = Field(None, description="Known cost.")


class History(Recorded):
    """The last runs of a pull request, newest first."""

    runs: Items[PastRun] = Field(description="The runs.")


class Annotation(Struct, frozen=True):
    """A message that GitHub shows on a line of a file."""

    level: Level
    title: str
    message: str
    path: str | None = None
    """Relative to the repository; None without a file."""
    line: int | None = None
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None
    is_failure: bool = False
    """Whether it is about a case that did not pass; a warning if the gate allows that."""
