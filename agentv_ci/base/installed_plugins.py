"""Finds and loads the plugins of installed packages.

Nothing is searched before a document or an option names one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from msgspec import Struct
from pydantic import BaseModel, SecretStr, ValidationError

from agentv_ci.base.mappings import without
from agentv_ci.base.model_errors import Refusal, refusals
from agentv_ci.base.text import did_you_mean, listed, shortened, well_formed_text
from agentv_ci.contracts.base import JsonValue, is_plugin
from agentv_ci.contracts.environment_references import variable_of
from agentv_ci.contracts.evaluators import PluginEvaluator
from agentv_ci.contracts.source import Pointer
from agentv_ci.contracts.targets import PluginTarget

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PluginKind = Literal["evaluator", "provider", "reporter"]
FUNCTIONS: Mapping[PluginKind, str] = {"evaluator": "score", "provider": "ask", "reporter": "write"}
"""Kind → the function that a plugin must have."""
COMMON: Mapping[PluginKind, frozenset[str]] = {
    "evaluator": frozenset(PluginEvaluator.model_fields),
    "provider": frozenset(PluginTarget.model_fields),
}
"""Kind → fields that settings may not be called like."""
LONGEST_ERROR = 500
HINT = "install the package that provides it beside agentv-ci, with python -m pip install PACKAGE"


class Plugin(Struct, frozen=True):
    """A loaded plugin."""

    kind: PluginKind
    name: str
    package: str
    version: str
    """Of the package."""
    implementation: Any
    """See `agentv_ci.plugins`."""

    @property
    def settings(self) -> type[BaseModel]:
        """The model of its settings; reporters have none."""
        model: type[BaseModel] = self.implementation.settings
        return model

    @property
    def label(self) -> str:
        """Its name with its package, for messages."""
        return f"{self.kind} '{self.name}' of {self.package} {self.version}"


class UnusablePlugin(Struct, frozen=True):
    """Why a plugin cannot be used."""

    message: str
    hint: str | None = None


_OFFERED: dict[tuple[PluginKind, str], Plugin] = {}
"""Plugins of this program, for as long as it offers them."""


@contextmanager
def offered(plugin: Plugin) -> Iterator[None]:
    """Offer a plugin that no package provides, under a name that is not offered yet."""
    key = plugin.kind, plugin.name
    assert key not in _OFFERED, "it would replace another one"
    _OFFERED[key] = plugin
    try:
        yield
    finally:
        del _OFFERED[key]


def is_offered(kind: PluginKind, name: str) -> bool:
    """Whether this program offers a plugin of this name now."""
    return (kind, name) in _OFFERED


def plugin_names(kind: PluginKind) -> list[str]:
    """Return the names of all installed plugins of a kind, sorted."""
    return sorted(_entry_points(kind))


def find_plugin(kind: PluginKind, name: str, version: str | None = None) -> Plugin | UnusablePlugin:
    """Return a plugin, loaded once, or why it cannot be used.

    With `version`, only that version of its package.
    """
    plugin = _OFFERED.get((kind, name)) or _loaded(kind, name)
    if isinstance(plugin, Plugin) and version not in (None, plugin.version):
        needed = f"{kind} '{name}' is needed in version {version}"
        return UnusablePlugin(
            f"{needed}, and {plugin.package} {plugin.version} is installed",
            "install that version, or compile the plan again",
        )
    return plugin


def installed_version(kind: PluginKind, name: str) -> str | None:
    """Return the version of a plugin's package; None if it cannot be used."""
    plugin = find_plugin(kind, name)
    if isinstance(plugin, UnusablePlugin):
        return None
    return plugin.version


@cache
def _entry_points(kind: PluginKind) -> Mapping[str, list[EntryPoint]]:
    from importlib.metadata import entry_points  # slow to import

    by_name: dict[str, list[EntryPoint]] = {}
    for entry_point in entry_points(group=f"agentv_ci.{kind}s"):
        if is_plugin(entry_point.name):
            by_name.setdefault(entry_point.name, []).append(entry_point)
    return by_name


@cache
def _loaded(kind: PluginKind, name: str) -> Plugin | UnusablePlugin:
    known = _entry_points(kind)
    if name not in known:
        return _missing(kind, name, known)
    packages = list(map(_package, known[name]))
    if len(packages) > 1:
        named = listed(sorted(map(" ".join, packages)))
        return UnusablePlugin(
            f"{kind} '{name}' is provided by several packages: {named}", "uninstall all but one"
        )
    plugin = Plugin(kind, name, *packages[0], None)
    try:
        loaded = known[name][0].load()
        plugin = Plugin(kind, name, *packages[0], loaded() if isinstance(loaded, type) else loaded)
        problem = _misfit(plugin)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # an import may raise anything
        problem = f"cannot be loaded: {error_line(error)}"
    if problem is not None:
        return UnusablePlugin(f"{plugin.label} {problem}")
    return plugin


