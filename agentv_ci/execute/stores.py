"""Answers on disk: the response cache, and recordings for runs without keys.

Both are folders of JSON files named by the SHA-256 of the whole question. Files are replaced
atomically, so that several processes can share a folder; a file that cannot be read counts as
absent.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, fields, replace
from pydantic import BaseModel, create_model

from agentv_ci.base.atomic import keep_out_of_git, replacing
from agentv_ci.base.canonical import digest_of, exact
from agentv_ci.base.json_access import read_json
from agentv_ci.base.left_files import read_regular
from agentv_ci.base.mappings import without
from agentv_ci.base.secret_values import SECRET_WORDS
from agentv_ci.base.text import listed
from agentv_ci.contracts.api_targets import HttpTarget
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.cli_target import CliTarget
from agentv_ci.contracts.environment_references import variable_of
from agentv_ci.contracts.exchange import NO_SYSTEM_PROMPT, Request, Response, Warn, as_data
from agentv_ci.contracts.targets import MockTarget, Target, model_name
from agentv_ci.execute.run_services import RunOptions
from agentv_ci.results.rows import Trial

CACHE = Path(".agentv", "cache")
"""The default folder of the cache, relative to the working directory."""
VERSION = 1
NAME = re.compile(r"[0-9a-f]{64}\.json")
FOLDER = re.compile(r"[0-9a-f]{2}")
SCRATCH = re.compile(r"\.[0-9a-f]{64}\.json\.[0-9]+\.new")
HEAD = b'{\n "version": '
"""The first bytes of every file that agentv-ci writes."""
TRIES = 3
MOST_BYTES = 64 * 1024 * 1024
"""Of an answer."""
UNASKED = ("timeout_s", "attempt", "sample", "sample_calls", "files", "cwd", "case_id")
"""Fields of a request that its key holds in another form, or not at all."""


class Contents(Struct, frozen=True):
    """The size of a store."""

    files: int
    size_bytes: int


class Store:
    """A folder of answers; `outside_git` adds a `.gitignore`."""

    def __init__(self, folder: Path, *, outside_git: bool = False) -> None:
        self.folder = folder
        self._outside_git = outside_git

    def find(self, key: str) -> Response | None:
        """Return the answer to a question, marked as cached.

        None when it is missing or cannot be read.
        """
        try:
            entry = read_json(
                read_regular(self._place(key), MOST_BYTES).decode("utf-8"), strict=True
            )
            if not isinstance(entry, dict) or entry.get("version") != VERSION:
                return None
            response = _answer_in(entry.get("response"))
        except (OSError, ValueError):
            return None
        if _is_sound(response):
            return replace(response, cached=True, requests=0)
        return None

    def keep(self, key: str, asked: JsonObject, response: Response) -> None:
        """Write an answer, and what was asked for people to read; raises OSError."""
        entry = {
            "version": VERSION,
            "asked": asked,
            # What failed before it was paid once; the answer may be used many times.
            "response": _stored_answer()(**asdict(replace(response, expenses=()))).model_dump(
                mode="json", exclude={"expenses"}
            ),
        }
        # ASCII: an answer may hold lone surrogates, which UTF-8 cannot encode.
        self.put(key, (json.dumps(entry, indent=1) + "\n").encode("ascii"))

    def put(self, key: str, content: bytes) -> None:
        """Write the file of an answer; raises OSError."""
        place = self._place(key)
        if self._outside_git:
            keep_out_of_git(self.folder)
        for _ in range(TRIES):
            # Another process may be clearing the folder.
            with suppress(FileNotFoundError):
                place.parent.mkdir(parents=True, exist_ok=True)
                with replacing(place) as file:
                    file.write(content)
                return
        raise FileNotFoundError(errno.ENOENT, "the directory keeps being removed", str(place))

    def take(self) -> dict[str, bytes]:
        """Return the files of all answers by their keys, and remove them; raises OSError."""
        taken: dict[str, bytes] = {}
        for path, _ in tuple(self._files()):
            taken[path.stem] = path.read_bytes()
            path.unlink()
        return taken

    def contents(self) -> Contents:
        """Return the number and size of the files; raises OSError."""
        sizes = dict(self._files()).values()
        return Contents(len(sizes), sum(sizes))

    def clear(self) -> Contents:
        """Remove all answers and no other files; returns what was removed. Raises OSError."""
        removed: list[int] = []
        for path, size in tuple(self._files()):
            with suppress(FileNotFoundError):
                path.unlink()
                removed.append(size)
        for folder in tuple(self._folders()):
            for path in _listed(folder):
                if _is_scratch(path):
                    # Of a killed process; one that is writing it starts again.
                    path.unlink(missing_ok=True)
            with suppress(OSError):
                # It is not empty, or another process has removed it.
                folder.rmdir()
        return Contents(len(removed), sum(removed))

    def _place(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def _files(self) -> Iterator[tuple[Path, int]]:
        """Yield our files and their sizes; other processes may remove files at the same time."""
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
    if (
        not NAME.fullmatch(path.name)
        or not path.name.startswith(path.parent.name)
        or path.is_symlink()
    ):
        return False
    with path.open("rb") as file:
        return file.read(len(HEAD)) == HEAD


def _is_scratch(path: Path) -> bool:
    is_named_so = SCRATCH.fullmatch(path.name) is not None and path.name.startswith(
        f".{path.parent.name}"
    )
    return is_named_so and path.is_file() and not path.is_symlink()


def _is_sound(response: Response) -> bool:
    """Whether no figure is negative: files can be edited by hand."""
    usage = response.usage
    counts: list[int | None] = [] if usage is None else list(usage.model_dump().values())
    return all(
        figure is None or figure >= 0
        for figure in (response.duration_ms, response.cost_usd, *counts)
    )


def _answer_in(data: JsonValue) -> Response:
    """Return a stored answer; raises ValueError if it is not one."""
    stored = _stored_answer().model_validate(data)
    return Response(**{name: getattr(stored, name) for name in stored.model_fields_set})


@cache
def _stored_answer() -> type[BaseModel]:
    """Return the model of stored answers, which has the fields of `Response`."""
    known: dict[str, Any] = {
        field.name: (field.type, ... if field.required else None) for field in fields(Response)
    }
    return create_model("StoredAnswer", **known)


class Question(Struct, frozen=True):
    """What a target is asked, and under which keys answers are stored."""

    key: str
    """The target's key in the plan."""
    target: Target
    request: Request
    trial: Trial
    cached: str | None = None
    """Its key in the cache; None when it is not cached."""
    recorded: str | None = None
    """Its key among recordings; None when it is not recorded."""


