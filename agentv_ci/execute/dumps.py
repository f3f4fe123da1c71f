"""Every prompt and every trace as a file (`--dump-prompts`, `--dump-traces`)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from agentv_ci.base.canonical import digest_of
from agentv_ci.base.json_access import MAX_DEPTH, well_formed
from agentv_ci.base.mappings import without
from agentv_ci.base.redaction import MASK, Redactor
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import Request, Response, Warn, as_data
from agentv_ci.contracts.targets import Target
from agentv_ci.results.rows import Trial, TrialKey

MAX_NAME = 40
"""Characters of a case's id in a file name; each may take four bytes."""


class Dumps(Struct):
    """Writes prompts and traces without secrets; a failure to write is a warning."""

    prompts: Path | None
    traces: Path | None
    redactor: Redactor
    warn: Warn
    _asked: Counter[TrialKey] = field(default_factory=Counter)

    def prompt(self, trial: Trial, target: Target, request: Request) -> None:
        """Write a question before it is asked."""
        if self.prompts is None:
            return
        self._asked[trial.key] += 1
        question = without(as_data(request), ("case_id", "sample"))
        document = {
            **_about(trial),
            "target": target.name,
            "provider": target.provider,
            "settings": _shown(target),
            "attempt": request.attempt + 1,
            "request": question,
        }
        self._write(self.prompts / f"{_name(trial)}.{self._asked[trial.key]}.json", document)

    def forget(self, trial: Trial) -> None:
        """Discard the counter of a finished trial."""
        self._asked.pop(trial.key, None)

    def trace(self, trial: Trial, response: Response) -> None:
        """Write an answer with its messages."""
        if self.traces is None:
            return
        document = {
            **_about(trial),
            "target": trial.target.name,
            "model": response.model,
            "answer": response.answer,
            "messages": [message.model_dump() for message in response.messages],
            "reports_tool_calls": response.has_trace,
        }
        self._write(self.traces / f"{_name(trial)}.json", document)

    def _write(self, path: Path, document: Mapping[str, object]) -> None:
        data: JsonValue = json.loads(json.dumps(document, default=str))
        text = json.dumps(
            self.redactor.value(well_formed(data, 2 * MAX_DEPTH)), ensure_ascii=False, indent=2
        )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            self.warn(f"cannot write '{path.parent}': {error.strerror}")


def _about(trial: Trial) -> JsonObject:
    return {
        "eval_id": trial.case.id,
        "suite": trial.case.suite,
        "trial": trial.number,
        "seed": trial.seed,
    }


def _shown(target: Target) -> JsonObject:
    """Return a target's settings for people, with all secret fields masked."""
    settings: JsonObject = target.model_dump(
        mode="json", exclude_none=True, exclude={"name", "provider"}
    )
    for name in target.secrets & settings.keys():
        value = settings[name]
        settings[name] = dict.fromkeys(value, MASK) if isinstance(value, dict) else MASK
    return settings


def _name(trial: Trial) -> str:
    """Return a readable file name that is unique in the run."""
    readable = re.sub(r"[^\w.-]+", "-", trial.case.id).strip(".")[:MAX_NAME] or "unnamed"
    return f"{readable}-{digest_of(json.dumps(trial.key[0]))[:8]}.trial-{trial.number}"
