"""Markdown for a job summary, a comment on a pull request, or an editor.

The verdict comes first, then what to do about it.

If a text gets too long, the least important parts are left out first: questions and answers, then
the least bad cases. The text states what was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.cases.trial_outcomes import Finding, TrialOutcome
from agentv_ci.analysis.comparison.metric_texts import metric_text, verdict_text
from agentv_ci.base.text import counted, shortened
from agentv_ci.contracts.action import PastRun
from agentv_ci.contracts.cases import CaseKey, Place
from agentv_ci.contracts.comparison import Change, ComparedCase, Comparison
from agentv_ci.contracts.report import RunReport
from agentv_ci.contracts.results import ResultRow
from agentv_ci.report import view
from agentv_ci.report.against_base import all_changes, gate_line, lowered_text
from agentv_ci.report.experiment_markdown import experiment_text
from agentv_ci.report.inert_markdown import (
    SIGNS,
    cell_code,
    code,
    diagnostic_item,
    fence,
    first_items,
    folded,
    item,
    link,
    list_of,
    verbatim,
)
from agentv_ci.report.lines import Line, figure_lines, flaky_lines, scenario_lines, texts_of
from agentv_ci.report.matrix_tables import case_table, target_table
from agentv_ci.report.proof import OF_ANOTHER_PLAN, facts, headline, is_of, shown_findings
from agentv_ci.report.quarantine_markdown import quarantine_section
from agentv_ci.report.view import Links, RunView

if TYPE_CHECKING:
    from agentv_ci.contracts.proof import Proof

LIMIT = 60_000
"""Characters: less than GitHub's limit for a comment; a summary may be longer."""
MAX_TEXT = 2_000
MAX_REASON = 500
MAX_ID = 100
MAX_CHANGES = 50
MAX_REASONS = 20
MAX_ROWS = 10
MAX_NAMED = 5
MAX_WHY = 160
MAX_FINDINGS = 10
MAX_LINES = 100
MAX_COMMAND = 1_000
MAX_WITH_ANSWERS = 200
"""Cases whose question and answer are shown."""

CHANGES: Mapping[Change, str] = {
    "regressed": "📉 regressed",
    "improved": "📈 improved",
    "flaky": "🎲 flaky",
    "not enough evidence": "🤷 not enough evidence",
}


class Rank(IntEnum):
    """What is kept longest; the smallest is the most important."""

    VERDICT = 0
    TABLE = 1
    COMPARISON = 2
    FIGURES = 3
    CASE = 4
    ANSWER = 5


class Block(Struct, frozen=True):
    """A part of the text that is kept whole or left out."""

    rank: Rank
    text: str
    case: int | None = None
    """The number of the case it is about, if any."""


def render(run: RunView) -> Iterable[bytes]:
    """Return the text in at most LIMIT characters."""
    # Names in a command are not escaped, and may not be valid Unicode.
    yield text(run, LIMIT).encode("utf-8", "replace")


def text(run: RunView, limit: int, last: PastRun | None = None) -> str:
    """Return the text in at most `limit` characters, which must be at least a few thousand.

    `last` is the run to compare the figures with, if there is no baseline.
    """
    return _fitted([*_blocks(run, last)], limit)


def _fitted(blocks: Sequence[Block], limit: int) -> str:
    """Keep the most important blocks that fit, in their order."""
    left = limit - len(_left_out(blocks, limit)) - 2
    fitting: set[int] = set()
    cases: set[int | None] = {None}
    for place, block in sorted(enumerate(blocks), key=lambda each: each[1].rank):
        size = len(block.text) + 2
        if size > left or (block.rank is Rank.ANSWER and block.case not in cases):
            continue
        left -= size
        fitting.add(place)
        cases.add(block.case)
    parts = [block.text for place, block in enumerate(blocks) if place in fitting]
    gone = [block for place, block in enumerate(blocks) if place not in fitting]
    if gone:
        parts.append(_left_out(gone, limit))
    return "\n\n".join(parts) + "\n"