class AnswerStores:
    """The cache and the recordings of a run."""

    def __init__(
        self,
        authored: Mapping[str, Target],
        resolved: Mapping[str, Target],
        options: RunOptions,
        warn: Warn,
    ) -> None:
        self.write_error: str | None = None
        """Why a recording could not be written."""
        self._resolved = resolved
        self._dry_run = options.dry_run
        self._warn = warn
        self._cache = Store(options.cache, outside_git=True) if options.cache is not None else None
        self._record = Store(options.record) if options.record is not None else None
        self._replay = Store(options.replay) if options.replay is not None else None
        self._settings = {key: answer_settings(authored[key], resolved[key]) for key in resolved}
        self._written = {key: answer_settings(authored[key], None) for key in resolved}
        self._warn_of_unseen_code()

    def _warn_of_unseen_code(self) -> None:
        commands = [
            each.name
            for each in self._resolved.values()
            if isinstance(each, CliTarget) and each.sources is None
        ]
        if commands and self._cache is not None and not self._dry_run:
            self._warn(
                f"--cache: changes of the code behind {listed(dict.fromkeys(commands))} go "
                "unnoticed; "
                "list its files in the target's sources"
            )

    def replays(self, target: Target) -> bool:
        """Whether a target's answers come from recordings.

        Those of a mock are in the targets file.
        """
        return self._replay is not None and not isinstance(target, MockTarget)

    def question(
        self, key: str, request: Request, trial: Trial, *, occurrence: int = 0
    ) -> Question:
        """Return a question with its keys; `occurrence` tells apart identical ones of a trial."""
        target = self._resolved[key]
        question = Question(key, target, request, trial)
        if self._dry_run or isinstance(target, MockTarget):
            return question
        case: JsonValue = [trial.case.suite, request.case_id]
        key_of = partial(question_key, request=request, trial=trial.number, occurrence=occurrence)
        if self._cache is not None:
            # Commands and agents may see the case. A recording repeats the same run, so it always
            # counts the case.
            seen = None if isinstance(target, HttpTarget) else case
            question = replace(question, cached=key_of(self._settings[key], case=seen))
        if self._record is not None or self._replay is not None:
            question = replace(question, recorded=key_of(self._written[key], case=case))
        return question

    def find(self, question: Question) -> Response | None:
        """Return the stored answer to a question."""
        for store, key in ((self._replay, question.recorded), (self._cache, question.cached)):
            if store is not None and key is not None and (response := store.find(key)) is not None:
                return response
        return None

    def keep(self, question: Question, response: Response) -> None:
        """Store an answer in the cache and among the recordings; a stored one is only recorded."""
        if self._cache is not None and question.cached is not None and not response.cached:
            self._write(self._cache, question.cached, question, response)
        if self._record is not None and question.recorded is not None:
            error = self._write(self._record, question.recorded, question, response)
            self.write_error = self.write_error or error

    def _write(self, store: Store, key: str, question: Question, response: Response) -> str | None:
        """Write an answer; returns the reason when that fails."""
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
            self._warn(f"cannot write an answer to '{store.folder}': {error.strerror}")
            return f"{store.folder}: {error.strerror}"
        return None

    def not_recorded(self, target: Target) -> str:
        """Return the message for a question without a recording."""
        assert self._replay is not None, "only a replay needs recordings"
        return (
            f"{target.name}: no recorded answer to this question in '{self._replay.folder}'; "
            "record it with --record"
        )


