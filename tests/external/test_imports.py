"""Imported files give the verdicts that they have in promptfoo and AgentV, whose own programs run them here."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.load.parse import parse_yaml
from tests.external.tools import node_modules, run
from tests.servers.http import Asked, Reply, answers, serve
from tests.support import write
from tests.support.projects import Project

HERE = Path(__file__).parent
PROMPTFOO = "promptfoo@0.121.20"
AGENTV = "agentv@4.42.4"
QUIET = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "PROMPTFOO_DISABLE_ERROR_LOG": "1",
    "PROMPTFOO_DISABLE_DEBUG_LOG": "1",
    "AGENTV_TELEMETRY": "0",
}
ECHO = {"name": "echo", "provider": "cli", "command": "cp {PROMPT_FILE} {OUTPUT_FILE}"}
Verdicts = list[tuple[str, bool]]


def suites(name: str) -> list[Any]:
    """Return the suites of a file, each with the files beside it."""
    found: Any = parse_yaml((HERE / name).read_text("utf-8")).data
    return [pytest.param(suite, suite.pop("files", {}), id=key) for key, suite in found.items()]


def ours(project: Project, file: str) -> list[dict[str, Any]]:
    """Return the rows of a file after one import."""
    assert project.run("import", file, "--out", "converted").code == 0
    assert project.run("validate", "--strict", "converted").code == 0
    done = project.run("eval", "converted", "--out", "rows.jsonl", "--max-retries", "0")
    assert done.code in {0, 1}, done
    return project.rows("rows.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize(("config", "files"), suites("promptfoo_configs.yaml"))
def test_promptfoo_gives_the_same_verdicts(config: dict[str, Any], files: dict[str, str], repository: Path) -> None:
    theirs, rows = _both(Project(repository, env={"PATH": os.environ["PATH"]}), config, files)
    assert {passed for _, passed in theirs} == {True, False}
    assert _sorted(rows, config) == _sorted(theirs, config)


@pytest.mark.slow
def test_promptfoo_asks_the_same_of_a_server(repository: Path) -> None:
    def answer(asked: Asked) -> Reply:
        return answers(200, {"said": [f"{asked.method} {asked.query} {asked.headers.get('x-team')} {asked.body}"]})

    with serve(answer) as url:
        settings = {"url": f"{url}/ask", "headers": {"x-team": "{{ env.TEAM }}"}, "queryParams": {"v": "1"}}
        body = {"messages": [{"role": "user", "content": "{{prompt}}"}], "stream": False}
        requests = [
            {**settings, "method": "POST", "body": body, "transformResponse": "json.said[0]"},
            {**settings, "method": "GET", "transformResponse": "(json, text) => text.slice(0, 14)"},
            {
                **settings,
                "method": "POST",
                "body": '{"q": "{{prompt}}"}',
                "headers": {"content-type": "application/json"},
            },
        ]
        config = {
            "prompts": ["Say {{word}}"],
            "providers": [{"id": "https", "label": f"{at}", "config": each} for at, each in enumerate(requests)],
            "tests": [{"vars": {"word": '"hi"'}, "assert": [{"type": "contains", "value": "ours"}]}],
        }
        theirs, rows = _both(Project(repository, env={"PATH": os.environ["PATH"], "TEAM": "ours"}), config, {})
    assert sorted(rows) == sorted(theirs)


def _both(project: Project, config: dict[str, Any], files: dict[str, str]) -> tuple[Verdicts, Verdicts]:
    """Return the verdicts of promptfoo, and those of the imported config."""
    modules, folder = node_modules(PROMPTFOO), project.folder
    project.write({**files, "promptfooconfig.yaml": json.dumps(config)})
    command = [modules / ".bin" / "promptfoo", "eval", "-c", folder / "promptfooconfig.yaml"]
    flags = ["-o", folder / "theirs.json", "--no-cache", "--no-table", "--no-progress-bar"]
    env = {**QUIET, **project.env, "PROMPTFOO_CONFIG_DIR": str(folder / "home")}
    run([*command, *flags], codes=(0, 100), env=env)
    results = project.json("theirs.json")["results"]["results"]
    theirs = [(str(_text(each["response"]["output"])), each["success"]) for each in results]
    rows = [(row["candidate_answer"], row["verdict"] == "pass") for row in ours(project, "promptfooconfig.yaml")]
    return theirs, rows


def _text(output: Any) -> Any:
    return output if isinstance(output, str) else json.dumps(output, separators=(",", ":"))


def _sorted(verdicts: Verdicts, config: dict[str, Any]) -> Verdicts:
    # A transformation changes the answer that promptfoo reports; here the row has the answer itself, without the
    # whitespace around what a command prints.
    hidden = "transform" in json.dumps(config)
    return sorted(("", passed) if hidden else (text.strip(), passed) for text, passed in verdicts)


ANSWERS = ("Hello Ada", "hello ada", "Ada says Hello", '{"a": 1}', "[1, 2]", "17", "Hello Ada\nand Bob")
CHECKS: tuple[dict[str, Any], ...] = (
    {"type": "contains", "value": "Hello"},
    {"type": "icontains", "value": "HELLO"},
    {"type": "contains-any", "value": ["Bob", "ada"]},
    {"type": "contains-all", "value": ["Hello", "Ada"]},
    {"type": "icontains-any", "value": ["BOB", "x"]},
    {"type": "icontains-all", "value": ["ada", "HELLO"]},
    {"type": "equals", "value": " Hello Ada "},
    {"type": "starts-with", "value": "Hello"},
    {"type": "ends-with", "value": "Ada"},
    {"type": "regex", "value": r"^h\w+ a", "flags": "i"},
    {"type": "regex", "value": r"^\d+$"},
    {"type": "regex", "value": "^and", "flags": "m"},
    {"type": "is-json"},
)
CALLS: tuple[list[dict[str, Any]], ...] = (
    [],
    [{"tool": "search", "input": {"q": "a", "n": 1}}],
    [{"tool": "search", "input": {"q": "a"}}, {"tool": "open", "input": {"id": 2}}],
    [{"tool": "open", "input": {"id": 2}}, {"tool": "search", "input": {"q": "b"}}, {"tool": "search", "input": {}}],
)
TRAJECTORIES: tuple[dict[str, Any], ...] = (
    {"mode": "any_order", "minimums": {"search": 1}},
    {"mode": "any_order", "minimums": {"search": 2, "open": 1}},
    {"mode": "in_order", "expected": [{"tool": "search"}, {"tool": "open"}]},
    {"mode": "exact", "expected": [{"tool": "search"}, {"tool": "open"}]},
    {"mode": "superset", "expected": [{"tool": "search", "args": {"q": "a"}}], "args_match": "superset"},
    {"mode": "subset", "expected": [{"tool": "search"}, {"tool": "search"}, {"tool": "open"}]},
)


def numbered(tests: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return a suite of tests."""
    listed = [{"id": f"t{number}", "criteria": "c", **test} for number, test in enumerate(tests)]
    return {"execution": {"target": "echo"}, "tests": listed}


