"""Copies of a question's files in a scratch folder, and the prompt that names them.

The prompt lists the files to read first and asks for a proof. Its headings and the form of the
proof are those of AgentV and of its predecessor bbeval.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import dropwhile
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import InputFile, Request
from agentv_ci.execute.input_files import mirrored
from agentv_ci.execute.provider_services import unwritable

MISSING = "If a file is missing, answer `ERROR: missing-file <filename>` and stop."

_PROOF = re.compile(
    r"^[-*`>\s]*INSTRUCTIONS_READ:\s*`?(?P<name>[^`\n]+?)`?\s+i=(?P<number>\d{1,6})\s+SHA256=(?P<hash>[^\s`*]+)[`*\s]*$"
)
"""A token, also as a list item, in bold or as code."""
_FENCE = re.compile(r"^```\w*$")


class Workspace(Struct, frozen=True):
    """The scratch folder of an agent."""

    scratch: tempfile.TemporaryDirectory[str]
    folder: Path
    """Its path, with links resolved."""
    files: tuple[InputFile, ...]
    """Copies of the question's files."""


@asynccontextmanager
async def workspace(
    kind: str, files: Iterable[InputFile], parent: Path | None = None
) -> AsyncIterator[Workspace]:
    """Make a workspace with copies of the files, and remove it at the end.

    It is in `parent` or among temporary files. Further files of the same name get the suffixes
    `.1`, `.2` … Raises ProviderError when files cannot be written.
    """
    # In threads, so that other questions go on while files are copied and removed.
    making = asyncio.ensure_future(asyncio.to_thread(_make, kind, tuple(files), parent))
    try:
        made = await asyncio.shield(making)
    except asyncio.CancelledError:
        # A thread cannot be cancelled: wait, then remove what it made.
        (await making).scratch.cleanup()
        raise
    try:
        yield made
    finally:
        await asyncio.shield(asyncio.to_thread(made.scratch.cleanup))


def _make(kind: str, files: Iterable[InputFile], parent: Path | None) -> Workspace:
    try:
        # TemporaryDirectory also removes read-only folders that the agent made.
        scratch = tempfile.TemporaryDirectory(
            prefix=f"agentv-{kind}-", dir=parent, ignore_cleanup_errors=True
        )
    except OSError as error:
        raise unwritable(error) from error
    try:
        folder = Path(scratch.name).resolve()
        return Workspace(scratch, folder, mirrored(files, folder / "files"))
    except OSError as error:
        scratch.cleanup()
        raise unwritable(error) from error


def prompt_document(request: Request, files: Sequence[InputFile]) -> str:
    """Return the files to read first, and the question."""
    task = request.prompt if request.task is None else request.task
    return "\n\n".join([*_preread(files), "[[ ## user_query ## ]]", task.strip()])


def _preread(files: Sequence[InputFile]) -> Iterator[str]:
    for what, is_guideline in (("guideline", True), ("attached", False)):
        if links := [f"* {file_link(file)}" for file in files if file.is_guideline is is_guideline]:
            yield "\n".join([f"Read all {what} files:", *links]) + "."
    if files:
        yield f"{MISSING}\nThen apply the system instructions to the user query below."


def file_link(file: InputFile) -> str:
    """Return a Markdown link, with its name escaped and its address percent-encoded."""
    name = re.sub(r"([\[\]\\])", r"\\\1", file.path.name)
    address = file.path.as_uri().replace("(", "%28").replace(")", "%29")
    return f"[{name}]({address})"


def guidelines_of(files: Sequence[InputFile]) -> tuple[InputFile, ...]:
    """Return the guidelines that the agent must prove to have read, with their current hashes."""
    return tuple(
        replace(file, sha256=hashlib.sha256(file.path.read_bytes()).hexdigest())
        for file in files
        if file.is_guideline
    )


def proof_request(guidelines: Sequence[InputFile]) -> str:
    """Return the instructions to read guidelines and to prove it by their hashes.

    Empty without guidelines.
    """
    if not guidelines:
        return ""
    tokens = [
        f"INSTRUCTIONS_READ: `{_token_name(guideline.path)}` i={number} SHA256=<hex>"
        for number, guideline in enumerate(guidelines, 1)
    ]
    return "\n".join(
        [
            "[[ ## mandatory_pre_read ## ]]",
            "",
            f"Read all instruction files: {', '.join(map(file_link, guidelines))}.",
            (
                "After reading a file, compute its SHA-256: "
                "`sha256sum '<file-path>'` or `shasum -a 256 '<file-path>'`."
            ),
            "Put these exact tokens at the top of your reply, one per line:",
            "",
            *tokens,
            "",
            f"Replace `<hex>` by the hash you computed. {MISSING}",
            "Fetch all documentation that the instructions require before you start.",
        ]
    )


def _token_name(path: Path) -> str:
    """Return a file's name in the form of a token."""
    return re.sub(r"[`\s]+", "_", path.name)


def take_proofs(answer: str, guidelines: Sequence[InputFile]) -> tuple[str, list[JsonObject]]:
    """Return an answer without the tokens at its top, and a record of each guideline's proof."""
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
        # The tokens are in a code fence of their own, which ends here.
        rest = rest[1:]
    proofs = [_proof(file, number, reported) for number, file in enumerate(guidelines, 1)]
    return "\n".join(rest).strip(), proofs


def _proof(
    guideline: InputFile, number: int, reported: Mapping[tuple[int, str], str]
) -> JsonObject:
    sha256 = reported.get((number, _token_name(guideline.path)))
    return {
        "file": guideline.path.name,
        "i": number,
        "sha256_expected": guideline.sha256,
        "sha256_reported": sha256,
        "ok": sha256 == guideline.sha256,
    }
