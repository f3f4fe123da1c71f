"""Several result files as one run: shards of a plan, or runs of several suites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from agentv_ci.analysis.comparison import Yardstick, compare
from agentv_ci.analysis.outcomes import CaseOutcome, Tally, key_of
from agentv_ci.analysis.summing import sum_up
from agentv_ci.contracts.report import (
    Ending,
    FailedValidation,
    GateSettings,
    RunReport,
    ScenarioReport,
    Stop,
    Validation,
)
from agentv_ci.contracts.results import ResultRow

MAX_NAMED = 5


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A result file and the run report beside it."""

    name: str
    report: RunReport | None
    """None: there is none, since the run did not come to its end."""


def merge(
    parts: Sequence[Part],
    rows: Iterable[tuple[Part, ResultRow]],
    expected_shards: int | None,
    *,
    validate: Callable[[Sequence[GateSettings]], Sequence[ScenarioReport]],
    yardstick: Yardstick | None,
    write_error: str | None = None,
) -> tuple[RunReport, tuple[CaseOutcome, ...]]:
    """Return what several files come to together; the gate is the one that their reports hold.

    `validate` applies the validators of these settings to the same rows.

    With `expected_shards`, or when one of them is a shard, they must be exactly the parts of one plan: what is missing,
    doubled or foreign is a reason of the gate. So is a row that is there twice, whatever is expected.
    """
    tally = Tally()
    seen = _Seen()
    for part, row in rows:
        if seen.is_new(part, row):
            tally.add(row)
    outcomes = tally.outcomes()
    reports = [part.report for part in parts if part.report is not None]
    settings = _settings(reports, outcomes)
    expected = expected_shards or next((each.shard.total for each in reports if each.shard is not None), None)
    scenarios = validate(settings)
    found = [*_unfinished(parts), *_incomplete(parts, expected), *_differing(reports), *seen.doubled()]
    found += [*seen.mocked(), *seen.lost(parts), *(reason for report in reports for reason in report.incomplete)]
    found += [*_unheard(reports, scenarios)]
    ending = _ending(reports)
    comparison = None
    if yardstick is not None and not ending.dry_run:
        comparison = compare(yardstick, outcomes)
    elif len(parts) == 1 and reports and reports[0].shard is None:
        # What was said of the same rows still holds.
        comparison = reports[0].comparison
    else:
        found += [*_uncompared(reports)]
    plans = {each.plan_digest for each in reports}
    run_report = sum_up(
        tally,
        outcomes,
        settings,
        replace(ending, incomplete=tuple(dict.fromkeys(found)), write_error=write_error or ending.write_error),
        plan_digest=plans.pop() if len(plans) == 1 else None,
        scenarios=scenarios,
        comparison=comparison,
    )
    return run_report, outcomes


class _Seen:
    """Which trials stand in which files."""

    def __init__(self) -> None:
        self._keys: set[tuple[str, str, str, int]] = set()
        self._doubled: dict[str, None] = {}
        self._rows: Counter[Part] = Counter()
        self._dry: dict[Part, set[bool]] = {}

    def is_new(self, part: Part, row: ResultRow) -> bool:
        self._rows[part] += 1
        self._dry.setdefault(part, set()).add(row.dry_run)
        key = (*key_of(row), row.trial)
        if key in self._keys:
            self._doubled[f"trial {row.trial} of '{row.eval_id}' ({row.target}) in {part.name}"] = None
            return False
        self._keys.add(key)
        return True

    def doubled(self) -> Iterator[str]:
        if self._doubled:
            named = list(self._doubled)
            more = f" and {len(named) - MAX_NAMED} more" if len(named) > MAX_NAMED else ""
            yield f"there twice: {', '.join(named[:MAX_NAMED])}{more}"

    def mocked(self) -> Iterator[str]:
        """Yield the files whose rows are not of the run that their report tells of."""
        for part, found in self._dry.items():
            if part.report is not None and found != {part.report.dry_run}:
                which = "a dry run" if part.report.dry_run else "no dry run"
                yield f"the run report of {part.name} is that of {which}, and not all of its rows are"

    def lost(self, parts: Iterable[Part]) -> Iterator[str]:
        for part in parts:
            rows = self._rows[part]
            if part.report is not None and part.report.counts.rows != rows:
                yield f"{part.name} has {rows} rows, and its run report says {part.report.counts.rows}"


def _settings(reports: Sequence[RunReport], outcomes: Sequence[CaseOutcome]) -> tuple[GateSettings, ...]:
    """The thresholds of all suites; without a report that knows them, the default ones."""
    by_suite: dict[str, GateSettings] = {}
    for each in (settings for report in reports for settings in report.gate.settings):
        known = by_suite.get(each.suite)
        cases = each.cases + (known.cases if known is not None else 0)
        seeds = tuple(sorted({*each.seeds, *(known.seeds if known is not None else ())}))
        by_suite[each.suite] = (known or each).model_copy(update={"cases": cases, "seeds": seeds})
    for suite, cases in Counter(each.case.suite for each in outcomes).items():
        by_suite.setdefault(suite, GateSettings(suite=suite, cases=cases))
    return tuple(by_suite[suite] for suite in sorted(by_suite))


