"""The rig shows what a runner would see, and GitHub's limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.action.conftest import Once
from tests.action.rig import TOKEN, Outcome, play, uses
from tests.action.steps import Annotation, Step

pytestmark = pytest.mark.act

TOOL = r"""
if [ "$2" = run ]; then
  env > env.txt
  echo kept > kept.txt
  printf '%s\n' "::stop-commands::fence-4711" "::error::fenced" "  ::error::fenced" "x ##[error]fenced" "::fence-4711::"
  exit 0
fi
echo "::error file=a%2Cb.yaml,line=3,endLine=4,title=x%3A y::100%25%0Aof it:: all"
echo "  ::warning::indented"
echo "text ::error::in the middle"
echo "text ##[warning]anywhere"
echo "verdict=$AGENTV_COMMENT_KEY" >> "$GITHUB_OUTPUT"
echo "# summary" >> "$GITHUB_STEP_SUMMARY"
echo "$GITHUB_TOKEN" | rev
exit 1
"""


@pytest.fixture(scope="module")
def outcome(once: Once) -> Outcome:
    def scenario(folder: Path) -> Outcome:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LEAK", "of this machine")
            return play(folder, {"a.txt": ""}, uses(comment_key="one"), uses("two", comment_key="two"), tool=TOOL)

    return once("rig", scenario)


def test_what_a_step_says_is_read_as_the_runner_does(outcome: Outcome) -> None:
    step = outcome.agentv
    assert step.annotations == (Annotation("error", "100%\nof it:: all", "a,b.yaml", 3, "x: y", end_line=4),)
    assert step.missed == ("  ::warning::indented", "text ##[warning]anywhere")
    assert step.summary == "# summary\n"
    assert "text ::error::in the middle" in step.log
    assert TOKEN[::-1] in step.log


def test_steps_are_told_apart(outcome: Outcome) -> None:
    assert {step_id: step.outputs["verdict"] for step_id, step in outcome.steps.items() if step.annotations} == {
        "agentv": "one",
        "two": "two",
    }
    assert outcome.agentv.inner["publish.verdict"] == "one"
    assert [outcome.agentv.result, outcome.ok] == ["failure", True]


def test_job_has_little_of_this_machine_s_environment(outcome: Outcome) -> None:
    assert "GITHUB_ACTIONS=true" in outcome.file("env.txt")
    assert "of this machine" not in outcome.file("env.txt")
    assert TOKEN not in outcome.file("env.txt")
    assert outcome.file("kept.txt") == "kept\n"


def test_github_shows_ten_of_each_level_and_cuts_messages() -> None:
    said = tuple(Annotation(level, "é" * 5_000) for level in ("error", "notice", "error") for _ in range(7))
    shown = Step(annotations=said).shown
    assert [sum(each.level == level for each in shown) for level in ("error", "notice")] == [10, 7]
    assert {len(each.message) for each in shown} == {4_096}
