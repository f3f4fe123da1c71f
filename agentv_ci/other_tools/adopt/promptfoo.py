"""Results of promptfoo: `promptfoo eval --output results.json`, or `.jsonl`."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from agentv_ci.base.canonical import canonical, digest_of, exact
from agentv_ci.base.json_access import count_at, json_or_none, objects_at, value_at
from agentv_ci.base.mappings import present, without
from agentv_ci.base.text import counted
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.other_tools import AdoptedCheck, AdoptedFile, AdoptedResult, HowToRead
from agentv_ci.other_tools.adopt.json_texts import json_in, lines_in
from agentv_ci.other_tools.adopt.scores import Given, Scores, UnknownScore
from agentv_ci.other_tools.adopt.values import amount, mapping, messages, objects, text, whole

ERRORED = 2
"""`failureReason` of a test whose provider or assertion failed."""
OF_THE_RUN = frozenset({"_conversation", "sessionId"})
"""Variables that promptfoo sets itself."""
_Column = tuple[int, str]
"""`promptIdx`, -1 without one, and the provider."""


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
    if is_row:
        return {"results": [data]}
    return data


def results(data: JsonValue, how: HowToRead) -> AdoptedFile:
    """Return the results of a file."""
    inner = value_at(data, "results", "results")
    if inner is None:
        inner = _listed(value_at(data, "results"))
    rows = objects(inner, "result")
    targets = _targets(data, rows)
    # Every assertion has its own scale, and promptfoo's own verdict counts.
    scores = Scores(how, ())
    found = tuple(_result(row, target, scores) for row, target in zip(rows, targets, strict=True))
    return AdoptedFile(found, tuple(_lost(data, found)), scores.names)


def _listed(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return value
    return None


def _lost(data: JsonValue, found: Sequence[AdoptedResult]) -> Iterator[str]:
    stats = mapping(value_at(data, "results", "stats") or value_at(data, "stats"))
    declared = {name: _count(stats.get(name)) for name in ("successes", "failures", "errors")}
    if (tests := sum(declared.values())) > len(found):
        yield (
            f"results are missing: it counts {counted(tests, 'result')}, "
            f"and {len(found)} are in the file"
        )
    bad, passed = tests - declared["successes"], sum(result.passed is True for result in found)
    if bad > len(found) - passed:
        yield (
            f"failures are missing: it counts {bad} failed or with errors, "
            f"and {len(found) - passed} are in the file"
        )


def _count(value: JsonValue) -> int:
    """Return a count, also one that is written as a text."""
    return whole(json_or_none(value) if isinstance(value, str) else value) or 0


def _targets(data: JsonValue, rows: Sequence[JsonObject]) -> list[str]:
    """Return the name of the provider of each result.

    Of several with one name, the later ones are numbered.

    Providers that differ in their configuration may have the same id; `promptIdx` is the column of
    one with a prompt. Raises ValueError if results do not say which of several columns they are
    from.
    """
    columns = [(_provider(row.get("provider")), _prompt(row), _column(row)) for row in rows]
    known: defaultdict[tuple[str, str], set[_Column]] = defaultdict(set)
    for name, prompt, column in columns:
        known[name, prompt].add(column)
    _require_columns(data, known)
    numbers = {
        key: {column: number for number, column in enumerate(sorted(found))}
        for key, found in known.items()
    }
    taken = {name for name, _ in known}
    targets = {(name, 0): name for name in taken}
    for name, number in sorted(
        {(name, numbers[name, prompt][column]) for name, prompt, column in columns}
    ):
        if number:
            free = (f"{name}-{suffix}" for suffix in count(number + 1))
            targets[name, number] = next(target for target in free if target not in taken)
            taken.add(targets[name, number])
    return [targets[name, numbers[name, prompt][column]] for name, prompt, column in columns]


def _column(row: JsonObject) -> _Column:
    column = count_at(row, "promptIdx")
    return -1 if column is None else column, exact(row.get("provider"))


def _require_columns(data: JsonValue, known: Mapping[tuple[str, str], Collection[_Column]]) -> None:
    """Raise ValueError if a table has columns that its results do not tell apart.

    Those of results without `promptIdx` may look alike.
    """
    headers = objects_at(data, "results", "table", "head", "prompts")
    columns = Counter(
        (_provider(header.get("provider")), _prompt({"prompt": header})) for header in headers
    )
    for (name, prompt), number in columns.items():
        if len(known.get((name, prompt), ())) not in {0, number}:
            raise ValueError(
                f"{number} columns have the provider '{name}' and one prompt: "
                "give each provider a label"
            )


def _provider(provider: JsonValue) -> str:
    given = mapping(provider)
    name = text(given.get("label")) or text(given.get("id"))
    if not name and isinstance(provider, str):
        return provider
    return name or "default"


def _prompt(row: JsonObject) -> str:
    """Return a text that differs between the prompts of results."""
    return canonical([row.get("promptId"), _label(row)])


def _label(row: JsonObject) -> str:
    prompt = mapping(row.get("prompt"))
    return text(prompt.get("label") or prompt.get("display"))


def _distinctions(row: JsonObject) -> tuple[str, ...]:
    """Return what defines the test of a result: all that does not come from the run."""
    test, prompt = mapping(row.get("testCase")), mapping(row.get("prompt"))
    own, stated = _variables(row), _own(mapping(test.get("vars")))
    shown = ", ".join(f"{name}={text(value)}" for name, value in own.items())
    # A prompt with what a run sets, such as earlier answers, is another one in every trial.
    is_of_the_run = bool(OF_THE_RUN & mapping(row.get("vars")).keys())
    raw = ""
    if not is_of_the_run:
        raw = text(prompt.get("raw"))
    others = without(test, {"vars", "assert", "description"})
    settings = without(prompt, {"raw"})
    return (
        _label(row),
        shown,
        exact(own),
        _asserted(row),
        text(row.get("promptId")),
        exact(others),
        raw,
        exact([stated, settings]),
    )


def _variables(row: JsonObject) -> JsonObject:
    return _own(mapping(row.get("vars") or value_at(row, "testCase", "vars")))


def _own(variables: JsonObject) -> JsonObject:
    return without(variables, OF_THE_RUN)


def _asserted(row: JsonObject) -> str:
    """Return the assertions of a test; old results have only those that were graded."""
    if isinstance(test := row.get("testCase"), dict):
        return json.dumps(test.get("assert"))
    return json.dumps([component.get("assertion") for component in _components(row)])


def _result(row: JsonObject, target: str, scores: Scores) -> AdoptedResult:
    test, response, prompt = (
        mapping(row.get("testCase")),
        mapping(row.get("response")),
        mapping(row.get("prompt")),
    )
    described = text(test.get("description") or row.get("description"))
    usage = mapping(response.get("tokenUsage"))
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
        name=described or f"test-{digest_of(canonical(_variables(row)))[:12]}",
        distinctions=_distinctions(row),
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
        metadata=mapping(row.get("vars") or test.get("vars")),
        definition={"assert": _asserted(row), "prompt": _label(row)},
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
    return (
        json_or_none(raw) if isinstance(raw, str) and raw.lstrip().startswith("[") else None
    ) or raw


def _components(row: JsonObject) -> list[JsonObject]:
    components = value_at(row, "gradingResult", "componentResults")
    if isinstance(components, list):
        components = list(present(components))
    return objects(components, "component")


def _checks(row: JsonObject, scores: Scores) -> Iterator[AdoptedCheck]:
    """Yield the checks of assertions; a metric without weight only if its score is one.

    Raises UnknownScore.
    """
    for number, component in enumerate(_components(row), 1):
        assertion, passed = mapping(component.get("assertion")), component.get("pass")
        kind, weight = text(assertion.get("type")) or "assertion", amount(assertion.get("weight"))
        if not isinstance(passed, bool):
            raise UnknownScore(
                f"'pass' of assertion {number} is {text(passed) or 'missing'}, not true or false"
            )
        given = Given(
            text(assertion.get("metric")) or kind,
            component.get("score"),
            text(component.get("reason")),
        )
        try:
            for check in scores.checks([given], kind):
                yield replace(check, passed=passed, weight=1.0 if weight is None else weight)
        except UnknownScore:
            if weight != 0:
                raise


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
