"""Merge several results files into one run: shards of a plan, or runs of several suites."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.cases.quarantine import in_quarantine, quarantine_in
from agentv_ci.analysis.cases.tally import Tally
from agentv_ci.analysis.comparison.comparison import BaselineComparison, compare
from agentv_ci.analysis.run_report import run_report_of
from agentv_ci.base.mappings import present
from agentv_ci.base.text import counted, first_few
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.experiment_report import ExperimentReport
from agentv_ci.contracts.report import (
    Ending,
    FailedValidation,
    GateSettings,
    GuidelineText,
    RunOrigin,
    RunReport,
    ScenarioReport,
    Stop,
    Validation,
)
from agentv_ci.contracts.results import ResultRow

MANY_TRIALS = 32
"""So many trials of a case are looked up in a set.

Of fewer, the tally alone knows which rows it has.
"""


class Part(Struct, frozen=True, eq=False):
    """A results file and the run report beside it."""

    name: str
    report: RunReport | None
    """None when it is missing because the run did not finish."""


def merge(
    parts: Sequence[Part],
    rows: Iterable[tuple[Part, ResultRow]],
    expected_shards: int | None,
    *,
    validate: Callable[[Sequence[GateSettings]], Sequence[ScenarioReport]],
    against: BaselineComparison | None,
    experiment: ExperimentReport | None = None,
    repeated: Iterable[str] = (),
    write_error: str | None = None,
) -> tuple[RunReport, tuple[CaseOutcome, ...]]:
    """Return the run report and outcomes of several files together.

    The gate settings are those of their reports. `validate` applies the validators of these
    settings to the same rows.

    With `expected_shards`, or when one file is a shard, the files must be exactly the shards of one
    plan: a missing, duplicate or foreign one is a reason of the gate. Duplicate rows always are,
    and so are files that are named twice (`repeated`). A case counts once.
    """
    reports = [part.report for part in parts if part.report is not None]
    tally = Tally(_target_names(reports), compares=against is not None)
    merged = _Rows(tally, has_parts=len(parts) > 1)
    for part, row in rows:
        if merged.is_new(part, row):
            tally.add(row)
    ending = _ending(reports)
    outcomes = in_quarantine(
        tally.outcomes(is_decided=ending.stopped == "decided"), ending.quarantine
    )
    settings = _settings(parts, merged, outcomes)
    scenarios = validate(settings)
    problems = [
        *(f"{name} is named twice" for name in repeated),
        *_unfinished(parts),
        *_incomplete(parts, reports, expected_shards or _number_of_shards(reports)),
        *_differing(reports),
        *merged.problems(parts),
        *chain.from_iterable(report.incomplete for report in reports),
        *_unrepeated(reports, scenarios),
        *_unjudged(reports, merged, experiment),
    ]
    ending = replace(ending, experiment=experiment)
    comparison = None
    if against is not None and not ending.dry_run:
        comparison = compare(against, outcomes, settings)
    elif len(parts) == 1 and reports and reports[0].shard is None:
        # The rows are the same, so their comparison is still valid.
        comparison = reports[0].comparison
        ending = replace(ending, experiment=experiment or reports[0].experiment)
    else:
        problems += _uncompared(reports)
    ending = replace(
        ending,
        incomplete=tuple(dict.fromkeys(problems)),
        write_error=write_error or ending.write_error,
    )
    plans = {report.plan_digest for report in reports}
    run_report = run_report_of(
        tally,
        outcomes,
        settings,
        ending,
        plan_digest=plans.pop() if len(plans) == 1 else None,
        scenarios=scenarios,
        comparison=comparison,
        guidelines=_guidelines(reports),
    )
    return run_report, outcomes


def _target_names(reports: Iterable[RunReport]) -> Iterator[str]:
    for report in reports:
        for target in report.targets:
            yield target.name


def _number_of_shards(reports: Iterable[RunReport]) -> int | None:
    """Return into how many shards the plan of these runs was split; None if it was not."""
    for report in reports:
        if report.shard is not None:
            return report.shard.total
    return None


def _unjudged(
    reports: Sequence[RunReport], rows: _Rows, experiment: ExperimentReport | None
) -> Iterator[str]:
    """Yield that rows are of an experiment which nothing judges."""
    if not rows.has_arms or experiment is not None:
        return
    if all(report.experiment is None for report in reports):
        command = "agentv-ci experiment FILE --results RESULTS"
        yield f"the rows are of an experiment: judge them with `{command}`"


def _guidelines(reports: Iterable[RunReport]) -> list[GuidelineText]:
    """Return the guidelines of all runs; of a path in several runs, the last text counts."""
    by_path: dict[str, GuidelineText] = {}
    for report in reports:
        for guideline in report.guidelines:
            by_path[guideline.path] = guideline
    return [*by_path.values()]


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

    def is_new(self, part: Part, row: ResultRow) -> bool:
        """Count a row, and return whether it is the first of its trial."""
        self._counts[part] += 1
        self._dry_runs[part].add(row.dry_run)
        key = row.case_key
        self.has_arms = self.has_arms or row.arm is not None
        if self._has_parts:
            self._cases[part, row.suite].add(key)
        if not self._is_known(key, row.trial):
            return True
        trial = f"trial {row.trial} of '{row.eval_id}' ({row.target}) in {part.name}"
        self._doubled[trial] = None
        return False

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
        if not self._has_parts:
            return ran[suite]
        return len(self._cases.get((part, suite), ()))

    def problems(self, parts: Iterable[Part]) -> Iterator[str]:
        """Yield contradictions between rows and run reports."""
        if self._doubled:
            yield f"duplicate rows: {first_few(list(self._doubled))}"
        for part, dry_runs in self._dry_runs.items():
            if part.report is not None and dry_runs != {part.report.dry_run}:
                is_dry, are_not = ("is", "are not") if part.report.dry_run else ("is not", "are")
                report = f"the run report of {part.name} {is_dry} of a dry run"
                yield f"{report}, but some of its rows {are_not}"
        for part in parts:
            rows = self._counts[part]
            if part.report is not None and part.report.counts.rows != rows:
                reported = part.report.counts.rows
                yield (
                    f"{part.name} has {counted(rows, 'row')}, but its run report counts {reported}"
                )


def _settings(
    parts: Sequence[Part], rows: _Rows, outcomes: Sequence[CaseOutcome]
) -> tuple[GateSettings, ...]:
    """Return the gate settings of all suites, with defaults for suites that no report has."""
    by_suite: dict[str, GateSettings] = {}
    ran = Counter(outcome.suite for outcome in outcomes)
    never_ran: dict[str, dict[object, int]] = {}
    for part in parts:
        if part.report is None:
            continue
        # Another run of the same shard has the same cases.
        which = part.report.plan_digest, part.report.shard
        for settings in part.report.gate.settings:
            suite = settings.suite
            known = by_suite.get(suite, settings)
            seeds = tuple(sorted({*settings.seeds, *known.seeds}))
            by_suite[suite] = known.model_copy(update={"seeds": seeds})
            of_suite = never_ran.setdefault(suite, {})
            left = settings.cases - rows.cases(part, suite, ran)
            of_suite[which] = max(of_suite.get(which, 0), left)

    merged: list[GateSettings] = []
    for suite in sorted({*by_suite, *ran}):
        cases = ran[suite] + sum(never_ran.get(suite, {}).values())
        settings = by_suite.get(suite, GateSettings(suite=suite, cases=0))
        merged.append(settings.model_copy(update={"cases": cases}))
    return tuple(merged)


def _ending(reports: Sequence[RunReport]) -> Ending:
    stops = {report.stopped for report in reports}
    durations = present(report.duration_s for report in reports)
    unpriced = chain.from_iterable(report.unpriced_models for report in reports)
    return Ending(
        dry_run=any(report.dry_run for report in reports),
        write_error=next(present(report.write_error for report in reports), None),
        stopped=next(filter(stops.__contains__, reversed(get_args(Stop))), None),
        max_cost_usd=next(present(report.gate.max_cost_usd for report in reports), None),
        unrecorded=sum(report.unrecorded for report in reports),
        replayed=any(report.replayed for report in reports),
        filtered=any(report.filtered for report in reports),
        rescored=any(report.rescored for report in reports),
        again=_shared_words(reports),
        unpriced_models=tuple(dict.fromkeys(unpriced)),
        concurrency=tuple(chain.from_iterable(report.concurrency for report in reports)),
        quarantine=quarantine_in(reports),
        against_base=next(present(report.against_base for report in reports), None),
        origin=_origin(list(present(report.origin for report in reports))),
        duration_s=max(durations, default=None),
    )


def _shared_words(reports: Sequence[RunReport]) -> tuple[str, ...]:
    """Return the words of the command for another run that all of these runs have."""
    if not reports:
        return ()
    first, *others = (report.again for report in reports)
    shared = set(first).intersection(*others)
    return tuple(filter(shared.__contains__, first))


def _origin(origins: Sequence[RunOrigin]) -> RunOrigin | None:
    """Return what the origins of several runs have in common; None without any."""
    if not origins:
        return None
    same: dict[str, Any] = {}
    for name in RunOrigin.model_fields:
        values = {getattr(origin, name) for origin in origins}
        if len(values) == 1:
            same[name] = values.pop()
    return RunOrigin(**same)


def _unfinished(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        if part.report is None:
            missing = f"the run report of {part.name} is missing"
            yield f"{missing}: its run did not finish; finish it with --resume"


def _incomplete(
    parts: Iterable[Part], reports: Sequence[RunReport], expected: int | None
) -> Iterator[str]:
    """Yield why these files are not exactly the expected shards of one plan."""
    if expected is None:
        return
    digests = Counter(report.plan_digest for report in reports)
    # The plan of most parts; in a tie, the first.
    plan = max(digests, key=digests.__getitem__, default=None)
    names: dict[int, list[str]] = {}
    for part in parts:
        if part.report is None:
            continue
        if (foreign := _foreign(part.name, part.report, plan, expected)) is not None:
            yield foreign
            continue
        index = part.report.shard.index if part.report.shard is not None else 1
        names.setdefault(index, []).append(part.name)
    yield from _badly_numbered(names, reports, expected)


def _badly_numbered(
    names: Mapping[int, Sequence[str]], reports: Sequence[RunReport], expected: int
) -> Iterator[str]:
    """Yield which shards are missing or occur several times; `names` has the files of each."""
    missing = [f"{index}/{expected}" for index in range(1, expected + 1) if index not in names]
    if missing:
        yield f"{'shard' if len(missing) == 1 else 'shards'} {', '.join(missing)} missing"
    else:
        yield from _split_otherwise(reports, expected)
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
    shards = together = 0
    of_plan: set[int] = set()
    for report in reports:
        if report.shard is not None:
            of_plan.add(report.shard.cases)
            together += report.counts.cases
            shards += 1
    if of_plan and of_plan != {together} and shards == expected:
        cases = " or ".join(map(str, sorted(of_plan)))
        counts = f"the shards have {together} cases in total, but the plan has {cases}"
        yield f"{counts}: they were split differently (--balance)"


def _unrepeated(reports: Iterable[RunReport], scenarios: Iterable[ScenarioReport]) -> Iterator[str]:
    """Yield validators that found errors when a part ran, but cannot run here."""
    silent: set[tuple[str, str]] = set()
    for scenario, validation in _validations(scenarios):
        if isinstance(validation, FailedValidation):
            silent.add((scenario, validation.validator))
    reported = chain.from_iterable(report.scenario_reports for report in reports)
    for scenario, validation in _validations(reported):
        if not isinstance(validation, Validation) or not validation.errors:
            continue
        if (scenario, validation.validator) in silent:
            validator = f"validator {validation.validator}"
            yield f"{scenario}: {validator} found errors, but cannot run here"


def _validations(
    scenarios: Iterable[ScenarioReport],
) -> Iterator[tuple[str, Validation | FailedValidation]]:
    """Yield what each validator says of each scenario, with the key of the scenario."""
    for scenario in scenarios:
        for validation in scenario.aggregates.validations:
            yield scenario.scenario_key, validation


def _uncompared(reports: Iterable[RunReport]) -> Iterator[str]:
    """Yield that parts were compared with a baseline, but the merged run is not.

    Regressions would be lost.
    """
    names = dict.fromkeys(
        report.comparison.base for report in reports if report.comparison is not None
    )
    if names:
        merged = "but the merged run is not; set --baseline"
        yield f"these runs were compared with {', '.join(names)}, {merged}"


def _differing(reports: Sequence[RunReport]) -> Iterator[str]:
    if len({report.dry_run for report in reports}) > 1:
        yield "some of these runs are dry runs"
    if len({report.gate.max_cost_usd for report in reports}) > 1:
        yield "these runs had different budgets (--max-cost)"
    thresholds: dict[str, set[str]] = {}
    for settings in chain.from_iterable(report.gate.settings for report in reports):
        text = settings.model_dump_json(exclude={"cases", "seeds"})
        thresholds.setdefault(settings.suite, set()).add(text)
    for suite, texts in thresholds.items():
        if len(texts) > 1:
            yield f"{suite}: these runs had different gates"
