"""Logs of OpenAI Evals: one event per line."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from agentv_ci.base.canonical import exact
from agentv_ci.base.json_access import text_at, value_at
from agentv_ci.base.mappings import without
from agentv_ci.base.text import counted, listed
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.other_tools import AdoptedCheck, AdoptedFile, AdoptedResult, HowToRead
from agentv_ci.other_tools.adopt.scores import Given, Scores, UnknownScore, all_passed, mean_score
from agentv_ci.other_tools.adopt.values import mapping, messages, text, whole

RESULTS = frozenset({"match", "metrics"})
"""Types of events that say how good an answer is."""
JUDGED = RESULTS | {"error"}
OF_THE_RUN = frozenset(
    {"run_id", "created_at", "created_by", "command", "seed", "max_samples", "initial_settings"}
)
"""What a spec says of its run, and not of the eval."""
COUNTS = "counts/"
"""How names of counts in a final report begin."""


def results(lines: Sequence[JsonObject], how: HowToRead) -> AdoptedFile:
    """Return the samples of a log.

    One passes if every match is correct and every metric reaches the threshold.

    Raises ValueError if runs cannot be distinguished.
    """
    specs = _specs(lines)
    only = next(iter(specs)) if len(specs) == 1 else ""
    events: defaultdict[str, list[JsonObject]] = defaultdict(list)
    for line in lines:
        if "spec" not in line and "final_report" not in line:
            events[text(line.get("run_id")) or only].append(line)
    scores = Scores(how, chain.from_iterable(map(_given, lines)))
    found = list(
        chain.from_iterable(_results(events[run], specs.get(run, {}), scores) for run in events)
    )
    return AdoptedFile(tuple(found), tuple(_lost(events, specs, _reports(lines))), scores.names)


def _specs(lines: Sequence[JsonObject]) -> dict[str, JsonObject]:
    """Return the spec of each run; raises ValueError if two have one name."""
    specs: dict[str, JsonObject] = {}
    for line in lines:
        if "spec" in line:
            spec = mapping(line["spec"])
            run = text(spec.get("run_id"))
            if run in specs:
                shared = f"the run_id '{run}'" if run else "no run_id"
                raise ValueError(f"two of its runs have {shared}")
            specs[run] = spec
    return specs


def _reports(lines: Sequence[JsonObject]) -> dict[str, JsonObject]:
    """Return the final report of each run: without a `run_id`, of the one that began last."""
    reports, run = {}, ""
    for line in lines:
        if "spec" in line:
            run = text(mapping(line["spec"]).get("run_id"))
        if report := mapping(line.get("final_report")):
            reports[text(line.get("run_id")) or run] = report
    return reports


def _lost(
    events: Mapping[str, Sequence[JsonObject]],
    specs: Mapping[str, JsonObject],
    reports: Mapping[str, JsonObject],
) -> Iterator[str]:
    if not specs:
        yield "its beginning is missing: it has no spec"
    ended = sum(run in reports for run in specs)
    if specs and ended < len(specs):
        yield (
            f"the run did not finish: {counted(len(specs), 'run')}, "
            f"{counted(ended, 'final report')}"
        )
    for run in {**specs, **events}:
        named = f"run '{run}'" if run else "a run without run_id"
        if specs and run not in specs:
            yield f"{named} has no spec"
        judged = [event for event in events.get(run, ()) if text(event.get("type")) in JUDGED]
        if specs and not judged:
            yield f"{named} has no results"
        yield from _lost_events(events.get(run, ()), judged, reports.get(run, {}))


def _lost_events(
    events: Sequence[JsonObject], judged: Sequence[JsonObject], report: JsonObject
) -> Iterator[str]:
    numbers = {number for event in events if isinstance(number := event.get("event_id"), int)}
    if missing := max(numbers, default=-1) + 1 - len(numbers):
        known = (
            f"the number of the last one is {max(numbers)}, counted from 0, "
            f"and {_are(len(numbers))} in the log"
        )
        yield f"{counted(missing, 'event')} missing: {known}"
    if nameless := sum(event.get("sample_id") is None for event in judged):
        names = "names" if nameless == 1 else "name"
        yield f"{counted(nameless, 'event')} with a result or an error {names} no sample"
    declared = Counter(
        {name: whole(number) or 0 for name, number in report.items() if name.startswith(COUNTS)}
    )
    found = Counter(f"{COUNTS}{text(value_at(event, 'data', 'choice'))}" for event in judged)
    if missing := (declared - found).total():
        present = declared.total() - missing
        yield (
            f"the final report counts {counted(declared.total(), 'choice')}, "
            f"and {_are(present)} in the log"
        )


def _are(number: int) -> str:
    return f"{number} {'is' if number == 1 else 'are'}"


def _results(
    events: Sequence[JsonObject], spec: JsonObject, scores: Scores
) -> Iterator[AdoptedResult]:
    """Yield the results of the samples of a run."""
    samples: defaultdict[str, list[JsonObject]] = defaultdict(list)
    for event in events:
        if event.get("sample_id") is not None:
            samples[json.dumps(event["sample_id"])].append(event)
    for its in samples.values():
        yield _result(its, spec, scores)


def _distinctions(events: Sequence[JsonObject], spec: JsonObject) -> tuple[str, ...]:
    """Return what defines the test of a sample: all that does not come from the run.

    The prompt is that of the first sampling: later ones have the answer, for a model that grades
    it.
    """
    prompt = next(
        (value_at(event, "data", "prompt") for event in events if event.get("type") == "sampling"),
        None,
    )
    expected = next(
        (value_at(event, "data", "expected") for event in events if event.get("type") == "match"),
        None,
    )
    settings = mapping(spec.get("run_config"))
    definition: JsonObject = without(spec, OF_THE_RUN)
    definition["run_config"] = without(settings, OF_THE_RUN)
    return (
        _task(spec),
        text(prompt),
        text(expected),
        text(spec.get("completion_fns")),
        json.dumps(events[0].get("sample_id")),
        exact([definition, prompt, expected]),
    )


def _task(spec: JsonObject) -> str:
    return text_at(spec, "base_eval") or text_at(spec, "eval_name") or ""


def _result(events: Sequence[JsonObject], spec: JsonObject, scores: Scores) -> AdoptedResult:
    def data(kind: str) -> JsonObject:
        return next(
            (mapping(event.get("data")) for event in reversed(events) if event.get("type") == kind),
            {},
        )

    matched, sampling = data("match"), data("sampling")
    checks: tuple[AdoptedCheck, ...] = ()
    failed = [event for event in events if event.get("type") == "error"]
    error = text_at(data("error"), "message") or None
    if error is None and failed:
        error = "the sample has an error"
    if error is None:
        try:
            read = tuple(_checks(events, scores))
            error = _contradiction(read) if read else "the sample has no result"
            checks = read if error is None else ()
        except UnknownScore as unknown:
            error = str(unknown)
    functions = spec.get("completion_fns")
    sampled = sampling.get("sampled", matched.get("sampled"))
    task = _task(spec)
    return AdoptedResult(
        name=text(events[0].get("sample_id")),
        distinctions=_distinctions(events, spec),
        passed=all_passed(checks, error),
        score=mean_score(checks),
        answer=text(_first(sampled)),
        question=messages(sampling.get("prompt")),
        expected=text(matched.get("expected")) or None,
        target=text(_first(functions)) or "default",
        checks=checks,
        error=error,
        tags=(task,) if task else (),
    )


def _first(value: JsonValue) -> JsonValue:
    """Return the first item of a list, and any other value as it is."""
    if isinstance(value, list) and value:
        return value[0]
    return value


def _checks(events: Iterable[JsonObject], scores: Scores) -> Iterator[AdoptedCheck]:
    for event in events:
        if (kind := text(event.get("type"))) in RESULTS:
            yield from scores.checks(_given(event), kind)


def _given(event: JsonObject) -> Iterator[Given]:
    """Yield the scores of an event; a choice is what its score stands for."""
    data = mapping(event.get("data"))
    if event.get("type") == "match":
        correct = data.get("correct")
        yield Given("match", bool(correct) if correct in (0, 1) else correct)
    if event.get("type") == "metrics":
        choice = {"choice"} if "score" in data else set()
        for name, value in data.items():
            if name not in choice:
                yield Given(name, value)


def _contradiction(checks: Sequence[AdoptedCheck]) -> str | None:
    """Return what events of one sample contradict each other in."""
    values: defaultdict[str, set[float]] = defaultdict(set)
    for check in checks:
        values[check.name].add(check.score)
    different = [
        f"'{name}' is {' and '.join(f'{score:g}' for score in sorted(scores))}"
        for name, scores in values.items()
        if len(scores) > 1
    ]
    if different:
        return f"events of the sample contradict each other: {listed(different)}"
    return None
