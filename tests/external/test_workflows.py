"""The action, the workflows and the examples pass the linters of others, which find planted faults in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from agentv_ci.scaffold.drafts import STARTERS, WORKFLOWS, Choices, drafts
from tests.external import workflow_linters as linters
from tests.external.tools import installed, run
from tests.support import REPOSITORY
from tests.support.pages import blocks

pytestmark = pytest.mark.slow

EXAMPLES = REPOSITORY / "docs" / "examples" / "workflows"
ACTION = REPOSITORY / "action.yml"
SHARDED = REPOSITORY / ".github" / "workflows" / "agentv.yml"
ACTIONS = [ACTION, *sorted((REPOSITORY / ".github" / "actions").glob("*/action.yml"))]
OWN = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
FILES = [*ACTIONS, *OWN, *sorted(EXAMPLES.glob("*.yml"))]
SCRIPTS = [*sorted((REPOSITORY / ".github" / "actions").glob("*.sh")), REPOSITORY / ".ci" / "run"]
PULL_REQUEST, CHANGED, MATRIX = (EXAMPLES / f"{name}.yml" for name in ("pull-request", "only-changed", "matrix"))

Fault = tuple[Path, str, str, str]
"""A file, a text in it, its replacement, and a part of the linter's message."""


def of_init(folder: Path) -> list[Path]:
    """The workflows that `init` writes."""
    paths = []
    for kind in STARTERS:
        (text,) = (each.text for each in drafts(Choices(kind), subfolder="a part") if each.path.startswith(WORKFLOWS))
        paths.append(folder / f"{kind}.yml")
        paths[-1].write_text(text, "utf-8")
    return paths


def of_pages(folder: Path) -> list[Path]:
    """The workflows in the documentation; parts of one are completed."""
    paths = []
    for where, text in blocks("yml"):
        steps = f"jobs:\n  job:\n    runs-on: ubuntu-latest\n    steps:\n{text}"
        jobs = steps if text.startswith("      - ") else text
        paths.append(folder / f"{where.replace('/', '-').replace(':', '-')}.yml")
        paths[-1].write_text(jobs if re.search(r"^on:", jobs, re.MULTILINE) else f"on: push\n{jobs}", "utf-8")
    return paths


def test_all_files_are_checked() -> None:
    assert (len(ACTIONS), len(OWN), len(FILES)) == (2, 3, 12)


def test_ignored_findings_of_zizmor_are_explained() -> None:
    for path in FILES:
        lines = path.read_text("utf-8").splitlines()
        for number, line in enumerate(lines):
            ignored = re.search(r"# zizmor: ignore\[([\w-]+)\](.*)", line)
            if ignored and ignored[1] != "unpinned-uses":
                above = lines[max(number - 8, 0) : number]
                assert ignored[2] or any(each.lstrip().startswith("#") for each in above), f"{path}:{number + 1}"


RUN = 'run: exec "$AGENTV_CI" github run --exit-zero'
FAULTS: Mapping[Callable[..., Sequence[str]], Sequence[Fault]] = {
    linters.schemas: [
        (ACTION, "color: green", "color: mauve", "mauve"),
        (PULL_REQUEST, "permissions: {}", "permissions: some", "some"),
    ],
    linters.zizmor: [
        (ACTION, RUN, f"{RUN} ${{{{ inputs.evals }}}}", "template-injection"),
        (CHANGED, "pull_request:", "pull_request_target:", "dangerous-triggers"),
        (SHARDED, 'run: bash -eo pipefail -c "$SETUP"', "run: ${{ inputs.setup }}", "template-injection"),
    ],
    linters.language_service: [
        (PULL_REQUEST, "evals: evals/", "evels: evals/", "'evels'"),
        (MATRIX, "shards: 20", "shard: 20", "shard is not defined"),
        (ACTION, "      shell: bash\n      env:", "      env:", "shell"),
    ],
    linters.actionlint: [
        (ACTION, "inputs.min-pass-rate", "inputs.min-passrate", '"min-passrate"'),
        (SHARDED, "needs.plan.outputs.shards", "needs.plan.outputs.parts", '"parts"'),
    ],
}
each_linter = pytest.mark.parametrize("lint", FAULTS)


@each_linter
def test_linter_finds_nothing(lint: Callable[..., Sequence[str]], tmp_path: Path) -> None:
    pages = of_pages(tmp_path)
    assert len(pages) > 4
    # What people are to copy is shorter than what zizmor wants of it.
    more = [] if lint is linters.zizmor else [*of_init(tmp_path), *pages]
    assert lint([*FILES, *more], tmp_path) == []


def test_zizmor_finds_nothing_in_workflows_of_init(tmp_path: Path) -> None:
    run([installed("zizmor"), "--offline", "--no-progress", "--no-config", *of_init(tmp_path)], codes=(0,))


@each_linter
def test_linter_finds_every_planted_fault(lint: Callable[..., Sequence[str]], tmp_path: Path) -> None:
    expected = {}
    for number, (file, text, wrong, said) in enumerate(FAULTS[lint]):
        planted = tmp_path / f"fault-{number}" / file.name
        planted.parent.mkdir()
        assert text in file.read_text("utf-8"), f"{file} does not contain {text!r}"
        planted.write_text(file.read_text("utf-8").replace(text, wrong, 1), "utf-8")
        expected[planted] = said
    found = lint([*expected], tmp_path)
    missed = {
        path: said
        for path, said in expected.items()
        if not any(each.startswith(f"{path}:") and said in each for each in found)
    }
    assert missed == {}


def test_shellcheck_finds_nothing() -> None:
    inside = dict(script for path in FILES for script in linters.scripts_of(path))
    assert len(inside) > 10
    assert linters.shellcheck({str(path): path.read_text("utf-8") for path in SCRIPTS} | inside) == []


@pytest.mark.parametrize(("fault", "said"), [("rm -rf $RUNNER_TEMP/x", "SC2086"), ("if [ $A = b ]; then", "SC1")])
def test_shellcheck_finds_faults(fault: str, said: str) -> None:
    assert any(said in each for each in linters.shellcheck({"a script": fault}))
