"""The reusable workflow: parts run as jobs, and a final job judges them."""

from __future__ import annotations

import json
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

FILES = REPOSITORY / "tests" / "action" / "sharded"
"""The user's repository and its workflow."""
CALLER = (FILES / "caller.yml").read_text("utf-8")
DOUBLES = REPOSITORY / "tests" / "action" / "doubles"


def prepared(folder: Path) -> Rig:
    workflow = (REPOSITORY / SHARDED).read_text("utf-8")
    evals = {f"evals/{each.name}": each.read_text("utf-8") for each in (FILES / "evals").iterdir()}
    rig = Rig(folder, {**evals, SHARDED: workflow}, secrets={"SOME_KEY": KEY})
    rig.prepare()
    return rig


def start(rig: Rig, caller: str) -> Outcome:
    workflow = (REPOSITORY / SHARDED).read_text("utf-8")
    others = {
        pin: DOUBLES / name
        for name in ("upload-artifact", "download-artifact")
        for pin in re.findall(rf"uses: (actions/{name}@\S+)", workflow)
    }
    return rig.start(caller, pull_request(rig.head), others)


@pytest.fixture(scope="module")
def outcome(once: Once) -> Outcome:
    return once("sharded", lambda folder: start(prepared(folder), CALLER))


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


def test_part_that_dies_is_named_and_replaced_when_it_runs_again(tmp_path: Path) -> None:
    dies_once = 'mkdir "$RIG_KEPT/died"'
    caller = CALLER.replace("shards: 2", "shards: 20").replace('env > "$RIG_KEPT/$PPID.setup"', f"'! {dies_once}'")
    rig = prepared(tmp_path)
    first = start(rig, caller)
    assert not first.ok
    (merged,) = kept(first, "agentv-results/results.report.json")
    reasons = json.loads(merged.read_text("utf-8"))["gate"]["reasons"]
    assert any(re.search(r"shard [123]/3 (is )?missing", each) for each in reasons), reasons
    second = start(rig, caller)
    assert second.ok, second.raw[-3000:]
    assert [each.parent.name[-1] for each in kept(second, "agentv-results-part-*/results.jsonl")] == ["1", "2", "3"]
    (whole,) = kept(second, "agentv-results/results.jsonl")
    ran = [json.loads(line)["eval_id"] for line in whole.read_text("utf-8").splitlines()]
    assert sorted(ran) == ["one", "three", "two"]
    assert len(second.github.comments) == 1


def test_invalid_documents_are_reported_by_one_part(tmp_path: Path) -> None:
    rig = prepared(tmp_path)
    write(rig.user, {"evals/x.test.yaml": "$schema: agentv-eval-v2\nevalcases: 7\n"})
    rig.save("a mistake")
    outcome = start(rig, CALLER)
    assert not outcome.ok
    assert [each.name for each in kept(outcome, "agentv-results-part-*")] == ["agentv-results-part-1"]
    assert outcome.steps["publish"].outputs["verdict"] == "invalid"
