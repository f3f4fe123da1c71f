"""Compile documents into a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agentv_ci.compile.cases import compile_suite
from agentv_ci.compile.digest import UNSEALED, CaseDigests
from agentv_ci.compile.document import sealed
from agentv_ci.compile.overrides import Needs
from agentv_ci.compile.references import Files, ReadBytes, Targets
from agentv_ci.contracts.config import Price
from agentv_ci.contracts.documents import CheckedDocument, DocumentContext
from agentv_ci.contracts.plan import Plan, PlanCase, PlanSuite
from agentv_ci.jsonschema.schemas import schema_id


class Compilation:
    """Compiles documents case by case, so that a plan need not fit in memory."""

    def __init__(
        self, documents: Iterable[tuple[CheckedDocument, DocumentContext]], *, read_bytes: ReadBytes
    ) -> None:
        """Take valid eval documents; their contexts select the cases.

        The plan may have no cases.
        """
        self._documents = documents
        self._files = Files(read_bytes)
        self._targets = Targets()
        self._suites: list[PlanSuite] = []
        self._prices: dict[str, Mapping[str, Price]] = {}
        self._digests = CaseDigests(self._targets.compiled, self._prices)
        self._needs = Needs()
        self.left_out = 0
        """Number of selected cases so far that do not run because others of their files have
        `only`.
        """

    def cases(self) -> Iterator[PlanCase]:
        """Yield the cases in order, once.

        Each document is requested when the ones before it are done.
        """
        for checked, context in self._documents:
            suite, cases = compile_suite(checked, context, self._files, self._targets)
            self._suites.append(suite)
            self._prices[suite.path] = suite.prices
            for case in cases:
                if case is None:
                    self.left_out += 1
                    continue
                self._needs.add(case)
                yield case.model_copy(update={"digest": self._digests.of(case)})

    def head(self) -> Plan:
        """Return the plan without its cases and its digest, after the last case."""
        # All parts are valid, and building the validator of whole plans is slow.
        everything = Plan.model_construct(
            schema_=schema_id("plan-v1"),
            digest=UNSEALED,
            suites=tuple(self._suites),
            targets=self._targets.compiled,
            files=self._files.compiled,
            cases=(),
        )
        return self._needs.of(everything)

    def plan(self) -> Plan:
        """Return the whole plan; raises what `cases` raises."""
        return sealed(self.cases(), self.head)

    @property
    def sources(self) -> set[Path]:
        """The files whose content is in the plan."""
        return self._files.paths | self._targets.paths
