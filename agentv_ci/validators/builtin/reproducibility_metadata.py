"""Check that runs record what is needed to repeat them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from agentv_ci.contracts.base import Integer, JsonObject, Name
from agentv_ci.validators.builtin import BuiltInSettings
from agentv_ci.validators.runs import (
    Run,
    excerpt,
    findings,
    is_seed,
    issue,
    name_of,
    numbered_runs,
    settings_in,
)


class Settings(BuiltInSettings):
    """The seeds and the configuration that runs should have."""

    expected_seeds: list[Integer] | None = None
    config_digest: Name | None = None


def validate(report: dict[str, Any], context: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return an issue per run whose seed or digest is missing or not the expected one.

    Settings: `expected_seeds`, a list of integers: other seeds must not occur, and each of these
    should; an empty list expects none. `config_digest`, the digest of every run; runs without one
    are reported together as one info. Entries of the list that are not seeds, and settings of an
    invalid form, are ignored.
    """
    expected = _expected(settings_in(context).get("expected_seeds"))
    digest = Settings.lenient(context).config_digest
    runs = numbered_runs(report)
    observed = {int(run["seed"]) for _, run in runs if is_seed(run.get("seed"))}
    allowed = None if expected is None else frozenset(expected)
    issues: list[JsonObject] = []
    for index, run in runs:
        issues += _check(index, run, allowed, digest)
    issues += _never_seen(expected or (), observed)
    issues += _without_digest(runs, digest)
    return findings(
        issues,
        {
            "observed_seeds": [*sorted(observed)],
            "missing_seed_count": sum(run.get("seed") is None for _, run in runs),
            "expected_seeds": None if expected is None else [*expected],
            "engine_config_digest": digest,
        },
    )


def _expected(setting: object) -> list[int] | None:
    if not isinstance(setting, list):
        return None
    return [int(seed) for seed in setting if is_seed(seed)]


def _check(
    index: int, run: Run, allowed: Collection[int] | None, digest: str | None
) -> Iterator[JsonObject]:
    seed, own_digest = run.get("seed"), run.get("config_digest")
    place, name = ("runs", index, "seed"), name_of(index, run)
    if seed is None:
        yield issue("missing_seed", "warning", f"the seed of {name} is missing", *place)
    elif not is_seed(seed):
        yield issue(
            "invalid_seed_type",
            "error",
            f"the seed of {name} must be an integer, not {excerpt(seed)}",
            *place,
        )
    elif allowed is not None and seed not in allowed:
        yield issue(
            "unexpected_seed",
            "error",
            f"the seed of {name} is not expected: {excerpt(seed)}",
            *place,
        )
    if (
        digest is not None
        and own_digest is not None
        and not (isinstance(own_digest, str) and own_digest == digest)
    ):
        message = (
            f"the config_digest of {name} differs: {excerpt(own_digest)}, not {excerpt(digest)}"
        )
        yield issue("config_digest_mismatch", "error", message, "runs", index, "config_digest")


def _never_seen(expected: Sequence[int], observed: Collection[int]) -> Iterator[JsonObject]:
    for seed in dict.fromkeys(expected):
        if seed not in observed:
            yield issue(
                "missing_expected_seed", "warning", f"no run has the expected seed {seed}", "runs"
            )


def _without_digest(runs: Sequence[tuple[int, Run]], digest: str | None) -> Iterator[JsonObject]:
    without = sum(run.get("config_digest") is None for _, run in runs)
    if digest is not None and without:
        message = f"the config_digest of {without} of {len(runs)} runs is missing"
        yield issue("per_run_digest_missing", "info", message)
