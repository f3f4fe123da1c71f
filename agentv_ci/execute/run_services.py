"""How a plan is run, what the run works with, and how far it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentv_ci.contracts.exchange import Ask, Environment, Grade, Log, Request, Response, Warn
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.results import ResultRow
from agentv_ci.execute.shard import Shard
from agentv_ci.redaction import NO_SECRETS, Redactor
from agentv_ci.text import shortened, without_commands

GradeAnswer = Callable[[PlanCase, Request, Response, Ask], Awaitable[Grade]]
"""How the engine has an answer scored."""

MAX_LOG_LINE = 4_000
MAX_WARNINGS = 1_000
"""More different ones are not read, and to remember them all would take ever more memory."""


@dataclass(frozen=True, slots=True)
class RunOptions:
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
    cache: Path | None = None
    record: Path | None = None
    replay: Path | None = None
    prompts: Path | None = None
    """Where prompts are dumped."""
    traces: Path | None = None
    """Where messages of answers are dumped."""
    shard: Shard | None = None
    """The part of the plan that runs; each has its share of the budgets."""
    balance: Path | None = None
    """Results whose durations balance the shards."""
    resume: Path | None = None
    """Results of an earlier run whose answers still hold."""
    baseline: Path | None = None
    """What the run is compared with."""
    is_filtered: bool = False
    """Whether the plan has only some of its documents' cases."""

    @property
    def shards(self) -> int:
        """In how many parts the plan runs."""
        return self.shard.total if self.shard is not None else 1

    @property
    def is_part(self) -> bool:
        """Whether only some of the documents' cases run."""
        return self.is_filtered or self.shard is not None


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


def ignore(_: object) -> None:
    """Take something that is not shown."""


@dataclass(frozen=True, slots=True)
class RunServices:
    """What a run is given from outside."""

    environment: Environment
    log: Log = ignore
    warn: Warn = ignore
    note: Log = ignore
    """Takes a sentence that people always see, and that is nothing to worry about."""
    watch: Callable[[Progress], None] = ignore
    """Is given the progress once, before the first case, and may look at it at any time."""
    redactor: Redactor = NO_SECRETS
    """Takes secrets out of answers, errors and log lines, where they enter."""

    def without_secrets(self, redactor: Redactor) -> RunServices:
        """Return services whose messages have no secrets."""
        log = RunLog(self.log, self.warn, redactor)
        return replace(self, log=ignore if self.log is ignore else log.log, warn=log.warn, redactor=redactor)


@dataclass(slots=True)
class RunLog:
    """Messages without secrets and without commands to terminals; each warning comes once."""

    show_line: Log
    show_warning: Warn
    redactor: Redactor
    _warnings: set[str] = field(default_factory=set, init=False)

    def log(self, line: str) -> None:
        """Pass on what only `--verbose` shows."""
        self.show_line(self._clean(line))

    def warn(self, sentence: str) -> None:
        """Pass on what people always see."""
        if (line := self._clean(sentence)) not in self._warnings and len(self._warnings) < MAX_WARNINGS:
            self._warnings.add(line)
            self.show_warning(line)

    def _clean(self, line: str) -> str:
        # One line: what an answer says must not begin one of its own, which the runner of a workflow may obey.
        text = self.redactor.text(without_commands(line)).replace("\n", "\\n")
        return shortened(text, MAX_LOG_LINE)


@dataclass(frozen=True, slots=True)
class StoredAnswers:
    """Rows whose answers are scored; they are read when they are needed."""

    read: Callable[[], Iterator[ResultRow]]
    number: int
