"""Apply command-line options to a plan: select cases and override settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from agentv_ci.base.mappings import known, picked
from agentv_ci.compile.document import resealed, sealed
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.gate import Increases, setting_of
from agentv_ci.contracts.plan import Plan, PlanCase, PlanGate, PlanSuite, files_of, named_targets
from agentv_ci.contracts.plan_parts import PlanFile


def narrowed(plan: Plan, keep: Callable[[PlanCase], bool]) -> Plan:
    """Return the plan of these cases alone, as if only they had been compiled."""
    return with_cases(plan, filter(keep, plan.cases))


def with_cases(plan: Plan, cases: Iterable[PlanCase]) -> Plan:
    """Return the plan of these of its cases alone, as if only they had been compiled."""
    needs = Needs()

    def kept() -> Iterator[PlanCase]:
        for case in cases:
            needs.add(case)
            yield case

    return sealed(kept(), lambda: needs.of(plan))


class Needs:
    """The parts of a plan that some cases need."""

    def __init__(self) -> None:
        self._suites: set[str] = set()
        self._targets: set[str] = set()
        self._files: dict[str, str] = {}
        """SHA-256 → path; of files with equal content, the first path in order."""

    def add(self, case: PlanCase) -> None:
        """Add what a case needs."""
        self._suites.add(case.suite)
        self._targets.update(named_targets(case))
        for file in files_of(case):
            self._files[file.sha256] = min(file.path, self._files.get(file.sha256, file.path))

    def of(self, plan: Plan) -> Plan:
        """Return the plan with only these suites, targets and files, in a plan's order."""
        files = sorted((path, sha256) for sha256, path in self._files.items())
        suites = tuple(suite for suite in plan.suites if suite.path in self._suites)
        targets = picked(plan.targets, sorted(self._targets))
        renamed: dict[str, PlanFile] = {}
        for path, sha256 in files:
            renamed[sha256] = plan.files[sha256].model_copy(update={"path": path})
        return plan.model_copy(update={"suites": suites, "targets": targets, "files": renamed})


class Overrides(Struct, frozen=True):
    """Values of options; None keeps the plan's own."""

    repeat: int | None = None
    """Trials of each case; none are skipped."""
    seed: int | None = None
    """The n-th trial uses `seed + n - 1`."""
    threshold: float | None = None
    timeout_s: float | None = None
    max_retries: int | None = None
    min_pass_rate: float | None = None
    min_mean_score: float | None = None
    max_errors: int | None = None
    max_increases: Increases = {}
    """Limits that replace those of the plan, metric by metric."""

    @property
    def settings(self) -> frozenset[str]:
        """The settings that they replace."""
        given = set(map(setting_of, self.max_increases))
        for name in self.__struct_fields__:
            if name != "max_increases" and getattr(self, name) is not None:
                given.add(name)
        return frozenset(given)


def override(plan: Plan, flags: Overrides) -> Plan:
    """Return the plan with the options applied, and its new digests."""
    if flags == Overrides():
        return plan
    suites = tuple(_suite(suite, flags) for suite in plan.suites)
    cases = (_case(case, flags) for case in plan.cases)
    return resealed(cases, plan.model_copy(update={"suites": suites}))


def with_trials(plan: Plan, trials: Mapping[CaseKey, int]) -> Plan:
    """Return the plan with new numbers of trials."""
    return resealed(
        (case.model_copy(update={"trials": trials[plan.key_of(case)]}) for case in plan.cases), plan
    )


def _case(case: PlanCase, flags: Overrides) -> PlanCase:
    trials = flags.repeat or case.trials
    seeds = case.seeds
    if flags.seed is not None:
        seeds = tuple(range(flags.seed, flags.seed + trials))
    update = _given(
        threshold=flags.threshold,
        timeout_seconds=flags.timeout_s,
        max_retries=flags.max_retries,
    )
    if flags.repeat is None:
        trials = max(trials, len(seeds))
    else:
        update["stop_when"] = None
    return case.model_copy(update={**update, "seeds": seeds, "trials": trials})


def _given(**values: object) -> dict[str, object]:
    return known(values)


def _suite(suite: PlanSuite, flags: Overrides) -> PlanSuite:
    update = _given(
        min_pass_rate=flags.min_pass_rate,
        min_mean_score=flags.min_mean_score,
        max_errors=flags.max_errors,
    )
    if flags.max_increases:
        update["max_increases"] = {**(suite.gate.max_increases or {}), **flags.max_increases}
    gate: PlanGate = suite.gate.model_copy(update=update)
    return suite.model_copy(update={"gate": gate})
