"""The action judges results that another tool wrote in an earlier step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.action.conftest import Once
from tests.action.rig import Outcome, play, uses

pytestmark = [pytest.mark.act, pytest.mark.slow]

JUNIT = """<testsuites><testsuite name="desk">
<testcase classname="desk" name="refund" file="tests/desk.py" line="7"/>
<testcase classname="desk" name="invoice" file="tests/desk.py" line="20"><failure message="no total"/></testcase>
</testsuite></testsuites>"""
LINES = "".join(json.dumps({"name": name, "output": "Hello", "score": 1}) + "\n" for name in ("a", "b"))
THEIRS = {"id": "theirs", "shell": "bash", "run": f"cat > junit.xml <<'END'\n{JUNIT}\nEND\necho '<' > broken.xml\n"}


@pytest.fixture(scope="module")
def adopting(once: Once) -> Outcome:
    def scenario(folder: Path) -> Outcome:
        files = {"one.jsonl": LINES, "two.jsonl": LINES.replace('"a"', '"c"').replace('"b"', '"d"')}
        steps = (
            THEIRS,
            uses(results="junit.xml", results_from="junit", results_dir="out/1"),
            uses("lenient", results="junit.xml", results_from="junit", min_pass_rate="0.5", comment="never"),
            uses("several", results="one.jsonl\ntwo.jsonl", results_from="jsonl", comment="never", results_dir="out/3"),
            uses("broken", results="broken.xml", results_from="junit", comment="never", results_dir="out/4"),
            uses("missing", results="none.xml", results_from="junit", comment="never", results_dir="out/5"),
        )
        return play(folder, files, *steps)

    return once("adopting", scenario)


def test_a_failure_fails_the_step_and_is_annotated_and_commented(adopting: Outcome) -> None:
    step = adopting.agentv
    outputs = [step.outputs[name] for name in ("verdict", "total", "passed", "failed", "pass-rate")]
    assert (step.result, outputs) == ("failure", ["fail", "2", "1", "1", "0.5"])
    assert [(each.file, each.line, each.title) for each in step.errors] == [
        ("tests/desk.py", 20, "desk.invoice: fail 0.000")
    ]
    assert "2 cases: 1 passed, 1 failed, 0 errors" in step.summary
    assert [comment.body for comment in adopting.github.comments] == [adopting.file("out/1/comment.md")]
    names = {path.name for path in (adopting.workspace / "out/1").iterdir()}
    assert names == {"results.jsonl", "results.report.json", "junit.xml", "report.html", "run.json", "comment.md"}


def test_the_gate_of_the_inputs_decides(adopting: Outcome) -> None:
    step = adopting.steps["lenient"]
    assert (step.result, step.outputs["verdict"], step.outputs["pass-rate"]) == ("success", "pass", "0.5")


def test_several_files_are_one_run(adopting: Outcome) -> None:
    step = adopting.steps["several"]
    assert (step.result, step.outputs["total"], step.outputs["passed"]) == ("success", "4", "4")


@pytest.mark.parametrize(("name", "reason"), [("broken", "not XML"), ("missing", "none.xml")])
def test_results_that_cannot_be_read_are_an_error(name: str, reason: str, adopting: Outcome) -> None:
    step = adopting.steps[name]
    assert (step.result, step.outputs["verdict"]) == ("failure", "invalid")
    assert reason in "".join(each.message for each in step.errors)
