"""Finding and loading the plugins of installed packages."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.base.installed_plugins import Plugin, UnusablePlugin, find_plugin, plugin_names, refused_settings
from tests.support.plugins import POLITENESS, Packages, packages

__all__ = ["packages"]

MODEL = "from pydantic import BaseModel\nclass S(BaseModel):\n    "


def test_names_are_listed_and_loaded_with_their_version(packages: Packages) -> None:
    packages.acme()
    assert (plugin_names("evaluator"), plugin_names("provider"), plugin_names("reporter")) == (
        ["acme/politeness"],
        ["acme/bot"],
        [],
    )
    found = find_plugin("evaluator", "acme/politeness")
    assert isinstance(found, Plugin)
    assert (found.package, found.version, found.settings.__name__) == ("acme-evals", "1.0", "Settings")
    assert find_plugin("evaluator", "acme/politeness") is found


def test_names_without_a_prefix_are_no_plugins(packages: Packages) -> None:
    packages.install(
        "odd", {"odd": POLITENESS}, {"evaluators": {"politeness": "odd:Politeness", "A/b": "odd:Politeness"}}
    )
    assert plugin_names("evaluator") == []


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import not_there", "cannot be loaded: ModuleNotFoundError: No module named 'not_there'"),
        ("raise SystemExit(2)", "cannot be loaded: SystemExit: 2"),
        ("raise ValueError('two\\nlines')", "cannot be loaded: ValueError: two lines"),
        ("x = 1", "cannot be loaded: AttributeError: module 'acme_score' has no attribute 'Plugin'"),
        ("class Plugin:\n    pass", "has no function 'score'"),
        ("class Plugin:\n    def score(self): ...", "has no 'settings' that is a pydantic model"),
        (
            f"{MODEL}weight: int\nclass Plugin:\n    settings = S\n    def score(self): ...",
            "has settings with the names of common fields: weight",
        ),
        (
            "class Plugin:\n    def __init__(self, needed): ...",
            "cannot be loaded: TypeError: Plugin.__init__() missing 1 required positional argument: 'needed'",
        ),
    ],
)
def test_plugin_that_does_not_load_says_why_in_one_line(code: str, message: str, packages: Packages) -> None:
    packages.evaluator(code)
    assert find_plugin("evaluator", "acme/score") == UnusablePlugin(f"evaluator 'acme/score' of acme 1.0 {message}")


def test_literal_secrets_are_found_at_any_depth(packages: Packages) -> None:
    packages.provider(
        "from pydantic import BaseModel, Field, SecretStr\n"
        "class Key(BaseModel):\n    key: SecretStr | None = Field(None, alias='apiKey')\n    name: str = ''\n"
        "class S(BaseModel):\n    keys: list[Key] | None = None\n    by_name: dict[str, SecretStr] = {}\n"
        "class Plugin:\n    settings = S\n    async def ask(self, question, settings): ...\n"
    )
    plugin = find_plugin("provider", "acme/ask")
    assert isinstance(plugin, Plugin)
    settings: dict[str, Any] = {
        "keys": [{"apiKey": "${{ KEY }}", "name": "plain"}, {"apiKey": "sk-1"}],
        "by_name": {"one": "${{ ONE }}", "two": "sk-2"},
    }
    found = [(each.place, each.kind) for each in refused_settings(plugin, settings)]
    assert found == [(("keys", 1, "apiKey"), "literal"), (("by_name", "two"), "literal")]


@pytest.mark.parametrize(
    ("config", "accepted"),
    [
        ("", {"max-words"}),
        ("model_config = {'populate_by_name': True}", {"max-words", "limit"}),
        ("model_config = {'extra': 'allow'}", {"max-words", "limit", "other"}),
    ],
)
def test_settings_are_known_by_their_aliases(config: str, accepted: set[str], packages: Packages) -> None:
    packages.evaluator(
        "from pydantic import BaseModel, Field\n"
        f"class S(BaseModel):\n    limit: int = Field(1, alias='max-words')\n    {config}\n"
        "class Plugin:\n    settings = S\n    def score(self, answer, settings): ...\n"
    )
    plugin = find_plugin("evaluator", "acme/score")
    assert isinstance(plugin, Plugin)
    settings = {"max-words": 1, "limit": 1, "other": 1}
    refused = {each.place[0] for each in refused_settings(plugin, dict(settings))}
    assert settings.keys() - refused == accepted


def test_unknown_name_is_answered_with_the_installed_ones(packages: Packages) -> None:
    packages.acme()
    found = find_plugin("evaluator", "acme/politness")
    assert isinstance(found, UnusablePlugin)
    assert found.message == (
        "evaluator 'acme/politness' is not installed (did you mean 'acme/politeness'?); installed: acme/politeness"
    )


def test_name_that_two_packages_provide_names_both(packages: Packages) -> None:
    packages.evaluator("x = 1", package="one")
    packages.evaluator("x = 1", package="two")
    assert find_plugin("evaluator", "acme/score") == UnusablePlugin(
        "evaluator 'acme/score' is provided by several packages: one 1.0, two 1.0", "uninstall all but one"
    )
