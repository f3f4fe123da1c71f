"""Secrets in what scripts and judges say are masked before anything is shortened, written or shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.base.redaction import Redactor
from agentv_ci.base.text import printable
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.results import EvaluatorResult
from agentv_ci.evaluate.scoring import assessment_of
from tests.evaluate.builders import assess, evaluator, tools
from tests.support import write
from tests.support.projects import Project

SECRET = "Sk" + "".join(chr(97 + number * 7 % 26) for number in range(46)) + "!Z"
ENVIRON = {"MY_API_KEY": SECRET}
LLM_JUDGE = {"name": "judge", "type": "llm_judge"}


def script(folder: Path, command: str, log: list[str] | None = None) -> EvaluatorResult:
    services = tools(root=folder, environ=ENVIRON, log=print if log is None else log.append)
    return assess(evaluator("code", command=command), "x", services)


def masked(result: EvaluatorResult) -> EvaluatorResult:
    return Redactor([SECRET]).result(result)[0]


def printed(text: str) -> tuple[EvaluatorResult, bool]:
    texts: dict[str, Any] = {"reasoning": text, "judge_prompt": text, "raw_response": text, "stderr": text}
    score = Score(1.0, hits=(text,), misses=(text,), **texts)
    return Redactor([SECRET]).result(assessment_of(evaluator("code", command=text), score, 0.8).result)


def test_secret_that_a_script_prints_is_masked_everywhere(tmp_path: Path) -> None:
    both = '{"score": 0, "hits": ["%s"], "misses": ["%s"], "reasoning": "%s"}'
    command = f"echo $MY_API_KEY >&2; printf '{both}' $MY_API_KEY $MY_API_KEY $MY_API_KEY"
    for each in (command, f"{command}; exit 3", "echo $MY_API_KEY"):
        assert SECRET not in repr(masked(script(tmp_path, each)))


@pytest.mark.parametrize("end", ["; exit 3", ""])
def test_reasoning_is_shortened_after_masking(tmp_path: Path, end: str) -> None:
    command = f"head -c 390 /dev/zero | tr '\\0' x; printf '%s%2000s' $MY_API_KEY x{end}"
    reasoning = masked(script(tmp_path, command)).reasoning
    assert len(reasoning) <= 1000
    assert SECRET[:5] not in reasoning


def test_log_is_not_shortened_before_masking(tmp_path: Path) -> None:
    log: list[str] = []
    script(tmp_path, "printf '%490s%s' x $MY_API_KEY >&2; echo '{\"score\": 1}'", log)
    assert SECRET in log[0]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * 7 + SECRET * 2_000, id="secrets-alone"),
        pytest.param("\x1b[31m\x1b[0m" * 4_442 + "x" * 10 + SECRET + "y" * 50_000 + "\x1b[0m" * 10_000, id="colours"),
        pytest.param("x" * 39_970 + SECRET + "x" * 100_000, id="at-the-cut"),
        pytest.param("x" * 3_980 + SECRET + "x" * 100_000, id="at-the-last-cut"),
        pytest.param("x" * 100_000 + SECRET + "x" * 39_970, id="at-the-end"),
    ],
)
def test_shortening_leaves_no_part_of_a_secret(text: str) -> None:
    result, _ = printed(text)
    known = (result.settings, result.judge_prompt, result.raw_response, result.stderr)
    shown = [result.reasoning, *filter(None, known), *result.hits, *result.misses]
    for part in (SECRET[:12], SECRET[-12:]):
        assert not [each for each in shown if part in each]


@given(st.text("ab \n", max_size=30), st.text("ab \n", max_size=30))
def test_result_is_marked_when_a_secret_was_masked(before: str, after: str) -> None:
    result, is_masked = printed(before + SECRET + after)
    assert is_masked
    assert SECRET not in repr(result)
    assert printed(before + after)[1] is False


@pytest.mark.parametrize("colour", ["\x1b[0m", "\x1b[31m", "\x1b]8;;\x07"])
def test_colours_inside_a_secret_do_not_hide_it(colour: str) -> None:
    result, _ = printed(SECRET[:8] + colour + SECRET[8:])
    assert SECRET not in printable("".join((result.reasoning, *result.hits, *result.misses)))


def run(folder: Path, evaluators: list[dict[str, Any]], reply: str) -> tuple[str, dict[str, Any]]:
    """Return all that a run with a mocked judge prints and writes, and its row."""
    project = Project(folder, dict(ENVIRON))
    target = {"name": "default", "provider": "mock", "response": "Hello", "judge_target": "judge"}
    judge = {"name": "judge", "provider": "mock", "response": reply}
    project.documents("one", targets=(target, judge), evaluators=evaluators)
    done = project.eval()
    files = [path.read_text("utf-8") for path in folder.glob("r.*")]
    return "\n".join((done.out, done.err, *files)), project.rows()[0]


@pytest.mark.parametrize(
    "reply", [f'{{"score": 1, "hits": ["{SECRET}"], "reasoning": "{SECRET}"}}', f"unreadable {SECRET}"]
)
def test_secret_in_a_reply_of_a_judge_is_masked_in_a_run(reply: str, repository: Path) -> None:
    told, row = run(repository, [LLM_JUDGE], reply)
    assert SECRET not in told
    assert row["masked"] is True


def test_secret_with_a_colour_inside_is_masked_in_a_run(repository: Path) -> None:
    program = "import json, os\nkey = os.environ['MY_API_KEY']\nsplit = key[:8] + '\\x1b[0m' + key[8:]\n"
    write(repository, {"evals/judge.py": f"{program}print(json.dumps({{'score': 0, 'misses': [split]}}))\n"})
    told, _ = run(repository, [{"name": "c", "type": "code", "script": "./judge.py"}], "")
    assert SECRET not in told
