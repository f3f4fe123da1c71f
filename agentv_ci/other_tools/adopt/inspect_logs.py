"""Logs of Inspect: `.json`, and `.eval`, an archive with a file per sample."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from agentv_ci.base.json_access import amount_at, count_at, objects_at, text_at, value_at
from agentv_ci.base.left_files import open_regular
from agentv_ci.base.text import counted, listed
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.other_tools import AdoptedCheck, AdoptedFile, AdoptedResult, HowToRead
from agentv_ci.other_tools.adopt.json_texts import MAX_BYTES, json_in, text_in
from agentv_ci.other_tools.adopt.scores import Given, Scores, UnknownScore, all_passed, mean_score
from agentv_ci.other_tools.adopt.values import mapping, messages, objects, text, whole

if TYPE_CHECKING:
    import zipfile
else:
    try:
        from backports.zstd import zipfile  # Zstandard, which that of Python has from 3.14 on
    except ImportError:
        import zipfile

GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Inspect's letters: correct, incorrect, partially correct, no answer."""
HEADER = "header.json"
MOST_UNPACKED = 50
"""Bytes of a log for each byte of its archive."""
LEAST_UNPACKED = 10 * 1024 * 1024
"""Bytes from which on that counts."""
WRITTEN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, 93)
"""Compressions of Inspect; 93 is Zstandard."""
MOST_OF_NAMES = 32 * 1024 * 1024
"""Bytes of the directory of an archive, which is read as a whole."""
START = "_journal/start.json"
"""What an archive has from the first moment on."""


def log_in(path: Path) -> JsonObject:
    """Return a log; raises OSError and ValueError for a file that is none."""
    if path.suffix != ".eval":
        return mapping(json_in(text_in(path)))
    try:
        with open_regular(path) as file:
            _require_few_names(file)
            with zipfile.ZipFile(file) as archive:
                return _log_of(archive, os.fstat(file.fileno()).st_size)
    except NotImplementedError as error:
        raise ValueError(
            "it is compressed with Zstandard: install 'agentv-ci[inspect]', "
            "or convert it with `inspect log convert --to json`"
        ) from error
    except zipfile.BadZipFile as error:
        raise ValueError(str(error)) from error


