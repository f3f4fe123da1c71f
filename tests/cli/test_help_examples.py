"""The examples in the help of commands run as they are printed, in a repository that `init` made."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from agentv_ci.cli import COMMANDS
from tests.other_tools.adopt.test_adopt import JUNIT, PROMPTFOO
from tests.support import CommandResult, run_command, run_program, write

pytestmark = pytest.mark.slow

BEFORE = """
git init --quiet
agentv-ci init --yes
agentv-ci compile evals/ --out plan.json
for part in 1 2; do agentv-ci eval evals/ --shard $part/2 --out part-$part.jsonl; done
for side in main branch earlier; do agentv-ci eval evals/ --out $side.jsonl; done
agentv-ci eval
agentv-ci baseline accept
agentv-ci eval --targets models.yaml --target small --target large --min-pass-rate 0 --out both.jsonl
mkdir artifacts && cp main.jsonl artifacts/results.jsonl
agentv-ci history add
agentv-ci history add --dir ledger/
agentv-ci prove
"""
"""What the examples take for granted."""
MODELS = """
$schema: agentv-targets-v2.2
targets:
  - {name: small, provider: mock, response: Paris, judge_target: judge}
  - {name: large, provider: mock, response: Paris, judge_target: judge}
  - {name: judge, provider: mock}
"""
JUDGES = """
$schema: agentv-judge-set-v1
judge_target: judge
items:
  - {id: right, question: When?, expected_outcome: 30 days, answer: 30 days, verdict: pass}
  - {id: wrong, question: When?, expected_outcome: 30 days, answer: never, verdict: fail}
"""
PROMPTFOO_CONFIG = """
prompts: [Say hello]
providers: [echo]
tests: [{assert: [{type: contains, value: hello}]}]
"""
SUITE = """
tests:
  - {id: a, criteria: Greets, input: Hello, assertions: [{type: contains, value: Hello}]}
"""
EXPERIMENT = {
    "experiment.yaml": """
$schema: agentv-experiment-v1
arms: [{name: now, target: now}, {name: next, target: next}]
evals: [arms/]
""",
    "arms/targets.yaml": """
$schema: agentv-targets-v2.2
targets: [{name: now, provider: mock, response: 'no'}, {name: next, provider: mock, response: 'yes'}]
""",
    "arms/desk.test.yaml": """
$schema: agentv-eval-v2
target: now
evalcases:
  - id: ready-{{ n }}
    expected_outcome: Says yes
    input: Ready?
    expected: 'yes'
    evaluators: [equals: 'yes']
    vars: [{n: 1}, {n: 2}, {n: 3}, {n: 4}, {n: 5}, {n: 6}, {n: 7}, {n: 8}, {n: 9}, {n: 10}, {n: 11}, {n: 12}]
""",
}
GRADES = {"style": {"value": "B"}, "risk": {"value": 8}, "length": {"value": 350}}
LOG = {"status": "success", "eval": {"task": "t", "model": "m"}, "samples": [{"id": 1, "scores": GRADES}]}
SAID_HELLO = {
    "promptIdx": 0,
    "success": True,
    "provider": {"id": "echo"},
    "prompt": {"raw": "Say hello", "label": "Say hello"},
    "response": {"output": "Say hello"},
}
OF_OTHER_TOOLS = {
    "old.json": json.dumps({"results": {"version": 3, "results": [SAID_HELLO]}}),
    "promptfooconfig.yaml": PROMPTFOO_CONFIG,
    "suites/desk.eval.yaml": SUITE,
    "suites/.agentv/targets.yaml": "targets: [{name: default, provider: mock}]\n",
    "questions.jsonl": '{"question": "Where?", "answer": "Here"}\n',
    "results.json": json.dumps(PROMPTFOO),
    "junit.xml": JUNIT,
    "stars.jsonl": '{"id": "a", "rating": 1}\n',
    "log.json": json.dumps(LOG),
    "scores.jsonl": '{"name": "a", "output": {"text": "Hello"}, "score": 0.2}\n',
}
NOT_PASSED = {"judge-check": 1, "adopt": 1}
"""The mock judge finds every answer right, and each result of another tool has a failed case."""
UNMEASURED = 4
"""The mock has no costs, so that a limit of their increase is not compared."""


FUNCTIONS = f"""
agentv-ci() {{ {sys.executable} -m agentv_ci "$@"; }}
jq() {{ cat; }}
set -e -o pipefail
"""
"""`jq` need not be installed."""


def shell(lines: str, folder: Path) -> CommandResult:
    return run_program("bash", "-c", FUNCTIONS + lines, cwd=folder, timeout_s=180)


OF_A_SHELL = re.compile(r"[^\w\s./:=%-]")
"""A character for which a line needs a shell: all others only separate words."""


def run_line(line: str, folder: Path) -> CommandResult:
    """Run an example: in a shell if its line needs one."""
    return shell(line, folder) if OF_A_SHELL.search(line) else run_command(*line.split()[1:], cwd=folder)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scratch")
    (folder / ".git").mkdir()
    write(folder, {"judges/refunds.yaml": JUDGES, "models.yaml": MODELS, **EXPERIMENT})
    done = shell(BEFORE, folder)
    assert done.code == 0, done
    return folder


@pytest.fixture(scope="module")
def arms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with an experiment."""
    folder = tmp_path_factory.mktemp("arms")
    (folder / ".git").mkdir()
    write(folder, EXPERIMENT)
    done = shell("agentv-ci experiment experiment.yaml --shard 2/2 --out part-2.jsonl", folder)
    assert done.code == 0, done
    return folder


@pytest.fixture(scope="module")
def other_tools(scratch: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with documents and results of other tools."""
    folder = tmp_path_factory.mktemp("other-tools")
    (folder / ".git").mkdir()
    write(folder, {**OF_OTHER_TOOLS, "main.jsonl": (scratch / "main.jsonl").read_text("utf-8")})
    return folder


def examples(command: list[str], folder: Path) -> list[str]:
    return re.findall(
        r"(?m)^ +(agentv-ci .*)$", run_command(*command, "--help", cwd=folder).out.partition("Examples:")[2]
    )


OF_GROUPS = [["baseline", "accept"], ["history", "add"], ["history", "import"], ["history", "health"]]


@pytest.mark.parametrize("command", [[], *OF_GROUPS, *([name] for name in COMMANDS if name != "github")])
def test_examples_of_a_command_run(command: list[str], scratch: Path, other_tools: Path, arms: Path) -> None:
    folder = other_tools if command in (["import"], ["adopt"]) else arms if command == ["experiment"] else scratch
    lines = examples(command, folder)
    assert lines
    done = {line: run_line(line, folder) for line in lines}
    assert {line: each.code for line, each in done.items()} == {
        line: UNMEASURED if "--max-cost-increase" in line else NOT_PASSED.get(line.split()[1], 0) for line in lines
    }, done
