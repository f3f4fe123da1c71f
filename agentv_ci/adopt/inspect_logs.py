"""Logs of Inspect: `.json`, and `.eval`, an archive with a file per sample."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from agentv_ci.adopt.values import mapping, messages, share, slug, text, whole
from agentv_ci.contracts.adopted import AdoptedCheck, AdoptedResult
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.json_access import count_at, json_or_none, objects_at, read_json, text_at

GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Inspect's letters: correct, incorrect, partially correct, no answer."""


def log_of(path: Path) -> JsonValue:
    """Return a log; raises OSError and ValueError for a file that is none."""
    if path.suffix != ".eval":
        return read_json(path.read_text("utf-8"))
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            header = json_or_none(archive.read("header.json").decode()) if "header.json" in names else None
            samples = [json_or_none(archive.read(name).decode()) for name in names if name.startswith("samples/")]
    except NotImplementedError as error:
        raise ValueError(f"{error}; convert it with `inspect log convert --to json`") from error
    except zipfile.BadZipFile as error:
        raise ValueError(str(error)) from error
    return {**mapping(header), "samples": samples}


def results(data: JsonValue, threshold: float) -> Iterator[AdoptedResult]:
    """Yield the samples of a log; a sample passes if all its scores reach `threshold`."""
    task = text_at(data, "eval", "task")
    model = text_at(data, "eval", "model")
    for each in objects_at(data, "samples"):
        yield _result(each, slug(model or "default"), threshold, task)


def _result(sample: JsonObject, target: str, threshold: float, task: str | None) -> AdoptedResult:
    checks = tuple(_checks(sample, threshold))
    error = text_at(sample, "error", "message") or (None if checks else "the sample has no scores")
    usage = mapping(next(iter(mapping(sample.get("model_usage")).values()), None))
    expected = sample.get("target")
    seconds = sample.get("total_time")
    return AdoptedResult(
        id=slug(text(sample.get("id")) or "sample"),
        passed=None if error else all(check.passed for check in checks),
        score=sum(check.score for check in checks) / len(checks) if checks else None,
        answer=text_at(sample, "output", "completion")
        or text(mapping(next(iter(objects_at(sample, "output", "choices")), {}).get("message")).get("content")),
        question=messages(sample.get("input")),
        expected=text(expected) or None,
        target=target,
        model=text_at(sample, "output", "model"),
        checks=checks,
        error=error,
        duration_ms=round(seconds * 1000) if isinstance(seconds, (int, float)) else 0,
        input_tokens=count_at(usage, "input_tokens"),
        output_tokens=whole(usage.get("output_tokens")),
        tags=(task,) if task else (),
        metadata=mapping(sample.get("metadata")),
    )


def _checks(sample: JsonObject, threshold: float) -> Iterator[AdoptedCheck]:
    for name, given in mapping(sample.get("scores")).items():
        value = mapping(given).get("value")
        parts = mapping(value) or {name: value}
        for part, each in parts.items():
            score = GRADES.get(each, share(json_or_none(each))) if isinstance(each, str) else share(each)
            score = float(each) if isinstance(each, bool) else score
            if score is not None:
                label = name if part == name else f"{name}.{part}"
                reasoning = text(mapping(given).get("explanation"))
                yield AdoptedCheck(label, "scorer", score, score >= threshold, reasoning)
