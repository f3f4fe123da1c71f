"""Collect what cases refer to: texts by digest, targets by key."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Sequence
from itertools import chain, count
from pathlib import Path

from agentv_ci.base.installed_plugins import installed_version
from agentv_ci.base.source_files import find_files, fingerprint, names_of
from agentv_ci.contracts.agent_targets import AgentTarget, VsCodeTarget
from agentv_ci.contracts.api_targets import HttpTarget, OpenAITarget
from agentv_ci.contracts.cli_target import CliTarget, CommandHealthcheck
from agentv_ci.contracts.environment_references import OPENING
from agentv_ci.contracts.judge_evaluators import prompt_path
from agentv_ci.contracts.plan_parts import FileBytes, FileReference, FileText, PlanFile
from agentv_ci.contracts.source import Source, normal, relative
from agentv_ci.contracts.targets import PluginTarget, Target, judge_name

ReadBytes = Callable[[Path], bytes]


class Files:
    """Referenced files by SHA-256."""

    def __init__(self, read_bytes: ReadBytes) -> None:
        self._read_bytes = read_bytes
        self._known: dict[Path, FileReference] = {}
        self._contents: dict[str, bytes] = {}
        self._texts: dict[tuple[str, str], FileReference] = {}
        self.paths: set[Path] = set()
        """All files read so far."""

    def add(self, source: Source, file_reference: str) -> FileReference:
        """Add a file that a document refers to."""
        path = source.resolve(file_reference)
        if path not in self._known:
            content = self._content(path)
            digest = hashlib.sha256(content).hexdigest()
            self._contents[digest] = content
            self._known[path] = FileReference(path=relative(path, source.root), sha256=digest)
        return self._known[path]

    def add_text(self, path: str, text: str) -> FileReference:
        """Add a text that a document contains, as a file with this path."""
        content = text.encode("utf-8")
        digest = hashlib.sha256(content).hexdigest()
        self._contents[digest] = content
        return self._texts.setdefault((path, digest), FileReference(path=path, sha256=digest))

    def read(self, path: Path) -> str:
        """Return the text of a file that is in the plan in another form."""
        return self._content(path).decode("utf-8")

    def _content(self, path: Path) -> bytes:
        self.paths.add(path)
        return self._read_bytes(path)

    def text(self, sha256: str) -> str:
        """Return the text of an added file."""
        return self._contents[sha256].decode("utf-8")

    def content(self, sha256: str) -> bytes:
        """Return the content of an added file."""
        return self._contents[sha256]

    @property
    def compiled(self) -> dict[str, PlanFile]:
        """SHA-256 → content; files with equal content have one path."""
        compiled: dict[str, PlanFile] = {}
        for file in (*self._texts.values(), *self._known.values()):
            compiled[file.sha256] = _plan_file(file.path, self._contents[file.sha256])
        return compiled


def _plan_file(path: str, content: bytes) -> PlanFile:
    """Return the content as text, or as Base64 where it is none.

    It is the same in whatever way the file is used.
    """
    try:
        return FileText(path=path, text=content.decode("utf-8"))
    except UnicodeDecodeError:
        return FileBytes(path=path, base64=b64encode(content).decode("ascii"))


class Targets:
    """Targets by key: the name, made unique where two files define it differently."""

    def __init__(self) -> None:
        self.compiled: dict[str, Target] = {}
        self.paths: set[Path] = set()
        """The files of agents' own code."""
        self._keys: dict[tuple[Path, str], str] = {}

    def add(self, target: Target, source: Source) -> str:
        """Add a target of the targets file `source` and return its key."""
        known = (source.path, target.name)
        if known not in self._keys:
            compiled = compiled_target(target, source)
            self.paths |= set(map(source.root.joinpath, names_of(_sources(compiled))))
            self._keys[known] = self._add(compiled, source)
        return self._keys[known]

    def _add(self, compiled: Target, source: Source) -> str:
        elsewhere = f"{compiled.name}@{relative(source.path, source.root)}"
        keys = chain((compiled.name, elsewhere), (f"{elsewhere}#{number}" for number in count(2)))
        key = next(key for key in keys if self._is_free(key, compiled))
        self.compiled[key] = compiled
        return key

    def _is_free(self, key: str, target: Target) -> bool:
        """Whether a key has no other target yet."""
        known = self.compiled.get(key)
        # Compare as JSON: in Python, 1 equals true.
        return known is None or _text(known) == _text(target)


