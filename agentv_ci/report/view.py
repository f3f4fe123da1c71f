"""What all reports show of a finished run, computed once; renderers only lay it out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from functools import cached_property
from glob import escape
from shlex import quote
from typing import TYPE_CHECKING
from urllib.parse import quote as quote_address

from msgspec import Struct

from agentv_ci.analysis.cases.on_base import BaseBranch
from agentv_ci.analysis.cases.outcomes import CaseOutcome, in_matrix_of
from agentv_ci.analysis.cases.quarantine import gating
from agentv_ci.analysis.cases.trial_outcomes import Finding, TrialOutcome
from agentv_ci.base.text import counted, dollars, first_few, listed, on_one_line
from agentv_ci.contracts.cases import CaseKey, case_name
from agentv_ci.contracts.diagnostics import SEVERITIES_WORST_FIRST, Severity
from agentv_ci.contracts.report import (
    CaseFigures,
    Counts,
    EvaluatorFigures,
    Group,
    RunReport,
    Stop,
    Validation,
)
from agentv_ci.contracts.results import NO_OUTCOME, ResultRow

if TYPE_CHECKING:
    from agentv_ci.contracts.comparison import ComparedCase, Comparison, Rate
    from agentv_ci.contracts.proof import Proof  # few runs have one

PROGRAM = "agentv-ci"

_SERVER = re.compile(r"https?://[\w.:-]+(/[\w./-]*)?", re.ASCII)

GATE: Mapping[str, str] = {
    "pass": "passed",
    "fail": "not passed",
    "error": "no verdict",
    "budget": "budget used up",
    "interrupted": "interrupted",
    "nothing": "nothing ran",
    "dry-run": "dry run",
    "undecided": "undecided",
    "invalid": "invalid",
}
"""The verdict of a run, or of a job without one, in a title."""

STOPS: Mapping[Stop, str] = {
    "decided": "the experiment stopped early",
    "fail-fast": "the run stopped at the first failure",
    "budget": "the budget is used up",
    "interrupted": "the run was interrupted",
}
"""Why a run ended early."""

DRY_RUN = "reference answers were scored, judges mocked; no target was asked"

MAX_NAMED = 10

SEVERITIES: Mapping[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
"""The name of each severity of a validator's issues."""


class Links(Struct, frozen=True):
    """Links to lines in a repository's files."""

    base: str | None = None
    """The address of the repository's folder at one commit; None: unknown."""

    @classmethod
    def of_commit(cls, server: str, repository: str, commit: str) -> Links:
        """Return the links of a repository at one commit.

        None if the server's address is invalid.
        """
        if not (repository and commit) or not _SERVER.fullmatch(server):
            return cls()
        return cls(f"{server}/{quoted(repository)}/blob/{quoted(commit)}")

    def to(self, path: str, line: int) -> str | None:
        """Return the address of a line.

        None for a path that is not relative to the repository, or leaves it.
        """
        if self.base is None or path.startswith("/") or ".." in path.split("/"):
            return None
        return f"{self.base}/{quoted(path)}#L{line}"


NO_LINKS = Links()