def every_check() -> Iterator[dict[str, Any]]:
    """Yield a test for each check of each answer, and for its negation."""
    for check, answer, negate in product(CHECKS, ANSWERS, (False, True)):
        yield {"input": answer, "assertions": [{**check, "negate": negate}]}


def mixed_checks() -> Iterator[dict[str, Any]]:
    """Yield tests whose verdicts are of weights, requirements and thresholds."""
    drawn = random.Random(46)
    for _ in range(60):
        checks = [
            {
                **check,
                "name": f"c{place}",
                "weight": drawn.choice((0.2, 1, 3)),
                "required": drawn.choice((True, False, False)),
            }
            for place, check in enumerate(drawn.sample(CHECKS, drawn.randint(2, 4)))
        ]
        threshold = drawn.choice((0.3, 0.5, 0.8, 1))
        yield {"input": drawn.choice(ANSWERS), "assertions": checks, "execution": {"threshold": threshold}}


def every_trajectory() -> Iterator[dict[str, Any]]:
    for check, calls in product(TRAJECTORIES, CALLS):
        message = {"role": "assistant", "content": "done", "tool_calls": calls}
        answer = json.dumps({"text": "done", "output_messages": [message]})
        yield {"input": answer, "assertions": [{"type": "tool-trajectory", **check}]}


GENERATED = [
    pytest.param(numbered(make()), {}, id=make.__name__) for make in (every_check, mixed_checks, every_trajectory)
]


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "files"), [*suites("agentv_suites.yaml"), *GENERATED])
def test_agentv_gives_the_same_verdicts(suite: dict[str, Any], files: dict[str, str], repository: Path) -> None:
    modules = node_modules(AGENTV)
    project = Project(repository, env={"PATH": os.environ["PATH"]})
    write(repository / ".agentv", {"targets.yaml": json.dumps({"targets": [ECHO]})})
    project.write({**files, "suite.eval.yaml": json.dumps(suite)})
    command = [modules / ".bin" / "agentv", "eval", "suite.eval.yaml", "--output", "theirs"]
    run(
        ["sh", "-c", f"cd {repository} && {' '.join(map(str, command))}"],
        env={**QUIET, "HOME": str(repository / "home")},
    )
    lines = [json.loads(line) for line in project.text("theirs/index.jsonl").splitlines()]
    theirs = {each["test_id"]: passes(each) for each in lines}
    rows = ours(project, "suite.eval.yaml")
    assert {*theirs.values()} == {True, False}
    assert {re.sub("-[0-9a-f]{12}$", "", row["eval_id"]): row["verdict"] == "pass" for row in rows} == theirs


def passes(result: dict[str, Any]) -> bool:
    """Whether AgentV passes a test: its score is enough, and every required assertion is met."""
    assert result["execution_status"] != "execution_error", result
    return bool(result["execution_status"] == "ok")
