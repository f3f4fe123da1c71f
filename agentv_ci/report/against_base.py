"""The gate in force, and what a change does to its own test, in Markdown and as annotations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from agentv_ci.base.text import counted, listed, on_one_line, shortened
from agentv_ci.contracts.action import Annotation
from agentv_ci.contracts.against_base import AgainstBase, Lowering
from agentv_ci.contracts.gate import setting_of
from agentv_ci.contracts.report import GateSettings, RunReport
from agentv_ci.report.inert_markdown import code, item, link
from agentv_ci.report.view import Links

MOST_SHOWN = 5
"""Lowerings in the text, which are in its first ten lines."""
MOST_OTHERS = 4
MOST_GATES = 3
MAX_TEXT = 160
TITLE = "This change lowers its own test"


def gate_line(report: RunReport) -> str:
    """Return the gate in force, for each suite that has another one."""
    suites: dict[str, list[str]] = {}
    for setting in report.gate.settings:
        suites.setdefault(", ".join(_limits(setting)), []).append(setting.suite)
    gates = [_short(gate) + _of(names, len(suites)) for gate, names in suites.items()]
    more = []
    if len(gates) > MOST_GATES:
        more = [f"{counted(len(gates) - MOST_GATES, 'more gate')}"]
    if report.gate.max_cost_usd is not None:
        more.append(code(f"cost of the run ≤ ${report.gate.max_cost_usd:g}"))
    return (
        f"Gate: {'; '.join([*gates[:MOST_GATES], *more]) or 'none'}{_origin(report.against_base)}"
    )


def _limits(gate: GateSettings) -> Iterator[str]:
    yield f"pass rate ≥ {gate.min_pass_rate * 100:.6g}%"
    if gate.min_mean_score is not None:
        yield f"mean score ≥ {gate.min_mean_score:.6g}"
    yield f"errors ≤ {gate.max_errors}"
    if gate.max_cost_usd is not None:
        yield f"cost ≤ ${gate.max_cost_usd:.6g}"
    for metric, share in (gate.max_increases or {}).items():
        yield f"{setting_of(metric)} {share * 100:.6g}%"
    if gate.undecided is not None:
        yield f"undecided: {gate.undecided}"
    if gate.validator_errors == "warn":
        yield "validators only warn"


def _of(suites: Sequence[str], gates: int) -> str:
    if gates == 1:
        return ""
    more = f" and {len(suites) - 1} more" if len(suites) > 1 else ""
    return f" in {_short(suites[0])}{more}"


def _origin(base: AgainstBase | None) -> str:
    if base is None:
        return ""
    if base.problem is not None:
        return (
            f" · not compared with {code(base.base)}, so that of this change counts: "
            f"{_short(base.problem)}"
        )
    if base.gate_from == "head":
        return " · ⚠️ that of this change, even where it is lower (`gate-from: head`)"
    return f" · held to {code(base.base)}"


def lowered_text(base: AgainstBase, links: Links) -> Iterator[str]:
    """Yield a list of how a change lowers its own test, else a line on how it changes it, if so."""
    others = listed(map(_short, base.others[:MOST_OTHERS]))
    if len(base.others) > MOST_OTHERS:
        others += f" and {len(base.others) - MOST_OTHERS + base.more} more"
    if not base.lowered:
        if others:
            yield f"The test, compared with {code(base.base)}: {others}"
        return
    counts = ", and that counts" if base.gate_from == "head" else ""
    yield f"⚠️ **{TITLE}{counts}**, compared with {code(base.base)}:"
    found = _each_kind_first(base.lowered)
    shown = found if len(found) <= MOST_SHOWN else found[: MOST_SHOWN - 1]
    for change in shown:
        yield _item(change, links)
    if left := found[len(shown) :]:
        yield f"- … and {len(left) + base.more} more: {_kinds(left)}"
    if others:
        yield f"- also {others}"


def _kinds(changes: Sequence[Lowering]) -> str:
    kinds = Counter(change.kind for change in changes)
    return ", ".join(f"{kind} ({number})" for kind, number in kinds.items())


def all_changes(base: AgainstBase, links: Links) -> list[str]:
    """Return a list of everything that a change does to its test.

    It is empty if the text has it all.
    """
    if len(base.lowered) <= MOST_SHOWN and len(base.others) <= MOST_OTHERS:
        return []
    lowered = [_item(change, links) for change in base.lowered]
    return [*lowered, *map(item, map(_short, base.others))]


def _each_kind_first(lowered: Sequence[Lowering]) -> list[Lowering]:
    """Return the first of each kind, then the second: many of one kind must not hide another."""
    seen: Counter[str] = Counter()
    ranked: list[tuple[int, int, Lowering]] = []
    for place, change in enumerate(lowered):
        ranked.append((seen[change.kind], place, change))
        seen[change.kind] += 1
    return [change for _, _, change in sorted(ranked, key=lambda entry: entry[:2])]


def _item(each: Lowering, links: Links) -> str:
    parts = [_short(each.text)]
    if each.cases:
        more = ""
        if each.number > len(each.cases):
            more = f" and {each.number - len(each.cases)} more"
        cases = listed(map(_short, each.cases))
        parts.append(f"{'case' if each.number == 1 else 'cases'} {cases}{more}")
    if each.path is not None and each.kind != "case":
        line = each.line or 1
        parts.append(link(code(f"{each.path}:{line}"), links.to(each.path, line)))
    if each.is_held:
        parts.append("does not count before it is merged")
    return item(" · ".join(parts))


def _short(text: str) -> str:
    return code(shortened(text, MAX_TEXT))


def lowered_annotations(base: AgainstBase | None) -> Iterator[Annotation]:
    """Yield a warning at each line where a change lowers its own test."""
    if base is None:
        return
    for change in base.lowered:
        if change.path is not None:
            names = [*change.cases, "…"] if change.number > len(change.cases) else change.cases
            cases = f" ({', '.join(names)})" if change.cases else ""
            held = "\nIt does not count before it is merged." if change.is_held else ""
            message = f"{shortened(on_one_line(change.text + cases), MAX_TEXT * 2)}{held}"
            yield Annotation("warning", TITLE, message, change.path, change.line, is_failure=True)