def _require_few_names(file: BinaryIO) -> None:
    """Raise ValueError for an archive whose directory is much longer than those of logs."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 2 * 1024 * 64))
    end = file.read()
    short, long = end.rfind(b"PK\5\6"), end.rfind(b"PK\6\6")
    sizes = [int.from_bytes(end[short + 12 : short + 16], "little") % 0xFFFFFFFF]
    if long >= 0:
        sizes.append(int.from_bytes(end[long + 40 : long + 48], "little"))
    if short >= 0 and max(sizes) > MOST_OF_NAMES:
        raise ValueError("its directory is far longer than those of logs are")


def _log_of(archive: zipfile.ZipFile, size: int) -> JsonObject:
    names = dict.fromkeys(archive.namelist())
    unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > min(max(size * MOST_UNPACKED, LEAST_UNPACKED), MAX_BYTES):
        raise ValueError(
            f"it is {unpacked // 1024 // 1024:,} MiB unpacked, "
            f"far more than logs of {size:,} bytes are"
        )
    samples: list[JsonValue] = [
        _part(archive, name) for name in names if name.startswith("samples/")
    ]
    header = next((_part(archive, name) for name in (HEADER, START) if name in names), {})
    return {"status": f"without a {HEADER}", **mapping(header), "samples": samples}


def _part(archive: zipfile.ZipFile, name: str) -> JsonValue:
    member = archive.getinfo(name)
    if member.compress_type not in WRITTEN:
        raise ValueError(f"{name} is compressed in a way that Inspect does not write")
    try:
        # Not read(): that unpacks everything, however small a member says it is.
        with archive.open(member) as file:
            content = file.read(member.file_size + 1)
    except (NotImplementedError, zipfile.BadZipFile):
        raise
    except Exception as error:  # each compression has errors of its own
        raise ValueError(
            f"{name} cannot be unpacked, since it is damaged or encrypted: {error}"
        ) from error
    try:
        return json_in(content.decode())
    except ValueError as error:
        raise ValueError(f"{name} is not JSON: {error}") from error


def results(log: JsonObject, how: HowToRead) -> AdoptedFile:
    """Return the samples of a log; a sample passes if all its scores reach the threshold."""
    samples = objects(log.get("samples"), "sample")
    scores = Scores(how, chain.from_iterable(map(_given, samples)), GRADES)
    task, model = text_at(log, "eval", "task"), text_at(log, "eval", "model")
    found = tuple(_result(sample, model or "default", scores, task) for sample in samples)
    return AdoptedFile(found, tuple(_lost(log, samples)), scores.names)


def _lost(log: JsonObject, samples: Sequence[JsonObject]) -> Iterator[str]:
    status, expected = log.get("status"), _expected(log)
    numbers = Counter(
        (text(sample.get("id")), json.dumps(sample.get("id")), _epoch(sample)) for sample in samples
    )
    found = len(numbers)
    if expected is not None:
        counts = f"{found} of {counted(expected, 'sample')}"
    else:
        counts = counted(found, "sample")
    if status != "success":
        message = text_at(log, "error", "message")
        reason = f" ({message})" if message else ""
        yield (
            f"the run did not finish: its status is {text(status) or 'missing'}{reason}; "
            f"{counts} in the log"
        )
    elif expected is not None and found < expected:
        yield f"samples are missing: {counts} in the log"
    if repeated := [
        f"{name} (epoch {epoch})" for (name, _, epoch), number in numbers.items() if number > 1
    ]:
        yield f"samples are in the log more than once: {listed(repeated)}"
    whole_ones = sum(not sample.get("error") for sample in samples)
    yield from _uncounted(log, "total_samples", "sample", len(samples))
    yield from _uncounted(log, "completed_samples", "completed sample", whole_ones)
    if log.get("invalidated") is True:
        yield "the log is invalidated"


def _epoch(sample: JsonObject) -> int:
    return count_at(sample, "epoch") or 1


def _uncounted(log: JsonObject, key: str, noun: str, found: int) -> Iterator[str]:
    """Yield that a log has more samples than it counts."""
    number = whole(value_at(log, "results", key))
    if number is not None and found > number:
        yield (
            f"it counts {counted(number, noun)}, and {found} {'is' if found == 1 else 'are'} in it"
        )


def _expected(log: JsonObject) -> int | None:
    """Return how many samples the run has; None if the log does not say."""
    total = whole(value_at(log, "results", "total_samples"))
    if total is not None:
        return total
    ids = value_at(log, "eval", "dataset", "sample_ids")
    number = count_at(log, "eval", "dataset", "samples")
    if isinstance(ids, list) and ids:
        number = len(ids)
    limit = count_at(log, "eval", "config", "limit")
    if number is None or (limit is None and value_at(log, "eval", "config", "limit") is not None):
        return None
    if limit is not None:
        number = min(number, limit)
    return number * (count_at(log, "eval", "config", "epochs") or 1)


def _result(sample: JsonObject, target: str, scores: Scores, task: str | None) -> AdoptedResult:
    checks: tuple[AdoptedCheck, ...] = ()
    error = text_at(sample, "error", "message") or None
    if error is None and sample.get("error"):
        error = "the sample has an error"
    if sample.get("invalidation"):
        error = error or "the sample is invalidated"
    has_ended_badly = error is not None
    if error is None:
        try:
            checks = tuple(scores.checks(_given(sample), "scorer"))
            error = None if checks else "the sample has no scores"
        except UnknownScore as unknown:
            error = str(unknown)
    usage = mapping(next(iter(mapping(sample.get("model_usage")).values()), None))
    return AdoptedResult(
        name=text(sample.get("id")) or "sample",
        distinctions=(
            text(sample.get("input")),
            text(sample.get("target")),
            json.dumps(sample.get("id")),
        ),
        passed=all_passed(checks, error),
        score=mean_score(checks),
        answer=text_at(sample, "output", "completion")
        or text(
            mapping(next(iter(objects_at(sample, "output", "choices")), {}).get("message")).get(
                "content"
            )
        ),
        question=messages(sample.get("input")),
        expected=text(sample.get("target")) or None,
        target=target,
        model=text_at(sample, "output", "model"),
        checks=checks,
        error=error,
        error_kind="process" if has_ended_badly else "evaluator",
        duration_ms=whole((amount_at(sample, "total_time") or 0) * 1000) or 0,
        input_tokens=count_at(usage, "input_tokens"),
        output_tokens=whole(usage.get("output_tokens")),
        tags=(task,) if task else (),
        metadata=mapping(sample.get("metadata")),
    )


def _given(sample: JsonObject) -> Iterator[Given]:
    for name, score in _scores(sample).items():
        value, reasoning = mapping(score).get("value"), text(mapping(score).get("explanation"))
        parts = mapping(value)
        for part, part_value in parts.items():
            yield Given(f"{name}.{part}", part_value, reasoning)
        if not parts:
            yield Given(name, value, reasoning)


def _scores(sample: JsonObject) -> JsonObject:
    """Return the scores of a sample; old logs have a single one without a name."""
    scores = mapping(sample.get("scores"))
    if not scores and sample.get("score") is not None:
        return {"score": sample["score"]}
    return scores
