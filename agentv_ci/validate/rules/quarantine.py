"""Rules for the quarantine: every entry ends, and is about cases that exist."""

from __future__ import annotations

from collections.abc import Iterator

from agentv_ci.contracts.cases import CaseKey, matches
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import ANY_TARGET
from agentv_ci.contracts.quarantine import LONG_DAYS, QuarantineDocument, QuarantineEntry, last_day
from agentv_ci.contracts.source import Pointer
from agentv_ci.validate.findings import Finder


def check(document: QuarantineDocument, find: Finder) -> Iterator[Diagnostic]:
    """AV371, AV372 and AV373 for every entry."""
    for index, entry in enumerate(document.quarantine):
        place: Pointer = ("quarantine", index)
        if not find.is_missing((*place, "expires")):
            yield from _check_end(entry, (*place, "expires"), find)
        if not find.lost_part(place) and not any(
            _is_about(entry, key) for key in find.context.cases_around()
        ):
            hint = "remove the entry, or correct its 'id', 'suite' or 'target'"
            yield find.at("AV372", f"no case matches {_named(entry)}", (*place, "id"), hint=hint)


def _check_end(entry: QuarantineEntry, place: Pointer, find: Finder) -> Iterator[Diagnostic]:
    day, today = last_day(entry.expires), find.context.today
    if day is None:
        yield find.at(
            "AV371", f"'{entry.expires}' is not a date", place, hint="write it like 2026-03-31"
        )
    elif today is None:
        return
    elif day < today:
        hint = "remove the entry, or agree with its owner on another date"
        yield find.at(
            "AV371",
            f"the quarantine of {_named(entry)} expired on {entry.expires}",
            place,
            hint=hint,
        )
    elif (day - today).days > LONG_DAYS:
        yield find.at(
            "AV373", f"the quarantine of {_named(entry)} ends in more than {LONG_DAYS} days", place
        )


def _is_about(entry: QuarantineEntry, key: CaseKey) -> bool:
    """Whether a case is one of these.

    Cases that are made from rows have a glob of their ids instead of an id.
    """
    suite, case_id, target = key
    is_of_rows = "*" in case_id and matches(entry.id, case_id)
    if is_of_rows:
        case_id = entry.id
    if target == ANY_TARGET:
        target = entry.target or ""
    return entry.covers((suite, case_id, target))


def _named(entry: QuarantineEntry) -> str:
    name = f"'{entry.id}'"
    if entry.suite is not None:
        name = f"{name} in '{entry.suite}'"
    if entry.target is not None:
        name = f"{name} for target '{entry.target}'"
    return name
