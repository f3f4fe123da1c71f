"""The main job on real input: processes, sockets and files, as a stranger would start them."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml

from agentv_ci.jsonschema.violations import violations
from tests.servers.chat_api import chat_api, fails, says
from tests.support import REPOSITORY, clean_environment, has_ended, run_process, write

EXAMPLE = REPOSITORY / "docs" / "examples" / "simple"
EVAL = "evals/example.test.yaml"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy of the bundled example that may be broken."""
    copy = tmp_path / "simple"
    shutil.copytree(EXAMPLE, copy)
    (copy / ".git").mkdir()
    return copy


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def test_bundled_example_passes_and_all_it_writes_is_valid(example: Path) -> None:
    done = run_process("eval", EVAL, "--out", "r.jsonl", "--junit", "r.xml", cwd=example)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("4 cases: 4 passed, 0 failed, 0 errors\n")
    rows = [json.loads(line) for line in (example / "r.jsonl").read_text("utf-8").splitlines()]
    assert [row["eval_id"] for row in rows] == [
        "writes-a-function",
        "reviews-a-file",
        "remembers-the-conversation",
        "answers-with-json",
    ]
    assert all(violations("result-v1", row) == [] for row in rows)
    assert violations("report-v1", json.loads((example / "r.report.json").read_text("utf-8"))) == []
    junit = JUnitXml.fromfile(str(example / "r.xml"))
    assert (junit.tests, junit.failures, junit.errors) == (4, 0, 0)


def test_bundled_example_shows_that_guidelines_and_turns_reach_the_agent(example: Path) -> None:
    assert run_process("eval", EVAL, "--out", "r.jsonl", cwd=example).code == 0
    rows = {row["eval_id"]: row for row in map(json.loads, (example / "r.jsonl").read_text("utf-8").splitlines())}
    assert "Begin every function with a JSDoc comment" in rows["writes-a-function"]["request"]["prompt"]
    assert rows["writes-a-function"]["candidate_answer"].startswith("```js\n/**")
    assert "@[Assistant]:" in rows["remembers-the-conversation"]["request"]["prompt"]
    assert rows["remembers-the-conversation"]["candidate_answer"] == "Your name is Ada."


def test_one_broken_line_is_named_and_nothing_runs(example: Path) -> None:
    edit(
        example / EVAL, "  - id: reviews-a-file\n    expected_outcome:", "  - id: reviews-a-file\n    expectd_outcome:"
    )
    line = (
        (example / EVAL)
        .read_text("utf-8")
        .splitlines()
        .index("    expectd_outcome: Names the three guidelines that cart.js breaks")
    )
    done = run_process("eval", EVAL, "--out", "r.jsonl", cwd=example)
    assert done.code == 2
    assert done.err == (
        f"{example / EVAL}:{line + 1}:5: error: unknown field 'expectd_outcome' (did you mean 'expected_outcome'?) "
        "[AV202] (reviews-a-file)\n"
    )
    assert done.out == ""
    assert not (example / "r.jsonl").exists()


def test_an_agent_that_answers_wrongly_fails_the_case_by_name(example: Path) -> None:
    edit(example / "agent" / "agent.py", 'return f"Your name is {name_in(prompt)}."', 'return "Your name is Bob."')
    done = run_process("eval", EVAL, "--out", "r.jsonl", "--junit", "r.xml", cwd=example)
    assert done.code == 1
    assert "  fail 0.000  remembers-the-conversation  (evals/example.test.yaml:" in done.out
    assert "    does not contain 'Ada'\n" in done.out
    assert "gate: not passed\n  pass rate 75.0% is below 100.0%\n" in done.out
    failures = [case.name for suite in JUnitXml.fromfile(str(example / "r.xml")) for case in suite if case.result]
    assert failures == ["remembers-the-conversation [default]"]


def test_an_agent_that_crashes_is_an_infrastructure_error(example: Path) -> None:
    write(example, {"agent/agent.py": "raise SystemExit('no model loaded')\n"})
    done = run_process("eval", EVAL, "--out", "r.jsonl", "--max-retries", "0", cwd=example)
    assert done.code == 4
    assert "process: no model loaded (exit code 1)" in done.out


