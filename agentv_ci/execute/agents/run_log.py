"""The log of an agent's run: what it prints, line by line, with the time since its start."""

from __future__ import annotations

import re
import shlex
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Request
from agentv_ci.execute.services import ProviderServices
from agentv_ci.json_access import read_json
from agentv_ci.process import Listener
from agentv_ci.text import printable

NAMES = {1: "stdout", 2: "stderr"}

Summarize = Callable[[JsonObject], Iterator[str]]
"""Returns the lines of a log about an event."""


@contextmanager
def run_log(
    folder: Path,
    target: str,
    request: Request,
    argv: Sequence[str],
    *,
    services: ProviderServices,
    summarize: Summarize | None,
) -> Iterator[Listener | None]:
    """Write a log while an agent runs, of its events as they come where `summarize` is None.

    Without a log, and with a warning, where the folder takes no files.
    """
    try:
        file = _open(folder, target, request, services)
    except OSError as error:
        services.warn(f"{target}: no logs of agents: {error}")
        yield None
        return
    log = _Log(file, services, summarize)
    log.write("\n".join(_head(target, request, argv, services)))
    try:
        yield log
    finally:
        log.end()
        services.log(f"{target}: {request.case_id}: log in {file.name}")


def _open(folder: Path, target: str, request: Request, services: ProviderServices) -> TextIO:
    folder.mkdir(parents=True, exist_ok=True)
    stamp = services.environment.now().strftime("%Y%m%dT%H%M%SZ")
    attempt = f"_attempt-{request.attempt + 1}" if request.attempt else ""
    name = f"{stamp}_{_safe(target)}_{_safe(request.case_id)}{attempt}_{uuid.uuid4().hex[:8]}.log"
    return (folder / name).open("x", encoding="utf-8")


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".")[:60] or "unnamed"


def _head(target: str, request: Request, argv: Sequence[str], services: ProviderServices) -> Iterator[str]:
    yield f"# {target}: {request.case_id}, attempt {request.attempt + 1}"
    yield f"# started {services.environment.now().isoformat(timespec='seconds')}"
    yield f"# {shlex.join(argv)}"


class _Log:
    """A listener that writes whole lines."""

    def __init__(self, file: TextIO, services: ProviderServices, summarize: Summarize | None) -> None:
        self._file = file
        self._services = services
        self._summarize = summarize
        self._begun = services.environment.monotonic()
        self._rests = {1: b"", 2: b""}
        self._is_full = False

    def __call__(self, output: int, data: bytes) -> None:
        *lines, rest = (self._rests[output] + data).split(b"\n")
        self._rests[output] = rest
        for line in lines:
            self._line(output, line)

    def end(self) -> None:
        """Write what came without a line break, and close the file."""
        for output, rest in self._rests.items():
            if rest:
                self._line(output, rest)
        with suppress(OSError):
            self._file.close()

    def _line(self, output: int, line: bytes) -> None:
        minutes, seconds = divmod(int(self._services.environment.monotonic() - self._begun), 60)
        for text in self._texts(line.decode("utf-8", "replace").rstrip()):
            self.write(f"[+{minutes:02}:{seconds:02}] [{NAMES[output]}] {text}")

    def _texts(self, line: str) -> Iterator[str]:
        try:
            event = read_json(line) if self._summarize is not None and line.startswith("{") else None
        except ValueError:
            event = None
        if isinstance(event, dict) and self._summarize is not None:
            yield from self._summarize(event)
        else:
            yield line

    def write(self, text: str) -> None:
        """Write lines without secrets, at once: people follow a log while it grows.

        A disk that takes no more is told once, and costs nothing but the log.
        """
        if self._is_full:
            return
        try:
            # Colours first: one in the middle of a secret would hide it.
            self._file.write(self._services.redact(printable(text)) + "\n")
            self._file.flush()
        except OSError as error:
            self._is_full = True
            self._services.warn(f"no more logs of agents: {error}")
