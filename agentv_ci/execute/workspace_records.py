"""What rows say of workspaces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agentv_ci.base.text import counted, printable, well_formed_text
from agentv_ci.contracts.plan_parts import PlanWorkspace
from agentv_ci.contracts.results import Change, WorkspaceRecord
from agentv_ci.workspaces.diffs import diff_of
from agentv_ci.workspaces.places import Work
from agentv_ci.workspaces.submission import submitted
from agentv_ci.workspaces.trees import content_of

MAX_DIFF = 20_000
"""Characters."""
MAX_PATHS = 1_000
MAX_KEPT = 64 * 1024
"""Bytes of changed files up to which a row holds them, for `rescore`."""
NOT_KEPT = f"rows hold no more than {MAX_KEPT // 1024} KiB, and no secrets"


def unopened_record(workspace: PlanWorkspace) -> WorkspaceRecord:
    """Return the record of a trial without an answer."""
    return WorkspaceRecord(isolation=workspace.isolation, network=workspace.network)


async def record_of(work: Work, redact: Callable[[str], str]) -> WorkspaceRecord:
    """Return what the agent has changed, without secrets; raises OSError."""
    _, withheld = submitted(work.changes, work.workspace)
    return unopened_record(work.workspace).model_copy(
        update={
            "changed": tuple(_shown(change.path, redact) for change in work.changes[:MAX_PATHS]),
            "withheld": tuple(_shown(path, redact) for path in withheld[:MAX_PATHS]),
            "diff": await asyncio.to_thread(_diff, work, redact),
            "changes": _kept(work.changes, redact),
        }
    )


def _kept(changes: tuple[Change, ...], redact: Callable[[str], str]) -> tuple[Change, ...] | None:
    """Return changes that are small and have no secrets.

    None for others, since a part of them is another outcome.
    """
    if (
        len(changes) > MAX_PATHS
        or sum(len(change.base64 or "") for change in changes) > MAX_KEPT * 4 // 3
    ):
        return None
    texts = (
        f"{change.path}\n{change.link}\n{(content_of(change) or b'').decode('utf-8', 'replace')}"
        for change in changes
    )
    if all(redact(text) == text for text in texts):
        return changes
    return None


def _shown(text: str, redact: Callable[[str], str]) -> str:
    return redact(printable(well_formed_text(text)))


def _diff(work: Work, redact: Callable[[str], str]) -> str | None:
    """Return whole diffs of files as long as they fit.

    The beginning of the next one follows, and the number of those that are left out.
    """
    texts: list[str] = []
    room = MAX_DIFF
    left_out = 0
    for diff in diff_of(work.changes, work.base):
        if room <= 0:
            left_out += 1
            continue
        # Redacted first: a cut may split a secret.
        text = redact(printable(diff.text))
        texts.append(text if len(text) <= room else f"{text[:room]}…\n")
        room -= len(text)
    if left_out:
        texts.append(f"… and {counted(left_out, 'more file')}\n")
    return "".join(texts) or None