TARGETS = """\
$schema: agentv-targets-v2.2
targets:
  - name: default
    provider: openai
    base_url: ${{ API_URL }}
    api_key: ${{ API_KEY }}
    model: ${{ API_MODEL }}
    max_output_tokens: ${{ API_LIMIT }}
    retry_initial_delay_ms: 1
"""
QUESTION = """\
$schema: agentv-eval-v2
evalcases:
  - id: answers
    expected_outcome: The number 42
    input_messages: [{role: user, content: What is the answer?}]
    expected_messages: [{role: assistant, content: "42"}]
    evaluators:
      - {name: has-42, type: contains, value: "42"}
      - {name: is-judged, type: llm_judge, temperature: 0.5}
"""
SECRET = "sk-canary-0123456789abcdef"
JUDGEMENT = json.dumps({"score": 0.9, "hits": ["names 42"], "misses": [], "reasoning": "right"})


def test_openai_target_and_judge_over_the_wire(repository: Path) -> None:
    write(repository, {"targets.yaml": TARGETS, "q.test.yaml": QUESTION})
    with chat_api(fails(429, "slow down", retry_after="0.01"), says("It is 42."), says(f"Sure: {JUDGEMENT}")) as api:
        env = {"API_URL": f"{api.base_url}/", "API_KEY": f" {SECRET}\n", "API_MODEL": "m-1", "API_LIMIT": "50"}
        done = run_process("eval", "q.test.yaml", "--out", "r.jsonl", "--verbose", cwd=repository, env=env)
    assert done.code == 0, done.err
    first, again, judge = (request["body"] for request in api.requests)
    assert first == again
    assert first == {
        "model": "m-1",
        "messages": [
            {"role": "system", "content": first["messages"][0]["content"]},
            {"role": "user", "content": "What is the answer?"},
        ],
        "max_tokens": 50,
    }
    assert {request["path"] for request in api.requests} == {"/v1/chat/completions"}
    assert {request["headers"]["authorization"] for request in api.requests} == {f"Bearer {SECRET}"}
    assert judge["temperature"] == 0.5
    assert "expected_outcome" in judge["messages"][0]["content"]
    assert "It is 42." in judge["messages"][1]["content"]

    row = json.loads((repository / "r.jsonl").read_text("utf-8"))
    assert (row["attempts"], row["requests"], row["model"], row["score"]) == (1, 2, "mock-model-2030", 0.95)
    assert row["usage"] == {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110, "cached_tokens": 20}
    assert row["judge_usage"]["total_tokens"] == 110
    assert "HTTP 429: slow down; retry 1 of 3 in 0.0 s" in done.err
    written = "".join(path.read_text("utf-8") for path in repository.rglob("*") if path.is_file())
    assert SECRET not in written + done.out + done.err


def test_every_missing_variable_is_named_before_the_first_request(repository: Path) -> None:
    write(repository, {"targets.yaml": TARGETS, "q.test.yaml": QUESTION, ".env": "API_MODEL=from-dotenv\n"})
    with chat_api() as api:
        done = run_process("eval", "q.test.yaml", "--out", "r.jsonl", cwd=repository, env={"API_URL": ""})
    assert done.code == 2
    assert done.err == (
        "error: target 'default' needs environment variables that are not set: API_KEY (api_key), API_URL (base_url)\n"
        "    set them in the environment or in a .env file\n"
    )
    assert api.requests == []


