"""Packages with plugins, installed for one test."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentv_ci.base import installed_plugins
from tests.support.files import write

POLITENESS = """
from pydantic import BaseModel, Field, SecretStr
from agentv_ci.plugins import Score

class Person(BaseModel):
    name: str

class Settings(BaseModel):
    by: Person | None = None
    words: list[str]
    at_least: int = Field(1, ge=1)
    token: SecretStr | None = None

class Politeness:
    settings = Settings
    def score(self, answer, settings):
        return Score(1.0 if settings.words[0] in answer.candidate_answer else 0.0, hits=[answer.case_id])
"""
BOT = """
from pydantic import BaseModel, SecretStr
from agentv_ci.plugins import Answer, ProviderError, Usage

class Settings(BaseModel):
    greeting: str
    width: int = 1
    token: SecretStr | None = None

class Bot:
    settings = Settings
    async def ask(self, question, settings):
        return Answer(text=f"{settings.greeting * settings.width} {question.prompt}")
"""


@dataclass
class Packages:
    """A folder in which Python finds packages."""

    folder: Path

    def install(
        self, name: str, modules: Mapping[str, str], entry_points: Mapping[str, Mapping[str, str]], version: str = "1.0"
    ) -> None:
        """Install a package: modules by name, and entry points by the last part of their group."""
        groups = {
            group: "".join(f"{key} = {value}\n" for key, value in points.items())
            for group, points in entry_points.items()
        }
        info = f"{name.replace('-', '_')}-{version}.dist-info"
        write(
            self.folder,
            {
                **{f"{module}.py": text for module, text in modules.items()},
                f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
                f"{info}/entry_points.txt": "".join(
                    f"[agentv_ci.{group}]\n{points}\n" for group, points in groups.items()
                ),
            },
        )
        self.refresh()

    def uninstall(self) -> None:
        """Uninstall all packages; their modules stay."""
        for path in self.folder.glob("*.dist-info"):
            shutil.rmtree(path)
        self.refresh()

    def refresh(self) -> None:
        """Forget what was found before."""
        importlib.invalidate_caches()
        installed_plugins._entry_points.cache_clear()  # noqa: SLF001  # nothing else installs packages while it runs
        installed_plugins._loaded.cache_clear()  # noqa: SLF001

    def evaluator(self, code: str, name: str = "acme/score", package: str = "acme") -> None:
        """Install one evaluator: a module with the class `Plugin`."""
        module = name.replace("/", "_")
        self.install(package, {module: code}, {"evaluators": {name: f"{module}:Plugin"}})

    def provider(self, code: str, name: str = "acme/ask", package: str = "acme") -> None:
        """Install one provider: a module with the class `Plugin`."""
        module = name.replace("/", "_")
        self.install(package, {module: code}, {"providers": {name: f"{module}:Plugin"}})

    def reporter(self, code: str, name: str = "acme/csv", package: str = "acme") -> None:
        """Install one reporter: a module with the class `Plugin`."""
        module = name.replace("/", "_")
        self.install(package, {module: code}, {"reporters": {name: f"{module}:Plugin"}})

    def acme(self) -> None:
        """Install the evaluator `acme/politeness` and the provider `acme/bot`."""
        self.install(
            "acme-evals",
            {"acme_politeness": POLITENESS, "acme_bot": BOT},
            {
                "evaluators": {"acme/politeness": "acme_politeness:Politeness"},
                "providers": {"acme/bot": "acme_bot:Bot"},
            },
        )


@pytest.fixture
def packages(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Packages]:
    """Packages that are installed for one test; their modules are forgotten afterwards."""
    folder = tmp_path_factory.mktemp("packages")
    monkeypatch.syspath_prepend(str(folder))
    found = Packages(folder)
    found.refresh()
    before = {*sys.modules}
    yield found
    for name in {*sys.modules} - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    monkeypatch.undo()
    found.refresh()
