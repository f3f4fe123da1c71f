"""Targets with the environment's values in place of references, where those can be used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from urllib.parse import urlsplit

from pydantic import ValidationError

from agentv_ci.contracts.api_targets import AzureOpenAITarget, HttpTarget
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.cli_template import CLI_PLACEHOLDERS, placeholders, quoted_placeholders
from agentv_ci.contracts.environment_references import variable_of
from agentv_ci.contracts.exchange import Warn
from agentv_ci.contracts.plan import Plan, judges_of, targets_of
from agentv_ci.contracts.targets import CliTarget, MockTarget, Target, cases_at_once
from agentv_ci.errors import MissingVariables, UsageError
from agentv_ci.execute.run_services import RunOptions
from agentv_ci.execute.trials import still_asked
from agentv_ci.model_errors import refusals
from agentv_ci.results.resume import EarlierRun

ADDRESSES = ("base_url", "endpoint")
FRAMING_HEADERS = frozenset({"content-length", "transfer-encoding", "connection", "upgrade"})
"""Headers that say where a request ends, and in which protocol; the client's own."""
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
NO_ADDRESS = "it does not begin with http:// or https:// and a host"


def resolve_plan(
    plan: Plan,
    options: RunOptions,
    finished: EarlierRun,
    environ: Mapping[str, str],
    warn: Warn,
    *,
    only_judges: bool,
) -> dict[str, Target]:
    """Return the targets of a plan that runs: ready for use where they are asked, else as they are written.

    Those that only answer have a stand-in where `only_judges` are asked. Raises what `resolve_targets` raises.
    """
    targets = {key: plan.targets[key] for key in sorted({key for case in plan.cases for key in targets_of(case)})}
    asked: AbstractSet[str] = still_asked(plan, finished.results)
    if only_judges:
        targets, asked = _with_stand_ins(plan, targets), targets.keys()
    if options.dry_run:
        return targets
    ready = {
        key: target
        for key, target in targets.items()
        if key in asked and (options.replay is None or isinstance(target, MockTarget))
    }
    return targets | resolve_targets(ready, environ, warn)


def _with_stand_ins(plan: Plan, targets: Mapping[str, Target]) -> dict[str, Target]:
    judges = {key for case in plan.cases for key in judges_of(case)}
    width = cases_at_once(None, [targets[key] for key in judges])
    return {
        key: target if key in judges else MockTarget(name=target.name, provider="mock", workers=width)
        for key, target in targets.items()
    }


def resolve_targets(
    targets: Mapping[str, Target], environ: Mapping[str, str], warn: Warn = lambda _: None
) -> dict[str, Target]:
    """Return the targets ready for use; `warn` gets a sentence for each setting that is left out.

    Raises UsageError that names every missing variable of every target, or the fields whose value is unfit; no
    value of a variable is ever printed.
    """
    missing: list[str] = []
    problems: list[str] = []
    resolved: dict[str, Target] = {}
    for key, target in targets.items():
        found = _Resolution(target, environ)
        if found.missing:
            names = ", ".join(f"{name} ({', '.join(fields)})" for name, fields in found.missing.items())
            missing.append(f"target '{target.name}' needs environment variables that are not set: {names}")
            continue
        for sentence in found.notes():
            warn(f"{target.name}: {sentence}")
        try:
            resolved[key] = type(target).model_validate(found.data, strict=False)
            reasons = tuple(_unfit(resolved[key]))
        except ValidationError as error:
            reasons = tuple(_refused(error).items())
        for field, reason in reasons:
            source = f" (read from {found.sources[field]})" if field in found.sources else ""
            problems.append(f"target '{target.name}': the value of {field}{source} is unfit: {reason}")
    if missing:
        raise MissingVariables("\n".join([*missing, *problems]), hint="set them in the environment or in a .env file")
    if problems:
        raise UsageError("\n".join(problems))
    return resolved