def _left_out(blocks: Sequence[Block], limit: int) -> str:
    cases = sum(block.rank is Rank.CASE and block.case is not None for block in blocks)
    others = "details"
    if cases:
        others = f"{counted(cases, 'case')} that did not pass, and more"
    return (
        f"_Left out to stay within {limit:,} characters: {others}. "
        "The results file has everything._"
    )


def _blocks(run: RunView, last: PastRun | None) -> Iterator[Block]:
    report = run.report
    yield Block(Rank.VERDICT, _verdict(run, last))
    if report.against_base is not None and (changes := all_changes(report.against_base, run.links)):
        title = f"All {len(changes)} changes of the test"
        yield Block(Rank.COMPARISON, folded(title, "\n".join(changes)))
    yield from _side_by_side(run)
    if report.comparison is not None:
        yield from _comparison(report.comparison, run)
    if run.proof is not None:
        yield Block(Rank.COMPARISON, _proof(run.proof, run))
    if cases := run.red:
        yield Block(Rank.TABLE, _table(cases, run))
        yield from _details(cases, run)
    yield from _others(run)
    yield from _figures("Flaky cases", flaky_lines(run))
    yield from _figures("Validators", scenario_lines(report.scenario_reports))
    yield from _figures("Figures", figure_lines(report))


def _figures(title: str, lines: Iterable[Line]) -> Iterator[Block]:
    texts = texts_of(lines)
    if any(texts):
        shown = "\n".join(view.first_lines(texts, MAX_LINES, "line"))
        yield Block(Rank.FIGURES, folded(title, fence(shown.strip("\n"), "text")))


def _others(run: RunView) -> Iterator[Block]:
    """Yield lost trials, and the cases that do not gate or did not run."""
    if lost := run.lost_trials:
        yield Block(Rank.CASE, folded("Trials without a verdict", _lost(lost, run)))
    if (section := quarantine_section(run)) is not None:
        yield Block(Rank.COMPARISON, section)
    if skipped := run.skipped:
        named = [_skipped(outcome, run) for outcome in skipped]
        yield Block(Rank.CASE, folded("Skipped cases", "\n".join(first_items(named, MAX_REASONS))))


def _side_by_side(run: RunView) -> Iterator[Block]:
    if run.report.experiment is not None:
        yield Block(Rank.TABLE, experiment_text(run.report.experiment))
    if run.matrix:
        yield Block(Rank.TABLE, target_table(run))
        yield Block(Rank.COMPARISON, case_table(run, lambda outcome: _link(outcome, run)))


def _details(cases: Sequence[CaseOutcome], run: RunView) -> Iterator[Block]:
    title = f"Details of {counted(len(cases), 'case')}"
    yield Block(Rank.TABLE, f"<details><summary>{title}</summary>")
    rows = _rows_of(cases[:MAX_WITH_ANSWERS], run.rows())
    for number, outcome in enumerate(cases):
        yield Block(Rank.CASE, _case(outcome, run), number)
        if (row := rows.get(outcome.key)) is not None:
            yield Block(Rank.ANSWER, _answer(row), number)
    yield Block(Rank.TABLE, "</details>")


def _verdict(run: RunView, last: PastRun | None) -> str:
    report, gate = run.report, run.report.gate
    lines = [f"## {SIGNS[gate.verdict]} {run.title}", ""]
    if report.against_base is not None and (
        lowered := [*lowered_text(report.against_base, run.links)]
    ):
        lines += [*lowered, ""]
    lines.append(" · ".join([f"**{view.counts_text(run)}**", *_facts(report, last)]))
    for remark in _remarks(run):
        lines += ["", remark]
    if gate.reasons:
        lines += ["", *_reasons(gate.reasons)]
    return "\n".join(lines)


