"""Questions and where answers to them are kept: the cache and the recordings of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from agentv_ci.canonical import digest_of, exact
from agentv_ci.contracts.api_targets import HttpTarget
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.environment_references import variable_of
from agentv_ci.contracts.exchange import Request, Response, Warn
from agentv_ci.contracts.targets import MockTarget, Target, model_name
from agentv_ci.execute.cache import VERSION, Store
from agentv_ci.execute.run import RunOptions
from agentv_ci.redaction import SECRET_WORDS
from agentv_ci.results.rows import Trial

UNASKED = ("timeout_s", "attempt", "sample", "files", "cwd", "case_id")
"""What of a request stands in its key in another way, or not at all."""


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
        """Keep an answer that a provider has given, wherever answers are kept."""
        if self._cache is not None and question.cached is not None:
            self._write(self._cache, question.cached, question, response)
        self.record(question, response)

    def record(self, question: Question, response: Response) -> None:
        """Keep an answer among the recordings."""
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
    files: list[JsonValue] = [[file.path.name, file.is_guideline, file.sha256] for file in request.files]
    return digest_of(
        json.dumps(
            exact(
                {
                    "version": VERSION,
                    "target": target,
                    "question": _json(question),
                    "files": files,
                    "trial": trial,
                    "occurrence": occurrence,
                    "case": case,
                }
            )
        )
    )


def _json(value: object) -> JsonValue:
    loaded: JsonValue = json.loads(json.dumps(value))
    return loaded


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
