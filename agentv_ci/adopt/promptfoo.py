"""Results of `promptfoo eval --output results.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator

from agentv_ci.adopt.values import amount, mapping, messages, share, slug, text, whole
from agentv_ci.canonical import canonical, digest_of
from agentv_ci.contracts.adopted import AdoptedCheck, AdoptedResult
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.json_access import json_or_none, objects_at

ERRORED = 2
"""`failureReason` of a test whose provider or assertion failed."""


def results(data: JsonValue) -> Iterator[AdoptedResult]:
    """Yield the results of a file."""
    found = objects_at(data, "results", "results") or objects_at(data, "results")
    prompts = {label for each in found if (label := text(mapping(each.get("prompt")).get("label")))}
    for each in found:
        yield _result(each, several_prompts=len(prompts) > 1)


def _result(given: JsonObject, *, several_prompts: bool) -> AdoptedResult:
    test, response = mapping(given.get("testCase")), mapping(given.get("response"))
    provider, prompt = mapping(given.get("provider")), mapping(given.get("prompt"))
    variables = given.get("vars") or test.get("vars")
    described = text(test.get("description"))
    name = described or f"test-{digest_of(canonical(variables))[:12]}"
    usage = mapping(response.get("tokenUsage"))
    error = text(given.get("error")) if given.get("failureReason") == ERRORED else None
    template = text(prompt.get("label"))
    return AdoptedResult(
        id=slug(f"{name}-{digest_of(template)[:4]}" if several_prompts else name),
        passed=None if error else bool(given.get("success")),
        score=share(given.get("score")),
        answer=text(response.get("output")),
        question=messages(_conversation(prompt.get("raw"))),
        outcome=described or None,
        target=slug(text(provider.get("label")) or text(provider.get("id")) or "default"),
        checks=tuple(_checks(given)),
        reasoning=text(mapping(given.get("gradingResult")).get("reason")),
        error=error,
        duration_ms=whole(given.get("latencyMs")) or 0,
        cost_usd=amount(given.get("cost")),
        input_tokens=whole(usage.get("prompt")),
        output_tokens=whole(usage.get("completion")),
        metadata=mapping(variables),
        definition={"assert": json.dumps(test.get("assert")), "prompt": template},
    )


def _conversation(raw: JsonValue) -> JsonValue:
    """Return a prompt; one that is a conversation in JSON as its messages."""
    return (json_or_none(raw) if isinstance(raw, str) and raw.lstrip().startswith("[") else None) or raw


def _checks(given: JsonObject) -> Iterator[AdoptedCheck]:
    for each in objects_at(given, "gradingResult", "componentResults"):
        assertion = mapping(each.get("assertion"))
        kind = text(assertion.get("type")) or "assertion"
        weight = amount(assertion.get("weight"))
        yield AdoptedCheck(
            text(assertion.get("metric")) or kind,
            kind,
            share(each.get("score")) or 0.0,
            bool(each.get("pass")),
            text(each.get("reason")),
            1.0 if weight is None else weight,
        )