def _remarks(run: RunView) -> Iterator[str]:
    """Yield what else there is to say of the verdict."""
    report = run.report
    if report.dry_run:
        yield f"{view.DRY_RUN.capitalize()}."
    elif report.experiment is None:
        yield gate_line(report)
    yield from map(code, filter(None, [view.unknown_text(run), view.left_out_text(report)]))
    if (known := _mine_or_known(run)) is not None:
        yield known


def _reasons(reasons: Iterable[str]) -> list[str]:
    items = [item(code(shortened(reason, MAX_REASON))) for reason in reasons]
    return first_items(items, MAX_REASONS)


def _mine_or_known(run: RunView) -> str | None:
    """Return how many of the cases that did not pass do not on the base branch, either.

    None if that is unknown.
    """
    red = run.red
    if run.base is None or not red:
        return None
    numbers = dict.fromkeys(("green", "red", "flaky", "unknown"), 0)
    for outcome in red:
        known = run.base.cases.get(outcome.key)
        numbers["unknown" if known is None else known.state] += 1
    said = ", ".join(f"{number} {state}" for state, number in numbers.items() if number)
    return (
        f"Mine or known? On {code(run.base.name)}, {counted(len(red), 'case')} that did not "
        f"pass: {said}."
    )


def _on_base(outcome: CaseOutcome, run: RunView) -> str:
    """Return what a case that did not pass does on the base branch; empty if that is unknown."""
    known = run.base.cases.get(outcome.key) if run.base is not None else None
    if run.base is None or known is None:
        return ""
    branch = cell_code(run.base.name)
    times = f"{known.passed} of {counted(known.trials, 'trial')} passed"
    since = ""
    if known.since is not None:
        since = f" since {code(known.since)}"
    match known.state:
        case "green":
            text = f"🆕 passes on {branch}{since}"
            return f"{text} ({times})" if known.trials > 1 else text
        case "red":
            text = f"🔁 red on {branch}, too"
            return f"{text},{since}" if since else text
        case "flaky":
            text = f"🎲 flaky on {branch}"
            return f"{text}: {times}" if known.trials > 1 else text


def _facts(report: RunReport, last: PastRun | None) -> Iterator[str]:
    mean = report.statistics.mean
    if mean is not None and not report.dry_run:
        yield f"mean {mean:.3f}"
    if last is not None and not report.dry_run and report.comparison is None:
        yield _since(last, report)
    if (cost := view.cost_text(report, report)) is not None:
        yield cost
    if (cut := view.cut_text(report)) is not None:
        yield f"⚠️ {code(cut)}"
    if (stored := view.stored_text(report)) is not None:
        yield stored
    if report.duration_s is not None:
        yield view.duration_text(report.duration_s)


def _since(last: PastRun, report: RunReport) -> str:
    """Return the change of the figures since the last run.

    Its figures, if it had other cases or no mean.
    """
    mean = report.statistics.mean
    if (
        last.passed is None
        or last.mean is None
        or mean is None
        or last.total != report.counts.cases
    ):
        return _figures_of(last)
    return (
        f"since the last run: {report.counts.passed - last.passed:+d} passed, "
        f"mean {mean - last.mean:+.3f}"
    )


def _figures_of(last: PastRun) -> str:
    text = f"last run: {last.verdict}"
    if last.passed is not None:
        text = f"last run: {last.passed}/{last.total} passed"
    if last.mean is not None:
        text += f", mean {last.mean:.3f}"
    return text


def _table(cases: Sequence[CaseOutcome], run: RunView) -> str:
    """Return a table of the worst cases; those with one cause share a row."""
    causes: dict[tuple[str, str, str], list[CaseOutcome]] = {}
    for case in cases:
        causes.setdefault((case.verdict, _why(case), _on_base(case, run)), []).append(case)
    lines = [_row(alike, run) for alike in causes.values()]
    shown = ["| | case | score | why |", "|---|---|---|---|", *lines[:MAX_ROWS]]
    more = sum(map(len, [*causes.values()][MAX_ROWS:]))
    if more:
        shown.append(f"\n… and {counted(more, 'more case')}")
    return "\n".join(shown)


