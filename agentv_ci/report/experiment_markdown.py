"""Markdown of an experiment: its verdict, the effects on each metric, and the looks at them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agentv_ci.base.text import counted, shortened
from agentv_ci.report import view
from agentv_ci.report.experiment import (
    HEAD,
    ArmEffects,
    arms_of,
    case_text,
    compared_text,
    effect_row,
    look_row,
    preference_texts,
    trials_texts,
)
from agentv_ci.report.inert_markdown import cell_code, code, folded, item, list_of, table

if TYPE_CHECKING:
    # Few runs are experiments.
    from agentv_ci.contracts.experiment_report import (
        CaseEffect,
        ExperimentReport,
        Look,
        MetricEffect,
    )

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
    yield list_of([*view.first_lines(reasons, MAX_REASONS), *trials_texts(found)])
    for warning in found.warnings[:MAX_REASONS]:
        yield f"⚠️ {_sentence(warning)}"
    for arm in arms_of(found):
        yield from _arm(arm, found)
    if found.looks:
        rows = [_look_cells(look, found) for look in found.looks[-MAX_LOOKS:]]
        yield folded(
            f"{counted(len(found.looks), 'look')} at the primary metric while it ran",
            table(["cases", "trials", "arm", "change", "interval", "verdict"], rows),
        )


def _look_cells(look: Look, found: ExperimentReport) -> Sequence[str]:
    cases, trials, _, *others = look_row(look, found)
    return [cases, trials, _name(look.arm), *others]


def _arm(found: ArmEffects, experiment: ExperimentReport) -> Iterator[str]:
    yield (
        f"**{_name(experiment.base)} → {_name(found.arm)}**: {compared_text(found.effects)}; "
        f"primary metric {_name(experiment.primary)}"
    )
    yield table(HEAD, map(_effect_cells, found.effects))
    if preferred := list_of(map(code, preference_texts(found.effects))):
        yield preferred
    if found.cases:
        lines = view.first_lines(list(map(_changed, found.cases)), MAX_CASES, "case")
        called = counted(sum(case.called for case in found.cases), "case is", "cases are")
        title = f"{called} called changed, of {len(found.cases)} whose primary metric differs"
        yield folded(title, "\n".join(lines))


def _effect_cells(effect: MetricEffect) -> Sequence[str]:
    _, *figures, verdict = effect_row(effect)
    return [_name(effect.metric), *figures, f"{SIGNS[verdict]} {verdict}"]


def _changed(case: CaseEffect) -> str:
    return item(f"{'**changed** ' if case.called else ''}{code(case_text(case))}")


def _sentence(text: str) -> str:
    return code(shortened(text, MAX_REASON))


def _name(text: str) -> str:
    return cell_code(shortened(text, MAX_NAME))
