"""What a plan may hold and this version does not run: refused before anything is asked, never skipped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentv_ci.contracts.plan import Plan, PlanSuite
from agentv_ci.errors import UsageError


def refuse_unsupported(plan: Plan) -> None:
    """Raise UsageError that names everything in a plan that a run would have to ignore, and where it stands first."""
    places: dict[str, list[str]] = {}
    for place, what in _unsupported(plan):
        places.setdefault(what, []).append(place)
    if places:
        raise UsageError("\n".join(_refusal(what, found) for what, found in places.items()))


def _refusal(what: str, places: Sequence[str]) -> str:
    more = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
    return f"{places[0]}: {what}{more}: agentv-ci compiles this and does not run it yet"


def _unsupported(plan: Plan) -> Iterator[tuple[str, str]]:
    for suite in plan.suites:
        yield from ((suite.path, what) for what in _settings(suite))
    for case in plan.cases:
        if case.stop_when is not None:
            yield f"{case.source.path}:{case.source.line}: case '{case.id}'", "'stop_when'"


def _settings(suite: PlanSuite) -> Iterator[str]:
    if suite.validators:
        yield "'validators'"
