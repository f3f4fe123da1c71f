"""Inputs and texts of agents are only text: to the shell, to the runner, in Markdown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.action.conftest import Once
from tests.action.evals import agent, evaluator_line, mock, suite
from tests.action.rig import Outcome, play, uses
from tests.action.steps import LEVELS, Step
from tests.support import REPOSITORY
from tests.support.markdown import MARKUP, MarkdownPage

pytestmark = [pytest.mark.act, pytest.mark.slow]

PAYLOAD = """\
"; touch pwned-a; "$(touch pwned-b)`touch pwned-c`'; touch pwned-d; ' | touch pwned-e & touch pwned-f
::set-output name=verdict::pass
::error::forged
  ::warning::forged
##[error]forged
"""
READ_PAYLOAD = {
    "shell": "bash",
    "run": '{ echo "PAYLOAD<<4711"; cat payload.txt; echo 4711; } >> "$GITHUB_ENV"',
}
ACTION = yaml.safe_load((REPOSITORY / "action.yml").read_text("utf-8"))
INPUTS = sorted(ACTION["inputs"].keys() - {"github-token", "working-directory", "python-path"})
REPEATED = ("evals", "args", "shard")
"""Inputs that are repeated in the error message if they are invalid."""

HOSTILE = """\
::set-output name=failed::0
::set-output name=verdict::pass
##[stop-commands]x
::stop-commands::x
::add-mask::e
::error file=evals/a.test.yaml,line=1::forged
   ::warning::forged
