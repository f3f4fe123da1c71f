"""Settings of targets that a run refuses."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import suppress
from pathlib import Path

from agentv_ci.contracts.agent_targets import AgentTarget
from agentv_ci.contracts.api_targets import (
    INVALID_ADDRESS,
    HttpTarget,
    is_address,
    refused_settings,
)
from agentv_ci.contracts.cli_target import CliTarget, CommandHealthcheck, HttpHealthcheck
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import FileState
from agentv_ci.contracts.environment_references import OPENING
from agentv_ci.contracts.source import Pointer, normal
from agentv_ci.contracts.targets import Target
from agentv_ci.validate.findings import Finder

FOLDER: frozenset[FileState] = frozenset({"folder", "unreadable"})
FILE: frozenset[FileState] = frozenset({"text", "blank", "not UTF-8", "unreadable"})

Found = Iterator[Diagnostic]


def check(pointer: Pointer, target: Target, find: Finder) -> Found:
    """AV330 for addresses, headers, folders and certificates; references are checked by the run."""
    if isinstance(target, HttpTarget):
        for field, reason in refused_settings(_as_written(target)):
            place = (*pointer, *field.split(".", 1))
            yield find.at("AV330", f"invalid {field}: {reason}", place, key="." in field)
        yield from _check_path((*pointer, "ca_bundle"), target.ca_bundle, FILE, find)
    if isinstance(target, (CliTarget, AgentTarget)):
        yield from _check_path((*pointer, "cwd"), target.cwd, FOLDER, find)
    if isinstance(target, CliTarget):
        match target.healthcheck:
            case CommandHealthcheck(cwd=cwd):
                yield from _check_path((*pointer, "healthcheck", "cwd"), cwd, FOLDER, find)
            case HttpHealthcheck(url=url) if OPENING not in url and not is_address(url):
                place = (*pointer, "healthcheck", "url")
                yield find.at("AV330", f"invalid url: {INVALID_ADDRESS}", place)
            case _:
                pass


def _as_written(target: HttpTarget) -> HttpTarget:
    """Return a target without keys and references, whose values only a run knows."""
    headers = {
        name: value for name, value in (target.headers or {}).items() if OPENING not in value
    }
    refers = [name for name, value in target if isinstance(value, str) and OPENING in value]
    address = {
        name: text.strip()
        for name in ("base_url", "endpoint")
        if (text := getattr(target, name, None))
    }
    return target.model_copy(
        update={**address, **dict.fromkeys(refers), "headers": headers, "api_key": None}
    )


def _check_path(
    pointer: Pointer, written: str | None, is_usable: Container[FileState], find: Finder
) -> Found:
    """AV330 for a path that is not there, or not what it should be."""
    if written is None or OPENING in written:
        return
    with suppress(RuntimeError):  # the home folder of an unknown user does not exist
        written = str(Path(written).expanduser())
    path = normal(find.source.path.parent / written)
    state = find.context.inspect_file(path, (path,)).state
    if state not in is_usable:
        reason = {"missing": "does not exist", "folder": "is a folder"}.get(
            state, "is not a folder"
        )
        yield find.at("AV330", f"'{written}' {reason}: {path}", pointer)