def _text(target: Target) -> str:
    return target.model_dump_json(exclude_none=True)


def find_target(targets: tuple[Target, ...], name: str) -> Target:
    """Return the target of that name, which exists in a valid document."""
    return next(target for target in targets if target.name == name)


def judge_of(
    targets: tuple[Target, ...], target: Target, evaluator_judge: str | None
) -> Target | None:
    """Return the target that judges `target`'s answers."""
    name = judge_name(evaluator_judge, target)
    if name is None:
        return None
    return find_target(targets, name)


def compiled_target(target: Target, source: Source) -> Target:
    """Return a target of the targets file `source` as plans have it.

    Its paths are relative to the repository, its provider has the canonical name, and files of its
    code their SHA-256.
    """
    changed: dict[str, object] = {"provider": _provider(target)}
    if (
        isinstance(target, VsCodeTarget)
        and target.provider == "vscode-insiders"
        and target.command is None
    ):
        changed["command"] = "code-insiders"
    if isinstance(target, PluginTarget):
        changed["version"] = installed_version("provider", target.provider)
    for field in type(target).paths:
        if (path := getattr(target, field)) is not None:
            changed[field] = _path(path, source)
    for field in type(target).programs:
        if "/" in (program := getattr(target, field) or ""):
            changed[field] = _program(program, source)
    if isinstance(target, CliTarget) and isinstance(target.healthcheck, CommandHealthcheck):
        changed["healthcheck"] = _healthcheck(target.healthcheck, source)
    if isinstance(target, HttpTarget) and (path := prompt_path(target.system_prompt)):
        changed["system_prompt"] = source.resolve(path).read_bytes().decode("utf-8")
    if isinstance(target, (CliTarget, AgentTarget)):
        changed |= _of_agent(target, source)
    return target.model_copy(update=changed)


def _healthcheck(check: CommandHealthcheck, source: Source) -> CommandHealthcheck:
    if not check.cwd:
        return check
    return check.model_copy(update={"cwd": _path(check.cwd, source)})


def _of_agent(target: CliTarget | AgentTarget, source: Source) -> dict[str, object]:
    """Return the files of an agent's own code; its workspace becomes part of those of its cases."""
    paths: set[Path] = set()
    for pattern in target.sources or ():
        paths.update(map(normal, find_files(pattern, source.path.parent)))
    sources = tuple(fingerprint(path, relative(path, source.root)) for path in sorted(paths))
    return {"sources": sources or target.sources, "workspace": None}


def _sources(target: Target) -> Sequence[str]:
    if not isinstance(target, (CliTarget, AgentTarget)):
        return ()
    return target.sources or ()


def _provider(target: Target) -> str:
    """Return the canonical name of a provider.

    One that implies the server stays if there is no `base_url`.
    """
    if isinstance(target, PluginTarget):
        return target.provider
    if isinstance(target, OpenAITarget) and target.base_url is None:
        return target.provider if target.provider in target.brands else target.kind()
    return target.kind()


def _program(program: str, source: Source) -> str:
    """Return the path of a program; without a `/` it would be looked up in PATH."""
    path = _path(program, source)
    return path if "/" in path else f"./{path}"


def _path(path: str, source: Source) -> str:
    """Return a path of a targets file relative to the repository; absolute paths stay."""
    if OPENING in path or path.startswith(("/", "~")):
        return path
    return relative(normal(source.path.parent / path), source.root)
