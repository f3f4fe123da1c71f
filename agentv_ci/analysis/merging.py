"""Merge several results files into one run: shards of a plan, or runs of several suites."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.cases.quarantine import in_quarantine, quarantine_in
from agentv_ci.analysis.cases.tally import Tally
from agentv_ci.analysis.comparison.comparison import BaselineComparison, compare
from agentv_ci.analysis.run_report import run_report_of
from agentv_ci.base.text import counted, first_few
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.experiment_report import ExperimentReport
from agentv_ci.contracts.report import (
    Ending,
    FailedValidation,
    GateSettings,
    RunOrigin,
    RunReport,
    ScenarioReport,
    Stop,
    Validation,
)
from agentv_ci.contracts.stored_rows import AnyRow

MANY_TRIALS = 32
"""Trials of a case that are looked up in a set: of fewer, the tally alone knows which rows it has.
"""


class Part(Struct, frozen=True, eq=False):
    """A results file and the run report beside it."""

    name: str
    report: RunReport | None
    """None when it is missing because the run did not finish."""


def merge(
    parts: Sequence[Part],
    rows: Iterable[tuple[Part, AnyRow]],
    expected_shards: int | None,
    *,
    validate: Callable[[Sequence[GateSettings]], Sequence[ScenarioReport]],
    against: BaselineComparison | None,
    experiment: ExperimentReport | None = None,
    repeated: Iterable[str] = (),
    write_error: str | None = None,
) -> tuple[RunReport, tuple[CaseOutcome, ...]]:
    """Return the run report and outcomes of several files together, with the gate settings of their reports.

    `validate` applies the validators of these settings to the same rows.

    With `expected_shards`, or when one file is a shard, the files must be exactly the shards of one plan: a missing,
    duplicate or foreign one is a reason of the gate. Duplicate rows always are, and so are files that are named twice
    (`repeated`). A case counts once.
    """
    targets = (
        each.name for part in parts if part.report is not None for each in part.report.targets
    )
    tally = Tally(targets, compares=against is not None)
    merged = _Rows(tally, has_parts=len(parts) > 1)
    for part, row in rows:
        if merged.is_new(part, row):
            tally.add(row)
    reports = [part.report for part in parts if part.report is not None]
    ending = _ending(reports)
    outcomes = in_quarantine(
        tally.outcomes(is_decided=ending.stopped == "decided"), ending.quarantine
    )
    settings = _settings(parts, merged, outcomes)
    expected = expected_shards or next(
        (each.shard.total for each in reports if each.shard is not None), None
    )
    scenarios = validate(settings)
    problems = [f"{name} is named twice" for name in repeated]
    problems += [
        *_unfinished(parts),
        *_incomplete(parts, expected),
        *_differing(reports),
        *merged.problems(parts),
    ]
    problems += [
        *(reason for report in reports for reason in report.incomplete),
        *_unrepeated(reports, scenarios),
    ]
    ending = replace(ending, experiment=experiment)
    if merged.has_arms and experiment is None and all(each.experiment is None for each in reports):
        problems.append(
            "the rows are of an experiment: judge them with `agentv-ci experiment FILE --results RESULTS`"
        )
    comparison = None
    if against is not None and not ending.dry_run:
        comparison = compare(against, outcomes, settings)
    elif len(parts) == 1 and reports and reports[0].shard is None:
        # The rows are the same, so their comparison is still valid.
        comparison = reports[0].comparison
        ending = replace(ending, experiment=experiment or reports[0].experiment)
    else:
        problems += [*_uncompared(reports)]
    plans = {each.plan_digest for each in reports}
    run_report = run_report_of(
        tally,
        outcomes,
        settings,
        replace(
            ending,
            incomplete=tuple(dict.fromkeys(problems)),
            write_error=write_error or ending.write_error,
        ),
        plan_digest=plans.pop() if len(plans) == 1 else None,
        scenarios=scenarios,
        comparison=comparison,
        guidelines=[
            *{each.path: each for report in reports for each in report.guidelines}.values()
        ],
    )
    return run_report, outcomes


class _Rows:
    """The rows of each file."""

    def __init__(self, tally: Tally, *, has_parts: bool) -> None:
        self._tally = tally
        self._has_parts = has_parts
        self._doubled: dict[str, None] = {}
        self._counts: Counter[Part] = Counter()
        self._dry_runs: defaultdict[Part, set[bool]] = defaultdict(set)
        self._cases: defaultdict[tuple[Part, str], set[CaseKey]] = defaultdict(set)
        """Of several files; the cases of one are those of the tally."""
        self._seen: dict[CaseKey, set[int]] = {}
        """The trials of cases with many."""
        self.has_arms = False

    def is_new(self, part: Part, row: AnyRow) -> bool:
        self._counts[part] += 1
        self._dry_runs[part].add(row.dry_run)
        key = row.case_key
        self.has_arms = self.has_arms or row.arm is not None
        if self._has_parts:
            self._cases[part, row.suite].add(key)
        if self._is_known(key, row.trial):
            self._doubled[f"trial {row.trial} of '{row.eval_id}' ({row.target}) in {part.name}"] = (
                None
            )
            return False
        return True

    def _is_known(self, key: CaseKey, trial: int) -> bool:
        """Return whether the tally has a row of this trial, which is added otherwise."""
        seen = self._seen.get(key)
        if seen is None:
            numbers = self._tally.numbers(key)
            if len(numbers) < MANY_TRIALS:
                return trial in numbers
            seen = self._seen[key] = set(numbers)
        is_known = trial in seen
        seen.add(trial)
        return is_known

    def cases(self, part: Part, suite: str, ran: Counter[str]) -> int:
        """Return the number of cases of a suite in a file; `ran` has those in all files."""
        return len(self._cases.get((part, suite), ())) if self._has_parts else ran[suite]

    def problems(self, parts: Iterable[Part]) -> Iterator[str]:
        """Yield contradictions between rows and run reports."""
        if self._doubled:
            yield f"duplicate rows: {first_few(list(self._doubled))}"
        for part, dry_runs in self._dry_runs.items():
            if part.report is not None and dry_runs != {part.report.dry_run}:
                is_dry, are_not = ("is", "are not") if part.report.dry_run else ("is not", "are")
                yield f"the run report of {part.name} {is_dry} of a dry run, but some of its rows {are_not}"
        for part in parts:
            rows = self._counts[part]
            if part.report is not None and part.report.counts.rows != rows:
                yield f"{part.name} has {counted(rows, 'row')}, but its run report counts {part.report.counts.rows}"


def _settings(
    parts: Sequence[Part], rows: _Rows, outcomes: Sequence[CaseOutcome]
) -> tuple[GateSettings, ...]:
    """Return the gate settings of all suites, with defaults for suites that no report has."""
    by_suite: dict[str, GateSettings] = {}
    ran = Counter(each.suite for each in outcomes)
    never_ran: dict[str, dict[object, int]] = {}
    for part, report in ((part, part.report) for part in parts if part.report is not None):
        for each in report.gate.settings:
            known = by_suite.get(each.suite, each)
            seeds = tuple(sorted({*each.seeds, *known.seeds}))
            by_suite[each.suite] = known.model_copy(update={"seeds": seeds})
            # Another run of the same shard has the same cases.
            which = report.plan_digest, report.shard
            of_suite = never_ran.setdefault(each.suite, {})
            of_suite[which] = max(
                of_suite.get(which, 0), each.cases - rows.cases(part, each.suite, ran)
            )
    return tuple(
        by_suite.get(suite, GateSettings(suite=suite, cases=0)).model_copy(
            update={"cases": ran[suite] + sum(never_ran.get(suite, {}).values())}
        )
        for suite in sorted({*by_suite, *ran})
    )


def _ending(reports: Sequence[RunReport]) -> Ending:
    stops = {each.stopped for each in reports}
    return Ending(
        dry_run=any(each.dry_run for each in reports),
        write_error=next(
            (each.write_error for each in reports if each.write_error is not None), None
        ),
        stopped=next((stop for stop in reversed(get_args(Stop)) if stop in stops), None),
        max_cost_usd=next(
            (each.gate.max_cost_usd for each in reports if each.gate.max_cost_usd is not None), None
        ),
        unrecorded=sum(each.unrecorded for each in reports),
        replayed=any(each.replayed for each in reports),
        filtered=any(each.filtered for each in reports),
        again=tuple(
            word for word in reports[0].again if all(word in each.again for each in reports)
        )
        if reports
        else (),
        unpriced_models=tuple(
            dict.fromkeys(model for each in reports for model in each.unpriced_models)
        ),
        concurrency=tuple(change for each in reports for change in each.concurrency),
        quarantine=quarantine_in(reports),
        against_base=next(
            (each.against_base for each in reports if each.against_base is not None), None
        ),
        origin=_origin([each.origin for each in reports if each.origin is not None]),
        duration_s=max(
            (each.duration_s for each in reports if each.duration_s is not None), default=None
        ),
    )


def _origin(origins: Sequence[RunOrigin]) -> RunOrigin | None:
    """Return what the origins of several runs have in common; None without any."""
    known = {name: {getattr(each, name) for each in origins} for name in RunOrigin.model_fields}
    same = {name: values.pop() for name, values in known.items() if len(values) == 1}
    return RunOrigin(**same) if origins else None


def _unfinished(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        if part.report is None:
            yield f"the run report of {part.name} is missing: its run did not finish; finish it with --resume"


def _incomplete(parts: Sequence[Part], expected: int | None) -> Iterator[str]:
    if expected is None:
        return
    reported = [(part.name, part.report) for part in parts if part.report is not None]
    digests = [report.plan_digest for _, report in reported]
    # The plan of most parts; in a tie, the first.
    plan = max(dict.fromkeys(digests), key=digests.count, default=None)
    names: dict[int, list[str]] = {}
    for name, report in reported:
        foreign = _foreign(name, report, plan, expected)
        if foreign is not None:
            yield foreign
        else:
            names.setdefault(report.shard.index if report.shard is not None else 1, []).append(name)
    missing = [f"{index}/{expected}" for index in range(1, expected + 1) if index not in names]
    if missing:
        yield f"{'shard' if len(missing) == 1 else 'shards'} {', '.join(missing)} missing"
    else:
        yield from _split_otherwise([report for _, report in reported], expected)
    for index, of_shard in sorted(names.items()):
        if len(of_shard) > 1:
            yield f"shard {index}/{expected} occurs {len(of_shard)} times: {', '.join(of_shard)}"


def _foreign(name: str, report: RunReport, plan: str | None, expected: int) -> str | None:
    """Return why a part does not belong to the others; None when it does."""
    shard = report.shard
    if report.plan_digest != plan:
        return f"{name} belongs to another plan"
    if shard is None and expected > 1:
        return f"{name} is a whole run, not a shard"
    if shard is not None and shard.total != expected:
        return f"{name} is shard {shard.index}/{shard.total}, not one of {expected}"
    return None


def _split_otherwise(reports: Sequence[RunReport], expected: int) -> Iterator[str]:
    """Yield why complete shards do not fit together: splits by different durations differ."""
    shards = [report for report in reports if report.shard is not None]
    of_plan = {report.shard.cases for report in shards if report.shard is not None}
    together = sum(report.counts.cases for report in shards)
    if of_plan and of_plan != {together} and len(shards) == expected:
        cases = " or ".join(map(str, sorted(of_plan)))
        counts = f"the shards have {together} cases in total, but the plan has {cases}"
        yield f"{counts}: they were split differently (--balance)"


def _unrepeated(reports: Iterable[RunReport], scenarios: Iterable[ScenarioReport]) -> Iterator[str]:
    """Yield validators that found errors when a part ran, but cannot run here."""
    silent = {
        (scenario.scenario_key, each.validator)
        for scenario in scenarios
        for each in scenario.aggregates.validations
        if isinstance(each, FailedValidation)
    }
    for scenario in (each for report in reports for each in report.scenario_reports):
        for each in scenario.aggregates.validations:
            if (
                isinstance(each, Validation)
                and each.errors
                and (scenario.scenario_key, each.validator) in silent
            ):
                yield f"{scenario.scenario_key}: validator {each.validator} found errors, but cannot run here"


def _uncompared(reports: Iterable[RunReport]) -> Iterator[str]:
    """Yield that parts were compared with a baseline, but the merged run is not: regressions would be lost."""
    names = dict.fromkeys(each.comparison.base for each in reports if each.comparison is not None)
    if names:
        yield f"these runs were compared with {', '.join(names)}, but the merged run is not; set --baseline"


def _differing(reports: Sequence[RunReport]) -> Iterator[str]:
    if len({each.dry_run for each in reports}) > 1:
        yield "some of these runs are dry runs"
    if len({each.gate.max_cost_usd for each in reports}) > 1:
        yield "these runs had different budgets (--max-cost)"
    thresholds: dict[str, set[str]] = {}
    for each in (settings for report in reports for settings in report.gate.settings):
        thresholds.setdefault(each.suite, set()).add(
            each.model_dump_json(exclude={"cases", "seeds"})
        )
    yield from (
        f"{suite}: these runs had different gates"
        for suite, each in thresholds.items()
        if len(each) > 1
    )
