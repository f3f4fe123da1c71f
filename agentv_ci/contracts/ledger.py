"""The ledger: what every case did in every run, as lines of JSON.

A run is a file: its first line describes the run, each other line a case. A year of nights has
200,000 lines, which msgspec reads five times faster than pydantic.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from agentv_ci.contracts.cases import CaseKey

Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Score = Annotated[float, Meta(ge=0, le=1)]


class _Line(
    Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind"
):
    """Fields that are absent have no value."""


class RunLine(_Line, frozen=True, tag="run"):
    """What holds for a whole run."""

    schema_version: Annotated[Literal[1], Meta(description="Version of this schema.")]
    run: Annotated[
        str,
        Meta(
            pattern="^[0-9a-f]{12}$", description="Id of the run, by its time and its other lines."
        ),
    ]
    time: Annotated[
        str,
        Meta(
            pattern="^[0-9]{4}(-[0-9]{2}){2}T([0-9]{2}:){2}[0-9]{2}Z$",
            description="Time of its last answer, UTC.",
        ),
    ]
    cases: Annotated[Count, Meta(description="Number of lines that follow.")]
    commit: Annotated[
        str | None,
        Meta(description="Commit of the repository; `-dirty` if its files had changed."),
    ] = None
    run_url: Annotated[
        Annotated[str, Meta(pattern="^https?://")] | None,
        Meta(description="Address of the run in CI."),
    ] = None


class JudgedAnswer(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What judges said of an answer."""

    answer: Annotated[
        str,
        Meta(
            pattern="^[0-9a-f]{8}$",
            description="The start of the SHA-256 of the answer, to recognise it.",
        ),
    ]
    score: Annotated[Score, Meta(description="Mean score of the evaluators that asked a judge.")]


class CaseLine(_Line, frozen=True, tag="case"):
    """What a case did in a run.

    What rarely changes comes first: git then stores little more than the rest of a line.
    """

    suite: Annotated[Text, Meta(description="The eval file, relative to the repository.")]
    id: Annotated[Text, Meta(description="Id of the case.")]
    target: Annotated[Text, Meta(description="Name of the target that answered.")]
    digest: Annotated[
        str, Meta(pattern="^[0-9a-f]{64}$", description="Digest of the case in the plan.")
    ]
    trials: Annotated[Count, Meta(description="Trials that ran.")]
    graded: Annotated[
        Count,
        Meta(
            description="Trials with a score, which is 0 after a crash; the others are errors of "
            "the infrastructure."
        ),
    ]
    passed: Annotated[Count, Meta(description="Trials that passed.")]
    verdict: Annotated[
        Literal["pass", "borderline", "fail", "error"], Meta(description="Verdict of the case.")
    ]
    model: Annotated[
        Text | None,
        Meta(description="Model that answered, as reported by the provider; several with commas."),
    ] = None
    cached: Annotated[
        bool, Meta(description="Whether all answers come from a cache or a recording.")
    ] = False
    crashed: Annotated[
        Count, Meta(description="Graded trials that crashed; earlier versions did not grade them.")
    ] = 0
    score: Annotated[
        Score | None, Meta(description="Mean score of the graded trials, to 4 decimals.")
    ] = None
    cost_usd: Annotated[
        Annotated[float, Meta(ge=0, le=1e9)] | None,
        Meta(
            description="Known cost of answers and judges, to 3 significant digits; absent if "
            "unknown or cached."
        ),
    ] = None
    duration_ms: Annotated[
        Count | None,
        Meta(
            description="Mean duration of the answers; absent if there are none, or only cached "
            "ones."
        ),
    ] = None
    judged: Annotated[
        tuple[JudgedAnswer, ...],
        Meta(description="The answers that judges scored, in the order of the trials."),
    ] = ()

    @property
    def key(self) -> CaseKey:
        """Suite, id and target."""
        return self.suite, self.id, self.target

    @property
    def flaky(self) -> bool:
        """Whether its graded trials disagree."""
        return 0 < self.passed < self.graded


LedgerLine = RunLine | CaseLine


class LedgerRun(Struct, frozen=True):
    """A run in a ledger."""

    head: RunLine
    cases: tuple[CaseLine, ...]


class Damage(Struct, frozen=True):
    """A file or line of a ledger that is not used."""

    place: str
    """File and number of the line, such as `2026-11/20261124T021500Z-3f2a9c1e0b7d.jsonl:7`."""
    reason: str


class Ledger(Struct, frozen=True):
    """What was read of a ledger.

    All texts in it are those of its writers: renderers make them inert.
    """

    source: str
    """Where it was read, such as `refs/remotes/origin/agentv-history (1f2e3d4)`, or a folder."""
    runs: tuple[LedgerRun, ...]
    """The oldest first."""
    damaged: tuple[Damage, ...]
