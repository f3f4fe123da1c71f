"""The action, the workflows and the examples as linters of other people see them, and faults that these must see."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from agentv_ci.scaffold.drafts import STARTERS, WORKFLOWS, Choices, drafts
from tests.external import workflow_linters as linters
from tests.guards.test_docs import blocks
from tests.support import REPOSITORY

EXAMPLES = REPOSITORY / "docs" / "examples" / "workflows"
ACTION = REPOSITORY / "action.yml"
ACTIONS = [ACTION, *sorted((REPOSITORY / ".github" / "actions").glob("*/action.yml"))]
OWN = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
FILES = [*ACTIONS, *OWN, *sorted(EXAMPLES.glob("*.yml"))]
SCRIPTS = [*sorted((REPOSITORY / ".github" / "actions").glob("*.sh")), REPOSITORY / ".ci" / "run"]


def begun(folder: Path) -> list[Path]:
    """Workflows that `init` writes."""
    paths = []
    for kind in STARTERS:
        (text,) = (each.text for each in drafts(Choices(kind), subfolder="a part") if each.path.startswith(WORKFLOWS))
        paths.append(folder / f"{kind}.yml")
        paths[-1].write_text(text, "utf-8")
    return paths


def told(folder: Path) -> list[Path]:
    """Workflows that stand in the documentation; one without a trigger is a part of one, a list of steps too."""
    paths = []
    for where, text in blocks("yml"):
        steps = f"jobs:\n  job:\n    runs-on: ubuntu-latest\n    steps:\n{text}"
        jobs = steps if text.startswith("      - ") else text
        paths.append(folder / f"{where.replace('/', '-').replace(':', '-')}.yml")
        paths[-1].write_text(jobs if re.search(r"^on:", jobs, re.MULTILINE) else f"on: push\n{jobs}", "utf-8")
    return paths


def test_everything_that_github_reads_is_looked_at() -> None:
    assert {path.name for path in EXAMPLES.iterdir()} == {
        *("pull-request.yml", "only-changed.yml", "nightly.yml", "matrix.yml", "fork-evals.yml", "fork-comment.yml")
    }
    assert {path.name for path in OWN} == {"agentv.yml", "ci.yml", "release.yml"}
    assert len(ACTIONS) == 2


def test_shapes_are_those_of_github() -> None:
    assert linters.schemas(FILES) == []


def test_workflows_in_the_documentation_have_the_shapes_of_github(tmp_path: Path) -> None:
    paths = told(tmp_path)
    assert len(paths) > 4
    assert linters.schemas(paths) == []


def test_zizmor_finds_nothing() -> None:
    assert linters.zizmor(FILES) == []


def test_every_finding_that_is_ignored_is_explained() -> None:
    """The comment itself says why, or one above it does."""
    for path in FILES:
        lines = path.read_text("utf-8").splitlines()
        for number, line in enumerate(lines):
            ignored = re.search(r"# zizmor: ignore\[([\w-]+)\](.*)", line)
            if ignored and ignored[1] != "unpinned-uses":
                above = lines[max(number - 8, 0) : number]
                assert ignored[2] or any(each.lstrip().startswith("#") for each in above), f"{path}:{number + 1}"


def test_shellcheck_finds_nothing() -> None:
    scripts = {str(path): path.read_text("utf-8") for path in SCRIPTS}
    inside = dict(script for path in FILES for script in linters.scripts_of(path))
    assert len(inside) > 10
    assert linters.shellcheck(scripts | inside) == []


def test_github_and_actionlint_find_nothing(tmp_path: Path) -> None:
    files = [*FILES, *begun(tmp_path), *told(tmp_path)]
    assert linters.language_service(files, tmp_path) == []
    assert linters.actionlint(files, tmp_path) == []


@dataclass(frozen=True)
class Fault:
    """A mistake somebody could make: in a file, in place of this, that; and what is said of it."""

    file: Path
    of: str
    then: str
    said: str

    def planted(self, folder: Path) -> Path:
        folder.mkdir()
        text = self.file.read_text("utf-8")
        assert self.of in text, f"{self.file} holds no {self.of!r} any more"
        (folder / self.file.name).write_text(text.replace(self.of, self.then, 1), "utf-8")
        return folder / self.file.name


PULL_REQUEST, CHANGED, MATRIX = (EXAMPLES / f"{name}.yml" for name in ("pull-request", "only-changed", "matrix"))
SHARDED = REPOSITORY / ".github" / "workflows" / "agentv.yml"
RUN = 'run: exec "$AGENTV_CI" github run --exit-zero'

BY_SCHEMA = [
    Fault(ACTION, "default: evals/", "requiered: true", "requiered"),
    Fault(ACTION, "color: green", "color: mauve", "mauve"),
    Fault(PULL_REQUEST, "permissions: {}", "permissions: some", "some"),
]
BY_ZIZMOR = [
    Fault(ACTION, RUN, f"{RUN} ${{{{ inputs.evals }}}}", "template-injection"),
    Fault(PULL_REQUEST, "persist-credentials: false", "fetch-depth: 1", "artipacked"),
    Fault(MATRIX, "actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683", "actions/checkout@v4", "unpinned-uses"),
    Fault(CHANGED, "pull_request:", "pull_request_target:", "dangerous-triggers"),
    Fault(SHARDED, 'run: bash -eo pipefail -c "$SETUP"', "run: ${{ inputs.setup }}", "template-injection"),
]
BY_GITHUB = [
    Fault(PULL_REQUEST, "evals: evals/", "evels: evals/", "'evels'"),
    Fault(MATRIX, "shards: 4", "shard: 4", "shard is not defined"),
    Fault(CHANGED, "steps.base.outputs.plan", "steps.nope.outputs.plan", "nope"),
    Fault(ACTION, "update-environment: false", "update-enviroment: false", "'update-enviroment'"),
    Fault(ACTION, "default: ${{ github.token }}", "default: ${{ githob.token }}", "githob"),
    Fault(ACTION, "      shell: bash\n      env:", "      env:", "shell"),
]
BY_ACTIONLINT = [
    Fault(ACTION, "steps.publish.outputs.verdict", "steps.publich.outputs.verdict", '"publich"'),
    Fault(ACTION, "inputs.min-pass-rate", "inputs.min-passrate", '"min-passrate"'),
    Fault(SHARDED, "needs.plan.outputs.shards", "needs.plan.outputs.parts", '"parts"'),
]


def unseen(faults: Sequence[Fault], lint: Callable[[Sequence[Path]], Sequence[str]], scratch: Path) -> list[Fault]:
    """Plant faults, each in a copy of its own, and return those that a linter says nothing of."""
    planted = {fault.planted(scratch / f"fault-{number}"): fault for number, fault in enumerate(faults)}
    found = lint([*planted])
    return [
        fault
        for path, fault in planted.items()
        if not any(each.startswith(f"{path}:") and fault.said in each for each in found)
    ]


def test_schemas_see_faults(tmp_path: Path) -> None:
    assert unseen(BY_SCHEMA, linters.schemas, tmp_path) == []


def test_zizmor_sees_faults(tmp_path: Path) -> None:
    assert unseen(BY_ZIZMOR, linters.zizmor, tmp_path) == []


def test_github_and_actionlint_see_faults(tmp_path: Path) -> None:
    for name, faults, lint in (
        ("github", BY_GITHUB, linters.language_service),
        ("actionlint", BY_ACTIONLINT, linters.actionlint),
    ):
        scratch = tmp_path / name
        scratch.mkdir()
        assert unseen(faults, partial(lint, scratch=scratch), scratch) == []


@pytest.mark.parametrize(("fault", "said"), [("rm -rf $RUNNER_TEMP/x", "SC2086"), ("if [ $A = b ]; then", "SC1")])
def test_shellcheck_sees_faults(fault: str, said: str) -> None:
    assert any(said in each for each in linters.shellcheck({"a script": fault}))
