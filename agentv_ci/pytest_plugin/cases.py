"""Eval file → its cases, for each target, as tests of pytest."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentv_ci.api import CaseResult, RunKeywords, run_compiled
from agentv_ci.app.documents.compile import CompiledPlan, Selection, compile_paths
from agentv_ci.base.text import shortened
from agentv_ci.compile.overrides import with_cases
from agentv_ci.contracts.cases import CaseHead
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.errors import CannotGoOn, InvalidInput

MAX_ANSWER = 2_000
ACTING_MARKS = frozenset(
    (
        "skip",
        "skipif",
        "xfail",
        "usefixtures",
        "parametrize",
        "filterwarnings",
        "tryfirst",
        "trylast",
    )
)
"""Marks that change what pytest does; as tags of a case they are keywords alone."""
_MARK = re.compile(r"[^\W_][\w.-]*")


class CaseFailed(Exception):
    """A case that did not pass."""

    def __init__(self, result: CaseResult) -> None:
        super().__init__(result.verdict)
        self.result = result


class EvalFile(pytest.File):
    """An eval file."""

    def collect(self) -> Iterator[EvalItem]:
        """Yield the cases, for each target."""
        try:
            compiled = self._compiled()
        except InvalidInput as error:
            lines = [
                f"{problem.path}:{problem.line}:{problem.column}: {problem.message}"
                for problem in error.diagnostics
            ]
            raise self.CollectError("\n".join(lines)) from error
        except CannotGoOn as error:
            raise self.CollectError(error.message) from error
        heads = heads_of(compiled.plan)
        keys = list(map(compiled.plan.key_of, heads))
        has_several = len({target for *_, target in keys}) > 1
        for index, (head, (_, case_id, target)) in enumerate(zip(heads, keys, strict=True)):
            name = f"{case_id}[{target}]" if has_several else case_id
            yield EvalItem.from_parent(self, name=name, compiled=compiled, index=index, case=head)

    def _compiled(self) -> CompiledPlan:
        names = self.config.getoption("--agentv-target") or ()
        selection = Selection([str(self.path)], target_names=names)
        return compile_paths(selection, cwd=self.config.invocation_params.dir)


class EvalItem(pytest.Item):
    """A case for one target; it passes if the verdict of the case is `pass`."""

    def __init__(
        self, *, compiled: CompiledPlan, index: int, case: CaseHead, **given: object
    ) -> None:
        super().__init__(**given)  # type: ignore[arg-type]  # those of pytest
        self._compiled = compiled
        self._index = index
        self._case = case
        if case.skip is not None:
            self.add_marker(pytest.mark.skip(reason=case.skip))
        for tag in case.tags or ():
            self.extra_keyword_matches.add(tag)
            if tag not in ACTING_MARKS and _MARK.fullmatch(tag):
                # Marks have to be known before they are used.
                self.config.addinivalue_line("markers", f"{tag}: tag of an eval case")
                self.add_marker(tag)

    def runtest(self) -> None:
        """Run the case alone; raises CaseFailed."""
        # By its place: a case of a large plan is another object whenever it is read.
        plan = with_cases(self._compiled.plan, [self._compiled.plan.cases[self._index]])
        alone = type(self._compiled)(plan, self._compiled.origin)
        results = asyncio.run(
            run_compiled(alone, self._options(), self.config.invocation_params.dir)
        )
        (result,) = results.cases
        self.user_properties += [
            ("agentv_score", result.score),
            ("agentv_cost_usd", results.report.cost_usd),
        ]
        if result.verdict != "pass":
            raise CaseFailed(result)

    def _options(self) -> RunKeywords:
        options: RunKeywords = {"dry_run": self.config.getoption("--agentv-dry-run")}
        if replay := self.config.getoption("--agentv-replay"):
            options["replay"] = replay
        return options

    def repr_failure(
        self,
        excinfo: pytest.ExceptionInfo[BaseException],
        style: str | None = None,  # noqa: ARG002
    ) -> str:
        """Return why the case did not pass, and where it is."""
        error = excinfo.value
        if isinstance(error, CaseFailed):
            return "\n".join(_explained(error.result))
        if isinstance(error, CannotGoOn):
            return f"{error.message}\n{error.hint}" if error.hint else error.message
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the case is: path, line from 0, name."""
        root = self.path.parents[self._case.suite.count("/")]
        return root / self._case.source.path, self._case.source.line - 1, self.name


def _explained(result: CaseResult) -> Iterator[str]:
    case = f"{result.path}:{result.line}: {result.id} {result.verdict}"
    yield f"{case} {result.score or 0:.3f} (target {result.target})"
    for reason in result.reasons:
        yield f"  {reason}"
    worst = min(result.rows, key=lambda row: row.score or 0.0, default=None)
    if worst is not None and worst.candidate_answer:
        yield "answer:"
        for line in shortened(worst.candidate_answer, MAX_ANSWER).splitlines():
            yield f"  {line}"