def _missing(kind: PluginKind, name: str, known: Collection[str]) -> UnusablePlugin:
    others = f"no package with {kind}s is installed"
    if known:
        others = f"installed: {listed(sorted(known))}"
    missing = f"{kind} '{name}' is not installed{did_you_mean(name, known)}"
    return UnusablePlugin(f"{missing}; {others}", HINT)


def _package(entry_point: EntryPoint) -> tuple[str, str]:
    package = entry_point.dist
    if package is None:
        return "an unknown package", "0"
    return package.name, package.version


def _misfit(plugin: Plugin) -> str | None:
    """Return why an object is not a plugin of its kind; None if it is."""
    if not callable(getattr(plugin.implementation, FUNCTIONS[plugin.kind], None)):
        return f"has no function '{FUNCTIONS[plugin.kind]}'"
    if plugin.kind == "reporter":
        return None
    model = getattr(plugin.implementation, "settings", None)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return "has no 'settings' that is a pydantic model"
    taken = sorted(COMMON[plugin.kind] & {*known_settings(plugin)})
    if not taken:
        return None
    return f"has settings with the names of common fields: {listed(taken)}"


def error_line(error: BaseException) -> str:
    """Return an exception on one line, even if its `__str__` fails."""
    name = type(error).__name__
    try:
        text = well_formed_text(str(error))
    except Exception:  # noqa: BLE001  # `__str__` may raise anything
        return name
    if not text.strip():
        return name
    return shortened(" ".join(f"{name}: {text}".split()), LONGEST_ERROR)


def refused_settings(plugin: Plugin, settings: Mapping[str, JsonValue]) -> Iterator[Refusal]:
    """Yield what the plugin does not accept, without the values.

    Environment references are accepted everywhere.

    The kinds of refusals that others do not have: `unknown` for a key, `literal` for a secret,
    `broken` for a model that fails.
    """
    known = known_settings(plugin)
    accepts_all = plugin.settings.model_config.get("extra") == "allow"
    unknown = [] if accepts_all else [key for key in settings if key not in known]
    for key in unknown:
        yield Refusal((key,), f"unknown field '{key}'{did_you_mean(key, known)}", "unknown")
    for place in dict.fromkeys(_literal_secrets(plugin.settings, dict(settings), ())):
        yield Refusal(place, f"'{place[-1]}' is a literal secret", "literal")
    try:
        plugin.settings.model_validate(without(settings, unknown))
    except ValidationError as error:
        references = [*_references(dict(settings), ())]
        for refusal in refusals(error):
            if not any(_is_on_the_way(refusal.place, way) for way in references):
                yield refusal
    except Exception as error:  # noqa: BLE001  # validators of a package may raise anything
        problem = f"{plugin.label} cannot check its settings: {error_line(error)}"
        yield Refusal((), problem, "broken")


def _is_on_the_way(place: Pointer, other: Pointer) -> bool:
    """Whether one of two places is the other, or above it."""
    return place == other[: len(place)] or place[: len(other)] == other


def known_settings(plugin: Plugin) -> list[str]:
    """Return the keys that the model takes."""
    by_name = plugin.settings.model_config.get(
        "populate_by_name"
    ) or plugin.settings.model_config.get("validate_by_name")
    known: list[str] = []
    for name, info in plugin.settings.model_fields.items():
        alias = info.validation_alias if isinstance(info.validation_alias, str) else info.alias
        known += [alias, name] if alias and by_name else [alias or name]
    return known


def _literal_secrets(annotation: object, value: JsonValue, way: Pointer) -> Iterator[Pointer]:
    """Yield the places of secrets that are not environment references; some more than once."""
    if annotation is SecretStr and isinstance(value, str) and variable_of(value) is None:
        yield way
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, info in annotation.model_fields.items():
            for step, item in _children(value):
                if step in (name, info.alias):
                    yield from _literal_secrets(info.annotation, item, (*way, step))
    for argument in get_args(annotation):
        yield from _literal_secrets(argument, value, way)
        for step, item in _children(value):
            yield from _literal_secrets(argument, item, (*way, step))


def _references(value: JsonValue, way: Pointer) -> Iterator[Pointer]:
    """Yield the places of environment references."""
    if variable_of(value) is not None:
        yield way
    for step, item in _children(value):
        yield from _references(item, (*way, step))


def _children(value: JsonValue) -> Iterable[tuple[str | int, JsonValue]]:
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, list):
        return enumerate(value)
    return ()
