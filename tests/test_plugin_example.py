"""The package of docs/examples/plugin, built, installed and used as its author would."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agentv_ci.app.documents.documents import read_yaml
from tests.support import REPOSITORY, run_program
from tests.support.projects import Project

EXAMPLE = REPOSITORY / "docs" / "examples" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, as pip would install it there."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(EXAMPLE, folder / "source")
    build = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    done = run_program(sys.executable, "-c", build, str(folder), cwd=folder / "source")
    assert done.code == 0, done
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "packages")
    return folder / "packages"


@pytest.fixture
def project(installed: Path, repository: Path) -> Project:
    shutil.copytree(EXAMPLE / "evals", repository / "evals")
    return Project(repository, {"PYTHONPATH": str(installed), "ACME_TOKEN": "acme-secret-token"})


@pytest.mark.slow
def test_example_runs(project: Project) -> None:
    assert project.process("validate", ".").code == 0
    assert project.process("compile", "evals", "--out", "plan.json").code == 0
    done = project.process("eval", "plan.json", "--out", "r.jsonl", "--report", "acme/csv=rows.csv")
    assert (done.code, "acme/csv: rows.csv" in done.out) == (0, True), done
    assert project.text("rows.csv").splitlines() == ["case,trial,verdict,score", "greets,1,pass,1.0", "run,,pass,"]
    again = project.process("report", "r.jsonl", "--report", "acme/csv=again.csv")
    assert (again.code, project.text("again.csv")) == (0, project.text("rows.csv"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "document", "key", "mistakes"),
    [
        ("eval-v2", "politeness.test.yaml", "type", [{"at_least": 0}, {"at_laest": 1}, {"settings": {"words": []}}]),
        ("targets-v2", "targets.yaml", "provider", [{"greeting": 5}, {"greetings": "Hi"}, {"settings": {"tokn": "x"}}]),
    ],
)
def test_schema_with_plugins_checks_their_settings(
    name: str, document: str, key: str, mistakes: list[dict[str, Any]], project: Project
) -> None:
    done = project.process("schema", name, "--with-plugins")
    schema = json.loads(done.out)
    Draft202012Validator.check_schema(schema)
    valid = Draft202012Validator(schema)
    data: Any = read_yaml(project.text(f"evals/{document}"))
    part = data["targets"][0] if "targets" in data else data["evalcases"][0]["evaluators"][1]
    assert (done.code, done.err, valid.is_valid(data)) == (0, "", True)
    for mistake in mistakes:
        before = dict(part)
        part |= mistake
        assert not valid.is_valid(data), mistake
        part.clear()
        part |= before
    assert f'"{part[key]}"' in done.out