def _row(cases: Sequence[CaseOutcome], run: RunView) -> str:
    first = cases[0]
    named = [_named(case, run) for case in cases[:MAX_NAMED]]
    if len(cases) > MAX_NAMED:
        named.append(f"{len(cases) - MAX_NAMED} more")
    names = ", ".join(named)
    has_score = len(cases) == 1 and first.verdict != "error"
    score = ""
    if has_score:
        score = f"{first.score:.3f}"
    why = cell_code(shortened(_why(first), MAX_WHY))
    why = " · ".join(filter(None, [why, _on_base(first, run)]))
    if len(cases) > 1:
        why = f"{len(cases)} × {why}"
    return f"| {SIGNS[first.verdict]} | {names} | {score} | {why} |"


def _why(outcome: CaseOutcome) -> str:
    """Return why a case did not pass: its first evaluator that did not, or its error."""
    for finding in view.wrong_of(outcome.findings):
        return f"{finding.title}: {finding.text or finding.verdict}"
    return outcome.summary


def _named(outcome: CaseOutcome, run: RunView) -> str:
    """Return the name of a case as a link to its line, with its target if there are several."""
    name = _link(outcome, run)
    if len(run.report.targets) > 1:
        return f"{name} {cell_code(shortened(outcome.target, MAX_ID))}"
    return name


def _link(outcome: CaseOutcome, run: RunView) -> str:
    source = outcome.case.source
    return link(
        cell_code(shortened(outcome.case.id, MAX_ID)), run.links.to(source.path, source.line)
    )


def _comparison(comparison: Comparison, run: RunView) -> Iterator[Block]:
    parts = [f"### Against {code(comparison.base)}", f"**{view.changes_text(comparison)}**"]
    remarks = [*map(code, view.one_sided(comparison)), *_statement(comparison)]
    remarks += [f"⚠️ {code(warning)}" for warning in comparison.warnings]
    parts.append(list_of(remarks))
    changed = [case for case in comparison.cases if case.change in CHANGES]
    if changed:
        sources = {outcome.key: outcome.case.source for outcome in run.outcomes}
        table = ["| | case | before → now | where |", "|---|---|---|---|"]
        rows = (_changed(case, comparison, sources, run.links) for case in changed[:MAX_CHANGES])
        parts.append("\n".join([*table, *rows]))
    parts += view.more_text(len(changed), MAX_CHANGES)
    yield Block(Rank.COMPARISON, "\n\n".join(filter(None, parts)))
    for case in changed[:MAX_CHANGES]:
        if case.answer_now is not None:
            yield Block(Rank.CASE, _answers(case, comparison))


def _answers(case: ComparedCase, comparison: Comparison) -> str:
    """Return the answers of a case that got worse, below its name."""
    answers = [
        f"**{side}**\n\n{fence(shortened(text, MAX_REASON))}"
        for side, text in view.answers_text(case)
    ]
    name = code(shortened(view.compared_name(case, comparison), MAX_ID))
    both = folded("Answers before and now", "\n\n".join(answers))
    return f"{name} got worse:\n\n{both}"


def _statement(comparison: Comparison) -> list[str]:
    if (statement := comparison.statement) is None:
        return []
    metrics = [
        f"{verdict_text(change)}: {code(metric_text(change))}" for change in statement.metrics
    ]
    return [f"**{view.statement_text(comparison)}**", *metrics, *map(code, comparison.undecided)]


def _proof(proof: Proof, run: RunView) -> str:
    parts = [f"### {SIGNS['pass' if proof.gate.passed else 'fail']} Proof: {headline(proof).text}"]
    if not is_of(proof, run.report.plan_digest):
        parts.append(OF_ANOTHER_PLAN)
    parts.append("\n".join([*_reasons(proof.gate.reasons), *map(item, texts_of(facts(proof)))]))
    if found := shown_findings(proof):
        items = [diagnostic_item(diagnostic, diagnostic.path, run.links) for diagnostic in found]
        shown = "\n".join(first_items(items, MAX_REASONS))
        parts.append(folded(counted(len(found), "finding"), shown))
    return "\n\n".join(parts)


