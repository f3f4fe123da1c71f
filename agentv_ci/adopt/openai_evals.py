"""Logs of OpenAI Evals: one event per line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from agentv_ci.adopt.scores import Given, Scores, UnknownScore
from agentv_ci.adopt.values import mapping, messages, text
from agentv_ci.contracts.adopted import AdoptedCheck, AdoptedFile, AdoptedResult, HowToRead
from agentv_ci.contracts.base import JsonObject
from agentv_ci.json_access import text_at
from agentv_ci.text import counted, listed

RESULTS = frozenset({"match", "metrics"})
"""Types of events that say how good an answer is."""


def results(lines: Sequence[JsonObject], how: HowToRead) -> AdoptedFile:
    """Return the samples of a log; one passes if every match is correct and every metric reaches the threshold."""
    specs = {text(mapping(line["spec"]).get("run_id")): mapping(line["spec"]) for line in lines if "spec" in line}
    scores = Scores(how, (given for line in lines for given in _given(line)))
    samples: defaultdict[tuple[str, str], list[JsonObject]] = defaultdict(list)
    for line in lines:
        if line.get("sample_id") is not None:
            samples[text(line.get("run_id")), text(line["sample_id"])].append(line)
    only = next(iter(specs.values()), {}) if len(specs) == 1 else {}
    found = tuple(_result(name, events, specs.get(run, only), scores) for (run, name), events in samples.items())
    return AdoptedFile(found, tuple(_lost(lines, len(specs))), scores.names)


def _lost(lines: Sequence[JsonObject], runs: int) -> Iterator[str]:
    if not runs:
        yield "its beginning is missing: it has no spec"
    reports = sum(mapping(line.get("final_report")) != {} for line in lines)
    if reports < max(runs, 1):
        yield f"the run did not finish: {counted(max(runs, 1), 'run')}, {counted(reports, 'final report')}"
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for line in lines:
        if isinstance(number := line.get("event_id"), int):
            numbers[text(line.get("run_id"))].add(number)
    missing = sum(max(events) + 1 - len(events) for events in numbers.values())
    if missing > 0:
        yield f"{counted(missing, 'event')} missing between the others"


def _result(name: str, events: Sequence[JsonObject], spec: JsonObject, scores: Scores) -> AdoptedResult:
    def data(kind: str) -> JsonObject:
        return next((mapping(event.get("data")) for event in reversed(events) if event.get("type") == kind), {})

    matched, sampling = data("match"), data("sampling")
    checks: tuple[AdoptedCheck, ...] = ()
    failed = [event for event in events if event.get("type") == "error"]
    error = text_at(data("error"), "message") or ("the sample has an error" if failed else None)
    if error is None:
        try:
            read = tuple(_checks(events, scores))
            error = _contradiction(read) if read else "the sample has no result"
            checks = read if error is None else ()
        except UnknownScore as unknown:
            error = str(unknown)
    functions = spec.get("completion_fns")
    sampled = sampling.get("sampled", matched.get("sampled"))
    task = text_at(spec, "base_eval") or text_at(spec, "eval_name")
    return AdoptedResult(
        name=name,
        passed=None if error else all(check.passed for check in checks),
        score=sum(check.score for check in checks) / len(checks) if checks else None,
        answer=text(sampled[0] if isinstance(sampled, list) and sampled else sampled),
        question=messages(sampling.get("prompt")),
        expected=text(matched.get("expected")) or None,
        target=text(functions[0] if isinstance(functions, list) and functions else functions) or "default",
        checks=checks,
        error=error,
        tags=(task,) if task else (),
    )


def _checks(events: Iterable[JsonObject], scores: Scores) -> Iterator[AdoptedCheck]:
    for event in events:
        if (kind := text(event.get("type"))) in RESULTS:
            yield from scores.checks(_given(event), kind)


def _given(event: JsonObject) -> Iterator[Given]:
    """Yield the scores of an event; a choice is what its score stands for."""
    data = mapping(event.get("data"))
    if event.get("type") == "match":
        yield Given("match", data.get("correct"))
    if event.get("type") == "metrics":
        choice = {"choice"} if "score" in data else set()
        yield from (Given(name, value) for name, value in data.items() if name not in choice)


def _contradiction(checks: Sequence[AdoptedCheck]) -> str | None:
    """Return what events of one sample contradict each other in."""
    verdicts: defaultdict[str, set[bool]] = defaultdict(set)
    for check in checks:
        verdicts[check.name].add(check.passed)
    names = [name for name, passed in verdicts.items() if len(passed) > 1]
    return f"events of the sample contradict each other: {listed(names)} both passed and failed" if names else None
