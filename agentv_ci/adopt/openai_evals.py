"""Logs of OpenAI Evals: one event per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentv_ci.adopt.values import mapping, messages, share, slug, text
from agentv_ci.contracts.adopted import AdoptedCheck, AdoptedResult
from agentv_ci.contracts.base import JsonObject
from agentv_ci.json_access import text_at


def results(lines: Sequence[JsonObject], threshold: float) -> Iterator[AdoptedResult]:
    """Yield the samples of a log."""
    spec = next((mapping(each["spec"]) for each in lines if "spec" in each), {})
    names = spec.get("completion_fns")
    target = slug(text(names[0]) if isinstance(names, list) and names else "default")
    events: dict[str, list[JsonObject]] = {}
    for each in lines:
        if isinstance(sample := each.get("sample_id"), str):
            events.setdefault(sample, []).append(each)
    for sample, found in events.items():
        yield _result(sample, found, target, threshold, text_at(spec, "base_eval") or text_at(spec, "eval_name"))


def _result(
    sample: str, events: Sequence[JsonObject], target: str, threshold: float, name: str | None
) -> AdoptedResult:
    by_type = {text(each.get("type")): mapping(each.get("data")) for each in events}
    match, sampling = by_type.get("match", {}), by_type.get("sampling", {})
    metrics = by_type.get("metrics", {})
    checks = tuple(
        AdoptedCheck(metric, "metric", score, score >= threshold)
        for metric, value in metrics.items()
        if (score := float(value) if isinstance(value, bool) else share(value)) is not None
    )
    correct = match.get("correct")
    if isinstance(correct, bool):
        checks = (AdoptedCheck("match", "match", float(correct), correct), *checks)
    sampled = sampling.get("sampled", match.get("sampled"))
    answer = sampled[0] if isinstance(sampled, list) and sampled else sampled
    error = text_at(by_type.get("error", {}), "message") or (None if checks else "the sample has no result")
    return AdoptedResult(
        id=slug(sample),
        passed=None if error else all(check.passed for check in checks),
        score=sum(check.score for check in checks) / len(checks) if checks else None,
        answer=text(answer),
        question=messages(sampling.get("prompt")),
        expected=text(match.get("expected")) or None,
        target=target,
        checks=checks,
        error=error,
        tags=(name,) if name else (),
    )
