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
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    with tarfile.open(source) as tar:
        shipped = {name.split("/", 1)[1] for name in tar.getnames() if "/" in name}
    for name in TITLES:
        assert f"agentv_ci/published/{name}.schema.json" in inside
        assert f"schemas/{name}.schema.json" in shipped
    assert "agentv_ci/py.typed" in inside
    for path in (REPOSITORY / "agentv_ci" / "scaffold" / "files").rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            assert path.relative_to(REPOSITORY).as_posix() in inside & shipped
    templates = REPOSITORY / "agentv_ci" / "report" / "renderers" / "html" / "templates"
    assert {path.relative_to(REPOSITORY).as_posix() for path in templates.iterdir()} <= inside
    assert not [name for name in inside if name.startswith(("tests/", "docs/"))]


def test_wheel_runs_in_a_fresh_environment(distributions: Path, tmp_path: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [str(python), *arguments],
            cwd=tmp_path,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
    assert run("-m", "agentv_ci", "--version") == f"agentv-ci {__version__}\n"
    for name in TITLES:
        published = (REPOSITORY / "schemas" / f"{name}.schema.json").read_text("utf-8")
        assert run("-m", "agentv_ci", "schema", name) == published
    assert "started/evals/example.test.yaml" in run("-m", "agentv_ci", "init", "started")
    assert "gate: passed" in run("-m", "agentv_ci", "eval", "started/evals", "--out", "started.jsonl")
    example = REPOSITORY / "docs" / "examples" / "simple" / "evals" / "example.test.yaml"
    assert "gate: passed" in run("-m", "agentv_ci", "eval", str(example), "--out", "results.jsonl")
