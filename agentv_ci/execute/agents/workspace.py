"""What an agent opens itself: copies of a question's files in a scratch folder, and the prompt that names them.

The prompt says which files to read first and how to prove it. Its headings and the form of the proof are those of
AgentV and of its ancestor bbeval.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import chain, count, dropwhile
from pathlib import Path

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import InputFile, Request
from agentv_ci.execute.services import unwritable

MISSING = "If a file is missing, answer `ERROR: missing-file <filename>` and stop."

_PROOF = re.compile(
    r"^[-*`>\s]*INSTRUCTIONS_READ:\s*`?(?P<name>[^`\n]+?)`?\s+i=(?P<number>\d{1,6})\s+SHA256=(?P<hash>[^\s`*]+)[`*\s]*$"
)
"""A token, also as an item of a list, in bold or as code."""
_FENCE = re.compile(r"^```\w*$")


@dataclass(frozen=True, slots=True)
class Link:
    """A file that the agent can open."""

    path: Path
    is_guideline: bool

    def __str__(self) -> str:
        # A name may hold what means something in Markdown; the address is percent-encoded.
        name = re.sub(r"([\[\]\\])", r"\\\1", self.path.name)
        address = self.path.as_uri().replace("(", "%28").replace(")", "%29")
        return f"[{name}]({address})"


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where an agent works."""

    folder: Path
    links: tuple[Link, ...]
    """The question's files, as copies in this folder."""


@asynccontextmanager
async def workspace(kind: str, files: Iterable[InputFile]) -> AsyncIterator[Workspace]:
    """Make a workspace with copies of the files, and remove it with all that the agent leaves in it.

    Files of one name get `.1`, `.2` … behind it. Raises ProviderError when the disk takes no files.
    """
    # In threads: other questions go on while files are copied, and while what an agent left is removed.
    making = asyncio.ensure_future(asyncio.to_thread(_make, kind, tuple(files)))
    try:
        made = await asyncio.shield(making)
    except asyncio.CancelledError:
        # A thread cannot be stopped: what it makes is removed.
        _remove((await making).folder)
        raise
    try:
        yield made
    finally:
        await asyncio.shield(asyncio.to_thread(_remove, made.folder))


def _make(kind: str, files: Iterable[InputFile]) -> Workspace:
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"agentv-{kind}-")).resolve()
    except OSError as error:
        raise unwritable(error) from error
    try:
        return Workspace(folder, _mirrored(files, folder / "files"))
    except OSError as error:
        _remove(folder)
        raise unwritable(error) from error


def _mirrored(files: Iterable[InputFile], folder: Path) -> tuple[Link, ...]:
    links: dict[str, Link] = {}
    for file in files:
        names = chain([file.path.name], (f"{file.path.name}.{number}" for number in count(1)))
        name = next(name for name in names if name not in links)
        folder.mkdir(exist_ok=True)
        # Bytes, not metadata: an agent may be told to edit what the repository keeps read-only.
        (folder / name).write_bytes(file.path.read_bytes())
        links[name] = Link(folder / name, file.is_guideline)
    return tuple(links.values())


def _remove(folder: Path) -> None:
    """Remove a folder, also one in which an agent made folders read-only."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for place, inside, _ in os.walk(folder):
            for path in (Path(place), *(Path(place, name) for name in inside)):
                with suppress(OSError):
                    if not path.is_symlink():
                        path.chmod(0o700)
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Guideline:
    """A file that the agent is to prove that it has read."""

    name: str
    sha256: str
    """Of its content when the question was asked."""


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether the agent has read a guideline: the hash it should report, and the one it did."""

    file: str
    number: int
    expected: str
    reported: str | None

    @property
    def is_right(self) -> bool:
        """Whether the agent reported the file's own hash."""
        return self.reported == self.expected

    def record(self) -> JsonObject:
        """Return the proof as the result row keeps it."""
        return {
            "file": self.file,
            "i": self.number,
            "sha256_expected": self.expected,
            "sha256_reported": self.reported,
            "ok": self.is_right,
        }


def prompt_document(request: Request, links: Sequence[Link]) -> str:
    """Return the files to read first, and the question."""
    return "\n\n".join([*_preread(links), "[[ ## user_query ## ]]", _task(request)])


def _task(request: Request) -> str:
    return (request.prompt if request.task is None else request.task).strip()


def _preread(links: Sequence[Link]) -> list[str]:
    guidelines = [link for link in links if link.is_guideline]
    others = [link for link in links if not link.is_guideline]
    parts = []
    if guidelines:
        parts.append(f"Read all guideline files:\n{_list(guidelines)}.")
    if others:
        parts.append(f"Read all attached files:\n{_list(others)}.")
    if parts:
        parts.append(f"{MISSING}\nThen apply the system instructions to the user query below.")
    return parts


def _list(links: Iterable[Link]) -> str:
    return "\n".join(f"* {link}" for link in links)


def proof_request(links: Sequence[Link]) -> str:
    """Return the order to read the guidelines and to prove it by their hashes; empty when there are none."""
    guidelines = [link for link in links if link.is_guideline]
    if not guidelines:
        return ""
    lines = [
        f"INSTRUCTIONS_READ: `{_token_name(link.path.name)}` i={number} SHA256=<hex>"
        for number, link in enumerate(guidelines, 1)
    ]
    return "\n".join(
        [
            "[[ ## mandatory_pre_read ## ]]",
            "",
            f"Read all instruction files: {', '.join(map(str, guidelines))}.",
            "After reading a file, compute its SHA-256: `sha256sum '<file-path>'` or `shasum -a 256 '<file-path>'`.",
            "Put these exact tokens at the top of your reply, one per line:",
            "",
            *lines,
            "",
            f"Replace `<hex>` by the hash you computed. {MISSING}",
            "Fetch all documentation that the instructions require before you start.",
        ]
    )


def _token_name(name: str) -> str:
    """A file's name as a token can hold it."""
    return re.sub(r"[`\s]+", "_", name)


def guidelines_of(links: Sequence[Link]) -> tuple[Guideline, ...]:
    """Return what the agent is to prove, in the order of its tokens."""
    guidelines = [link for link in links if link.is_guideline]
    return tuple(Guideline(each.path.name, hashlib.sha256(each.path.read_bytes()).hexdigest()) for each in guidelines)


def take_proofs(answer: str, guidelines: Sequence[Guideline]) -> tuple[str, tuple[Proof, ...]]:
    """Return an answer without the tokens at its top, and what they prove, guideline by guideline."""
    lines = answer.split("\n")
    reported: dict[tuple[int, str], str] = {}
    tokens = 0
    for number, line in enumerate(map(str.strip, lines if guidelines else ()), 1):
        if match := _PROOF.match(line):
            reported[int(match["number"]), match["name"]] = match["hash"].lower()
            tokens = number
        elif line and not _FENCE.match(line):
            break
    rest = list(dropwhile(lambda line: not line.strip(), lines[tokens:]))
    has_fence = any(_FENCE.match(line.strip()) for line in lines[:tokens])
    if has_fence and rest and _FENCE.match(rest[0].strip()):
        # The tokens stood in a fence of their own, which ends here.
        rest = rest[1:]
    proofs = tuple(
        Proof(each.name, number, each.sha256, reported.get((number, _token_name(each.name))))
        for number, each in enumerate(guidelines, 1)
    )
    return "\n".join(rest).strip(), proofs
