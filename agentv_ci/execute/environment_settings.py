"""What targets take from the environment.

It can change answers, and no digest of a plan covers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import chain

from agentv_ci.base.canonical import canonical, digest_of
from agentv_ci.base.secret_values import SECRET_WORDS
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.cases import CaseHead
from agentv_ci.contracts.environment_references import variable_of
from agentv_ci.contracts.plan import Plan, targets_of
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.targets import Target
from agentv_ci.execute.resolution import Resolution

NEVER = frozenset({"api_key", "headers"})
"""Settings that say who asks, not what."""


class EnvironmentSettings:
    """The settings, without secrets, that the targets of a plan take from the environment."""

    def __init__(self, plan: Plan, environ: Mapping[str, str]) -> None:
        self._plan = plan
        self._of_target = cache(lambda key: _from_environment(plan.targets[key], environ))

    def digest(self, case: CaseHead) -> str | None:
        """Return a digest of the settings of the target and the judges of a case.

        None if there are none.
        """
        found = {self._plan.targets[key].name: self._of_target(key)[0] for key in targets_of(case)}
        used: JsonObject = {name: settings for name, settings in found.items() if settings}
        return digest_of(canonical(used)) if used else None

    def fit(self, row: ResultRow, case: CaseHead) -> bool:
        """Whether a case would be asked with the settings of its row.

        Without their variables they are not compared.
        """
        is_known = all(self._of_target(key)[1] for key in targets_of(case))
        return not is_known or row.settings_digest == self.digest(case)


def _from_environment(target: Target, environ: Mapping[str, str]) -> tuple[JsonObject, bool]:
    """Return settings that the environment gives, and whether all of their variables are set."""
    resolution = Resolution(target, environ)
    ignored = target.outside_digest | NEVER
    absent = set(chain.from_iterable(resolution.missing.values())) - ignored
    given: JsonObject = {
        name: _without_secrets(value, resolution.authored.get(name))
        for name, value in resolution.data.items()
        if name not in ignored and value != resolution.authored.get(name)
    }
    return given, not absent


def _without_secrets(value: JsonValue, written: JsonValue, name: str = "") -> JsonValue:
    """Return a value in which variables, and entries with a secret's name, are as written."""
    if isinstance(value, dict) and isinstance(written, dict):
        return {key: _without_secrets(item, written.get(key), key) for key, item in value.items()}
    if isinstance(value, list) and isinstance(written, list):
        return [
            _without_secrets(one, other, name) for one, other in zip(value, written, strict=True)
        ]
    if _is_secret(name) or _is_secret(variable_of(written) or ""):
        return written
    return value


def _is_secret(name: str) -> bool:
    return name.upper().rsplit("_", 1)[-1] in SECRET_WORDS
