"""`code`: real scripts in real processes."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agentv_ci.contracts.exchange import Response
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.contracts.plan_evaluators import PlanCodeEvaluator
from agentv_ci.contracts.plan_parts import FileReference
from agentv_ci.contracts.results import EvaluatorResult
from agentv_ci.evaluate.evaluators import evaluate
from agentv_ci.evaluate.submission import EvaluatorServices
from tests.evaluate.builders import plan_case, submission, tools
from tests.support.runs import DIGEST

KEEP_STDIN = """\
import pathlib, sys
pathlib.Path("stdin.json").write_bytes(sys.stdin.buffer.read())
print('{"score": 1}')
"""
ONE = "echo '{\"score\": 1}'"
NEEDS_NODE = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def reference(path: str) -> FileReference:
    return FileReference(path=path, sha256=DIGEST)


def run(
    folder: Path,
    command: str | None = None,
    *,
    answer: str | Response = "Hello",
    case: PlanCase | None = None,
    services: EvaluatorServices | None = None,
    **given: Any,
) -> EvaluatorResult:
    """Score with a command or with the settings that are given."""
    case = (case or plan_case()).model_copy(
        update={"evaluators": (PlanCodeEvaluator(name="script", command=command, **given),)}
    )
    submitted = submission(answer, case, folder=folder)
    (result,) = asyncio.run(evaluate(submitted, services or tools(root=folder, warn=print))).results
    return result


def run_script(
    folder: Path, text: str, *, name: str = "judge.py", arguments: Sequence[str] = (), **given: Any
) -> EvaluatorResult:
    """Score with a script of the plan."""
    (folder / name).write_text(text, encoding="utf-8")
    return run(folder, argv=(name, *arguments), files=(reference(name),), **given)


def print_json(folder: Path, printed: str) -> EvaluatorResult:
    (folder / "out.txt").write_text(printed, encoding="utf-8")
    return run(folder, "cat out.txt")


def stdin_of(folder: Path, **given: Any) -> Any:
    """Return what a script reads on stdin."""
    assert run_script(folder, KEEP_STDIN, **given).status == "ok"
    return json.loads((folder / "stdin.json").read_bytes())


def test_result_has_the_score_and_findings_of_the_script(tmp_path: Path) -> None:
    hits = [" a ", "", *"bcdef"]
    printed = {"score": 0.75, "hits": hits, "misses": ["c"], "reasoning": " why "}
    assert print_json(tmp_path, json.dumps(printed)) == EvaluatorResult(
        name="script",
        type="code",
        status="ok",
        score=0.75,
        weight=1.0,
        required=False,
        verdict="borderline",
        hits=tuple("abcdef"),
        misses=("c",),
        reasoning="why",
        settings='{"command": "cat out.txt"}',
        raw_response=None,
    )


@pytest.mark.parametrize(
    ("printed", "score"),
    [
        ('{"score": 7}', 1.0),
        ('{"score": -0.1}', 0.0),
        ('{"score": "0.5"}', 0.5),
        ('{"score": -1e-320}', 0.0),
        ('\ufeff{"score": 1}\0', 1.0),
        ('{"score": 1, "hits": {"a": 1}, "misses": "all", "reasoning": ["x"]}', 1.0),
        ('starting …\n{"score": 0.5}', 0.5),
        ('{\'a\': 1}\n[1, 2]{not json}{}\n{"level": "info"}\n{"score": 0.5}\n', 0.5),
        ('{"score": 1}\n{"score": 0.5}\n{"done": true}', 0.5),
    ],
)
def test_last_object_with_a_score_counts(tmp_path: Path, printed: str, score: float) -> None:
    found = print_json(tmp_path, printed)
    assert (found.status, str(found.score), found.hits, found.misses) == ("ok", str(score), (), ())


NO_SCORE = "the script printed no JSON object with a score: "


@pytest.mark.parametrize(
    ("command", "reasoning"),
    [
        ("echo wrong >&2; exit 3", "the script exited with code 3: wrong"),
        (f"{ONE}; exit 3", 'the script exited with code 3: {"score": 1}'),
        ("exit 3", "the script exited with code 3: no output"),
        ("kill -9 $$", "the script exited with code -9: no output"),
        ("true", f"{NO_SCORE}nothing"),
        (f"{ONE} >&2", f"{NO_SCORE}nothing"),
        ("exec 1>&-; true", f"{NO_SCORE}nothing"),
        ("echo '[0.9]'", f"{NO_SCORE}[0.9]"),
        ("echo '{\"score\": 0.9'", f'{NO_SCORE}{{"score": 0.9'),
        ("echo '{\"Score\": 1}'", f'{NO_SCORE}{{"Score": 1}}'),
        ("echo '{\"score\": true}'", f'{NO_SCORE}{{"score": true}}'),
        ("echo '{\"score\": 1e999}'", f'{NO_SCORE}{{"score": 1e999}}'),
        ("exec yes", "the script printed more than 10 MiB"),
    ],
)
def test_script_without_a_score_is_an_error(tmp_path: Path, command: str, reasoning: str) -> None:
    found = run(tmp_path, command)
    assert (found.status, found.verdict, found.score, found.reasoning) == ("error", "error", 0.0, reasoning)


def test_exception_of_a_script_is_the_reason(tmp_path: Path) -> None:
    found = run_script(tmp_path, "raise ValueError('too bad')")
    assert (found.reasoning, found.raw_response) == ("the script exited with code 1: ValueError: too bad", None)
    assert str(found.stderr).startswith("Traceback")


@pytest.mark.parametrize(
    ("command", "status", "raw", "stderr"),
    [
        (f"echo careful >&2; {ONE}", "ok", None, "careful"),
        ("echo careful >&2; echo half", "error", "half\n", "careful"),
        ("echo half; exit 3", "error", "half\n", None),
    ],
)
def test_output_is_stored(tmp_path: Path, command: str, status: str, raw: str | None, stderr: str | None) -> None:
    log: list[str] = []
    found = run(tmp_path, command, services=tools(root=tmp_path, log=log.append))
    assert (found.status, found.raw_response, found.stderr) == (status, raw, stderr)
    assert log == ([f"one: script: stderr: {stderr}"] if stderr else [])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("judge.py", "print('{\"score\": 1}')"),
        pytest.param("judge.js", "console.log(JSON.stringify({score: 1}))", marks=NEEDS_NODE),
        pytest.param("judge.mjs", "import p from 'node:process'; p.stdout.write('{\"score\": 1}')", marks=NEEDS_NODE),
        ("judge.sh", ONE),
        ("judge.sh", f"#!/usr/bin/env bash\nwords=(1 2); [ ${{words[1]}} = 2 ] && {ONE}"),
        ("judge", f"#!/bin/bash -e\nwords=(1 2); [ ${{words[1]}} = 2 ] && {ONE}"),
    ],
)
def test_interpreter_is_that_of_the_first_line_or_of_the_suffix(tmp_path: Path, name: str, text: str) -> None:
    assert run_script(tmp_path, text, name=name).score == 1.0


def test_script_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    interpreter = run_script(tmp_path, "#!/no/such/interpreter\n", name="judge.sh")
    program, folder = run(tmp_path, argv=("no-such-program",)), run(tmp_path, ONE, cwd="gone")
    cannot, missing = "the script cannot start", "No such file or directory"
    assert interpreter.reasoning == f"{cannot} '/no/such/interpreter': {missing}"
    assert program.reasoning == f"{cannot} 'no-such-program': {missing}"
    assert folder.reasoning == f"{cannot}: working directory '{tmp_path}/gone' does not exist"
    assert {each.status for each in (interpreter, program, folder)} == {"error"}


def test_executable_script_runs_directly_but_python_with_the_interpreter_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "judge.sh").touch(mode=0o755)
    assert run_script(tmp_path, '#!/bin/cat\n{"score": 0.5}', name="judge.sh").score == 0.5
    (tmp_path / "judge.py").touch(mode=0o755)
    text = "#!/bin/false\nimport json, sys\nprint(json.dumps({'score': 1, 'reasoning': sys.executable}))"
    assert run_script(tmp_path, text).reasoning == sys.executable


def test_arguments_are_passed_unchanged(tmp_path: Path) -> None:
    arguments = ["two words", "'quoted' \"text\"", "$HOME `id`", "", "*", "{{ x }}"]
    text = "import json, sys\nprint(json.dumps({'score': 1, 'reasoning': json.dumps(sys.argv[1:])}))"
    assert json.loads(run_script(tmp_path, text, arguments=arguments).reasoning) == arguments


def test_script_runs_from_its_located_copy(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy/judge.py").write_text("print('{\"score\": 0.5}')")
    copies = replace(
        tools(root=tmp_path), locate_together=lambda found: {each.path: tmp_path / "copy" / each.path for each in found}
    )
    assert run_script(tmp_path, "print('{\"score\": 1}')", services=copies).score == 0.5


def test_script_runs_in_the_folder_of_the_eval_file_or_its_own(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    where = 'printf \'{"score": 1, "reasoning": "%s"}\' "$(pwd -P)"'
    assert run(tmp_path, where).reasoning == str(tmp_path.resolve())
    assert run(tmp_path, where, cwd="tools").reasoning == str(tmp_path.resolve() / "tools")


@pytest.mark.parametrize("answer", ["", "\x00", "a\ud800b", "\u2028😀", '"}{"', "x" * 300_000])
def test_every_answer_reaches_the_script_as_json(tmp_path: Path, answer: str) -> None:
    case = stdin_of(tmp_path, answer=answer)
    assert case["candidate_answer"] == answer.replace("\ud800", "?")
    assert (case["has_trace"], case["candidate_trace_summary"]) == (False, None)


def test_time_limit_is_the_scripts_own_or_that_of_the_case(tmp_path: Path) -> None:
    own = run(tmp_path, "echo begun; echo slow >&2; exec sleep 60", timeout_seconds=0.3)
    assert (own.status, own.reasoning) == ("error", "the script timed out after 0.3 s")
    assert (own.raw_response, own.stderr) == ("begun\n", "slow")
    short = plan_case(timeout_seconds=0.1)
    assert run(tmp_path, "exec sleep 60", case=short).reasoning == "the script timed out after 0.1 s"
    assert run(tmp_path, f"sleep 0.2; {ONE}", case=short, timeout_seconds=30).score == 1.0


def test_script_does_not_get_the_runners_variables(tmp_path: Path) -> None:
    runner = ("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_OUTPUT", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL")
    environ = dict.fromkeys((*runner, "GITHUB_SHA", "JUDGE_MODE"), "x")
    text = "import json, os\nprint(json.dumps({'score': 1, 'hits': sorted(os.environ)}))"
    found = run_script(tmp_path, text, services=tools(root=tmp_path, environ=environ))
    assert {*found.hits} & environ.keys() == {"GITHUB_SHA", "JUDGE_MODE"}