def question_key(
    target: JsonObject, request: Request, *, trial: int, occurrence: int = 0, case: JsonValue = None
) -> str:
    """Return the key of a question to a target with these settings.

    `occurrence` tells apart identical questions of a trial, such as those of two judges; `case` is
    what the target may know about the case besides the question.
    """
    question = without(as_data(request), UNASKED)
    if request.system_prompt is None or _replaces_nothing(request, target):
        # It is the target's, which is counted there.
        del question["system_prompt"]
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


def _replaces_nothing(request: Request, target: JsonObject) -> bool:
    """Whether `none` replaces no system prompt, as for judges.

    It does not if the question has its own and the target has none.
    """
    has_own = any(message.role == "system" and message.content.strip() for message in request.chat)
    return request.system_prompt == NO_SYSTEM_PROMPT and has_own and "system_prompt" not in target


def answer_settings(authored: Target, resolved: Target | None) -> JsonObject:
    """Return the settings of a target that can change an answer.

    Secrets as written, never their values.

    Without `resolved` all settings are as written, independent of the environment.
    """
    unasked = set(authored.outside_digest)
    written: JsonObject = authored.model_dump(mode="json", exclude_none=True, exclude=unasked)
    if resolved is None:
        return written
    known: JsonObject = resolved.model_dump(mode="json", exclude_none=True, exclude=unasked)
    return known | {
        name: _veiled(value, known.get(name))
        for name, value in written.items()
        if name in authored.secrets
    }


def _veiled(written: JsonValue, used: JsonValue, *, is_entry: bool = False) -> JsonValue:
    """Return a secret setting as written.

    Entries of a map that do not refer to a secret variable keep their value.
    """
    if isinstance(written, dict) and isinstance(used, dict):
        return {
            name: _veiled(value, used.get(name), is_entry=True) for name, value in written.items()
        }
    if isinstance(written, list) and isinstance(used, list) and is_entry:
        return [
            _veiled(one, other, is_entry=True) for one, other in zip(written, used, strict=True)
        ]
    if is_entry and not _names_secret(written):
        return used
    return written


def _names_secret(value: JsonValue) -> bool:
    """Whether a value refers to a variable with a secret's name."""
    variable = variable_of(value)
    return variable is not None and variable.upper().rsplit("_", 1)[-1] in SECRET_WORDS
