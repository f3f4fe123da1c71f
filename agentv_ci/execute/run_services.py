"""The options, services and progress of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from agentv_ci.base.redaction import NO_SECRETS, Redactor
from agentv_ci.base.text import shortened, without_commands
from agentv_ci.contracts.cases import CaseKey, case_name
from agentv_ci.contracts.exchange import (
    OF_CASE,
    Ask,
    Environment,
    Grade,
    Log,
    Request,
    Response,
    Warn,
)
from agentv_ci.contracts.results import ResultRow
from agentv_ci.execute.shard import Shard
from agentv_ci.results.rows import Trial, TrialKey
from agentv_ci.workspaces.places import Keep

if TYPE_CHECKING:
    from agentv_ci.contracts.against_base import AgainstBase
    from agentv_ci.contracts.gate import WhenUndecided
    from agentv_ci.contracts.quarantine import Quarantine

GradeAnswer = Callable[[Trial, Request, Response, Ask], Awaitable[Grade]]
"""Scores an answer."""

MAX_LOG_LINE = 4_000
MAX_WARNINGS = 1_000
"""Bounds the memory for telling repeated warnings apart."""
MAX_CASES = 3
"""Cases for which a warning is shown."""


class ClusterOptions(Struct, frozen=True):
    """The Dask cluster that runs a plan: one of these."""

    scheduler: str | None = None
    """The address of its scheduler."""
    local: int | None = None
    """How many workers to start on this machine."""


class RunOptions(Struct, frozen=True):
    """How a plan is run; none of it changes a case's digest."""

    root: Path
    """The repository the plan's paths are relative to."""
    logs: Path = Path(".agentv", "logs")
    """The folder for agents' logs."""
    workers: int | None = None
    dry_run: bool = False
    include_trace: bool = True
    fail_fast: bool = False
    max_cost_usd: float | None = None
    """The budget of the whole run; suites may have budgets of their own."""
    cache: Path | None = None
    record: Path | None = None
    replay: Path | None = None
    prompts: Path | None = None
    """The folder for dumped prompts."""
    traces: Path | None = None
    """The folder for dumped traces."""
    keep_workspaces: Keep = "none"
    """Which workspaces are kept."""
    cluster: ClusterOptions | None = None
    """The cluster that runs the trials; None: this process."""
    shard: Shard | None = None
    """The part of the plan that runs, with its share of the budgets."""
    balance: Path | None = None
    """Results with durations to balance the shards."""
    resume: Path | None = None
    """Results of an earlier run to continue."""
    baseline: Path | None = None
    """The baseline to compare with."""
    allows_changes: bool = False
    """Whether to compare although judges, models or tasks differ."""
    confirm: int | None = None
    """How many more trials suspects run if the comparison is undecided; None: none."""
    when_undecided: WhenUndecided | None = None
    """What an undecided comparison counts as; None: what the gate says."""
    quarantine: tuple[Quarantine, ...] = ()
    """Cases that do not gate."""
    against_base: AgainstBase | None = None
    """What the change that runs does to its own test."""
    command: str | None = None
    """The command that runs it; None: the run report has no origin."""
    again: tuple[str, ...] = ()
    """Options that matter when one of its cases is run again."""
    is_filtered: bool = False
    """Whether the plan has only some of the documents' cases."""

    @property
    def shards(self) -> int:
        """The number of shards."""
        if self.shard is None:
            return 1
        return self.shard.total

    @property
    def is_part(self) -> bool:
        """Whether only some of the documents' cases run."""
        return self.is_filtered or self.shard is not None


class Progress(Struct):
    """The progress of a run, in trials."""

    total: int
    done: int = 0
    now: dict[TrialKey, str] = field(default_factory=dict)
    """The trials that are running, the oldest first, each with its case."""
    passed: int = 0
    failed: int = 0
    errored: int = 0
    retries: int = 0
    """Repeated requests and attempts."""
    cost_usd: float = 0.0
    """The cost of answers and judges so far."""
    matrix: AbstractSet[tuple[str, str]] = frozenset()
    """Suite and id of the cases that several targets answer."""

    def name(self, key: CaseKey, trial: int, *, trials: int) -> str:
        """Return the name of a trial for people."""
        name = case_name(key, names_target=key[:2] in self.matrix)
        if trials > 1:
            return f"{name} (trial {trial})"
        return name

    @property
    def running(self) -> int:
        """How many trials are running."""
        return len(self.now)


def ignore(_: object) -> None:
    """Ignore a value."""


class RunServices(Struct, frozen=True):
    """What a run uses from outside."""

    environment: Environment
    log: Log = ignore
    warn: Warn = ignore
    note: Log = ignore
    """Takes notices, which are always shown."""
    watch: Callable[[Progress], None] = ignore
    """Gets the progress once, before the first case; the object is updated as the run goes on."""
    tell: Callable[[ResultRow], None] = ignore
    """Gets every row as soon as it is written."""
    redactor: Redactor = NO_SECRETS
    """Removes secrets from answers, errors and log lines."""

    def without_secrets(self, redactor: Redactor) -> RunServices:
        """Return services that remove secrets from messages."""
        log = RunLog(self.log, self.warn, redactor)
        return replace(
            self, log=ignore if self.log is ignore else log.log, warn=log.warn, redactor=redactor
        )


class RunLog(Struct):
    """Cleans messages of secrets and terminal commands.

    Shows each warning once, and for the first few cases.
    """

    show_line: Log
    show_warning: Warn
    redactor: Redactor
    _warnings: set[str] = field(default_factory=set)
    _cases: Counter[str] = field(default_factory=Counter)
    """How many cases a warning was about."""

    def log(self, line: str) -> None:
        """Show a line that is for `--verbose` only."""
        self.show_line(self._clean(line))

    def warn(self, sentence: str) -> None:
        """Show a warning, unless it was shown before."""
        if (line := self._clean(sentence)) in self._warnings or len(self._warnings) >= MAX_WARNINGS:
            return
        common, separator, _ = line.rpartition(OF_CASE)
        if separator:
            self._cases[common] += 1
            if self._cases[common] > MAX_CASES:
                line = f"{common}; and more cases"
                if line in self._warnings:
                    return
        self._warnings.add(line)
        self.show_warning(line)

    def _clean(self, line: str) -> str:
        # One line: a line that begins with `::` is a command to the runner of GitHub Actions.
        text = self.redactor.text(without_commands(line)).replace("\n", "\\n")
        return shortened(text, MAX_LOG_LINE)


class StoredAnswers(Struct, frozen=True):
    """Rows whose answers are scored again, read lazily."""

    read: Callable[[], Iterator[ResultRow]]
    number: int