def _ending(reports: Sequence[RunReport]) -> Ending:
    stops = {each.stopped for each in reports}
    return Ending(
        dry_run=any(each.dry_run for each in reports),
        write_error=next((each.write_error for each in reports if each.write_error is not None), None),
        stopped=next((stop for stop in reversed(get_args(Stop)) if stop in stops), None),
        max_cost_usd=next((each.gate.max_cost_usd for each in reports if each.gate.max_cost_usd is not None), None),
        unrecorded=sum(each.unrecorded for each in reports),
        unpriced_models=tuple(dict.fromkeys(model for each in reports for model in each.unpriced_models)),
        concurrency=tuple(change for each in reports for change in each.concurrency),
    )


def _unfinished(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        if part.report is None:
            yield f"{part.name} has no run report beside it: its run did not end; finish it with --resume"


def _incomplete(parts: Sequence[Part], expected: int | None) -> Iterator[str]:
    if expected is None:
        return
    plan = _plan_of(parts)
    found: dict[int, list[str]] = {}
    for part in parts:
        if part.report is None:
            continue
        foreign = _foreign(part.name, part.report, plan, expected)
        if foreign is not None:
            yield foreign
        else:
            found.setdefault(part.report.shard.index if part.report.shard is not None else 1, []).append(part.name)
    missing = [f"{index}/{expected}" for index in range(1, expected + 1) if index not in found]
    if missing:
        yield f"{'shard' if len(missing) == 1 else 'shards'} {', '.join(missing)} missing"
    if not missing:
        yield from _split_otherwise(parts, expected)
    for index, names in sorted(found.items()):
        if len(names) > 1:
            yield f"shard {index}/{expected} is there {len(names)} times: {', '.join(names)}"


def _foreign(name: str, report: RunReport, plan: str | None, expected: int) -> str | None:
    """Say why a part is none of these; None: it is."""
    shard = report.shard
    if report.plan_digest != plan:
        return f"{name} is of another plan"
    if shard is None and expected > 1:
        return f"{name} is no shard but a whole run"
    if shard is not None and shard.total != expected:
        return f"{name} is shard {shard.index}/{shard.total}, not one of {expected}"
    return None


def _split_otherwise(parts: Sequence[Part], expected: int) -> Iterator[str]:
    """All parts are there, but not of one split: of other durations, other parts come out."""
    reports = [part.report for part in parts if part.report is not None and part.report.shard is not None]
    of_plan = {report.shard.cases for report in reports if report.shard is not None}
    there = sum(report.counts.cases for report in reports)
    if of_plan and of_plan != {there} and len(reports) == expected:
        cases = " or ".join(map(str, sorted(of_plan)))
        yield f"the shards have {there} cases together and the plan has {cases}: they were not split alike (--balance)"


def _plan_of(parts: Sequence[Part]) -> str | None:
    """The plan that most parts are of; of as many, the first one's."""
    digests = [part.report.plan_digest for part in parts if part.report is not None]
    return max(dict.fromkeys(digests), key=digests.count, default=None)


def _unheard(reports: Iterable[RunReport], scenarios: Iterable[ScenarioReport]) -> Iterator[str]:
    """Errors that a validator found when a part ran, and that cannot be looked for here."""
    silent = {
        (scenario.scenario_key, each.validator)
        for scenario in scenarios
        for each in scenario.aggregates.validations
        if isinstance(each, FailedValidation)
    }
    for scenario in (each for report in reports for each in report.scenario_reports):
        for each in scenario.aggregates.validations:
            if isinstance(each, Validation) and each.errors and (scenario.scenario_key, each.validator) in silent:
                yield f"{scenario.scenario_key}: validator {each.validator} found errors, and cannot run here"


def _uncompared(reports: Iterable[RunReport]) -> Iterator[str]:
    """Parts that were compared with a baseline are so together, or it is not known what has regressed."""
    names = dict.fromkeys(each.comparison.base for each in reports if each.comparison is not None)
    if names:
        yield f"these runs were compared with {', '.join(names)}, and together they are not; name it with --baseline"


def _differing(reports: Sequence[RunReport]) -> Iterator[str]:
    if len({each.dry_run for each in reports}) > 1:
        yield "some of these runs are dry runs"
    if len({each.gate.max_cost_usd for each in reports}) > 1:
        yield "these runs had different budgets (--max-cost)"
    thresholds: dict[str, set[str]] = {}
    for each in (settings for report in reports for settings in report.gate.settings):
        thresholds.setdefault(each.suite, set()).add(each.model_dump_json(exclude={"cases", "seeds"}))
    yield from (f"{suite}: these runs had different gates" for suite, each in thresholds.items() if len(each) > 1)
