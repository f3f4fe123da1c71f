"""The output of act, read as GitHub's runner reads the output of steps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

LEVELS = ("error", "warning", "notice")
MOST_SHOWN = 10
LONGEST_SHOWN = 4_096

MISSED = re.compile(r"^\s+::[a-z-]+[ :]|##\[[a-z-]+[ \]]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Annotation:
    """An annotation, as the runner reads it."""

    level: str
    message: str
    file: str | None = None
    line: int | None = None
    title: str | None = None
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """The result of a step; that of a composite action includes its inner steps."""

    result: str = ""
    """success, failure or skipped."""
    annotations: tuple[Annotation, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Of the step itself."""
    inner: Mapping[str, str] = field(default_factory=dict)
    """Every output of a step of the composite action: `step.name` → value."""
    summary: str = ""
    log: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """The names of all commands that were executed."""
    tokens: frozenset[str] = frozenset()
    """Tokens that ended a section in which commands were stopped."""
    missed: tuple[str, ...] = ()
    """Lines that GitHub's runner, but not act, would execute as commands: indented ones, and `##[` anywhere."""

    @property
    def errors(self) -> tuple[Annotation, ...]:
        return self.of("error")

    @property
    def notices(self) -> tuple[Annotation, ...]:
        return self.of("notice")

    def of(self, level: str) -> tuple[Annotation, ...]:
        """Return the annotations of a level."""
        return tuple(each for each in self.annotations if each.level == level)

    @property
    def shown(self) -> tuple[Annotation, ...]:
        """What GitHub shows: ten per level for the whole composite action, 4,096 characters each."""
        kept = {level: self.of(level)[:MOST_SHOWN] for level in LEVELS}
        return tuple(
            replace(each, message=each.message[:LONGEST_SHOWN])
            for each in self.annotations
            if any(each is one for one in kept[each.level])
        )


def read_steps(said: str) -> dict[str, Step]:
    """Return the steps by their id, in a matrix by its values and the id; empty if nothing started."""
    of: dict[str, list[Mapping[str, Any]]] = {}
    for entry in _entries(said):
        values = [str(value) for value in (entry.get("matrix") or {}).values()]
        of.setdefault(".".join([*values, entry["stepID"][0]]), []).append(entry)
    return {step_id: _step(each) for step_id, each in of.items()}


def _entries(said: str) -> Iterator[Mapping[str, Any]]:
    for line in said.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("stage") == "Main" and entry.get("stepID"):
            yield entry


def _step(entries: Sequence[Mapping[str, Any]]) -> Step:
    own, inner = ([each for each in entries if (len(each["stepID"]) == 1) is is_own] for is_own in (True, False))
    commands = [each for each in entries if "command" in each]
    return Step(
        result=next((each["stepResult"] for each in reversed(own) if "stepResult" in each), ""),
        annotations=tuple(_annotation(each) for each in commands if each["command"] in LEVELS),
        outputs={each["name"]: each["arg"] for each in own if _sets_output(each)},
        inner={".".join([*each["stepID"][1:], each["name"]]): each["arg"] for each in inner if _sets_output(each)},
        summary="".join(each["content"] for each in own if each.get("command") == "summary"),
        log=tuple(each["msg"].rstrip("\n") for each in entries if each.get("raw_output")),
        commands=tuple(each["command"] for each in commands),
        tokens=frozenset(each["arg"] for each in commands if each["command"] == "stop-commands"),
        missed=tuple(_missed(entries)),
    )


def _sets_output(entry: Mapping[str, Any]) -> bool:
    return entry.get("command") == "set-output"


def _missed(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    fence = None
    for entry in entries:
        command = entry.get("command")
        if command == "stop-commands":
            fence = entry["arg"]
        elif command and command == fence:
            fence = None
        elif fence is None and entry.get("raw_output") and MISSED.search(entry["msg"]):
            yield entry["msg"].rstrip("\n")


def _annotation(entry: Mapping[str, Any]) -> Annotation:
    # act takes the last `::` of a line for the end of the properties. The runner takes the first one: actions/runner,
    # ActionCommand.TryParseV2.
    head, _, message = entry["raw"].rstrip("\r\n").removeprefix("::").partition("::")
    level, _, properties = head.partition(" ")
    given = {name: _unescaped(value) for name, _, value in (each.partition("=") for each in properties.split(","))}

    def number(name: str) -> int | None:
        return int(given[name]) if name in given else None

    return Annotation(
        level=level,
        message=_unescaped(message),
        file=given.get("file"),
        title=given.get("title"),
        line=number("line"),
        end_line=number("endLine"),
        column=number("col"),
        end_column=number("endColumn"),
    )


def _unescaped(text: str) -> str:
    for escape, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(escape, character)
    return text