##[error]forged
text ##[error]forged
::add-matcher::matcher.json
::save-state name=x::y
\r::notice::forged
%0A::error::forged
`````
```
</code></pre></details></summary></table> --> <!-- agentv-ci:Evals/evals -->
@octocat #1 <img src=x onerror=forged()> ![forged](https://forged.example/x.png) [forged](https://forged.example)
\x1b[31m
"""
AGENT = """\
import pathlib, sys
text = pathlib.Path("hostile.txt").read_text("utf-8")
print(text)
print(text, file=sys.stderr)
sys.exit(sys.argv[1] == "crashes")
"""
JUDGE = """\
import json, pathlib
text = pathlib.Path("../hostile.txt").read_text("utf-8")
print(json.dumps({"score": 0.2, "hits": [text], "misses": [text, *text.splitlines()], "reasoning": text}))
"""


@pytest.fixture(scope="module")
def inputs(once: Once) -> Outcome:
    """Inputs with commands for a shell, for the runner and for a command line."""

    def scenario(folder: Path) -> Outcome:
        files = {"evals/a.test.yaml": suite("a"), "targets.yaml": mock(), "payload.txt": PAYLOAD}
        hostile = "${{ env.PAYLOAD }}"
        steps = [
            uses("all") | {"with": dict.fromkeys(INPUTS, hostile)},
            uses("names", results_dir=hostile, comment_key=hostile),
            *(uses(name) | {"with": {"comment": "never", name: hostile}} for name in REPEATED),
            uses("interpreter", python_path=hostile),
        ]
        outcome = play(folder, files, READ_PAYLOAD, *steps)
        assert list(folder.rglob("pwned*")) == []
        return outcome

    return once("inputs", scenario)


def obeyed(step: Step) -> set[str]:
    """The names of the commands of a step, except our own."""
    own = {"set-output", "stop-commands", "ignored", "summary", *LEVELS, *step.tokens}
    others = [each for each in step.commands if each not in own]
    # One is our own, before agents run.
    return set(others[1:] if others[:1] == ["remove-matcher"] else others)


@pytest.mark.parametrize("name", REPEATED)
def test_invalid_input_is_text(inputs: Outcome, name: str) -> None:
    step = inputs.steps[name]
    assert (step.missed, obeyed(step)) == ((), set())
    assert [each.title for each in step.annotations] == ["agentv-ci"]
    assert (step.result, step.outputs["verdict"]) == ("failure", "invalid")
    assert "Traceback" not in "\n".join(step.log)


def test_python_is_a_program(inputs: Outcome) -> None:
    step = inputs.steps["interpreter"]
    assert (step.result, step.outputs["verdict"], step.missed, obeyed(step)) == ("failure", "error", (), set())
    assert [each.message for each in step.annotations] == ["python-path is not a program"]


def test_names_are_text(inputs: Outcome) -> None:
    step = inputs.steps["names"]
    assert (step.missed, obeyed(step), step.annotations) == ((), set(), ())
    assert (step.result, step.outputs["verdict"]) == ("success", "pass")
    assert step.outputs["results"].endswith(f"/{PAYLOAD.rstrip()}/results.jsonl")
    (comment,) = inputs.github.comments
    assert comment.body.splitlines()[0].startswith("<!-- agentv-ci:Evals/%22%3B touch pwned-a")
    assert comment.body.splitlines()[1] == "## ✅ Evaluations: passed"


def test_all_inputs_at_once(inputs: Outcome) -> None:
    step = inputs.steps["all"]
    assert (step.result, obeyed(step), step.missed) == ("failure", set(), ())
    assert step.annotations
    assert all(each.message.startswith("Invalid value for '--") for each in step.annotations)
    assert "Traceback" not in "\n".join(step.log)


@pytest.fixture(scope="module")
def hostile(once: Once) -> Outcome:
    """An agent, a judge and a case id that try to be more than text."""

    def scenario(folder: Path) -> Outcome:
        judge = "{name: judge, type: code, script: [python3, ../judge.py]}"
        document = suite("answers", "crashes", HOSTILE).replace(
            'evaluators: [{name: says-yes, type: contains, value: "yes"}]', f"evaluators: [{judge}]"
        )
        files = {
            "evals/a.test.yaml": document,
            "targets.yaml": agent("python3 agent.py {EVAL_ID}"),
            "agent.py": AGENT,
            "judge.py": JUDGE,
            "hostile.txt": HOSTILE,
            "matcher.json": "{}",
        }
        return play(folder, files, uses())

    return once("hostile", scenario)


def test_agents_cannot_command_the_runner(hostile: Outcome) -> None:
    step = hostile.agentv
    assert (step.missed, obeyed(step)) == ((), set())
    assert step.outputs.keys() == ACTION["outputs"].keys()
    assert (step.outputs["verdict"], step.outputs["failed"], step.outputs["errored"]) == ("fail", "2", "1")
    assert step.result == "failure"


def test_agents_add_no_annotations(hostile: Outcome) -> None:
    step = hostile.agentv
    assert [(each.file, each.line) for each in step.errors] == [
        ("evals/a.test.yaml", line) for line in (8, evaluator_line(0), evaluator_line(2))
    ]
    assert len(step.annotations) == 3
    assert all(len(each.message) <= 4_096 and "\r" not in each.message for each in step.annotations)


@pytest.mark.parametrize("where", ["summary", "comment"])
def test_texts_of_agents_are_not_markup(hostile: Outcome, where: str) -> None:
    page = MarkdownPage(hostile.agentv.summary if where == "summary" else hostile.github.comments[0].body)
    assert page.tags <= MARKUP
    assert {str(link).partition("/blob/")[0].partition("/actions/")[0] for link in page.links} == {
        "https://github.com/acme/demo"
    }
    assert "forged" not in page.loose
    assert "@octocat" not in page.loose


def test_texts_of_agents_forge_no_marker(hostile: Outcome) -> None:
    (comment,) = hostile.github.comments
    assert hostile.github.violations == []
    assert comment.body.startswith("<!-- agentv-ci:Evals/evals -->\n")
    history = json.loads(comment.body.rpartition("<!-- agentv-ci:history ")[2].removesuffix(" -->\n"))
    assert [each["verdict"] for each in history["runs"]] == ["fail"]
