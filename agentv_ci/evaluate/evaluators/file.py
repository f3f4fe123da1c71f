"""`type: file`: a file that the agent leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from agentv_ci.base.json_access import found_at, read_unique
from agentv_ci.base.json_values import is_same
from agentv_ci.base.patterns import InvalidPattern, compiled, occurs
from agentv_ci.contracts.answer_evaluators import field_steps
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.outcome_evaluators import FileEvaluator
from agentv_ci.evaluate.scoring import share_met
from agentv_ci.evaluate.submission import EvaluatorServices, Submission, without_work
from agentv_ci.workspaces.places import Work

Finding = tuple[bool, str]


async def file(
    settings: FileEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Return the share of the checks that the file meets.

    Without the file all of them are missed.
    """
    work = submission.work
    if not isinstance(work, Work):
        return without_work(work)
    try:
        # In a thread: files may be large, and patterns slow.
        return await asyncio.to_thread(_score, settings, work)
    except TimeoutError:
        return Score(error=f"the pattern took too long: '{settings.regex}'")
    except (InvalidPattern, OSError) as error:
        return Score(error=str(error))


def _score(settings: FileEvaluator, work: Work) -> Score:
    path, content = settings.path, work.file(settings.path)
    if not settings.exists:
        return share_met(
            [(content is None, f"{path} {'does not exist' if content is None else 'exists'}")]
        )
    if content is None:
        return Score(0.0, misses=(f"{path} does not exist",))
    checks = [*_checks(settings, content.decode("utf-8", "replace")), *_facts(settings, work)]
    return share_met(checks or [(True, f"{path} exists")])


def _facts(settings: FileEvaluator, work: Work) -> Iterator[Finding]:
    """Yield what is checked besides the content."""
    if settings.unchanged is not None:
        is_same_file = all(change.path != settings.path for change in work.changes)
        yield (
            is_same_file is settings.unchanged,
            f"{settings.path} is {'un' if is_same_file else ''}changed",
        )
    if settings.mode is not None:
        mode = work.mode(settings.path) or 0
        yield mode == int(settings.mode, 8), f"{settings.path} has mode {mode:03o}"


def _checks(settings: FileEvaluator, text: str) -> Iterator[Finding]:
    path = settings.path
    for phrase in settings.contains or ():
        yield (
            phrase in text,
            f"{path} {'contains' if phrase in text else 'does not contain'} '{phrase}'",
        )
    if settings.regex is not None:
        found = occurs(compiled(settings.regex), text)
        yield found, f"{path} {'matches' if found else 'does not match'} '{settings.regex}'"
    if settings.equals is not None:
        is_equal = settings.equals.strip() == text.strip()
        yield is_equal, f"{path} {'has' if is_equal else 'does not have'} the expected text"
    if settings.schema_inline is not None or settings.json_path:
        yield from _json_checks(settings, text)


def _json_checks(settings: FileEvaluator, text: str) -> Iterator[Finding]:
    try:
        value = read_unique(text)
    except ValueError as error:
        yield False, f"{settings.path} is not JSON: {error}"
        return
    if settings.schema_inline is not None:
        from agentv_ci.jsonschema.dialects import check  # slow to import

        misses = check(settings.schema_inline, value)
        yield (
            not misses,
            f"{settings.path}: {'; '.join(misses[:10])}" if misses else f"{settings.path} is valid",
        )
    for place, expected in (settings.json_path or {}).items():
        yield _at(value, place, expected, settings.path)


def _at(value: JsonValue, place: str, expected: JsonValue, path: str) -> Finding:
    found = found_at(value, *field_steps(place))
    if not found:
        return False, f"{path}: {place} is missing"
    is_equal = is_same(found[0], expected)
    return is_equal, f"{path}: {place} is {'' if is_equal else 'not '}as expected"
