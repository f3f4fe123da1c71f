"""The wheel and the source distribution are complete, and the wheel runs in a fresh environment."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from agentv_ci import __version__
from agentv_ci.jsonschema.schemas import TITLES
from tests.support import REPOSITORY, clean_environment

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build both, the wheel from the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(REPOSITORY)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return folder


def test_distributions_contain_schemas_and_templates(distributions: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    (source,) = distributions.glob("*.tar.gz")
    inside = set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(source) as tar:
        shipped = {name.partition("/")[2] for name in tar.getnames()}
    assert {f"agentv_ci/published/{name}.schema.json" for name in TITLES} | {"agentv_ci/py.typed"} <= inside
    assert {f"schemas/{name}.schema.json" for name in TITLES} <= shipped
    files = (
        path for path in (REPOSITORY / "agentv_ci").rglob("*") if path.is_file() and path.suffix not in (".pyc", ".py")
    )
    assert {path.relative_to(REPOSITORY).as_posix() for path in files} <= inside & shipped
    assert not [name for name in inside if name.startswith(("tests/", "docs/"))]


def test_wheel_runs_in_a_fresh_environment(distributions: Path, tmp_path: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    venv.create(tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"

    def run(*arguments: str) -> str:
        command = [str(python), *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=clean_environment(), stdout=subprocess.PIPE, text=True, timeout=300, check=True
        ).stdout

    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--no-compile", str(wheel)], env=clean_environment(), timeout=300, check=True)
    assert run("-m", "agentv_ci", "--version") == f"agentv-ci {__version__}\n"
    for name in TITLES:
        published = (REPOSITORY / "schemas" / f"{name}.schema.json").read_text("utf-8")
        assert run("-m", "agentv_ci", "schema", name) == published
    assert "started/evals/example.test.yaml" in run("-m", "agentv_ci", "init", "started")
    assert "gate: passed" in run("-m", "agentv_ci", "eval", "started/evals", "--out", "started.jsonl")
