"""The reusable workflow: parts run as jobs, and a final job judges them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.action.conftest import Once
from tests.action.events import pull_request
from tests.action.rig import TOKEN, Outcome, Rig
from tests.support import REPOSITORY, write

pytestmark = [pytest.mark.act, pytest.mark.slow]

SHARDED = ".github/workflows/agentv.yml"
KEY = "sk-canary-0123456789"

EVALS = """\
$schema: agentv-eval-v2
evalcases:
  - &case
    id: one
    expected_outcome: Four
    input_messages: [{role: user, content: What is 2 + 2?}]
    expected_messages: [{role: assistant, content: '4'}]
    evaluators: [{name: four, type: contains, value: '4'}]
  - {<<: *case, id: two}
  - {<<: *case, id: three, evaluators: [{name: five, type: contains, value: '5'}]}
"""
TARGETS = """\
$schema: agentv-targets-v2.2
targets:
  - name: default
    provider: cli
    command_template: env > "$KEPT/$$.agent"; echo 4
    env: {KEPT: "${{ RIG_KEPT }}", SOME_KEY: "${{ SOME_KEY }}"}
"""
CALLER = """\
name: Evals
on: pull_request
permissions: {contents: read, pull-requests: write}
jobs:
  evals:
    uses: ./.github/workflows/agentv.yml
    with:
      shards: 2
      min-pass-rate: "0.6"
      setup: env > "$RIG_KEPT/$PPID.setup"
    secrets:
      env: |
        SOME_KEY=${{ secrets.SOME_KEY }}
  after:
    needs: evals
    runs-on: ubuntu-latest
    steps:
      - env:
          RESULT: ${{ needs.evals.outputs.verdict }} ${{ needs.evals.outputs.passed }}/${{ needs.evals.outputs.total }}
        run: echo "$RESULT" > "$RIG_KEPT/result"
"""

# Doubles of the actions for artifacts, which need GitHub.
UPLOAD = """\
name: upload-artifact
description: Copies a folder
inputs: {name: {required: true}, path: {required: true}, overwrite: {}, retention-days: {}}
runs:
  using: composite
  steps:
    - shell: bash
      env: {NAME: "${{ inputs.name }}", FOLDER: "${{ inputs.path }}"}
      run: mkdir -p "$RIG_KEPT/$NAME" && cp -R "$FOLDER/." "$RIG_KEPT/$NAME"
"""
DOWNLOAD = """\
name: download-artifact
description: Copies the artifacts that match a pattern, each into its folder; a single one into the folder itself
inputs: {pattern: {required: true}, path: {required: true}}
runs:
  using: composite
  steps:
    - shell: bash
      env: {PATTERN: "${{ inputs.pattern }}", FOLDER: "${{ inputs.path }}"}
      run: |
        mkdir -p "$FOLDER"
        found=("$RIG_KEPT"/$PATTERN)
        for each in "${found[@]}"; do
          to=$FOLDER
          if [ ${#found[@]} -gt 1 ]; then to=$FOLDER/$(basename "$each"); fi
          mkdir -p "$to" && cp -R "$each/." "$to"
        done
"""


@pytest.fixture(scope="module")
def outcome(once: Once) -> Outcome:
    def scenario(folder: Path) -> Outcome:
        workflow = (REPOSITORY / SHARDED).read_text("utf-8")
        files = {"evals/x.test.yaml": EVALS, "evals/targets.yaml": TARGETS, SHARDED: workflow}
        rig = Rig(folder, files, secrets={"SOME_KEY": KEY})
        rig.prepare()
        others: dict[str, Path] = {}
        for name, text in {"actions/upload-artifact": UPLOAD, "actions/download-artifact": DOWNLOAD}.items():
            write(folder / name, {"action.yml": text})
            pins = set(re.findall(rf"uses: ({name}@\S+)", workflow))
            others |= dict.fromkeys(pins, folder / name)
        return rig.start(CALLER, pull_request(rig.head), others)

    return once("sharded", scenario)


def kept(outcome: Outcome, name: str) -> list[Path]:
    """The artifacts that match a pattern."""
    return sorted(outcome.workspaces[0].parent.glob(name))


def test_caller_gets_the_verdict_of_all_parts(outcome: Outcome) -> None:
    (result,) = kept(outcome, "result")
    assert result.read_text("utf-8") == "pass 2/3\n"
    assert outcome.ok


def test_every_case_ran_in_one_part(outcome: Outcome) -> None:
    parts = kept(outcome, "agentv-results-part-*/results.jsonl")
    (whole,) = kept(outcome, "agentv-results/results.jsonl")
    rows = [line for part in parts for line in part.read_text("utf-8").splitlines()]
    assert len(parts) == 2
    assert sorted(rows) == sorted(whole.read_text("utf-8").splitlines())
    assert len(rows) == 3


def test_failure_is_annotated_once_by_the_final_job(outcome: Outcome) -> None:
    (failure,) = outcome.steps["publish"].annotations
    assert (failure.file, failure.line) == ("evals/x.test.yaml", 10)
    assert [name for name, step in outcome.steps.items() if step.annotations] == ["publish"]


def test_one_comment(outcome: Outcome) -> None:
    (comment,) = outcome.github.comments
    assert "three" in comment.body
    assert "<!-- agentv-ci:" in comment.body
    assert "/agentv-results -->" in comment.body


def test_agents_get_their_key_and_no_token(outcome: Outcome) -> None:
    agents = [each.read_text("utf-8") for each in kept(outcome, "*.agent")]
    assert len(agents) == 3
    for text in agents:
        assert f"SOME_KEY={KEY}" in text
        assert TOKEN not in text
        assert "GITHUB_OUTPUT" not in text


def test_setup_does_not_see_the_keys(outcome: Outcome) -> None:
    found = kept(outcome, "*.setup")
    assert len(found) == 2
    assert not any(KEY in each.read_text("utf-8") for each in found)


def test_key_is_not_in_files_or_logs(outcome: Outcome) -> None:
    # GitHub does not show the commands that mask it.
    shown = [line for line in outcome.raw.splitlines() if '"command":"add-mask"' not in line]
    assert not any(KEY in line for line in shown)
    for path in kept(outcome, "agentv-results*/**/*"):
        assert path.is_dir() or KEY not in path.read_text("utf-8")
