"""The documentation is correct: its examples, tables, links and commands."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from datetime import date
from pathlib import Path
from tempfile import gettempdir

import pytest

from agentv_ci import errors
from agentv_ci.app.documents.validate import check_paths
from agentv_ci.cli import COMMANDS
from agentv_ci.contracts.diagnostics import PROOF_RULES, RULES
from tests import render_docs
from tests.support import REPOSITORY, run_command, write
from tests.support.pages import PAGES, blocks

README = (REPOSITORY / "README.md").read_text("utf-8")
YAML_BLOCKS = blocks("yaml")


@pytest.mark.parametrize("text", [text for _, text in YAML_BLOCKS], ids=[where for where, _ in YAML_BLOCKS])
def test_yaml_in_the_documentation_is_valid(text: str, tmp_path: Path) -> None:
    name = "targets.yaml" if "targets:" in text else ".agentv.yaml" if "config" in text else "x.test.yaml"
    write(
        tmp_path,
        {
            name: text,
            "orders.csv": "order_id,total\n1001,12.50\n",
            "drafts/strict.md": "Be strict",
            "golden/total.patch": "--- a/total.sh\n",
            "prompts/strict.md": "Judge {{ candidate_answer }}",
            "evals/billing.yaml": "{$schema: agentv-eval-v2, evalcases: [{id: refund-late}]}",
            "evals/targets.yaml": "{$schema: agentv-targets-v2.2, targets: "
            "[{name: gpt-5, provider: mock}, {name: judge, provider: mock}]}",
            "prompts/kinder.md": "Be kind",
            "prompts/with-synonyms.md": "Sneakers, too",
            "evals/x.test.yaml": "",
        },
    )
    checks = check_paths([name], targets=None, cwd=tmp_path)
    assert [found for file in checks.files for found in file.diagnostics] == []


@pytest.mark.parametrize("page", render_docs.PAGES, ids=lambda page: page.name)
def test_rendered_page_is_fresh(page: Path) -> None:
    assert page.read_text("utf-8") == render_docs.rendered(page), "run: make docs"


@pytest.mark.parametrize("kind", render_docs.kinds())
def test_provider_has_a_section_with_a_target_its_settings_and_its_failures(kind: str) -> None:
    page = render_docs.PROVIDERS_PAGE.read_text("utf-8")
    section = re.split(rf"^##+ {kind}$", page, flags=re.MULTILINE)[1].split("\n## ")[0].split("\n### ")[0]
    assert f"provider: {kind}" in section
    assert f"<!-- settings: {kind} -->" in section
    assert kind == "mock" or "| failure | what to do |" in section


SECTION = re.compile(r"^## (?P<rule>AV\d+) (?P<name>\S+)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^```yaml (?P<kind>wrong|right)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^# (\S+\.yaml)\n", re.MULTILINE)
SECTIONS = [match.groupdict() for match in SECTION.finditer(render_docs.RULES_PAGE.read_text("utf-8"))]
CASE = {
    "id": "greets",
    "expected_outcome": "A greeting",
    "input_messages": "[{role: user, content: Hello}]",
    "expected_messages": "[]",
}
BESIDE = {
    "targets.yaml": "$schema: agentv-targets-v2.2\ntargets: [{name: default, provider: mock}]\n",
    "policy.md": "Be kind.\n",
    "empty.md": "",
    "score.sh": "echo 1\n",
}


def test_every_rule_is_explained() -> None:
    assert [(each["rule"], each["name"]) for each in SECTIONS] == [(key, rule.name) for key, rule in RULES.items()]


def test_every_finding_of_prove_is_explained() -> None:
    sections = re.findall(r"^### (AV\d+) (\S+)$", (render_docs.DOCS / "proving.md").read_text("utf-8"), re.MULTILINE)
    assert sections == [(key, rule.name) for key, rule in PROOF_RULES.items()]


@pytest.mark.parametrize("section", SECTIONS, ids=[section["rule"] for section in SECTIONS])
def test_examples_of_a_rule_give_that_rule_and_nothing(section: dict[str, str], tmp_path: Path) -> None:
    found = {}
    for match in EXAMPLE.finditer(section["text"]):
        folder = tmp_path / match["kind"] / "repository" / "evals"
        (folder.parent / ".git").mkdir(parents=True)
        written = whole(match["text"])
        write(folder, BESIDE | written)
        (folder / "latin-1.md").write_bytes("Grüße".encode("latin-1"))
        checks = check_paths(list(written), targets=None, cwd=folder, today=date(2026, 2, 1))
        found[match["kind"]] = {each.rule for file in checks.files for each in file.diagnostics}
    assert found == {"wrong": {section["rule"]}, "right": set()}


def whole(example: str) -> dict[str, str]:
    """Return the files that an example means; one without a name is a part of a case."""
    _, *named = NAMED.split(example)
    if named:
        return dict(zip(named[::2], named[1::2], strict=True))
    given = re.findall(r"^(\w+):", example, re.MULTILINE)
    rest = "".join(f"{key}: {value}\n" for key, value in CASE.items() if key not in given)
    case = textwrap.indent(rest + example, "    ")
    return {"eval.yaml": f"$schema: agentv-eval-v2\nevalcases:\n  - {case.lstrip()}"}


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
    first, second, *_ = (text.strip() for _, text in blocks("sh") if text in README)
    assert first in run
    assert second in run


def test_readme_is_short_and_names_every_command_and_every_exit_status() -> None:
    assert len(README.splitlines()) <= 200
    assert [command for command in COMMANDS if f"agentv-ci {command}" not in README] == []
    codes = {errors.PASSED, errors.FAILED, errors.INFRASTRUCTURE, errors.BUDGET, errors.BUG, errors.INTERRUPTED}
    codes |= {errors.UNDECIDED}
    codes |= {kind.exit_code for kind in errors.CannotGoOn.__subclasses__()}
    assert set(re.findall(r"^\| (\d+) \|", README, re.MULTILINE)) == {str(code) for code in codes}


def test_index_lists_every_page() -> None:
    pages = {path.name for path in (REPOSITORY / "docs").glob("*.md")} - {"index.md"}
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", (REPOSITORY / "docs" / "index.md").read_text("utf-8"))) == pages


def test_bundled_examples_are_valid() -> None:
    folder = REPOSITORY / "docs" / "examples"
    # That of plugins needs a package: tests/test_plugin_example.py. Clusters: tests/external/test_cluster_examples.py.
    elsewhere = (folder / "plugin", folder / "clusters")
    paths = [path for path in folder.rglob("*.yaml") if not any(map(path.is_relative_to, elsewhere))]
    files = check_paths([*map(str, paths)], targets=None, cwd=REPOSITORY).files
    assert files
    assert [found for file in files for found in file.diagnostics] == []


def test_nothing_that_is_committed_names_a_path_of_a_machine() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    # Paths in the folder of temporary files are in tests on purpose.
    home = REPOSITORY if str(REPOSITORY.parent) == gettempdir() else REPOSITORY.parent
    for name in filter(None, listed.stdout.split("\0")):
        path = REPOSITORY / name
        if path.is_file():
            assert f"{home}/" not in path.read_bytes().decode("utf-8", "replace"), name


@pytest.mark.slow
def test_python_of_the_page_about_it_runs(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "python.md").read_text("utf-8")
    shutil.copytree(REPOSITORY / "docs" / "examples" / "simple", tmp_path / "docs" / "examples" / "simple")
    script = tmp_path / "guide.py"
    script.write_text("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "'validator': 'reproducibility_metadata'" in done.stdout


@pytest.mark.slow
def test_getting_started_gives_what_the_page_shows(repository: Path) -> None:
    page = (REPOSITORY / "docs" / "getting-started.md").read_text("utf-8")
    (agent, *_), (targets, evals, *_) = (
        re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL) for language in ("python", "yaml")
    )
    write(repository, {"agent.py": agent, ".agentv/targets.yaml": targets, "evals/refunds.test.yaml": evals})
    _, valid, _, shown = re.split(r"^```text\n", page, flags=re.MULTILINE)
    assert run_command("validate", ".", cwd=repository).out == valid.split("```")[0]
    done = run_command("eval", "evals/", cwd=repository)
    assert (done.code, done.out.startswith(shown.split("```")[0])) == (1, True)
    write(repository, {"agent.py": agent.replace("14", "30")})
    assert run_command("eval", "evals/", cwd=repository).code == 0
