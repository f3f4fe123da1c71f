"""Markdown of an experiment: its verdict, the effects on each metric, and the looks at them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agentv_ci.base.text import counted, shortened
from agentv_ci.report import view
from agentv_ci.report.experiment import (
    HEAD,
    case_text,
    compared_text,
    effect_row,
    look_row,
    preference_texts,
    trials_texts,
)
from agentv_ci.report.inert_markdown import cell_code, code, folded

if TYPE_CHECKING:
    from agentv_ci.contracts.experiment_report import ExperimentReport  # few runs are experiments

MAX_CASES = 50
MAX_LOOKS = 100
MAX_NAME = 100
MAX_REASON = 500
MAX_REASONS = 20
SIGNS = {
    "better": "📈",
    "worse": "📉",
    "equivalent": "🟰",
    "not worse": "✅",
    "undecided": "🤷",
    "withheld": "⚠️",
}
"""A sign for each verdict."""


def experiment_text(found: ExperimentReport) -> str:
    """Return the section of an experiment."""
    return "\n\n".join(_parts(found))


def _parts(found: ExperimentReport) -> Iterator[str]:
    yield f"### {SIGNS[found.verdict]} Experiment: {found.verdict}"
    reasons = [*map(_sentence, dict.fromkeys((*found.reasons, *found.withheld)))]
    shown = [
        *reasons[:MAX_REASONS],
        *view.more_text(len(reasons), MAX_REASONS),
        *trials_texts(found),
    ]
    yield "\n".join(f"- {text}" for text in shown)
    yield from (f"⚠️ {_sentence(warning)}" for warning in found.warnings[:MAX_REASONS])
    for name in dict.fromkeys(effect.arm for effect in found.effects):
        yield from _arm(name, found)
    if found.looks:
        looks = ((look_row(look, found), look) for look in found.looks[-MAX_LOOKS:])
        rows = [[cells[0], cells[1], _name(look.arm), *cells[3:]] for cells, look in looks]
        table = _table(["cases", "trials", "arm", "change", "interval", "verdict"], rows)
        yield folded(
            f"{counted(len(found.looks), 'look')} at the primary metric while it ran", table
        )


def _arm(name: str, found: ExperimentReport) -> Iterator[str]:
    own = [effect for effect in found.effects if effect.arm == name]
    yield (
        f"**{_name(found.base)} → {_name(name)}**: {compared_text(own)}; "
        f"primary metric {_name(found.primary)}"
    )
    rows = [(effect, effect_row(effect)) for effect in own]
    yield _table(
        HEAD,
        [
            [_name(it.metric), *cells[1:-1], f"{SIGNS[it.verdict]} {it.verdict}"]
            for it, cells in rows
        ],
    )
    if preferred := [f"- {code(text)}" for text in preference_texts(own)]:
        yield "\n".join(preferred)
    if changed := [case for case in found.cases if case.arm == name]:
        lines = [
            f"- {'**changed** ' if case.called else ''}{code(case_text(case))}" for case in changed
        ]
        called = counted(sum(case.called for case in changed), "case is", "cases are")
        title = f"{called} called changed, of {len(changed)} whose primary metric differs"
        yield folded(
            title, "\n".join([*lines[:MAX_CASES], *view.more_text(len(lines), MAX_CASES, "case")])
        )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def _sentence(text: str) -> str:
    return code(shortened(text, MAX_REASON))


def _name(text: str) -> str:
    return cell_code(shortened(text, MAX_NAME))
