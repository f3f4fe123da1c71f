"""Targets with environment references replaced by their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain

from pydantic import ValidationError

from agentv_ci.base import installed_plugins
from agentv_ci.base.mappings import picked, without
from agentv_ci.base.model_errors import refusals
from agentv_ci.base.redaction import Redactor, secrets_of
from agentv_ci.contracts.api_targets import HttpTarget, refused_settings
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.cli_target import CliTarget, quoted_placeholders, unknown_placeholders
from agentv_ci.contracts.environment_references import variable_of
from agentv_ci.contracts.exchange import Warn
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan, targets_of
from agentv_ci.contracts.targets import MockTarget, PluginTarget, Target, cases_at_once
from agentv_ci.errors import MissingVariables, UsageError
from agentv_ci.execute.run_services import RunOptions
from agentv_ci.execute.trials import still_asked
from agentv_ci.results.resume import EarlierRun

ADDRESSES = ("base_url", "endpoint")
NO_PROMPT = (
    "it has neither {PROMPT} nor {PROMPT_FILE}; "
    "set stdin: prompt, or prompt: none if it needs no prompt"
)


def resolve_plan(
    plan: Plan,
    options: RunOptions,
    finished: EarlierRun,
    environ: Mapping[str, str],
    warn: Warn,
    *,
    only_judges: bool,
) -> dict[str, Target]:
    """Return the targets of a plan: resolved where they are asked, else as written.

    With `only_judges`, targets that only answer are replaced by a mock. Raises what
    `resolve_targets` raises.
    """
    targets = picked(
        plan.targets, sorted(set(chain.from_iterable(map(targets_of, heads_of(plan)))))
    )
    asked: AbstractSet[str] = still_asked(plan, finished.results)
    if only_judges:
        targets, asked = _with_mocks(plan, targets), targets.keys()
    if options.dry_run:
        return targets
    ready = {
        key: target
        for key, target in targets.items()
        if key in asked and (options.replay is None or isinstance(target, MockTarget))
    }
    return targets | resolve_targets(ready, environ, warn)


def _with_mocks(plan: Plan, targets: Mapping[str, Target]) -> dict[str, Target]:
    judges = set(chain.from_iterable(case.judges for case in heads_of(plan)))
    width = cases_at_once(None, [targets[key] for key in judges])
    mocks = {
        key: MockTarget(name=target.name, provider="mock", workers=width)
        for key, target in targets.items()
        if key not in judges
    }
    return {**targets, **mocks}


def resolve_targets(
    targets: Mapping[str, Target], environ: Mapping[str, str], warn: Warn = lambda _: None
) -> dict[str, Target]:
    """Return the targets with resolved values; `warn` gets a message for each ignored setting.

    Raises UsageError that names every missing variable of every target, or every field with an
    invalid value, but never the value of a variable.
    """
    missing: dict[str, Mapping[str, list[str]]] = {}
    problems: list[str] = []
    resolved: dict[str, Target] = {}
    for key, target in targets.items():
        found = Resolution(target, environ)
        if found.missing:
            missing[target.name] = found.missing
            continue
        for sentence in found.notes():
            warn(f"{target.name}: {sentence}")
        try:
            resolved[key] = type(target).model_validate(found.data, strict=False)
            reasons = tuple(_invalid(resolved[key]))
            if reasons and isinstance(target, PluginTarget):
                # The plugin wrote them, perhaps with values.
                clean = Redactor(secrets_of({key: target}, resolved, environ)).text
                reasons = tuple((field, clean(reason)) for field, reason in reasons)
        except ValidationError as error:
            reasons = tuple(_refused(error).items())
        for field, reason in reasons:
            source = ""
            if field in found.sources:
                source = f" (read from {found.sources[field]})"
            problems.append(f"target '{target.name}': invalid {field}{source}: {reason}")
    if missing:
        variables = set(chain.from_iterable(missing.values()))
        raise MissingVariables(
            missing,
            problems,
            empty={variable for variable in variables if _is_empty(variable, environ)},
        )
    if problems:
        raise UsageError("\n".join(problems))
    return resolved


def _is_empty(variable: str, environ: Mapping[str, str]) -> bool:
    """Whether a variable that has no value, or one of several that would do, is set."""
    return not environ.keys().isdisjoint(variable.split(" or "))


class Resolution:
    """Finds the values of one target."""

    def __init__(self, target: Target, environ: Mapping[str, str]) -> None:
        self._target = target
        self._environ = environ
        self.authored: dict[str, JsonValue] = target.model_dump(mode="json", exclude_none=True)
        self._ignored: dict[str, str] = {}
        self.data: dict[str, JsonValue] = {}
        self.missing: dict[str, list[str]] = {}
        """Variable → the fields that need it."""
        self.sources: dict[str, str] = {}
        """Field → the variable that it is read from."""
        self._substitute()
        self._read_variables()
        self._require()

    def _substitute(self) -> None:
        for field, value in self.authored.items():
            absent: list[str] = []
            found = self._value(value, absent)
            if not absent:
                self.data[field] = (
                    found.strip() if field in ADDRESSES and isinstance(found, str) else found
                )
                if (variable := variable_of(value)) is not None:
                    self.sources[field] = variable
            elif isinstance(value, (dict, list)) or not self._may_be_absent(field, absent[0]):
                for variable in absent:
                    self.missing.setdefault(variable, []).append(field)
            else:
                self._ignored[field] = absent[0]

    def _may_be_absent(self, field: str, variable: str) -> bool:
        """Whether a setting is ignored when its variable is not set, rather than an error."""
        if field == "model" and variable in self._target.variables.get(field, ()):
            # The provider reads this variable by itself, and has a default model.
            return True
        return (
            field not in self._target.essential
            and not type(self._target).model_fields[field].is_required()
        )

    def _value(self, value: JsonValue, absent: list[str]) -> JsonValue:
        if (variable := variable_of(value)) is not None:
            found = self._environ.get(variable, "").strip()
            if not found:
                absent.append(variable)
            return found
        if isinstance(value, dict):
            return {key: self._value(item, absent) for key, item in value.items()}
        if isinstance(value, list):
            return [self._value(item, absent) for item in value]
        return value

    def _read_variables(self) -> None:
        """Read fields that the target does not set from the provider's variables."""
        for field, names in self._target.variables.items():
            if field in self._awaited or not self._target.reads(field, self._known):
                continue
            source = next((name for name in names if self._environ.get(name, "").strip()), None)
            if source is not None:
                self.data[field] = self._environ[source].strip()
                self.sources[field] = source
            elif (value := self._target.fallback(field)) is not None:
                self.data[field] = value

    def _require(self) -> None:
        """Add fields that are needed but not set.

        One that already misses its variable, such as a header, may do.
        """
        needed = self._target.needs(self._known) - self.data.keys() - self._awaited
        for field in sorted(needed):
            self.missing.setdefault(" or ".join(self._target.variables[field]), []).append(field)

    @property
    def _known(self) -> dict[str, JsonValue]:
        """Fields that are set, whether their values are known or not."""
        authored = without(self.authored, self._ignored)
        return authored | self.data

    @property
    def _awaited(self) -> set[str]:
        return set(chain.from_iterable(self.missing.values()))

    def notes(self) -> Iterator[str]:
        """Yield warnings about where values come from."""
        for field, variable in self._ignored.items():
            if field not in self.data:
                yield (
                    f"{field} is ignored: "
                    f"{variable} is {'empty' if variable in self._environ else 'not set'}"
                )
        address = self.data.get("base_url")
        is_own = "base_url" in self.authored or "base_url" in self.sources
        is_borrowed = "api_key" in self.sources and "api_key" not in self.authored
        if is_borrowed and not is_own and address != self._target.fallbacks.get("base_url"):
            yield (
                f"{self.sources['api_key']} is sent to {address}; "
                "set the target's api_key to send another key"
            )


