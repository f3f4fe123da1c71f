"""Answers on disk: the response cache, and recordings for runs without keys.

Both are folders of JSON files named by the SHA-256 of the whole question. A file is written under another name and
then renamed, so that several processes can share a folder; one that cannot be read counts as absent.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from agentv_ci.atomic import replacing
from agentv_ci.canonical import digest_of, exact
from agentv_ci.contracts.api_targets import HttpTarget
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.environment_references import variable_of
from agentv_ci.contracts.exchange import Request, Response, Warn
from agentv_ci.contracts.targets import MockTarget, Target, model_name
from agentv_ci.execute.run_services import RunOptions
from agentv_ci.json_access import read_json
from agentv_ci.redaction import SECRET_WORDS
from agentv_ci.results.rows import Trial

CACHE = Path(".agentv", "cache")
"""Where the cache lies, relative to the working directory."""
VERSION = 1
NAME = re.compile(r"[0-9a-f]{64}\.json")
FOLDER = re.compile(r"[0-9a-f]{2}")
SCRATCH = re.compile(r"\.[0-9a-f]{64}\.json\.[0-9]+\.new")
HEAD = b'{\n "version": '
"""What every file of ours begins with."""
TRIES = 3
UNASKED = ("timeout_s", "attempt", "sample", "files", "cwd", "case_id")
"""What of a request stands in its key in another way, or not at all."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What lies in a store."""

    files: int
    size_bytes: int


