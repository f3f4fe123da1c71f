"""The file of a run: written, and read line by line, whatever is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from hashlib import sha256

from msgspec import DecodeError, Struct
from msgspec.json import Decoder, Encoder

from agentv_ci.base.text import on_one_line, shortened
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.ledger import CaseLine, Damage, LedgerLine, LedgerRun, RunLine

FILE_NAME = re.compile(
    r"(?P<month>[0-9]{4}-[0-9]{2})/[0-9]{8}T[0-9]{6}Z-[0-9a-f]{12}\.jsonl", re.ASCII
)
"""The path of a run in a ledger: a folder for each month, and a file with the time and the id of
the run.
"""
MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_LINE_BYTES = 64 * 1024

_encode = Encoder().encode
_decode = Decoder(LedgerLine).decode


class _Versioned(Struct):
    schema_version: int


def file_of(
    cases: Sequence[CaseLine], *, time: datetime, commit: str | None, run_url: str | None
) -> tuple[str, bytes]:
    """Return the path and content of a run.

    They are the same for the same cases and time, so that a run is added only once.
    """
    ended = time.astimezone(UTC).replace(microsecond=0)
    lines = list(map(_encode, cases))
    stamp = ended.isoformat().replace("+00:00", "Z")
    run = sha256(b"\n".join([stamp.encode(), *lines])).hexdigest()[:12]
    head = RunLine(1, run, stamp, len(lines), commit, run_url)
    content = b"".join(line + b"\n" for line in (_encode(head), *lines))
    return f"{ended:%Y-%m}/{ended:%Y%m%dT%H%M%SZ}-{run}.jsonl", content


def is_in_range(path: str, since: date | None) -> bool:
    """Whether a file of a ledger may hold a run since a day, by the name of its folder."""
    return since is None or path[:7] >= f"{since:%Y-%m}"


def read_run(path: str, content: bytes, damaged: list[Damage]) -> LedgerRun | None:
    """Return the run in a file, without lines that cannot be used; these are added to `damaged`.

    None if not even its first line can be used.
    """
    lines = content.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    try:
        head = _head(lines[0] if lines else b"")
    except ValueError as error:
        damaged.append(Damage(f"{path}:1", str(error)))
        return None
    cases: dict[CaseKey, CaseLine] = {}
    for number, line in enumerate(lines[1:], 2):
        try:
            case = _case(line)
        except ValueError as error:
            damaged.append(Damage(f"{path}:{number}", str(error)))
            continue
        if cases.setdefault(case.key, case) is not case:
            damaged.append(Damage(f"{path}:{number}", "is of a case that this run has already"))
    if head.cases != len(lines) - 1:
        damaged.append(
            Damage(path, f"has {len(lines) - 1} cases; its first line says {head.cases}")
        )
    return LedgerRun(head, tuple(cases.values()))


def why_refused(path: str, content: bytes) -> Damage | None:
    """Return why readers would not use a file, or all of it; None if they would."""
    if not FILE_NAME.fullmatch(path):
        return Damage(path, "is not from a year with four digits")
    if len(content) > MAX_FILE_BYTES:
        return Damage(path, f"is larger than {MAX_FILE_BYTES // 1024 // 1024} MiB")
    damaged: list[Damage] = []
    read_run(path, content, damaged)
    return damaged[0] if damaged else None


def _head(line: bytes) -> RunLine:
    """Return the first line of a file; raises ValueError."""
    try:
        head = _line(line)
    except ValueError:
        if (version := _version(line)) not in (None, 1):
            known = "this version of agentv-ci reads 1"
            raise ValueError(f"schema_version {version} is not supported; {known}") from None
        raise
    if not isinstance(head, RunLine):
        raise ValueError("does not describe a run")  # noqa: TRY004  # what is wrong is the line
    datetime.fromisoformat(head.time)
    return head


def _version(line: bytes) -> int | None:
    try:
        return Decoder(_Versioned).decode(line[:MAX_LINE_BYTES]).schema_version
    except (DecodeError, RecursionError, UnicodeError):
        return None


def _case(line: bytes) -> CaseLine:
    """Return the line of a case; raises ValueError."""
    case = _line(line)
    if not isinstance(case, CaseLine):
        raise ValueError("does not describe a case")  # noqa: TRY004  # what is wrong is the line
    is_ordered = case.passed + case.crashed <= case.graded <= case.trials
    if not is_ordered or (case.score is None) == (case.graded > 0):
        raise ValueError(
            "contradicts itself: passed + crashed ≤ graded ≤ trials, and a score if any are graded"
        )
    return case


def _line(line: bytes) -> LedgerLine:
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"is longer than {MAX_LINE_BYTES // 1024} KiB")
    try:
        decoded: LedgerLine = _decode(line)
    except RecursionError as error:
        raise ValueError("is nested too deep") from error
    except (DecodeError, UnicodeError) as error:
        # The message may quote the line.
        raise ValueError(
            f"is not a line of a ledger: {shortened(on_one_line(str(error)), 120)}"
        ) from error
    return decoded


def in_order(runs: Iterator[LedgerRun], since: date | None) -> tuple[LedgerRun, ...]:
    """Return runs since a day, the oldest first."""
    first = since.isoformat() if since is not None else ""
    return tuple(
        sorted(
            (run for run in runs if run.head.time >= first),
            key=lambda run: (run.head.time, run.head.run),
        )
    )
