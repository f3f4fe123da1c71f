"""The health of an eval set: what its ledger says of cases and of those who answer and judge them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agentv_ci.contracts.base import Items, Name, NonNegative, Recorded, Share
from agentv_ci.contracts.diagnostics import Severity

HealthKind = Literal[
    "broken",
    "dead",
    "drifting-judge",
    "drifting-provider",
    "flaky",
    "model-changed",
    "saturated",
    "redundant",
    "slow",
    "expensive",
]
"""Kinds of findings, the most urgent first."""


class HealthFinding(Recorded):
    """What is wrong with a case for one target, or with a target."""

    kind: HealthKind = Field(description="Kind of finding.")
    severity: Severity = Field(description="`warning`: verdicts are not what they seem; `info`: worth a look.")
    suite: Name | None = Field(description="The eval file; null for a whole target.")
    id: Name | None = Field(description="The case's id; null for a whole target.")
    target: Name = Field(description="Name of the target.")
    message: str = Field(description="What was found.")
    action: str = Field(description="What to do.")
    runs: NonNegative = Field(description="Runs that it was found in: those since the case was changed last.")
    since: str | None = Field(None, description="Time of the first run with it: ISO 8601, UTC; null for all runs.")
    commit: str | None = Field(None, description="Commit of that run.")
    run_url: str | None = Field(None, description="Address of that run.")
    before: float | None = Field(None, description="Level before, such as a mean score.")
    after: float | None = Field(None, description="Level since then; of flaky cases, the pass rate.")
    fell_from: float | None = Field(None, description="Mean score before the first fall; null if it is back there.")
    model_before: str | None = Field(None, description="Model that the provider reported before.")
    model_after: str | None = Field(None, description="Model that it reported since then.")
    same_as: Items[Name] = Field((), description="Ids of cases with the same verdicts.")


class HealthReport(Recorded):
    """What `history health --format json` prints."""

    schema_: str = Field(alias="$schema", description="This schema's $id.")
    source: str = Field(description="Branch and commit, or folder, of the ledger.")
    runs: NonNegative = Field(description="Runs that were read.")
    first: str | None = Field(description="Time of the oldest of them.")
    last: str | None = Field(description="Time of the newest.")
    cases: NonNegative = Field(description="Cases of the newest runs, counted for each target.")
    unjudged: NonNegative = Field(description="Cases with too few runs since they were changed last.")
    false_alarms: Share = Field(description="Highest probability that any drift in this report is chance.")
    trial_correlation: Share | None = Field(
        None, description="Correlation of trials of the same case and run, across runs; null if too few show it."
    )
    findings: Items[HealthFinding] = Field(description="The findings, the most urgent first.")
    damaged: Items[str] = Field(description="Files and lines of the ledger that are not used, and why.")