def _refused(error: ValidationError) -> Mapping[str, str]:
    """Return field → why its value is invalid; of a union, the message of its first member."""
    reasons: dict[str, str] = {}
    for refusal in refusals(error):
        field, *behind = refusal.place
        place = ".".join([str(field), *(str(step) for step in behind if isinstance(step, int))])
        reasons.setdefault(place, refusal.message)
    return reasons


def _invalid(target: Target) -> Iterator[tuple[str, str]]:
    """Yield the fields of a resolved target with invalid values, and why; never the value itself."""
    for field, value in target.model_dump(mode="json", exclude_none=True).items():
        if _holds_reference(value):
            yield field, "the value is an environment reference itself"
    if isinstance(target, HttpTarget):
        yield from refused_settings(target)
    if isinstance(target, PluginTarget):
        yield from _refused_by_plugin(target)
    if isinstance(target, CliTarget):
        for written in unknown_placeholders(target.command_template):
            yield "command_template", f"unknown placeholder {written}"
        if not target.gets_prompt:
            yield "command_template", NO_PROMPT
        for name in quoted_placeholders(target.command_template):
            yield (
                "command_template",
                f"{{{name}}} is quoted already; remove the quotes or the backslash around it",
            )


def _refused_by_plugin(target: PluginTarget) -> Iterator[tuple[str, str]]:
    """Yield why a plugin cannot be used, or what it does not accept; never a value."""
    found = installed_plugins.find_plugin("provider", target.provider, target.version)
    if isinstance(found, installed_plugins.UnusablePlugin):
        yield "provider", found.message
        return
    for place, message, kind in installed_plugins.refused_settings(found, target.settings):
        if kind != "literal":  # the value of its variable
            yield ".".join(map(str, ("settings", *place))), message


def _holds_reference(value: JsonValue) -> bool:
    match value:
        case str():
            return variable_of(value) is not None
        case list():
            return any(map(_holds_reference, value))
        case _:
            # A map's values are passed on as they are.
            return False