def _changed(
    case: ComparedCase, comparison: Comparison, sources: Mapping[CaseKey, Place], links: Links
) -> str:
    source = sources.get(case.key)
    name = cell_code(shortened(view.compared_name(case, comparison), MAX_ID))
    place = _place(source, links, cell_code) if source is not None else ""
    return f"| {CHANGES[case.change]} | {name} | {view.change_text(case)} | {place} |"


def _place(source: Place, links: Links, as_code: Callable[[str], str] = code) -> str:
    return link(as_code(f"{source.path}:{source.line}"), links.to(source.path, source.line))


def _case(outcome: CaseOutcome, run: RunView) -> str:
    """Return a case that did not pass: where it is defined, why, and the command that reruns it."""
    facts = [
        _place(outcome.case.source, run.links),
        f"target {code(outcome.target)}",
        view.trials_text(outcome),
    ]
    name, command = code(shortened(run.name(outcome.key), MAX_ID)), run.again(outcome)
    return "\n\n".join(
        [
            (
                f"#### {SIGNS[outcome.verdict]} {name}: "
                f"{view.score_text(outcome.verdict, outcome.score)}"
            ),
            " · ".join(filter(None, facts)),
            "\n".join(first_items([*map(_finding, outcome.findings)], MAX_FINDINGS))
            or code(outcome.summary),
            *([verbatim(command, "sh")] if 0 < len(command) <= MAX_COMMAND else []),
        ]
    )


def _lost(trials: Sequence[tuple[CaseOutcome, TrialOutcome]], run: RunView) -> str:
    lines = []
    for outcome, trial in trials:
        place = _place(outcome.case.source, run.links)
        name = code(shortened(run.name(outcome.key), MAX_ID))
        lines.append(
            f"- ⚠️ {name} trial {trial.number} of {outcome.case.trials}, {place}: "
            f"{code(trial.summary)}"
        )
    return "\n".join(first_items(lines, MAX_REASONS))


def _skipped(outcome: CaseOutcome, run: RunView) -> str:
    return (
        f"- {code(shortened(run.name(outcome.key), MAX_ID))}: "
        f"{code(shortened(outcome.summary, MAX_REASON))}"
    )


def _finding(finding: Finding) -> str:
    text = ""
    if finding.text:
        text = f": {code(finding.text)}"
    score = view.score_text(finding.verdict, finding.score)
    return f"- {SIGNS.get(finding.verdict, '➖')} {code(finding.title)} {score}{text}"


def _rows_of(
    outcomes: Iterable[CaseOutcome], rows: Iterable[ResultRow]
) -> dict[CaseKey, ResultRow]:
    """Return the row of the worst trial of each case."""
    worst_trials = {
        outcome.key: outcome.worst.number for outcome in outcomes if outcome.worst is not None
    }
    rows_by_case: dict[CaseKey, ResultRow] = {}
    for row in rows if worst_trials else ():
        if worst_trials.get(row.case_key) == row.trial:
            rows_by_case.setdefault(row.case_key, row)
            if len(rows_by_case) == len(worst_trials):
                break
    return rows_by_case


def _answer(row: ResultRow) -> str:
    """Return the question, the expected outcome and the answer."""
    turns = "\n\n".join(
        f"[{message.name or message.role}]\n{message.content}"
        for message in row.input_messages or ()
    )
    parts = [
        ("Question", turns),
        ("Expected outcome", row.expected_outcome),
        ("Reference answer", row.reference_answer),
        ("Answer" if row.trials == 1 else f"Answer of trial {row.trial}", row.candidate_answer),
    ]
    texts = [f"**{title}**\n\n{fence(shortened(text, MAX_TEXT))}" for title, text in parts if text]
    return folded("Question and answer", "\n\n".join(texts) or "Nothing was recorded.")
