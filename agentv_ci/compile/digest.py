"""Digests: of a case, over everything that can change its result; of a plan, over all of it.

A digest is the SHA-256 of canonical JSON (RFC 8785); in the digest of a case, large integers keep
all digits. Defaults are omitted, so that fields of later versions do not change the digests of
plans without them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from posixpath import dirname, relpath
from typing import TYPE_CHECKING

from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pydantic_core import to_json

from agentv_ci.base.canonical import canonical, canonical_json, digest_of, exact_json
from agentv_ci.base.prices import names_of, price_of
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.config import Price
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.plan_evaluators import (
    JUDGED,
    PlanCommandEvaluator,
    PlanCompositeEvaluator,
    PlanDiffEvaluator,
    PlanEvaluator,
    PlanJunitEvaluator,
    PlanLlmJudgeAggregator,
    PlanLlmJudgeEvaluator,
    PlanScript,
    PlanWeightedAverage,
    flat,
)
from agentv_ci.contracts.plan_parts import FilePart, TextPart
from agentv_ci.contracts.targets import MockTarget, Target, model_name
from agentv_ci.workspaces.contents import content_of

if TYPE_CHECKING:
    from agentv_ci.contracts.plan_evaluators import PlanAggregator

UNSEALED = "0" * 64
"""The placeholder for a digest that is not computed yet."""

CONTENT_FIELDS = {
    "id",
    "system_prompt",
    "input_messages",
    "expected_messages",
    "expected_outcome",
    "threshold",
}
"""Fields of a case that are in its digest."""
NEVER = {"timeout_seconds", "judge_retries"}
"""Fields of an evaluator that cannot change a score."""

TargetContent = Callable[[str], JsonObject]
"""Return the content of a target by its key."""


class CaseDigests:
    """Computes the digests of a plan's cases; the content of each target is cached."""

    def __init__(
        self, targets: Mapping[str, Target], prices: Mapping[str, Mapping[str, Price]]
    ) -> None:
        """Take the plan's targets, and the prices set in each suite."""
        self.targets = targets
        self._prices = prices
        self._settings: dict[str, JsonObject] = {}

    def of(self, case: PlanCase) -> str:
        """Return the digest of a case."""
        return hashlib.sha256(exact_json(to_json(self.content(case)))).hexdigest()

    def content(self, case: PlanCase) -> JsonObject:
        """Return the content of a case's digest: its id, messages, targets and scoring.

        Excluded: the case's place, the suite's path, names of targets, workers, time limits, caps,
        retries, batching, trials, seeds, notes, metadata and API keys. The path of a file is
        included only where the agent or a script may see it, prices only with a cost limit, the
        mock's delay only with a time limit.
        """

        def target_content(key: str) -> JsonObject:
            return self._target_content(key, case.id)

        content = case.model_dump(
            mode="json", by_alias=True, exclude_defaults=True, include=CONTENT_FIELDS
        )
        content |= {
            "target": target_content(case.target),
            "evaluators": [_scoring(evaluator, target_content) for evaluator in case.evaluators],
        }
        if case.workspace is not None:
            content["workspace"] = content_of(case.workspace)
        target = self.targets[case.target]
        measured = {evaluator.measures for evaluator in flat(case.evaluators)}
        if isinstance(target, MockTarget) and "time" in measured:
            content["delay"] = target.delay_ms
        if "cost" in measured:
            prices = _prices_of(target, self._prices[case.suite])
            content["prices"] = {model: _dump(price) for model, price in prices.items()}
        return content

    def _target_content(self, key: str, case_id: str) -> JsonObject:
        if key not in self._settings:
            self._settings[key] = _target(self.targets[key])
        settings = self._settings[key]
        if "responses" not in settings or not isinstance(self.targets[key], MockTarget):
            return settings
        own = {**settings}
        responses = own.pop("responses")
        if isinstance(responses, dict) and case_id in responses:
            own["response"] = responses[case_id]
        return own


def digests_of(plan: Plan) -> CaseDigests:
    """Return what computes the digests of the cases of a plan."""
    return CaseDigests(plan.targets, prices_by_suite(plan))


def prices_by_suite(plan: Plan) -> Mapping[str, Mapping[str, Price]]:
    """Return the prices set in each suite."""
    return {suite.path: suite.prices for suite in plan.suites}


