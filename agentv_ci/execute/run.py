"""What a run is given, what it works with, and what it tells besides its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from agentv_ci.contracts.exchange import Environment, GradeAnswer, Log, Warn
from agentv_ci.contracts.report import ConcurrencyChange, Stop
from agentv_ci.execute.materials import Materials
from agentv_ci.redaction import Redactor
from agentv_ci.results.journal import Journal


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a plan is run; nothing here changes what a case means."""

    root: Path
    """The repository the plan's paths are relative to."""
    logs: Path = Path(".agentv", "logs")
    """Where agents' logs go."""
    workers: int | None = None
    dry_run: bool = False
    include_trace: bool = False
    fail_fast: bool = False
    max_cost_usd: float | None = None
    """Bounds the whole run; the suites of the plan may have bounds of their own."""
    shards: int = 1
    """In how many parts the plan runs; each has its share of the budgets."""
    cache: Path | None = None
    record: Path | None = None
    replay: Path | None = None
    prompts: Path | None = None
    """Where prompts are dumped."""
    traces: Path | None = None
    """Where messages of answers are dumped."""


@dataclass(slots=True)
class Progress:
    """How far a run is, in trials."""

    total: int
    done: int = 0
    running: int = 0
    passed: int = 0
    failed: int = 0
    errored: int = 0
    retries: int = 0
    """Questions and attempts that were repeated."""
    cost_usd: float = 0.0
    """Of answers and judges so far."""


@dataclass(slots=True)
class Account:
    """What a run has to tell besides its rows; complete when it has ended, however it has."""

    stopped: Stop | None = None
    """Why there is more in the plan than has run."""
    concurrency: list[ConcurrencyChange] = field(default_factory=list)
    unpriced_models: tuple[str, ...] = ()
    unrecorded: int = 0
    """Questions of a replay that had no recording."""
    write_error: str | None = None
    """Why something is missing of what was to be kept."""


@dataclass(frozen=True, slots=True)
class Means:
    """What a run works with."""

    grade: GradeAnswer
    journal: Journal
    """Takes a row the moment its trial ends."""
    materials: Materials
    environment: Environment
    log: Log
    warn: Warn
    progress: Progress
    """Kept up to date for whoever shows it."""
    redactor: Redactor
    """Takes secrets out of answers, errors and log lines, where they enter."""
    account: Account
