"""What documents may say, and `validate` checks, but this version does not run: refused before anything is asked."""

from __future__ import annotations

from collections.abc import Iterator

from agentv_ci.contracts.evals import EvalCase, EvalDocument, Repeat
from agentv_ci.contracts.source import Source
from agentv_ci.errors import UsageError


def not_run(source: Source, what: str) -> UsageError:
    """Return the refusal of a part of a document."""
    return UsageError(f"{source.path}: {what}: agentv-ci checks this and does not run it yet")


def refuse_settings(document: EvalDocument, source: Source) -> None:
    """Raise UsageError for settings of the whole file that a run would have to ignore."""
    for what in _settings(document):
        raise not_run(source, what)


def refuse_case(document: EvalDocument, case: EvalCase, source: Source) -> None:
    """Raise UsageError for settings of a case that a run would have to ignore."""
    repeat = document.execution_of(case).repeat
    if case.rubrics:
        raise not_run(source, f"'rubrics' of case '{case.id}'")
    if isinstance(repeat, Repeat) and repeat.stop_when is not None:
        raise not_run(source, f"'stop_when' of case '{case.id}'")


def _settings(document: EvalDocument) -> Iterator[str]:
    execution = document.execution
    if execution is None:
        return
    if execution.validators:
        yield "'execution.validators'"
    if execution.gate and execution.gate.max_cost_usd is not None:
        yield "'execution.gate.max_cost_usd'"
