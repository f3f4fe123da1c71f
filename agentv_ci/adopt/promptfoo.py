"""Results of promptfoo: `promptfoo eval --output results.json`, or `.jsonl`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence

from agentv_ci.adopt.json_texts import json_in, lines_in
from agentv_ci.adopt.scores import Given, Scores, UnknownScore
from agentv_ci.adopt.values import amount, mapping, messages, objects, text, whole
from agentv_ci.canonical import canonical, digest_of
from agentv_ci.contracts.adopted import AdoptedCheck, AdoptedFile, AdoptedResult, HowToRead
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.json_access import count_at, json_or_none, value_at
from agentv_ci.text import counted

ERRORED = 2
"""`failureReason` of a test whose provider or assertion failed."""
OF_THE_RUN = frozenset({"_conversation", "sessionId"})
"""Variables that promptfoo sets itself."""


def data_in(written: str) -> JsonValue:
    """Return the data of a file, also of one with a result per line; raises ValueError."""
    try:
        data = json_in(written)
    except ValueError:
        rows = lines_in(written) if "\n" in written.strip() else []
        if not rows:
            raise
        return {"results": list[JsonValue](rows)}
    is_row = isinstance(data, dict) and "success" in data and "results" not in data
    return {"results": [data]} if is_row else data


def results(data: JsonValue, how: HowToRead) -> AdoptedFile:
    """Return the results of a file."""
    inner = value_at(data, "results", "results")
    rows = objects(inner if inner is not None else _listed(value_at(data, "results")), "result")
    targets = _targets(rows)
    # Every assertion has its own scale, and promptfoo's own verdict counts.
    scores = Scores(how, ())
    found = tuple(_result(row, target, scores) for row, target in zip(rows, targets, strict=True))
    return AdoptedFile(found, tuple(_lost(data, found)), scores.names)


def _listed(value: JsonValue) -> JsonValue:
    return value if isinstance(value, list) else None


def _lost(data: JsonValue, found: Sequence[AdoptedResult]) -> Iterator[str]:
    declared = {name: count_at(data, "results", "stats", name) or 0 for name in ("successes", "failures", "errors")}
    if (tests := sum(declared.values())) > len(found):
        yield f"results are missing: it counts {counted(tests, 'result')}, and {len(found)} are in the file"
    bad, passed = tests - declared["successes"], sum(result.passed is True for result in found)
    if bad > len(found) - passed:
        yield f"failures are missing: it counts {bad} failed or with errors, and {len(found) - passed} are in the file"


def _targets(rows: Sequence[JsonObject]) -> list[str]:
    """Return the name of the provider of each result; of several with one name, the later ones are numbered.

    Providers that differ in their configuration may have the same id; `promptIdx` is the column of one with a prompt.
    """
    names = [(_provider(row), _prompt(row)) for row in rows]
    columns = [count_at(row, "promptIdx") for row in rows]
    known: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for name, column in zip(names, columns, strict=True):
        if column is not None:
            known[name].add(column)
    numbers = [
        sorted(known[name]).index(column) if column is not None else 0
        for name, column in zip(names, columns, strict=True)
    ]
    return [f"{name}-{number + 1}" if number else name for (name, _), number in zip(names, numbers, strict=True)]


def _provider(row: JsonObject) -> str:
    provider = row.get("provider")
    given = mapping(provider)
    return text(given.get("label")) or text(given.get("id")) or (provider if isinstance(provider, str) else "default")


def _prompt(row: JsonObject) -> str:
    """Return a text that differs between the prompts of results."""
    return canonical([row.get("promptId"), mapping(row.get("prompt")).get("label")])


def _result(row: JsonObject, target: str, scores: Scores) -> AdoptedResult:
    test, response, prompt = mapping(row.get("testCase")), mapping(row.get("response")), mapping(row.get("prompt"))
    variables = mapping(row.get("vars") or test.get("vars"))
    own = {name: value for name, value in variables.items() if name not in OF_THE_RUN}
    described = text(test.get("description"))
    usage = mapping(response.get("tokenUsage"))
    label, asserted = text(prompt.get("label")), json.dumps(test.get("assert"))
    shown = ", ".join(f"{name}={text(value)}" for name, value in own.items())
    passed, error = _verdict(row)
    checks: tuple[AdoptedCheck, ...] = ()
    score: float | None = None
    if error is None:
        try:
            checks = tuple(_checks(row, scores))
            score = _score(row, checks, scores)
        except UnknownScore as unknown:
            error = str(unknown)
    return AdoptedResult(
        name=described or f"test-{digest_of(canonical(own))[:12]}",
        distinctions=(label, shown, canonical(own), asserted, text(row.get("promptId"))),
        passed=None if error else passed,
        score=score,
        answer=text(response.get("output")),
        question=messages(_conversation(prompt.get("raw"))),
        outcome=described or None,
        target=target,
        checks=checks,
        reasoning=text(mapping(row.get("gradingResult")).get("reason")),
        error=error,
        duration_ms=whole(row.get("latencyMs")) or 0,
        cost_usd=amount(row.get("cost")),
        input_tokens=whole(usage.get("prompt")),
        output_tokens=whole(usage.get("completion")),
        metadata=variables,
        definition={"assert": asserted, "prompt": label},
    )


def _verdict(row: JsonObject) -> tuple[bool | None, str | None]:
    """Return whether promptfoo lets a result pass, and why there is no verdict."""
    success, reason, said = row.get("success"), row.get("failureReason"), text(row.get("error"))
    grading = mapping(row.get("gradingResult"))
    if reason == ERRORED or (reason is None and said and not grading and success is not True):
        return None, said or "the provider or an assertion failed"
    if not isinstance(success, bool):
        return None, f"'success' is {text(success) or 'missing'}, not true or false"
    if isinstance(passed := grading.get("pass"), bool) and passed is not success:
        return None, f"'success' is {text(success)}, but 'pass' of its grading is {text(passed)}"
    return success, None


def _conversation(raw: JsonValue) -> JsonValue:
    """Return a prompt; one that is a conversation in JSON as its messages."""
    return (json_or_none(raw) if isinstance(raw, str) and raw.lstrip().startswith("[") else None) or raw


def _checks(row: JsonObject, scores: Scores) -> Iterator[AdoptedCheck]:
    for component in objects(mapping(row.get("gradingResult")).get("componentResults"), "component"):
        assertion = mapping(component.get("assertion"))
        kind = text(assertion.get("type")) or "assertion"
        weight = amount(assertion.get("weight"))
        given = Given(text(assertion.get("metric")) or kind, component.get("score"), text(component.get("reason")))
        for check in scores.checks([given], kind):
            yield AdoptedCheck(
                check.name,
                kind,
                check.score,
                bool(component.get("pass")),
                check.reasoning,
                1.0 if weight is None else weight,
            )


def _score(row: JsonObject, checks: Sequence[AdoptedCheck], scores: Scores) -> float | None:
    """Return promptfoo's score; where it is none from 0 to 1, that of its checks."""
    if row.get("score") is None:
        return None
    try:
        return scores.score(Given("score", row.get("score")))
    except UnknownScore:
        weights = sum(check.weight for check in checks)
        if not weights:
            raise
        return sum(check.weight * check.score for check in checks) / weights
