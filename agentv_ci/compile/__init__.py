"""Stage 3: checked documents become one plan; the same documents always become the same bytes."""

from __future__ import annotations

from collections.abc import Sequence

from agentv_ci.compile.cases import compile_suite
from agentv_ci.compile.digest import plan_digest
from agentv_ci.compile.files import Files, ReadText
from agentv_ci.compile.targets import Targets
from agentv_ci.contracts.documents import Checked, Surroundings
from agentv_ci.contracts.plan import Plan, PlanCase, PlanSuite
from agentv_ci.schemas import schema_id

__all__ = ["compile"]


def compile(  # noqa: A001  # the stage's name; nothing here uses the builtin
    documents: Sequence[tuple[Checked, Surroundings]], *, read_text: ReadText, eval_ids: Sequence[str] = ()
) -> Plan:
    """Return the plan of valid eval documents.

    `eval_ids` keeps the cases whose id matches one of these globs; none given keeps all. A plan without cases is
    possible: whether that is a mistake is not decided here.
    """
    files, targets = Files(read_text), Targets()
    suites: list[PlanSuite] = []
    cases: list[PlanCase] = []
    for checked, surroundings in documents:
        suite, compiled = compile_suite(checked, surroundings, files, targets, eval_ids)
        if compiled:
            suites.append(suite)
            cases += compiled
    plan = Plan(
        schema_=schema_id("plan-v1"),
        digest="0" * 64,
        suites=tuple(suites),
        targets=targets.compiled,
        files=files.texts,
        cases=tuple(cases),
    )
    return plan.model_copy(update={"digest": plan_digest(plan)})