def quoted(path: str) -> str:
    """Return a path as part of an address; file names need not be UTF-8."""
    try:
        return quote_address(path.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        # Not a file name, but rows are untrusted.
        return quote_address(path.encode("utf-8", "replace"))


class RunView(Struct, frozen=True, dict=True):
    """A finished run: its report, the outcomes of its cases, and its rows."""

    report: RunReport
    outcomes: Sequence[CaseOutcome]
    """Every case, in the order of the plan or else of the eval files."""
    rows: Callable[[], Iterable[ResultRow]] = tuple
    """Reads the rows again, in any order: those of a long run do not belong in memory."""
    links: Links = NO_LINKS
    proof: Proof | None = None
    """The proof of its cases, if there is one."""
    base: BaseBranch | None = None
    """What its cases do on the base branch, if it is of a change and that is known."""

    @property
    def title(self) -> str:
        """The verdict of the gate, as a title."""
        return f"Evaluations: {GATE[self.report.gate.verdict]}"

    @property
    def errors(self) -> list[CaseOutcome]:
        """The cases that ran and have no verdict."""
        return list(filter(self._is_error, gating(self.outcomes)))

    @property
    def skipped(self) -> list[CaseOutcome]:
        """The cases that are skipped."""
        return [outcome for outcome in self.outcomes if outcome.verdict == "skipped"]

    @property
    def quarantined(self) -> list[CaseOutcome]:
        """The cases that do not gate."""
        return [outcome for outcome in self.outcomes if outcome.quarantine is not None]

    @property
    def unknown(self) -> list[CaseOutcome]:
        """The cases of a dry run that have nothing to score."""
        return list(filter(self._is_unknown, self.outcomes))

    def _is_error(self, outcome: CaseOutcome) -> bool:
        has_no_verdict = outcome.verdict == "error" and not outcome.not_run
        return has_no_verdict and not self._is_unknown(outcome)

    def _is_unknown(self, outcome: CaseOutcome) -> bool:
        says_so = outcome.verdict == "error" and outcome.summary.endswith(f": {NO_OUTCOME}")
        return self.report.dry_run and says_so

    @property
    def failures(self) -> list[CaseOutcome]:
        """The failed and borderline cases, worst first.

        Those that a stopped run left undecided are not among them.
        """
        failed = filter(self._is_failure, gating(self.outcomes))
        return sorted(failed, key=lambda outcome: outcome.score)

    def _is_failure(self, outcome: CaseOutcome) -> bool:
        is_undecided = self.report.stopped is not None and outcome.is_open
        return outcome.verdict in ("fail", "borderline") and not is_undecided

    @property
    def red(self) -> list[CaseOutcome]:
        """The cases that did not pass: errors, then failures."""
        return [*self.errors, *self.failures]

    @cached_property
    def matrix(self) -> AbstractSet[tuple[str, str]]:
        """Suite and id of the cases that several targets answer."""
        return in_matrix_of(self.outcomes)

    def name(self, key: CaseKey) -> str:
        """Return the name of a case on one line, with its target if several answer it."""
        return on_one_line(case_name(key, names_target=key[:2] in self.matrix))

    def again(self, outcome: CaseOutcome) -> str:
        """Return the command that runs a case again as it ran.

        Empty for one of another tool or of an experiment.
        """
        is_ours = runs_again(outcome.case.suite, outcome.case.arm)
        if not is_ours or self.report.experiment is not None:
            return ""
        return rerun_command(*outcome.key, self.report.again)

    @property
    def lost_trials(self) -> list[tuple[CaseOutcome, TrialOutcome]]:
        """The trials without a verdict of cases that have one; they count as errors, too."""
        lost: list[tuple[CaseOutcome, TrialOutcome]] = []
        for case in gating(self.outcomes):
            if case.has_verdict:
                lost.extend((case, trial) for trial in case.trials if trial.verdict == "error")
        return lost


def unknown_text(run: RunView) -> str | None:
    """Return which cases of a dry run have nothing to score, if any."""
    cases = run.unknown
    if not cases:
        return None
    names = first_names([run.name(case.key) for case in cases], MAX_NAMED)
    judged = counted(len(cases), "case is", "cases are")
    return f"unknown: {judged} judged by what an agent leaves behind: {names}"


def left_out_text(report: RunReport) -> str | None:
    """Return the evaluators that had nothing to measure in a dry run, if any."""
    skipped = [
        f"{evaluator.name} ({evaluator.type})"
        for evaluator in report.evaluators
        if evaluator.skipped
    ]
    if report.dry_run and skipped:
        return f"not scored in a dry run: {listed(skipped)}"
    return None


def counts_text(run: RunView) -> str:
    """Return the number of cases by verdict."""
    report, unknown = run.report, len(run.unknown)
    counts = report.counts
    texts = [
        f"{counts.passed} passed",
        f"{counts.failed} failed",
        counted(counts.errored - unknown, "error"),
    ]
    texts += _others_texts(counts, unknown)
    if counts.crashed and any(outcome.case.trials > 1 for outcome in run.outcomes):
        texts.append(
            f"{counts.crashed} of {counted(counts.rows - counts.skipped, 'trial')} crashed"
        )
    if lost := sum(not trial.is_crash for _, trial in run.lost_trials):
        texts += [f"{counted(lost, 'trial')} without a verdict"]
    shard = ""
    if report.shard is not None:
        shard = f" in shard {report.shard.index}/{report.shard.total}"
    return f"{counted(counts.cases, 'case')}{shard}: {', '.join(texts)}"


def _others_texts(counts: Counts, unknown: int) -> Iterator[str]:
    for number, what in (
        (unknown, "unknown"),
        (counts.not_run, "not run"),
        (counts.skipped, "skipped"),
        (counts.quarantined, "in quarantine"),
        (counts.flaky, "flaky"),
    ):
        if number:
            yield f"{number} {what}"


def stored_text(report: RunReport) -> str | None:
    """Return how many answers were not asked for; None if all were."""
    counts = report.counts
    source = "replayed" if report.replayed else "from cache"
    answers = counts.rows - counts.skipped
    if counts.cached:
        return f"{counts.cached} of {counted(answers, 'answer')} {source}"
    return None


def score_text(verdict: str, score: float) -> str:
    """Return a verdict with its score, if it has one."""
    if verdict in ("error", "skipped"):
        return verdict
    return f"{verdict} {score:.3f}"


def trials_text(outcome: CaseOutcome) -> str | None:
    """Return how many of several trials passed; None for a single trial."""
    if len(outcome.trials) > 1:
        return f"{outcome.passed} of {len(outcome.trials)} trials passed"
    return None


def cost_text(report: RunReport, figures: RunReport | Group) -> str | None:
    """Return the cost of a run or of a part of it, and of each case that passed.

    None if it is unknown.
    """
    amount = figures.cost_usd if isinstance(figures, RunReport) else figures.total_usd
    if amount is None:
        return None
    least = ""
    if lacks_price(report, figures):
        least = "at least "
    text = f"{least}{dollars(amount)}"
    if (per_pass := figures.cost_per_pass_usd) is not None:
        text += f", {dollars(per_pass)} per passed case"
    return text


def lacks_price(report: RunReport, figures: RunReport | Group) -> bool:
    """Whether the cost of a run, or of a part of it, is only known in part."""
    return bool(report.unpriced_models) and (isinstance(figures, RunReport) or figures.lacks_costs)


def duration_text(seconds: float) -> str:
    """Return a duration in its two largest units."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def more_text(total: int, limit: int, of: str = "") -> list[str]:
    """Return the last line of a list that is cut after `limit` lines.

    It says how many more there are, if any.
    """
    more = total - limit
    if more <= 0:
        return []
    if of:
        return [f"… and {counted(more, f'more {of}')}"]
    return [f"… and {more} more"]


def first_lines(lines: Sequence[str], limit: int, of: str = "") -> list[str]:
    """Return the first lines of a list, and one that counts the others."""
    return [*lines[:limit], *more_text(len(lines), limit, of)]


def first_names(names: Sequence[str], limit: int) -> str:
    """Return the first names of a list in a line, and the number of the others."""
    return " ".join([", ".join(names[:limit]), *more_text(len(names), limit)])


def wrong_of(findings: Iterable[Finding]) -> list[Finding]:
    """Return what the evaluators found that did not pass."""
    return [finding for finding in findings if finding.verdict not in ("pass", "skipped")]


def judges_cost(report: RunReport) -> float | None:
    """Return what judges cost; None: unknown."""
    known = [suite.judge_cost_usd for suite in report.suites if suite.judge_cost_usd is not None]
    if known:
        return sum(known)
    return None


def cut_text(report: RunReport) -> str | None:
    """Return how many answers may not be whole, and why; None if all are."""
    if not report.cut_answers:
        return None
    reasons = [f"{number} × {on_one_line(reason)}" for reason, number in report.cut_answers.items()]
    return (
        f"{counted(sum(report.cut_answers.values()), 'answer')} may not be whole: "
        f"{first_few(reasons)}"
    )


def cost_remarks(report: RunReport) -> Iterator[str]:
    """Yield remarks on costs and times: missing prices, and rate limits that were hit."""
    if report.unpriced_models:
        names = ", ".join(map(on_one_line, report.unpriced_models))
        yield f"no price is known for {names}; the cost does not include it"
    lowered = sum(change.after < change.before for change in report.concurrency)
    if lowered:
        times = "once"
        if lowered != 1:
            times = f"{lowered} times"
        yield f"a server's rate limit was hit and concurrency lowered {times}; see the run report"


def caveats(report: RunReport) -> Iterator[str]:
    """Yield what makes scores uncertain."""
    if report.broken_contracts:
        first = "is the first verdict of a reply that contradicts itself or leaves its scale"
        if report.broken_contracts > 1:
            first = (
                "are the first verdicts of replies that contradict themselves or leave their scale"
            )
        yield (
            f"{counted(report.broken_contracts, 'judgement')} {first}; "
            "see broken_contract in the results"
        )
    if report.compared_masked:
        answers = counted(report.compared_masked, "answer was", "answers were")
        yield f"{answers} compared with a secret masked; see compared_masked in the results"


def badness(figures: CaseFigures | EvaluatorFigures) -> tuple[float, int, str]:
    """Return a sort key that puts the lowest pass rate first."""
    seen = figures.counting if isinstance(figures, CaseFigures) else figures.scored + figures.errors
    share = figures.passed / seen if seen else 1.0
    return share, -seen, figures.name


def issues_text(validation: Validation) -> str:
    """Return how many issues a validator found, by severity."""
    counts = {name: validation.count(name) for name in SEVERITIES_WORST_FIRST}
    return (
        ", ".join(counted(number, SEVERITIES[name]) for name, number in counts.items() if number)
        or "nothing found"
    )


def changes_text(comparison: Comparison) -> str:
    """Return the number of cases by change."""
    left_out = []
    if comparison.left_out:
        left_out = [f"{comparison.left_out} left out"]
    if comparison.quarantined:
        left_out += [f"{comparison.quarantined} in quarantine"]
    return (
        ", ".join(
            [f"{number} {change}" for change, number in comparison.counts.items() if number]
            + left_out
        )
        or "no cases"
    )


def one_sided(comparison: Comparison) -> Iterator[str]:
    """Yield the names of the cases that are new, and of those that are removed or skipped."""
    names: dict[str, list[str]] = {"new": [], "removed": [], "skipped": []}
    for case in comparison.cases:
        if case.change in names:
            is_skipped = case.change == "removed" and case.head is not None
            names["skipped" if is_skipped else case.change].append(compared_name(case, comparison))
    for what, cases in names.items():
        if cases:
            yield f"{what}: {first_few(cases)}"


def statement_text(comparison: Comparison) -> str:
    """Return what a comparison states as a whole."""
    statement = comparison.statement
    assert statement is not None, "a comparison that states something"
    cases = counted(statement.cases, "case")
    match statement.verdict:
        case "worse":
            said = "worse"
        case "withheld":
            said = "no decision"
        case "better" if not comparison.undecided:
            said = "better"
        case _:
            said = "no regression shown"
            if comparison.undecided:
                said = "undecided"
    return f"{said} ({cases}, {100 * statement.confidence:g}% confidence)"


def compared_name(case: ComparedCase, comparison: Comparison) -> str:
    """Return the name of a case on one line.

    The name has the target if each target is compared with itself.
    """
    return on_one_line(case_name(case.key, names_target=comparison.by_target))


def change_text(case: ComparedCase) -> str:
    """Return a case's results on both sides, and how certain the change is."""
    text = f"{rate_text(case.base)} → {rate_text(case.head)}"
    notes = []
    if case.single and case.change != "unchanged":
        notes = ["one trial a side, which may be chance"]
    if case.left_out:
        notes += ["left out: the question or its evaluators changed"]
    if case.stale and not case.left_out:
        notes += ["the case or its target changed"]
    if notes:
        return f"{text}; {', '.join(notes)}"
    return text


def answers_text(case: ComparedCase) -> Iterator[tuple[str, str]]:
    """Yield the answers of a case that got worse, each with its side.

    Tools are named where the sides called different ones.
    """
    before, now = case.answer_before, case.answer_now
    if before is None or now is None:
        return
    for side, shown in (("before", before), ("now", now)):
        text = shown.answer.strip() or f"no answer: {shown.error or 'it is empty'}"
        if before.tool_calls != now.tool_calls:
            text = f"{text} [called {', '.join(shown.tool_calls) or 'no tool'}]"
        yield side, text


def rate_text(rate: Rate | None) -> str:
    """Return how often a case passed; for one trial, its verdict and score."""
    if rate is None or rate.mean is None:
        if rate is not None and rate.verdict == "skipped":
            return "skipped"
        return "no verdict"
    if rate.graded == 1:
        if rate.verdict == "error":
            return "crashed"
        return f"{rate.verdict} {rate.mean:.3f}"
    return f"{rate.passed}/{rate.graded} passed"


def started(row: ResultRow) -> datetime | None:
    """Return when a trial began; None: the timestamp of its row is invalid."""
    try:
        ended = datetime.fromisoformat(row.timestamp)
        in_utc = (ended if ended.tzinfo else ended.replace(tzinfo=UTC)).astimezone(UTC)
        return in_utc - timedelta(milliseconds=row.duration_ms)
    except (ValueError, OverflowError):
        return None


def runs_again(suite: str, arm: str | None) -> bool:
    """Whether `eval` can run a case of a suite again: it is of no other tool and no arm."""
    return arm is None and suite.rpartition(".")[2].lower() in {"yaml", "yml"}


def rerun_command(suite: str, case_id: str, target: str, options: Sequence[str] = ()) -> str:
    """Return the command that runs one case from the repository's root.

    It is quoted for any POSIX shell.
    """
    # `--target default` means no override, which is the same as no option.
    chosen = f" --target={quote(target)}" if target != "default" else ""
    path = suite if _is_typeable(suite) else _as_glob(suite)
    named = f"./{path}" if path.startswith("-") else path
    command = f"{PROGRAM} eval {quote(named)} --eval-id={quote(_as_glob(case_id))}{chosen}"
    return " ".join([command, *map(_assigned, options)])


def _assigned(option: str) -> str:
    """Return an option with its value quoted, if it has one."""
    name, separator, value = option.partition("=")
    return f"{quote(name)}{separator}{quote(value) if separator else ''}"


def _as_glob(text: str) -> str:
    """Return a glob for one text, with `?` for what cannot be typed, such as a line break."""
    pattern = escape(text)
    return "".join(character if _is_typeable(character) else "?" for character in pattern)


def _is_typeable(text: str) -> bool:
    """Return whether a text can be typed on one line; spaces of all widths can."""
    return text.isprintable() or all(
        character.isprintable() or unicodedata.category(character) == "Zs" for character in text
    )