class _Resolution:
    """One target while its values are found."""

    def __init__(self, target: Target, environ: Mapping[str, str]) -> None:
        self._target = target
        self._environ = environ
        self._authored: dict[str, JsonValue] = target.model_dump(mode="json", exclude_none=True)
        self._left_out: dict[str, str] = {}
        self.data: dict[str, JsonValue] = {}
        self.missing: dict[str, list[str]] = {}
        """Variable → the fields that need it."""
        self.sources: dict[str, str] = {}
        """Field → the variable that its value comes from."""
        self._substitute()
        self._read_variables()
        self._require()

    def _substitute(self) -> None:
        for field, value in self._authored.items():
            absent: list[str] = []
            found = self._value(value, absent)
            if not absent:
                self.data[field] = found.strip() if field in ADDRESSES and isinstance(found, str) else found
                if (variable := variable_of(value)) is not None:
                    self.sources[field] = variable
            elif isinstance(value, (dict, list)) or not self._may_be_absent(field, absent[0]):
                for variable in absent:
                    self.missing.setdefault(variable, []).append(field)
            else:
                self._left_out[field] = absent[0]

    def _may_be_absent(self, field: str, variable: str) -> bool:
        """Whether a setting whose variable is not set is left out; who answers is never left to chance."""
        if field == "model" and variable in self._target.variables.get(field, ()):
            # The variable that names the provider's model anyway, which has a default.
            return True
        return field not in self._target.essential and not type(self._target).model_fields[field].is_required()

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
        """Read what the target leaves open from the variables of its provider."""
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
        """What is missing already may be all that is needed, such as a header with a key."""
        needed = self._target.needs(self._known) - self.data.keys() - self._awaited
        for field in sorted(needed):
            self.missing.setdefault(" or ".join(self._target.variables[field]), []).append(field)

    @property
    def _known(self) -> dict[str, JsonValue]:
        """What is said, be its value known or not."""
        said = {field: value for field, value in self._authored.items() if field not in self._left_out}
        return said | self.data

    @property
    def _awaited(self) -> set[str]:
        return {field for fields in self.missing.values() for field in fields}

    def notes(self) -> Iterator[str]:
        """Yield what people should know about where values come from."""
        for field, variable in self._left_out.items():
            if field not in self.data:
                yield f"{field} is left out: {variable} is not set"
        address = self.data.get("base_url")
        is_own = "base_url" in self._authored or "base_url" in self.sources
        is_borrowed = "api_key" in self.sources and "api_key" not in self._authored
        if is_borrowed and not is_own and address != self._target.fallbacks.get("base_url"):
            yield f"{self.sources['api_key']} is sent to {address}; give the target an api_key of its own"


def _refused(error: ValidationError) -> Mapping[str, str]:
    """Return field → why its value is refused: of a value that may be several things, what the first of them says."""
    reasons: dict[str, str] = {}
    for each in refusals(error):
        field, *behind = each.place
        place = ".".join([str(field), *(str(step) for step in behind if isinstance(step, int))])
        reasons.setdefault(place, each.message)
    return reasons


def _unfit(target: Target) -> Iterator[tuple[str, str]]:
    """Yield the fields of a resolved target whose values cannot be used, and why; that never holds the value."""
    for field, value in target.model_dump(mode="json", exclude_none=True).items():
        if _holds_reference(value):
            yield field, "it is a reference itself"
    if isinstance(target, HttpTarget):
        yield from _of_address(target)
        yield from _of_headers(target)
    if isinstance(target, CliTarget):
        for name in placeholders(target.command_template):
            if name not in CLI_PLACEHOLDERS:
                yield "command_template", f"unknown placeholder {{{name}}}"
        for name in quoted_placeholders(target.command_template):
            yield "command_template", f"{{{name}}} stands inside quotes or behind a backslash; it is quoted already"


def _holds_reference(value: JsonValue) -> bool:
    match value:
        case str():
            return variable_of(value) is not None
        case list():
            return any(map(_holds_reference, value))
        case _:
            # Maps are the author's own: what looks like a reference there is a value.
            return False


def _of_address(target: HttpTarget) -> Iterator[tuple[str, str]]:
    endpoint = target.endpoint if isinstance(target, AzureOpenAITarget) else None
    field = "base_url" if endpoint is None else "endpoint"
    if endpoint is not None and target.base_url is not None:
        yield "base_url", "it is another word for endpoint, which is given too"
    try:
        address = target.address()
        split = urlsplit(address or "")
        _ = split.port  # reading it checks it
    except ValueError:
        yield field, NO_ADDRESS
        return
    if address is None:
        return
    host = split.hostname or ""
    if split.scheme not in ("http", "https") or not host.strip(".") or host[0] == "." or re.search(r"\s", address):
        yield field, NO_ADDRESS
    elif split.query or split.fragment:
        yield field, "it has a query; further keys of the request belong into extra_body or headers"


def _of_headers(target: HttpTarget) -> Iterator[tuple[str, str]]:
    headers = target.headers or {}
    for name in headers:
        if name.lower() in FRAMING_HEADERS or not HEADER_NAME.fullmatch(name):
            yield f"headers.{name}", "it is a header that no target can set"
    values = {"api_key": target.api_key, **{f"headers.{name}": value for name, value in headers.items()}}
    for field, value in values.items():
        if value is not None and not (value.isascii() and value.isprintable()):
            yield field, "it has characters that no header can carry"
