"""What the documentation says is true."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from agentv_ci import errors
from agentv_ci.cli import COMMANDS
from agentv_ci.contracts.source import Source
from agentv_ci.load import load
from agentv_ci.pipeline import check_paths
from agentv_ci.validate.structure import SCHEMAS
from tests import render_docs
from tests.conftest import REPOSITORY, write

PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "schemas").glob("*.md")])
README = (REPOSITORY / "README.md").read_text("utf-8")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[tuple[str, str]]:
    """Fenced blocks of a language: (page:line, text)."""
    found = []
    for page in PAGES:
        text = page.read_text("utf-8")
        for match in FENCE.finditer(text):
            if match[1] == language:
                line = text[: match.start()].count("\n") + 1
                found.append((f"{page.relative_to(REPOSITORY)}:{line}", match[2]))
    return found


YAML_BLOCKS = blocks("yaml")


@pytest.mark.parametrize("text", [text for _, text in YAML_BLOCKS], ids=[where for where, _ in YAML_BLOCKS])
def test_yaml_in_the_documentation_is_valid(text: str, tmp_path: Path) -> None:
    name = "targets.yaml" if "targets:" in text else "x.test.yaml"
    write(tmp_path, {name: text})
    checks = check_paths([name], targets=None, cwd=tmp_path)
    assert [found for file in checks.files for found in file.diagnostics] == []


def test_rules_page_is_fresh() -> None:
    assert render_docs.RULES_PAGE.read_text("utf-8") == render_docs.rendered(), "run: make docs"


def test_links_lead_somewhere() -> None:
    broken = [
        f"{page.name}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8"))
        if not target.startswith("http") and not (page.parent / target).exists()
    ]
    assert broken == []


def test_ci_runs_the_commands_of_the_readme() -> None:
    run = (REPOSITORY / ".ci" / "run").read_text("utf-8")
    first, second = (text.strip() for _, text in blocks("sh") if "pip install" in text and text in README)
    assert first in run
    assert second in run


def test_readme_names_every_command_and_every_exit_status() -> None:
    for command in COMMANDS:
        assert f"agentv-ci {command}" in README
    codes = {
        errors.PASSED,
        errors.FAILED,
        errors.INFRASTRUCTURE,
        errors.BUG,
        errors.INTERRUPTED,
        *(kind.exit_code for kind in errors.CannotGoOn.__subclasses__()),
    }
    assert set(re.findall(r"^\| (\d+) \|", README, re.MULTILINE)) == {str(code) for code in codes}


def test_bundled_example_validates() -> None:
    folder = REPOSITORY / "docs" / "examples"
    for path in sorted(folder.rglob("*.yaml")):
        source: Source = load(path, REPOSITORY, named=True)
        assert source.kind in SCHEMAS
        assert source.diagnostics == ()
    checks = check_paths([str(folder)], targets=None, cwd=REPOSITORY)
    assert [found for file in checks.files for found in file.diagnostics] == []


def test_nothing_that_is_committed_names_a_path_of_a_machine() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    home = str(REPOSITORY.parent)
    for name in filter(None, listed.stdout.split("\0")):
        path = REPOSITORY / name
        if path.is_file():
            assert f"{home}/" not in path.read_bytes().decode("utf-8", "replace"), name
