"""`type: code`: real scripts in real processes."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.exchange import Grade, Request, Response
from agentv_ci.contracts.plan import FileReference, PlanCase, PlanCodeEvaluator, PlanMessage, PlanToolCall, TextPart
from agentv_ci.contracts.results import EvaluatorResult, OutputMessage, ToolCall
from agentv_ci.evaluate.evaluators import evaluate
from agentv_ci.evaluate.submission import EvaluatorServices, Submission
from agentv_ci.redaction import Redactor
from tests.evaluate.builders import DIGEST, Texts, answered, plan_case, tools

KEEP_STDIN = """\
import pathlib, sys
pathlib.Path("stdin.json").write_bytes(sys.stdin.buffer.read())
print('{"score": 1}')
"""

NEEDS_NODE = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")

HANGS_S = 15
"""A test that takes so long would never end."""


def reference(path: str) -> FileReference:
    return FileReference(path=path, sha256=DIGEST)


def run_script(
    folder: Path,
    text: str,
    *,
    name: str = "judge.py",
    arguments: Sequence[str] = (),
    answer: str = "Hello",
    **given: Any,
) -> EvaluatorResult:
    """Score with a script of this text; `given` are settings of the evaluator."""
    (folder / name).write_text(text, encoding="utf-8")
    return run(folder, answer, argv=(name, *arguments), files=(reference(name),), **given)


def run_command(folder: Path, command: str, answer: str = "Hello", **given: Any) -> EvaluatorResult:
    """Score with a command for a shell."""
    return run(folder, answer, command=command, **given)


def run(
    folder: Path,
    answer: str | Response = "Hello",
    case: PlanCase | None = None,
    *,
    texts: Texts | None = None,
    environ: dict[str, str] | None = None,
    told: list[str] | None = None,
    **given: Any,
) -> EvaluatorResult:
    evaluator = PlanCodeEvaluator(name="script", **given)
    case = (case or plan_case()).model_copy(update={"evaluators": (evaluator,)})
    response = answered(answer) if isinstance(answer, str) else answer
    request = Request(case_id=case.id, prompt="Say hello.", guidelines="", chat=(), timeout_s=30, cwd=folder)
    submitted = Submission(case, request, response, texts.by_digest if texts else {})
    means = tools(root=folder, environ=environ, log=told.append if told is not None else print)
    (outcome,) = asyncio.run(_grade(submitted, means)).results
    return outcome


async def _grade(submitted: Submission, means: EvaluatorServices) -> Grade:
    async with asyncio.timeout(HANGS_S):
        return await evaluate(submitted, means)


def stdin_of(folder: Path, *arguments: Any, **given: Any) -> Any:
    """Return what a script reads on stdin."""
    (folder / "keep.py").write_text(KEEP_STDIN, encoding="utf-8")
    assert run(folder, *arguments, argv=("keep.py",), files=(reference("keep.py"),), **given).status == "ok"
    return json.loads((folder / "stdin.json").read_bytes())


def test_score_and_findings_are_the_scripts(tmp_path: Path) -> None:
    printed = {"score": 0.75, "hits": [" a ", "", "b"], "misses": ["c"], "reasoning": " why "}
    assert run_script(tmp_path, f"print({json.dumps(printed)!r})") == EvaluatorResult(
        name="script",
        type="code",
        status="ok",
        score=0.75,
        weight=1.0,
        required=False,
        verdict="borderline",
        hits=("a", "b"),
        misses=("c",),
        reasoning="why",
        raw_response=None,
    )


def test_more_than_four_findings_are_kept(tmp_path: Path) -> None:
    many = [str(number) for number in range(9)]
    printed = json.dumps({"score": 1, "hits": many, "misses": many})
    outcome = run_script(tmp_path, f"print({printed!r})")
    assert (outcome.hits, outcome.misses) == (tuple(many), tuple(many))


def test_findings_may_be_left_out(tmp_path: Path) -> None:
    outcome = run_command(tmp_path, "echo '{\"score\": 1}'")
    assert (outcome.score, outcome.hits, outcome.misses, outcome.reasoning) == (1.0, (), (), "")


@pytest.mark.parametrize(
    ("printed", "score"), [("7", 1.0), ("-3", 0.0), ("-0.1", 0.0), ("0", 0.0), ('"0.5"', 0.5), ("1.0000001", 1.0)]
)
def test_score_is_clamped_to_the_range(tmp_path: Path, printed: str, score: float) -> None:
    outcome = run_command(tmp_path, f"printf '%s' '{{\"score\": {printed}}}'")
    assert (outcome.status, outcome.score) == ("ok", score)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("judge.py", "print('{\"score\": 1}')"),
        pytest.param("judge.js", "console.log(JSON.stringify({score: 1}))", marks=NEEDS_NODE),
        pytest.param("judge.mjs", "import p from 'node:process'; p.stdout.write('{\"score\": 1}')", marks=NEEDS_NODE),
        ("judge.sh", "echo '{\"score\": 1}'"),
    ],
)
def test_script_is_started_by_what_its_suffix_says(tmp_path: Path, name: str, text: str) -> None:
    assert run_script(tmp_path, text, name=name).score == 1.0


def test_python_script_runs_on_the_interpreter_of_the_run(tmp_path: Path) -> None:
    text = "#!/bin/false\nimport json, sys\nprint(json.dumps({'score': 1, 'reasoning': sys.executable}))"
    (tmp_path / "judge.py").touch(mode=0o755)
    assert run_script(tmp_path, text).reasoning == sys.executable


def test_program_with_a_shebang_starts_by_itself(tmp_path: Path) -> None:
    (tmp_path / "judge").touch(mode=0o755)
    assert run_script(tmp_path, "#!/bin/sh\necho '{\"score\": 1}'\n", name="judge").score == 1.0


def test_command_is_read_by_a_shell(tmp_path: Path) -> None:
    assert run_command(tmp_path, "score=0.5; printf '{\"score\": %s}' $score | cat").score == 0.5


def test_arguments_reach_the_program_as_they_are(tmp_path: Path) -> None:
    arguments = ["two words", "'quoted' \"text\"", "$HOME `id`", "", "*", "{{ x }}"]
    text = "import json, sys\nprint(json.dumps({'score': 1, 'reasoning': json.dumps(sys.argv[1:])}))"
    assert json.loads(run_script(tmp_path, text, arguments=arguments).reasoning) == arguments


def test_program_of_the_system_may_run_a_script_of_the_plan(tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/judge.sh").write_text('echo "{\\"score\\": 1, \\"reasoning\\": \\"$0 $1\\"}"')
    outcome = run(
        tmp_path, argv=("/bin/sh", "evals/judge.sh", "strict"), files=(reference("evals/judge.sh"),), cwd="evals"
    )
    assert outcome.reasoning == f"{tmp_path}/evals/judge.sh strict"


def test_script_runs_in_the_eval_files_folder(tmp_path: Path) -> None:
    assert run_command(tmp_path, 'printf \'{"score": 1, "reasoning": "%s"}\' "$(pwd -P)"').reasoning == str(
        tmp_path.resolve()
    )


def test_script_runs_in_its_own_folder_when_it_names_one(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/score.json").write_text('{"score": 0.25}')
    assert run_command(tmp_path, "cat score.json", cwd="tools").score == 0.25


def test_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    outcome = run_command(tmp_path, "echo '{\"score\": 1}'", cwd="gone")
    assert (outcome.status, outcome.reasoning) == (
        "error",
        f"the script cannot start: working directory '{tmp_path}/gone' does not exist",
    )


def test_script_reads_the_whole_case_on_stdin(tmp_path: Path) -> None:
    texts = Texts()
    case = plan_case(
        input_messages=(
            PlanMessage(role="system", content=(texts.part("rules.prompt.md", "Be kind.", is_guideline=True),)),
            PlanMessage(role="user", content=(TextPart(text="Grüße!"), texts.part("data/a.txt", "a"))),
        ),
        expected_messages=(
            PlanMessage(role="assistant", tool_calls=(PlanToolCall(tool="search", input={"q": 1}, output="x"),)),
            PlanMessage(role="assistant", value={"answer": 42}),
        ),
    )
    messages = (
        OutputMessage(
            role="assistant", content=None, tool_calls=(ToolCall(tool="search", input={"q": 1}, output=[1, None]),)
        ),
        OutputMessage(role="assistant", content="Hello “you”"),
    )
    read = stdin_of(
        tmp_path,
        Response("Hello “you”", messages, has_trace=True),
        case,
        texts=texts,
        config={"strict": True, "most": 3, "words": ["a"]},
    )
    for older in ("candidate_trace_summary", "guideline_paths", "input_segments"):
        read.pop(older, None)
    assert read == {
        "eval_id": "one",
        "question": "Say hello.",
        "expected_outcome": "It greets.",
        "reference_answer": "Hello!",
        "candidate_answer": "Hello “you”",
        "input_messages": [
            {
                "role": "system",
                "content": [{"type": "file", "value": f"{tmp_path}/rules.prompt.md", "text": "Be kind."}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "text", "value": "Grüße!"},
                    {"type": "file", "value": f"{tmp_path}/data/a.txt", "text": "a"},
                ],
            },
        ],
        "expected_messages": [
            {
                "role": "assistant",
                "content": [],
                "tool_calls": [{"tool": "search", "input": {"q": 1}, "output": "x"}],
            },
            {"role": "assistant", "content": {"answer": 42}},
        ],
        "output_messages": [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"tool": "search", "input": {"q": 1}, "output": [1, None]}],
            },
            {"role": "assistant", "content": "Hello “you”"},
        ],
        "guideline_files": [f"{tmp_path}/rules.prompt.md"],
        "input_files": [f"{tmp_path}/data/a.txt"],
        "has_trace": True,
        "config": {"strict": True, "most": 3, "words": ["a"]},
    }


@pytest.mark.parametrize("key", ["candidate_trace_summary", "guideline_paths", "input_segments"])
def test_script_reads_what_older_scripts_know(tmp_path: Path, key: str) -> None:
    assert key in stdin_of(tmp_path)


def test_script_reads_who_speaks_when_a_message_names_it(tmp_path: Path) -> None:
    case = plan_case(input_messages=(PlanMessage(role="user", name="Ann", content=(TextPart(text="Hi"),)),))
    assert stdin_of(tmp_path, "Hello", case)["input_messages"] == [
        {"role": "user", "name": "Ann", "content": [{"type": "text", "value": "Hi"}]}
    ]


@pytest.mark.parametrize("answer", ["", "\x00", "a\ud800b", "\u2028😀", '"}{"', "x" * 300_000])
def test_any_answer_reaches_the_script_as_utf_8_json(tmp_path: Path, answer: str) -> None:
    assert stdin_of(tmp_path, answer)["candidate_answer"] == answer.replace("\ud800", "?")


@pytest.mark.parametrize(
    ("command", "reasoning"),
    [
        ("echo wrong >&2; exit 3", "the script exited with code 3: wrong"),
        ("echo '{\"score\": 1}'; exit 3", 'the script exited with code 3: {"score": 1}'),
        ("exit 3", "the script exited with code 3: no output"),
        ("kill -9 $$", "the script exited with code -9: no output"),
        ("no-such-program-anywhere 2>/dev/null", "the script exited with code 127: no output"),
        ("true", "the script printed no JSON object with a score: nothing"),
        ("echo 0.9", "the script printed no JSON object with a score: 0.9"),
        ("echo '[0.9]'", "the script printed no JSON object with a score: [0.9]"),
        ("echo '{\"score\": 0.9'", 'the script printed no JSON object with a score: {"score": 0.9'),
        ("echo '{\"hits\": []}'", 'the script printed no JSON object with a score: {"hits": []}'),
        ("echo '{\"score\": true}'", 'the script printed no JSON object with a score: {"score": true}'),
        ("echo '{\"score\": null}'", 'the script printed no JSON object with a score: {"score": null}'),
        ("echo '{\"score\": NaN}'", 'the script printed no JSON object with a score: {"score": NaN}'),
        ("echo '{\"score\": 1e999}'", 'the script printed no JSON object with a score: {"score": 1e999}'),
        ('echo \'{"score": "high"}\'', 'the script printed no JSON object with a score: {"score": "high"}'),
        ("echo '{\"score\": 1}' >&2", "the script printed no JSON object with a score: nothing"),
    ],
)
def test_script_that_gives_no_score_is_an_error_and_no_zero(tmp_path: Path, command: str, reasoning: str) -> None:
    outcome = run_command(tmp_path, command)
    assert (outcome.status, outcome.verdict, outcome.score, outcome.reasoning) == ("error", "error", 0.0, reasoning)


def test_traceback_of_a_crash_is_told(tmp_path: Path) -> None:
    outcome = run_script(tmp_path, "raise ValueError('too bad')")
    assert outcome.reasoning == "the script exited with code 1: ValueError: too bad"
    assert outcome.raw_response is None
    assert outcome.stderr is not None
    assert outcome.stderr.startswith("Traceback")


@pytest.mark.parametrize("command", ["echo half; exit 3", "echo half"])
def test_raw_response_is_kept_when_it_gives_no_score(tmp_path: Path, command: str) -> None:
    assert run_command(tmp_path, command).raw_response == "half\n"


@pytest.mark.parametrize(
    ("command", "status"), [("echo '{\"score\": 1}'", "ok"), ("echo half", "error"), ("false", "error")]
)
def test_what_a_script_writes_to_stderr_is_in_the_result(tmp_path: Path, command: str, status: str) -> None:
    outcome = run_command(tmp_path, f"echo careful >&2; {command}")
    assert (outcome.status, outcome.stderr) == (status, "careful")


def test_what_a_script_wrote_before_its_time_was_over_is_in_the_result(tmp_path: Path) -> None:
    outcome = run_command(tmp_path, "echo begun; echo slow >&2; exec sleep 60", timeout_seconds=0.5)
    assert (outcome.raw_response, outcome.stderr) == ("begun\n", "slow")


@pytest.mark.parametrize("first_line", ["#!/usr/bin/env bash", "#!/bin/bash -e"])
@pytest.mark.parametrize("name", ["judge.sh", "judge"])
def test_first_line_says_what_starts_a_script_that_is_not_executable(
    tmp_path: Path, first_line: str, name: str
) -> None:
    text = f'{first_line}\nwords=(1 0.5); echo "{{\\"score\\": ${{words[1]}}}}"\n'
    assert run_script(tmp_path, text, name=name).score == 0.5


def test_interpreter_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    outcome = run_script(tmp_path, "#!/no/such/interpreter\n", name="judge.sh")
    assert (outcome.status, outcome.reasoning) == (
        "error",
        "the script cannot start '/no/such/interpreter': No such file or directory",
    )


def test_long_complaint_is_cut_when_its_secrets_are_out(tmp_path: Path) -> None:
    broken = run_script(tmp_path, "import sys\nsys.exit('x' * 9000 + 'canary-value')")
    outcome, _ = Redactor(["canary-value"]).result(broken)
    assert len(outcome.reasoning) == 1000
    assert outcome.reasoning.endswith("xxx***")


def test_program_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    outcome = run(tmp_path, argv=("no-such-program-anywhere",))
    assert (outcome.status, outcome.reasoning) == (
        "error",
        "the script cannot start 'no-such-program-anywhere': No such file or directory",
    )


def test_script_that_takes_too_long_is_an_error(tmp_path: Path) -> None:
    outcome = run_command(tmp_path, "echo '{\"score\": 1}'; exec sleep 60", timeout_seconds=0.2)
    assert (outcome.status, outcome.reasoning) == ("error", "the script timed out after 0.2 s")


def test_script_may_take_as_long_as_its_case_when_it_has_no_limit_of_its_own(tmp_path: Path) -> None:
    outcome = run(tmp_path, "Hello", plan_case(timeout_seconds=0.2), command="exec sleep 60")
    assert (outcome.status, outcome.reasoning) == ("error", "the script timed out after 0.2 s")


def test_own_limit_wins_over_the_cases(tmp_path: Path) -> None:
    command = "sleep 0.3; echo '{\"score\": 1}'"
    assert run(tmp_path, "Hello", plan_case(timeout_seconds=0.1), command=command, timeout_seconds=30).score == 1.0


def test_script_that_prints_without_end_is_an_error(tmp_path: Path) -> None:
    outcome = run_command(tmp_path, "exec yes")
    assert (outcome.status, outcome.reasoning) == ("error", "the script printed more than 10 MiB")


@pytest.mark.parametrize("command", ["echo '{\"score\": 1}'", "exec <&-; echo '{\"score\": 1}'"])
def test_script_need_not_read_its_stdin(tmp_path: Path, command: str) -> None:
    assert run_command(tmp_path, command, answer="x" * 1_000_000).score == 1.0


def test_script_that_leaves_a_child_behind_has_answered(tmp_path: Path) -> None:
    assert run_command(tmp_path, "sleep 60 & echo '{\"score\": 1}'", timeout_seconds=5).score == 1.0


def test_output_that_is_not_utf_8_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    assert run_command(tmp_path, 'printf \'\\377 {"score": 1, "reasoning": "\\377"}\'').reasoning == "\ufffd"


def test_complaints_of_a_script_that_scores_are_logged(tmp_path: Path) -> None:
    told: list[str] = []
    outcome = run(tmp_path, command="echo careful >&2; echo '{\"score\": 1}'", told=told)
    assert (outcome.score, told) == (1.0, ["one: script: stderr: careful"])


def test_script_does_not_get_what_belongs_to_the_runner(tmp_path: Path) -> None:
    environ = {
        "GITHUB_TOKEN": "a",
        "GH_TOKEN": "b",
        "GITHUB_OUTPUT": "c",
        "ACTIONS_RUNTIME_TOKEN": "d",
        "ACTIONS_ID_TOKEN_REQUEST_URL": "e",
        "GITHUB_SHA": "f",
        "JUDGE_MODE": "g",
    }
    text = "import json, os\nprint(json.dumps({'score': 1, 'reasoning': json.dumps(dict(os.environ))}))"
    (tmp_path / "judge.py").write_text(text)
    outcome = run(tmp_path, argv=("judge.py",), files=(reference("judge.py"),), environ=environ)
    assert {name: value for name, value in json.loads(outcome.reasoning).items() if name in environ} == {
        "GITHUB_SHA": "f",
        "JUDGE_MODE": "g",
    }


def test_script_of_the_plan_runs_from_where_it_is_found(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy/judge.py").write_text("print('{\"score\": 0.5}')")
    (tmp_path / "judge.py").write_text("print('{\"score\": 1}')")
    case = plan_case(PlanCodeEvaluator(name="script", argv=("judge.py",), files=(reference("judge.py"),)))
    request = Request(case_id="one", prompt="", guidelines="", chat=(), timeout_s=30, cwd=tmp_path)
    means = tools(root=tmp_path)
    means.locate_together = lambda found: {each.path: tmp_path / "copy" / each.path for each in found}
    submitted = Submission(case, request, answered("x"), {})
    assert asyncio.run(_grade(submitted, means)).score == 0.5