def test_workers_ask_side_by_side_and_statistics_do_not_change(repository: Path) -> None:
    cases = "".join(
        f"  - id: case-{number}\n    expected_outcome: ok\n    input_messages: [{{role: user, content: '{number}'}}]\n"
        "    expected_messages: []\n    evaluators: [{name: odd, type: regex, value: '[13579]$'}]\n"
        for number in range(12)
    )
    write(repository, {"targets.yaml": TARGETS, "q.test.yaml": f"$schema: agentv-eval-v2\nevalcases:\n{cases}"})

    def answer(body: dict[str, Any]) -> Any:
        time.sleep(0.05)
        return says(body["messages"][-1]["content"])

    figures, widths = [], []
    for workers in ("1", "4"):
        with chat_api(answer) as api:
            env = {"API_URL": api.base_url, "API_KEY": SECRET, "API_MODEL": "m"}
            done = run_process("eval", "q.test.yaml", "--out", "r.jsonl", "--workers", workers, cwd=repository, env=env)
        assert done.code == 1
        figures.append(re.sub(r"(?s)^.*?(?=12 cases)", "", done.out))
        widths.append(api.most_at_once)
    assert figures[0] == figures[1]
    assert widths == [1, 4]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_finished_rows_and_leaves_no_child(repository: Path, number: signal.Signals) -> None:
    targets = "$schema: agentv-targets-v2.2\ntargets:\n  - {name: default, provider: cli, command_template: '%s'}\n"
    command = "test -e first && { sleep 60 & echo $! > child; wait; } || { touch first; echo 42; }"
    case = """\
  - id: {}
    expected_outcome: ok
    input_messages: [{{role: user, content: x}}]
    expected_messages: []
    evaluators: [{{name: a, type: contains, value: '42'}}]
"""
    evals = "".join(case.format(name) for name in "ab")
    write(
        repository,
        {"targets.yaml": targets % command, "q.test.yaml": f"$schema: agentv-eval-v2\nevalcases:\n{evals}"},
    )
    # A background job of a shell is born deaf to SIGINT, and so are its children: also these tests, sometimes.
    hearing = "import signal, runpy; signal.signal(signal.SIGINT, signal.default_int_handler); "
    program = f"{hearing}runpy.run_module('agentv_ci', run_name='__main__', alter_sys=True)"
    arguments = [sys.executable, "-c", program, "eval", "q.test.yaml", "--out", "r.jsonl"]
    process = subprocess.Popen(arguments, cwd=repository, env=clean_environment(), stderr=subprocess.PIPE, text=True)
    child = repository / "child"
    deadline = time.monotonic() + 30
    while not (child.exists() and child.read_text("utf-8").strip()) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert err.endswith("error: interrupted; finished rows are kept\n")
    assert [json.loads(line)["eval_id"] for line in (repository / "r.jsonl").read_text("utf-8").splitlines()] == ["a"]
    assert has_ended(int(child.read_text("utf-8")))


def test_plan_runs_the_script_that_was_compiled_with_all_its_files(repository: Path) -> None:
    """Editing one file of a script does not change what an older plan scores, nor mix old and new files."""
    grader = "import json, helper\nprint(json.dumps({'score': helper.SCORE}))\n"
    case = {
        "id": "a",
        "expected_outcome": "x",
        "input_messages": [{"role": "user", "content": "x"}],
        "expected_messages": [],
        "evaluators": [
            {"name": "graded", "type": "code", "script": "graders/grade.py", "files": ["graders/helper.py"]}
        ],
    }
    files = {
        "evals/a.yaml": json.dumps({"$schema": "agentv-eval-v2", "evalcases": [case]}),
        "evals/graders/grade.py": grader,
        "evals/graders/helper.py": "SCORE = 1\n",
        "targets.yaml": "$schema: agentv-targets-v2.2\ntargets: [{name: default, provider: mock}]\n",
    }
    write(repository, files)
    assert run_process("compile", "evals", "--out", "plan.json", cwd=repository).code == 0
    for changed in ({"evals/graders/helper.py": "SCORE = 0\n"}, {"evals/graders/grade.py": grader + "# remark\n"}):
        write(repository, {**files, **changed})
        done = run_process("eval", "plan.json", "--out", "rows.jsonl", cwd=repository)
        assert (done.code, "1 passed" in done.out) == (0, True), done


def test_example_of_scripts_in_three_languages_scores_alike(tmp_path: Path) -> None:
    folder = tmp_path / "code-evaluators"
    shutil.copytree(REPOSITORY / "docs" / "examples" / "code-evaluators", folder)
    (folder / ".git").mkdir()
    done = run_process("eval", "evals/code.test.yaml", "--out", "r.jsonl", cwd=folder)
    assert done.code == 0, done.out + done.err
    targets = folder / "evals" / "targets.yaml"
    targets.write_text(targets.read_text("utf-8").replace("30 days", "a month"), "utf-8")
    assert run_process("eval", "evals/code.test.yaml", "--out", "again.jsonl", cwd=folder).code == 1
    (good,), (bad,) = (
        [json.loads(line)["evaluator_results"] for line in (folder / name).read_text("utf-8").splitlines()]
        for name in ("r.jsonl", "again.jsonl")
    )
    assert [(each["name"], each["status"], each["score"]) for each in good] == [
        ("python", "ok", 1.0),
        ("bash", "ok", 1.0),
        ("node", "ok", 1.0),
    ]
    assert [each["score"] for each in bad] == [0.5, 0.0, 0.5]
    assert [each["misses"] for each in bad] == [
        ["does not mention '30 days'"],
        ["does not mention 30 days"],
        ["does not mention '30 DAYS'"],
    ]
