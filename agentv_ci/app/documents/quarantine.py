"""The quarantine of a run: that of the work tree, or that of a base branch.

A change cannot edit the latter.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.app.documents.compile import CompiledPlan
from agentv_ci.app.documents.documents import Documents, require_valid
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import CheckedDocument
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.quarantine import Quarantine, QuarantineDocument
from agentv_ci.errors import UsageError

if TYPE_CHECKING:
    from agentv_ci.contracts.quarantine import QuarantineEntry

QUARANTINE = Path(".agentv", "quarantine.yaml")
"""Where it is in a repository."""
OF_ENTRIES = frozenset({"AV371", "AV372", "AV373"})
"""Rules about single entries, which leave the others usable."""


class ReadQuarantine(Struct, frozen=True):
    """A quarantine, and what is to say about its file."""

    entries: tuple[Quarantine, ...] = ()
    """Those that have cases in the plan."""
    diagnostics: tuple[Diagnostic, ...] = ()
    path: Path | None = None
    """The file, if it is of the work tree."""

    def beside(self, compiled: CompiledPlan) -> CompiledPlan:
        """Return a plan that knows that its run reads the file, too."""
        if self.path is None:
            return compiled
        sources = (*compiled.origin.sources, self.path)
        return CompiledPlan(compiled.plan, replace(compiled.origin, sources=sources))


NO_QUARANTINE = ReadQuarantine()


def find_quarantine(root: Path) -> Path | None:
    """Return the quarantine of a repository, None without one."""
    path = root / QUARANTINE
    return path if path.is_file() else None


def read_quarantine(path: Path, plan: Plan, *, cwd: Path, today: date) -> ReadQuarantine:
    """Return the quarantine in a file of the work tree.

    Raises UsageError if it is something else, InvalidInput for errors in it, such as entries that
    have expired.
    """
    cases = set(map(plan.key_of, heads_of(plan)))
    checked, document = _checked(path, cases, cwd, today)
    require_valid([checked])
    return ReadQuarantine(_of(document.quarantine, cases, today), checked.diagnostics, path)


def read_base_quarantine(path: Path, plan: Plan, *, cwd: Path, today: date) -> ReadQuarantine:
    """Return the quarantine of a base branch; raises UsageError if it cannot be used.

    The change that is tested cannot correct it: entries that have expired or match nothing count
    for nothing.
    """
    cases = set(map(plan.key_of, heads_of(plan)))
    return ReadQuarantine(entries_of(path, cases, cwd=cwd, today=today))


def entries_of(
    path: Path, cases: Collection[CaseKey], *, cwd: Path, today: date
) -> tuple[Quarantine, ...]:
    """Return the entries of a file that have any of these cases.

    Raises UsageError if it cannot be used.
    """
    checked, document = _checked(path, cases, cwd, today)
    for found in checked.diagnostics:
        if found.severity == "error" and found.rule not in OF_ENTRIES:
            raise UsageError(f"line {found.line}: {found.message}")
    return _of(document.quarantine, cases, today)


def _checked(
    path: Path, cases: Collection[CaseKey], cwd: Path, today: date
) -> tuple[CheckedDocument, QuarantineDocument]:
    if not path.is_file():
        raise UsageError(f"quarantine '{path}' does not exist")
    checked = Documents(cwd, None, today=today, cases=cases).check(path, named=True)
    if checked.source.kind not in ("quarantine", None):
        raise UsageError(
            f"'{path}' is not a quarantine", hint="a quarantine has $schema: agentv-quarantine-v1"
        )
    document = checked.document
    if not isinstance(document, QuarantineDocument):
        document = QuarantineDocument(quarantine=())
    return checked, document


def _of(
    entries: Collection[QuarantineEntry], cases: Collection[CaseKey], today: date
) -> tuple[Quarantine, ...]:
    about = (entry for entry in entries if any(map(entry.covers, cases)))
    return tuple(Quarantine.of(entry, today) for entry in about)
