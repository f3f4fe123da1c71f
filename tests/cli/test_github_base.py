"""`agentv-ci github base`: a change cannot quarantine its own regression, nor accept it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.action import events
from tests.action.github_api import Failure
from tests.action.rig import SIGNATURE, git
from tests.cli.builders import GREETS, LEAVES, PASSES, Change, Job, quarantine

WORSE = {**PASSES, "response": "no"}
ENTRY = {"id": "greets", "reason": "The model is rude.", "owner": "ops", "expires": "2999-12-31"}


@pytest.fixture
def change(job: Job) -> Iterator[Change]:
    found = Change(job)
    yield found
    assert found.github.violations == []


def in_folder(name: str, text: str) -> dict[str, str]:
    return {f".agentv/{name}": text}


def test_change_cannot_quarantine_its_own_regression(change: Change) -> None:
    change.base()
    change.job.targets(WORSE)
    change.job.write(in_folder("quarantine.yaml", quarantine(ENTRY)))
    change.commit()
    change.reads_base()
    assert change.job.step().code == 1
    assert change.report["quarantine"] == []
    change.job.publish("--comment=never")
    assert change.job.outputs["verdict"] == "fail"


def test_quarantine_of_the_base_branch_counts_whatever_the_change_does_to_it(change: Change) -> None:
    kind = {**PASSES, "response": "Hello and goodbye"}
    change.job.documents(GREETS, LEAVES, targets=(kind,))
    change.base(**in_folder("quarantine.yaml", quarantine(ENTRY)))
    change.job.path(".agentv/quarantine.yaml").unlink()
    change.job.documents({**GREETS, "evaluators": [{"contains": "Good morning"}]}, LEAVES, targets=(kind,))
    change.commit()
    assert "quarantine: .agentv/quarantine.yaml of main\n" in change.reads_base().out
    assert change.job.step().code == 0
    assert change.report["counts"]["quarantined"] == 1
    change.job.publish("--comment=never")
    assert (change.job.outputs["verdict"], change.job.outputs["pass-rate"]) == ("pass", "1.0")
    assert "🔒 1 case in quarantine, not in the gate" in change.job.summary


@pytest.mark.parametrize(
    "nested",
    [
        None,
        ("remote", "add", "origin", "https://github.com/stranger/other"),
        ("remote", "add", "origin", "https://github.com/acme/demo"),
        ("config", "user.name", "x"),
    ],
)
def test_change_cannot_accept_its_own_regression(nested: tuple[str, ...] | None, change: Change) -> None:
    """A checkout that it has made around its baseline does not make that another repository's."""
    accept = ("baseline", "accept", "results.jsonl", "--out", "accepted.json")
    for target, name in ((WORSE, "worse"), (PASSES, "better")):
        change.job.targets(target)
        change.job.run("eval", "evals", "--out", "results.jsonl", "--min-pass-rate=0", "--repeat=5")
        assert change.job.run(*accept).code == 0
        change.job.path("accepted.json").rename(change.job.path(f"{name}.json"))
    change.base(**in_folder("baseline.json", change.job.text("better.json")))
    change.job.targets(WORSE)
    change.job.write(in_folder("baseline.json", change.job.text("worse.json")))
    change.commit()
    own = "--baseline=.agentv/baseline.json"
    assert change.job.step(own, "--min-pass-rate=0", "--repeat=5").code == 0
    if nested is not None:
        git(change.job.path(".agentv"), "init", "-q")
        git(change.job.path(".agentv"), *nested)
    change.reads_base(own)
    assert change.job.step("--min-pass-rate=0", "--repeat=5").code == 1
    assert change.report["comparison"]["counts"]["regressed"] == 1
    done = change.job.step("--args=--baseline=.agentv/baseline.json")
    assert (done.code, "args: --baseline does not count for a change" in done.err) == (2, True)


def test_baseline_that_github_refuses_is_replaced_by_none(change: Change) -> None:
    change.base()
    change.github.failures = [Failure(403, "no"), Failure(403, "no")]
    said = change.reads_base("--baseline=.agentv/baseline.json").out
    assert "::warning title=agentv-ci::the baseline of the base branch cannot be read, so nothing is compared" in said
    assert "AGENTV_BASELINE" not in change.job.env


