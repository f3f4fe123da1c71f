"""Hold a plan to an older one, and say what makes it easier to pass.

Of gate limits, thresholds, and of `required` and weights of evaluators that both plans have, the
stricter counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any

from msgspec import Struct

from agentv_ci.base.text import counted, first_few
from agentv_ci.compile.diff import reasons
from agentv_ci.compile.digest import digests_of
from agentv_ci.compile.document import resealed
from agentv_ci.compile.held_evaluators import held_evaluators
from agentv_ci.compile.held_gates import held_gate, shown
from agentv_ci.compile.pairs import Pairs, pairs_of
from agentv_ci.contracts.against_base import LoweringKind
from agentv_ci.contracts.cases import CaseHead
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import (
    Plan,
    PlanCase,
    PlanGate,
    PlanSuite,
    PlanValidator,
    suites_by_path,
)
from agentv_ci.contracts.plan_evaluators import PlanEvaluator

REQUIRE = ("any", "majority", "all")
"""The laxest first."""
MOCK = "mock"
OF_SCORING = ("evaluator", "order of evaluators", "target", "expected", "workspace")
"""How reasons begin that are about answers and scores."""


class Found(Struct, frozen=True):
    """Something that makes a plan easier to pass."""

    kind: LoweringKind
    text: str
    suite: str | None = None
    """The eval file; None for all."""
    setting: str = ""
    """The setting, the evaluator or the target that it is about."""
    is_held: bool = False
    """Whether what the older plan says counts."""


class Lowered(Struct, frozen=True):
    """Something that makes a plan easier to pass, with the cases that it is about."""

    found: Found
    cases: Sequence[CaseHead]
    """Of missing ones, those of the older plan; none for a whole eval file."""


class Held(Struct, frozen=True):
    """A plan that is held to an older one."""

    plan: Plan
    lowered: Sequence[Lowered]
    """Missing cases come first."""
    missing: int
    """Cases that only the older plan has."""
    others: Sequence[str]
    """What else has changed; what may decide a verdict comes first."""


def held_to(old: Plan, new: Plan, pinned: Collection[str] = ()) -> Held:
    """Return the newer plan with the stricter settings of both, and what makes it easier to pass.

    `pinned` are the settings that options replace in both plans.
    """
    pairs, findings = pairs_of(old, new), _Findings()
    for place in pairs.missing:
        head = heads_of(old)[place]
        findings.add(Found("case", "missing", head.suite), head)
    suites = tuple(_Suites(old, new, pairs, findings, pinned).held())
    cases = _Cases(old, new, findings, pinned)
    changed = dict(cases.held(pairs))
    plan = new
    if changed or suites != tuple(new.suites):
        every = (changed.get(place, case) for place, case in enumerate(new.cases))
        plan = resealed(every, new.model_copy(update={"suites": suites}))
    others = [*cases.others(of_scoring=True), *_suites_changed(old, new)]
    others += _places_changed(old, new, pairs)
    others += [*cases.others(of_scoring=False), *_new_cases(new, pairs)]
    return Held(plan, findings.lowered(), len(pairs.missing), others)


class _Findings:
    """What was found, each once for all cases that it is about."""

    def __init__(self) -> None:
        self._found: dict[Found, list[CaseHead]] = {}

    def add(self, found: Found, *cases: CaseHead) -> None:
        self._found.setdefault(found, []).extend(cases)

    def lowered(self) -> list[Lowered]:
        return list(starmap(Lowered, self._found.items()))


class _Suites:
    """Holds the gates of suites."""

    def __init__(
        self, old: Plan, new: Plan, pairs: Pairs, findings: _Findings, pinned: Collection[str]
    ) -> None:
        self._known = suites_by_path(old)
        self._new = new
        self._findings = findings
        self._pinned = pinned
        self._from: dict[str, dict[str, list[CaseHead]]] = {}
        """Suite → the other suites that its cases were in, with these cases."""
        for place, known in pairs.moved.items():
            here, there = heads_of(new)[place], heads_of(old)[known].suite
            if here.suite != there:
                self._from.setdefault(here.suite, {}).setdefault(there, []).append(here)

    def held(self) -> Iterator[PlanSuite]:
        """Yield the suites, each held to that of the same path.

        Without one, it is held to those that its cases were in.
        """
        for suite in self._new.suites:
            origins = self._from.get(suite.path, {})
            if suite.path in self._known:
                self._take_moved(suite.path, origins)
                origins = {suite.path: []}
            gate: PlanGate = suite.gate
            for origin in origins:
                gate = self._held(suite, gate, self._known[origin])
            yield suite if gate == suite.gate else suite.model_copy(update={"gate": gate})

    def _held(self, suite: PlanSuite, gate: PlanGate, older: PlanSuite) -> PlanGate:
        held, lower = held_gate(older.gate, gate, self._pinned)
        for setting, text in lower:
            self._findings.add(Found("gate", text, suite.path, setting, is_held=True))
        for key in sorted(_validators_of(older).keys() - _validators_of(suite).keys()):
            self._findings.add(Found("gate", f"validator {key} removed", suite.path, "validators"))
        return held

    def _take_moved(self, path: str, origins: dict[str, list[CaseHead]]) -> None:
        """Add the cases that were moved here from suites with a higher gate."""
        for origin, cases in origins.items():
            _, lower = held_gate(self._known[origin].gate, self._known[path].gate, self._pinned)
            for _, text in lower:
                self._findings.add(Found("gate", f"moved from {origin}: {text}", path), *cases)


class _Cases:
    """Holds cases to older ones."""

    def __init__(self, old: Plan, new: Plan, findings: _Findings, pinned: Collection[str]) -> None:
        self._old, self._new = old, new
        self._findings = findings
        self._pinned = pinned
        self._older = digests_of(old)
        self._newer = digests_of(new)
        self._reasons: dict[str, list[str]] = {}
        """What else has changed → the ids of the cases."""

    def held(self, pairs: Pairs) -> Iterator[tuple[int, PlanCase]]:
        """Yield the cases whose settings are held, by their places."""
        before, after = heads_of(self._old), heads_of(self._new)
        for new_index, old_index in {**pairs.same, **pairs.moved}.items():
            if _scheduling(before[old_index]) == _scheduling(after[new_index]):
                continue
            old, new = self._old.cases[old_index], self._new.cases[new_index]
            held, lowered = self._held(old, new)
            for found in lowered:
                self._findings.add(found, new)
            if not lowered:
                self._take_reasons(old, new)
            if held is not new:
                yield new_index, held

    def _held(self, old: PlanCase, new: PlanCase) -> tuple[PlanCase, list[Found]]:
        update, found = self._held_settings(old, new)
        found += self._mocked(old, new)
        thresholds = old.threshold, max(old.threshold, new.threshold)
        evaluators, weaker = held_evaluators(
            old.evaluators, new.evaluators, thresholds, self._has_mocked_judge
        )
        for name, text, is_held in weaker:
            found.append(Found("evaluator", text, new.suite, name, is_held))
            if is_held:
                update["evaluators"] = evaluators
        if not update:
            return new, found
        return new.model_copy(update=update), found

    def _held_settings(self, old: PlanCase, new: PlanCase) -> tuple[dict[str, Any], list[Found]]:
        """Return the settings of a case that are to be replaced, and what is lower."""
        update: dict[str, Any] = {}
        found: list[Found] = []
        if new.threshold < old.threshold and "threshold" not in self._pinned:
            update["threshold"] = old.threshold
            text = f"threshold {shown(old.threshold)} → {shown(new.threshold)}"
            found.append(Found("threshold", text, new.suite, "threshold", is_held=True))
        if REQUIRE.index(new.require) < REQUIRE.index(old.require):
            update["require"] = old.require
            text = f"trials that must pass: {old.require} → {new.require}"
            found.append(Found("threshold", text, new.suite, "repeat", is_held=True))
        easier = {"all": new.trials < old.trials, "any": new.trials > old.trials, "majority": False}
        require = update.get("require", new.require)
        if easier[require] and "repeat" not in self._pinned:
            text = f"trials {old.trials} → {new.trials}, of which {require} must pass"
            found.append(Found("threshold", text, new.suite, "repeat"))
        if new.skip is not None and old.skip is None:
            found.append(Found("skip", "skipped", new.suite, "skip"))
        return update, found

    def _mocked(self, old: PlanCase, new: PlanCase) -> Iterator[Found]:
        before, after = self._old.targets[old.target], self._new.targets[new.target]
        if after.provider == MOCK != before.provider:
            text = f"target {after.name} is now a mock, was {before.provider}"
            yield Found("target", text, None, after.name)

    def _has_mocked_judge(self, old: PlanEvaluator, new: PlanEvaluator) -> bool:
        before, after = getattr(old, "target", None), getattr(new, "target", None)
        if before is None or after is None:
            return False
        return self._new.targets[after].provider == MOCK != self._old.targets[before].provider

    def _take_reasons(self, old: PlanCase, new: PlanCase) -> None:
        for reason in reasons(self._older, self._newer, old, new):
            if reason != "id changed":
                self._reasons.setdefault(reason, []).append(new.id)

    def others(self, *, of_scoring: bool) -> Iterator[str]:
        """Yield what else has changed, and in which cases.

        It is about how they are answered and scored, or about something else.
        """
        for reason, cases in self._reasons.items():
            if reason.startswith(OF_SCORING) is of_scoring:
                yield f"{first_few(cases)}: {reason}"


def _scheduling(head: CaseHead) -> tuple[object, ...]:
    """Return what differs if anything of a case can make it easier to pass."""
    return head.digest, head.trials, head.require, head.skip


def _places_changed(old: Plan, new: Plan, pairs: Pairs) -> Iterator[str]:
    """Yield which cases are moved or renamed."""
    before, after = heads_of(old), heads_of(new)
    moved: set[tuple[str, str, str, str]] = set()
    for new_index, old_index in pairs.moved.items():
        was, now = before[old_index], after[new_index]
        moved.add((was.suite, was.id, now.suite, now.id))
    for suite, case, path, name in sorted(moved):
        if case == name:
            yield f"{case} moved from {suite} to {path}"
        elif suite == path:
            yield f"{case} renamed to {name}"
        else:
            yield f"{case} renamed to {name}, in {path}"


def _new_cases(new: Plan, pairs: Pairs) -> Iterator[str]:
    if pairs.new:
        names = first_few([heads_of(new)[index].id for index in pairs.new])
        yield f"{counted(len(pairs.new), 'new case')}: {names}"


def _validators_of(suite: PlanSuite) -> Mapping[str, PlanValidator]:
    return {validator.key: validator for validator in suite.validators}


def _suites_changed(old: Plan, new: Plan) -> Iterator[str]:
    """Yield which prices and settings of validators have changed."""
    before = suites_by_path(old)
    for suite in new.suites:
        known = before.get(suite.path, suite)
        if known.prices != suite.prices:
            yield f"prices of {suite.path} changed"
        validators = _validators_of(known)
        for validator in suite.validators:
            older = validators.get(validator.key)
            if older is None:
                yield f"validator {validator.key} of {suite.path} added"
            elif older.context != validator.context:
                yield f"validator {validator.key} of {suite.path} changed"