class StreamedDigest:
    """Computes the digest of a plan case by case.

    In canonical order only `$schema` precedes `cases`.
    """

    def __init__(self, schema: str) -> None:
        self._hash = hashlib.sha256(f'{{"$schema":{canonical(schema)},"cases":'.encode())
        self._separator = b"["

    def add(self, case: bytes) -> None:
        """Add the next case, as published JSON."""
        self._hash.update(self._separator + canonical_json(case))
        self._separator = b","

    def end(self, rest: JsonObject) -> str:
        """Return the digest of the plan.

        `rest` is everything in it but `$schema`, `digest` and `cases`.
        """
        cases = "]" if self._separator == b"," else "[]"
        others = canonical(rest).removeprefix("{")
        self._hash.update(f"{cases},{others}".encode())
        return self._hash.hexdigest()


def _target(target: Target) -> JsonObject:
    given = target.model_dump(
        mode="json", exclude_none=True, exclude_defaults=True, exclude=set(target.outside_digest)
    )
    settings = {
        to_camel(key): value for key, value in given.items() if not target.is_default(key, value)
    }
    if isinstance(base_url := settings.get("baseUrl"), str):
        settings["baseUrl"] = base_url.rstrip("/")
    return settings


def _prices_of(target: Target, prices: Mapping[str, Price]) -> Mapping[str, Price]:
    """Return the prices that may apply to a target.

    All may apply if its model or price is unknown.
    """
    if not target.charges:
        return {}
    if (model := model_name(target)) is None or price_of(model, prices) is None:
        return prices
    for name in names_of(model):
        if name in prices:
            return {name: prices[name]}
    return {}


def _scoring(part: PlanEvaluator | PlanAggregator, target_content: TargetContent) -> JsonObject:
    """Return the content of an evaluator or an aggregator.

    These are its settings, with names replaced by contents.
    """
    settings = {"type": part.type, **_dump(part, exclude=NEVER)}
    if settings.get("argsMatch") == "exact":
        del settings["argsMatch"]  # the default
    if isinstance(part, PlanScript):
        settings |= _script(part)
    if isinstance(part, (PlanCommandEvaluator, PlanJunitEvaluator)) and part.files:
        settings["files"] = {path: file.sha256 for path, file in part.files.items()}
    if isinstance(part, PlanDiffEvaluator) and part.golden is not None:
        settings["golden"] = part.golden.sha256
    if isinstance(part, (PlanLlmJudgeEvaluator, PlanLlmJudgeAggregator)):
        settings |= _prompt(part.prompt)
    if isinstance(part, JUDGED):
        settings["target"] = target_content(part.target)
    if isinstance(part, PlanCompositeEvaluator):
        settings |= {
            "evaluators": _members(part, target_content),
            "aggregator": _scoring(part.aggregator, target_content),
        }
    if isinstance(part, PlanWeightedAverage):
        settings["weights"] = {name: weight for name, weight in part.weights.items() if weight != 1}
    return settings


def _prompt(prompt: TextPart | FilePart | None) -> JsonObject:
    """Return a prompt, which has the same digest in a file and in place."""
    if prompt is None:
        return {}
    if isinstance(prompt, FilePart):
        return {"prompt": prompt.sha256}
    return {"prompt": digest_of(prompt.text)}


def _members(evaluator: PlanCompositeEvaluator, target_content: TargetContent) -> list[JsonValue]:
    members: list[JsonValue] = []
    for member in evaluator.evaluators:
        content = _scoring(member, target_content)
        if isinstance(evaluator.aggregator, PlanWeightedAverage):
            # A weighted average contains all weights.
            content.pop("weight", None)
        members.append(content)
    return members


def script_files(script: PlanScript) -> dict[str, tuple[str, str]]:
    """Return the files of a script.

    Path relative to the script → SHA-256 and path in the repository.
    """
    folder = dirname(script.files[0].path) if script.files else ""
    files: dict[str, tuple[str, str]] = {}
    for file in script.files:
        # With absolute paths, relpath does not depend on the working directory.
        files[relpath(f"/{file.path}", f"/{folder}")] = (file.sha256, file.path)
    return files


def _script(script: PlanScript) -> JsonObject:
    contents = {file.path: file.sha256 for file in script.files}
    files: JsonObject = {}
    for path, (sha256, _) in script_files(script).items():
        files[path] = sha256
    return {"argv": [*words_of(script, contents)], "files": files}


def words_of(script: PlanScript, replaced: Mapping[str, str]) -> list[str]:
    """Return the arguments of a script, some of them replaced."""
    return [replaced.get(word, word) for word in script.argv or ()]


def _dump(part: BaseModel, *, exclude: set[str] | None = None) -> JsonObject:
    return part.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude_defaults=True, exclude=exclude
    )