def test_base_branch_without_the_files(change: Change) -> None:
    change.base()
    assert change.reads_base("--baseline=.agentv/baseline.json").out == ""
    assert [call.status for call in change.github.calls] == [404, 404]
    assert {call.query["ref"] for call in change.github.calls} == {"refs/heads/main"}
    assert change.job.env["AGENTV_BASELINE"] == ".agentv/baseline.json"


@pytest.mark.parametrize(("name", "asked"), [("../baseline.json", []), ("elsewhere/baseline.json", [404])])
def test_baseline_of_another_repository_is_its_own(name: str, asked: list[int], change: Change) -> None:
    """The base branch is asked for one within its own checkout, too: a change may have made the other one."""
    change.base()
    other = change.job.path("elsewhere")
    other.mkdir()
    git(other, "init", "-q")
    git(other, "remote", "add", "origin", "https://github.com/acme/baselines")
    git(other, *SIGNATURE, "commit", "-q", "--allow-empty", "-m", "start")
    change.reads_base(f"--baseline={name}")
    assert [call.status for call in change.github.calls] == [404, *asked]
    assert change.job.env["AGENTV_BASELINE"] == name


@pytest.mark.parametrize(
    ("token", "reason"), [("ghs_0123456789", "GitHub returned 403: no"), ("", "there is no token")]
)
def test_refusal_is_a_notice_and_nothing_is_in_quarantine(token: str, reason: str, change: Change) -> None:
    change.base(**in_folder("quarantine.yaml", quarantine(ENTRY)))
    change.github.failures = [Failure(403, "no")]
    said = change.reads_base(token=token).out
    assert f"so nothing is in quarantine: {reason}" in said
    assert said.startswith("::notice title=agentv-ci::the quarantine of the base branch cannot be read")
    change.job.targets(WORSE)
    assert change.job.step().code == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("quarantine: [", "nothing is in quarantine, since that of the base branch is invalid: line 1: "),
        (quarantine({**ENTRY, "expires": "soon"}), "nothing is in quarantine"),
        (quarantine({**ENTRY, "expires": "2020-01-01"}), "the quarantine of greets (ops) expired on 2020-01-01"),
    ],
    ids=["syntax", "structure", "expired"],
)
def test_invalid_or_expired_quarantine_of_the_base_branch_blocks_no_change(
    text: str, said: str, change: Change
) -> None:
    change.base(**in_folder("quarantine.yaml", text))
    change.job.path(".agentv/quarantine.yaml").unlink()
    change.reads_base()
    done = change.job.step()
    assert (done.code, said in done.out + done.err) == (0, True)
    change.job.targets(WORSE)
    assert change.job.step().code == 1


def test_quarantine_of_the_base_branch_needs_no_schema(change: Change) -> None:
    change.job.documents(GREETS, LEAVES, targets=(PASSES,))
    change.base(**in_folder("quarantine.yaml", json.dumps({"quarantine": [{**ENTRY, "id": "leaves"}]})))
    change.reads_base()
    assert change.job.step().code == 0


def test_merge_queue_is_a_change(change: Change) -> None:
    change.base(**in_folder("quarantine.yaml", quarantine(ENTRY)))
    change.job.on("merge_group", {"merge_group": {"base_ref": "refs/heads/main", "head_sha": "1" * 40}})
    change.job.write(in_folder("quarantine.yaml", quarantine({**ENTRY, "id": "other"})))
    change.reads_base()
    assert change.job.step().code == 1  # its only case is in quarantine
    assert change.report["gate"]["reasons"] == ["no case was graded: all are in quarantine"]


def test_push_believes_its_checkout(change: Change) -> None:
    change.base(**in_folder("quarantine.yaml", quarantine({**ENTRY, "expires": "2020-01-01"})))
    change.job.on("push", events.push("1" * 40))
    assert "not a pull request" in change.reads_base("--baseline=own.json").out
    assert change.job.env.pop("AGENTV_BASELINE") == "own.json"
    assert change.job.step().code == 2
    change.job.publish("--comment=never")
    assert "AV371" in change.job.summary
    assert change.github.calls == []
    assert change.job.step("--args=--no-quarantine").code == 0
    assert "--quarantine is set by the action" in change.job.step("--args=--quarantine=x.yaml").err
