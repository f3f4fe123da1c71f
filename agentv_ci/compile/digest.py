"""Digests: of a case, over everything that can change its result; of a plan, over all of it.

Canonical form: JSON with sorted keys, no spaces, UTF-8 unescaped; then SHA-256.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from posixpath import basename

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.plan import Plan, PlanCase, PlanCodeEvaluator, PlanEvaluator
from agentv_ci.contracts.targets import Target


def canonical(value: JsonValue) -> str:
    """Return the canonical JSON of a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def plan_digest(plan: Plan) -> str:
    """Return the digest of everything in a plan but its digest."""
    return _sha256(plan.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"digest"}))


def case_digest(case: PlanCase, targets: Mapping[str, Target]) -> str:
    """Return the digest of a case: its id, what it asks, what answers and judges, and how it is scored.

    Not in it: where the case stands, the suite's path, workers, time limits, retries, batching, the number of
    trials, notes and metadata, and the values of secrets (a plan never holds them).
    """
    dumped = case.model_dump(mode="json", by_alias=True, exclude_none=True)
    covered = ("id", "inputMessages", "expectedMessages", "expectedOutcome", "threshold")
    return _sha256(
        {
            **{key: dumped[key] for key in covered},
            "target": _target(targets[case.target]),
            "evaluators": [_evaluator(each, targets) for each in case.evaluators],
        }
    )


def _target(target: Target) -> JsonObject:
    settings: JsonObject = target.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude=set(target.outside_digest)
    )
    return settings


def _evaluator(evaluator: PlanEvaluator, targets: Mapping[str, Target]) -> JsonObject:
    settings: JsonObject = evaluator.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(settings.get("target"), str):
        settings["target"] = _target(targets[str(settings["target"])])
    if isinstance(evaluator, PlanCodeEvaluator):
        # What each file says counts, not where it lies.
        contents = {file.path: file.sha256 for file in evaluator.files}
        argv: list[JsonValue] = [contents.get(word, word) for word in evaluator.argv or ()]
        ordered = sorted((basename(path), sha256) for path, sha256 in contents.items())
        files: list[JsonValue] = [[name, sha256] for name, sha256 in ordered]
        settings |= {"argv": argv, "files": files}
        settings.pop("timeoutSeconds", None)
    prompt = settings.get("prompt")
    if isinstance(prompt, dict):
        prompt.pop("path", None)
    return settings


def _sha256(value: JsonValue) -> str:
    return hashlib.sha256(canonical(value).encode("utf-8")).hexdigest()