class Store:
    """A folder of answers; with `outside_git` it keeps itself out of commits."""

    def __init__(self, folder: Path, *, outside_git: bool = False) -> None:
        self.folder = folder
        self._outside_git = outside_git

    def find(self, key: str) -> Response | None:
        """Return the answer to a question, marked as a stored one; None when there is none that can be read."""
        try:
            entry = read_json(self._place(key).read_text("utf-8"), strict=True)
            if not isinstance(entry, dict) or entry.get("version") != VERSION:
                return None
            response = _responses().validate_python(entry.get("response"))
        except (OSError, ValueError):
            return None
        return replace(response, cached=True, requests=0) if _is_sound(response) else None

    def keep(self, key: str, asked: JsonObject, response: Response) -> None:
        """Write an answer, and for people what was asked; raises OSError."""
        entry = {"version": VERSION, "asked": asked, "response": _responses().dump_python(response, mode="json")}
        place = self._place(key)
        if self._outside_git:
            self._ignore()
        # ASCII: an answer may hold characters that no file can.
        text = json.dumps(entry, indent=1) + "\n"
        for _ in range(TRIES):
            # Another process may be clearing the folder.
            with suppress(FileNotFoundError):
                place.parent.mkdir(parents=True, exist_ok=True)
                with replacing(place) as file:
                    file.write(text.encode("ascii"))
                return
        raise FileNotFoundError(errno.ENOENT, "the folder is removed all the time", str(place))

    def contents(self) -> Contents:
        """Count what lies here; raises OSError."""
        sizes = [size for _, size in self._files()]
        return Contents(len(sizes), sum(sizes))

    def clear(self) -> Contents:
        """Remove all answers, and nothing else that may lie here; returns what was removed. Raises OSError."""
        removed: list[int] = []
        for path, size in tuple(self._files()):
            with suppress(FileNotFoundError):
                path.unlink()
                removed.append(size)
            with suppress(OSError):
                # It holds something else, or another process has removed it.
                path.parent.rmdir()
        self._sweep()
        return Contents(len(removed), sum(removed))

    def _sweep(self) -> None:
        """Remove what killed processes have left; one that writes just now begins again."""
        for folder in self._folders():
            for path in _listed(folder):
                is_ours = SCRATCH.fullmatch(path.name) is not None and path.name.startswith(f".{folder.name}")
                if is_ours and path.is_file() and not path.is_symlink():
                    path.unlink(missing_ok=True)
                    with suppress(OSError):
                        folder.rmdir()

    def _ignore(self) -> None:
        mark = self.folder / ".gitignore"
        if not mark.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            mark.write_text("# Answers of models, kept by agentv-ci.\n*\n", encoding="utf-8")

    def _place(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def _files(self) -> Iterator[tuple[Path, int]]:
        """Yield our files and their sizes; other processes may remove them meanwhile."""
        for folder in self._folders():
            for path in _listed(folder):
                with suppress(FileNotFoundError):
                    if _is_ours(path):
                        yield path, path.stat().st_size

    def _folders(self) -> Iterator[Path]:
        for folder in _listed(self.folder):
            if FOLDER.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink():
                yield folder


def _listed(folder: Path) -> Sequence[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return ()


def _is_ours(path: Path) -> bool:
    if not NAME.fullmatch(path.name) or not path.name.startswith(path.parent.name) or path.is_symlink():
        return False
    with path.open("rb") as file:
        return file.read(len(HEAD)) == HEAD


def _is_sound(response: Response) -> bool:
    """Whether figures of a file that anybody may have edited are figures at all."""
    usage = response.usage
    counts = [] if usage is None else [usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.cached_tokens]
    return all(figure is None or figure >= 0 for figure in (response.duration_ms, response.cost_usd, *counts))


@cache
def _responses() -> TypeAdapter[Response]:
    return TypeAdapter(Response)


@dataclass(frozen=True, slots=True)
class Question:
    """What a target is asked, and where answers to it are kept."""

    key: str
    """Of the target."""
    target: Target
    request: Request
    trial: Trial
    cached: str | None = None
    """Its key in the cache; None: it has none."""
    recorded: str | None = None
    """Its key among recordings; None: it has none."""


class AnswerStores:
    """The cache and the recordings of a run."""

    def __init__(
        self, authored: Mapping[str, Target], resolved: Mapping[str, Target], options: RunOptions, warn: Warn
    ) -> None:
        self.write_error: str | None = None
        """Why a recording is not there."""
        self._resolved = resolved
        self._dry_run = options.dry_run
        self._warn = warn
        self._cache = Store(options.cache, outside_git=True) if options.cache is not None else None
        self._record = Store(options.record) if options.record is not None else None
        self._replay = Store(options.replay) if options.replay is not None else None
        self._settings = {key: answer_settings(authored[key], resolved[key]) for key in resolved}
        self._written = {key: answer_settings(authored[key], None) for key in resolved}

    def replays(self, target: Target) -> bool:
        """Whether a target is not asked. A mock needs no recording: it says what the targets document says."""
        return self._replay is not None and not isinstance(target, MockTarget)

    def question(self, key: str, request: Request, trial: Trial, *, occurrence: int = 0) -> Question:
        """Return a question with its keys; `occurrence` separates those of a trial that are alike."""
        target = self._resolved[key]
        question = Question(key, target, request, trial)
        if self._dry_run or isinstance(target, MockTarget):
            return question
        case: JsonValue = [trial.case.suite, request.case_id]
        if self._cache is not None:
            # Commands and agents may see the case; a recording is to give the same run again with any target.
            seen = None if isinstance(target, HttpTarget) else case
            cached = question_key(self._settings[key], request, trial=trial.number, occurrence=occurrence, case=seen)
            question = replace(question, cached=cached)
        if self._record is not None or self._replay is not None:
            recorded = question_key(self._written[key], request, trial=trial.number, occurrence=occurrence, case=case)
            question = replace(question, recorded=recorded)
        return question

    def find(self, question: Question) -> Response | None:
        """Return the stored answer to a question."""
        for store, key in ((self._replay, question.recorded), (self._cache, question.cached)):
            if store is not None and key is not None and (response := store.find(key)) is not None:
                return response
        return None

    def keep(self, question: Question, response: Response) -> None:
        """Keep an answer wherever answers are kept; one that is stored already is kept among the recordings only."""
        if self._cache is not None and question.cached is not None and not response.cached:
            self._write(self._cache, question.cached, question, response)
        if self._record is not None and question.recorded is not None:
            error = self._write(self._record, question.recorded, question, response)
            self.write_error = self.write_error or error

    def _write(self, store: Store, key: str, question: Question, response: Response) -> str | None:
        """Write an answer; returns why it could not be."""
        trial, target = question.trial, question.target
        asked: JsonObject = {
            "target": target.name,
            "model": model_name(target) or response.model,
            "suite": trial.case.suite,
            "eval_id": trial.case.id,
            "trial": trial.number,
        }
        try:
            store.keep(key, asked, response)
        except OSError as error:
            self._warn(f"an answer cannot be kept in '{store.folder}': {error.strerror}")
            return f"{store.folder}: {error.strerror}"
        return None

    def not_recorded(self, target: Target) -> str:
        """Return what is said of a question that a replay has no answer to."""
        assert self._replay is not None, "only a replay has no answer"
        return f"{target.name}: no recorded answer to this question in '{self._replay.folder}'; record it with --record"


def question_key(
    target: JsonObject, request: Request, *, trial: int, occurrence: int = 0, case: JsonValue = None
) -> str:
    """Return the key of a question to a target with these settings.

    `occurrence` separates the questions of a trial that are alike, such as those of two judges; `case` is what the
    target may know of the case besides the question.
    """
    question = {name: value for name, value in asdict(request).items() if name not in UNASKED}
    key = {
        "version": VERSION,
        "target": target,
        "question": question,
        "files": [[file.path.name, file.is_guideline, file.sha256] for file in request.files],
        "trial": trial,
        "occurrence": occurrence,
        "case": case,
    }
    return digest_of(json.dumps(exact(json.loads(json.dumps(key)))))


def answer_settings(authored: Target, resolved: Target | None) -> JsonObject:
    """Return those settings of a target that can change an answer; secrets as they are written, never their values.

    Without `resolved` all settings are those that are written: the environment plays no part.
    """
    unasked = set(authored.outside_digest)
    written: JsonObject = authored.model_dump(mode="json", exclude_none=True, exclude=unasked)
    if resolved is None:
        return written
    known: JsonObject = resolved.model_dump(mode="json", exclude_none=True, exclude=unasked)
    return known | {
        name: _veiled(value, known.get(name)) for name, value in written.items() if name in authored.secrets
    }


def _veiled(written: JsonValue, used: JsonValue) -> JsonValue:
    """Return a secret setting as it is written; of a map, what only its contract calls secret is what is used."""
    if not isinstance(written, dict) or not isinstance(used, dict):
        return written
    return {name: value if _names_secret(value) else used.get(name) for name, value in written.items()}


def _names_secret(value: JsonValue) -> bool:
    """Whether a value is a reference to a variable that its name calls secret."""
    variable = variable_of(value)
    return variable is not None and variable.upper().rsplit("_", 1)[-1] in SECRET_WORDS
