"""Finds and loads the plugins of installed packages.

Nothing is searched before a document or an option names one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from msgspec import Struct
from pydantic import BaseModel, SecretStr, ValidationError

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


def plugin_names(kind: PluginKind) -> list[str]:
    """Return the names of all installed plugins of a kind, sorted."""
    return sorted(_entry_points(kind))


def find_plugin(kind: PluginKind, name: str, version: str | None = None) -> Plugin | UnusablePlugin:
    """Return a plugin, loaded once, or why it cannot be used.

    With `version`, only that version of its package.
    """
    found = _loaded(kind, name)
    if isinstance(found, Plugin) and version not in (None, found.version):
        return UnusablePlugin(
            f"{kind} '{name}' is needed in version {version}, and {found.package} {found.version} is installed",
            "install that version, or compile the plan again",
        )
    return found


def installed_version(kind: PluginKind, name: str) -> str | None:
    """Return the version of a plugin's package; None if it cannot be used."""
    found = find_plugin(kind, name)
    return found.version if isinstance(found, Plugin) else None


@cache
def _entry_points(kind: PluginKind) -> Mapping[str, list[EntryPoint]]:
    from importlib.metadata import entry_points  # slow to import

    found: dict[str, list[EntryPoint]] = {}
    for each in entry_points(group=f"agentv_ci.{kind}s"):
        if is_plugin(each.name):
            found.setdefault(each.name, []).append(each)
    return found


@cache
def _loaded(kind: PluginKind, name: str) -> Plugin | UnusablePlugin:
    known = _entry_points(kind)
    if name not in known:
        others = (
            f"installed: {listed(sorted(known))}"
            if known
            else f"no package with {kind}s is installed"
        )
        return UnusablePlugin(
            f"{kind} '{name}' is not installed{did_you_mean(name, known)}; {others}", HINT
        )
    packages = [_package(each) for each in known[name]]
    if len(packages) > 1:
        named = listed(sorted(" ".join(each) for each in packages))
        return UnusablePlugin(
            f"{kind} '{name}' is provided by several packages: {named}", "uninstall all but one"
        )
    plugin = Plugin(kind, name, *packages[0], None)
    try:
        loaded = known[name][0].load()
        plugin = Plugin(kind, name, *packages[0], loaded() if isinstance(loaded, type) else loaded)
        problem = _misfit(plugin)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # the import of a package may raise anything
        problem = f"cannot be loaded: {error_line(error)}"
    return plugin if problem is None else UnusablePlugin(f"{plugin.label} {problem}")


def _package(entry_point: EntryPoint) -> tuple[str, str]:
    found = entry_point.dist
    return (found.name, found.version) if found is not None else ("an unknown package", "0")


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
    return f"has settings with the names of common fields: {listed(taken)}" if taken else None


def error_line(error: BaseException) -> str:
    """Return an exception on one line, even if its `__str__` fails."""
    name = type(error).__name__
    try:
        text = well_formed_text(str(error))
    except Exception:  # noqa: BLE001  # `__str__` may raise anything
        return name
    return shortened(" ".join(f"{name}: {text}".split()), LONGEST_ERROR) if text.strip() else name


def refused_settings(plugin: Plugin, settings: Mapping[str, JsonValue]) -> Iterator[Refusal]:
    """Yield what the plugin does not accept, without the values.

    Environment references are accepted everywhere.

    The kinds of refusals that others do not have: `unknown` for a key, `literal` for a secret,
    `broken` for a model that fails.
    """
    known = known_settings(plugin)
    unknown = (
        []
        if plugin.settings.model_config.get("extra") == "allow"
        else [key for key in settings if key not in known]
    )
    for key in unknown:
        yield Refusal((key,), f"unknown field '{key}'{did_you_mean(key, known)}", "unknown")
    for place in dict.fromkeys(_literal_secrets(plugin.settings, dict(settings), ())):
        yield Refusal(place, f"'{place[-1]}' is a literal secret", "literal")
    try:
        plugin.settings.model_validate(
            {key: value for key, value in settings.items() if key not in unknown}
        )
    except ValidationError as error:
        references = [*_references(dict(settings), ())]
        for each in refusals(error):
            length = len(each.place)
            if not any(
                each.place == way[:length] or each.place[: len(way)] == way for way in references
            ):
                yield each
    except Exception as error:  # noqa: BLE001  # validators of a package may raise anything
        yield Refusal(
            (), f"{plugin.label} cannot check its settings: {error_line(error)}", "broken"
        )


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
    for each in get_args(annotation):
        yield from _literal_secrets(each, value, way)
        for step, item in _children(value):
            yield from _literal_secrets(each, item, (*way, step))


def _references(value: JsonValue, way: Pointer) -> Iterator[Pointer]:
    """Yield the places of environment references."""
    if variable_of(value) is not None:
        yield way
    for step, each in _children(value):
        yield from _references(each, (*way, step))


def _children(value: JsonValue) -> Iterable[tuple[str | int, JsonValue]]:
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()
