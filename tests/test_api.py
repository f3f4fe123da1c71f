"""The Python API: evals in, results with verdicts and reasons out."""

from __future__ import annotations

import asyncio
import math
import os
import re
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import agentv_ci
from agentv_ci import plugins
from agentv_ci.api import Results, RunKeywords
from agentv_ci.errors import InvalidInput, MissingVariables, NothingToRun, TargetUnavailable, UsageError
from tests.support.projects import GREETS, HELLO, Project

CASE = {"id": "a", "expected_outcome": "Greets", "input": "Hi", "expected": [], "evaluators": [HELLO]}
SAYS_BYE = {**HELLO, "name": "bye", "value": "bye"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    found = Project(tmp_path)
    found.documents({"id": "greets", "tags": ["polite"]}, {"id": "leaves", "evaluators": [SAYS_BYE]})
    return found


def ran(project: Project, *evals: Any, **options: Any) -> Results:
    return agentv_ci.run(*evals or ("evals/",), cwd=project.folder, **options)


def test_package_lists_what_it_offers() -> None:
    assert {"run", "run_async", "__version__"} <= set(dir(agentv_ci))


def test_verdicts_and_reasons(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    results = ran(project)
    greets, leaves = results.cases
    assert (results.verdict, results.passed, results.exit_code) == ("fail", False, 1)
    assert results.reasons == ("pass rate 50.0% is below 100.0%",)
    assert (greets.id, greets.verdict, greets.score, greets.reasons, greets.flaky) == ("greets", "pass", 1.0, (), False)
    assert (leaves.suite, leaves.line, leaves.target, leaves.verdict) == ("evals/x.yaml", 1, "default", "fail")
    assert leaves.reasons == ("bye: does not contain 'bye'",)
    assert [row.candidate_answer for row in leaves.rows] == ["Hello!"]
    assert results.report.counts.cases == 2
    assert capfd.readouterr() == ("", "")
    assert not (project.folder / ".agentv").exists()


@pytest.mark.parametrize(
    ("options", "cases", "trials"),
    [
        ({"eval_ids": ["gr*"]}, 1, 1),
        ({"eval_ids": ["greets"], "repeat": 3, "seed": 5, "workers": 2}, 1, 3),
        ({"dry_run": True}, 2, 1),
        ({"target": "judge"}, 2, 1),
        ({"eval_ids": "greets"}, 1, 1),
        ({"tags": "polite"}, 1, 1),
        ({"not_tags": "polite"}, 1, 1),
        (dict.fromkeys(RunKeywords.__annotations__.keys() - {"cwd"}), 2, 1),
    ],
)
def test_options(project: Project, options: dict[str, Any], cases: int, trials: int) -> None:
    results = ran(project, **options)
    assert len(results.cases) == cases
    assert {len(each.rows) for each in results.cases} == {trials}
    if options.get("seed"):
        assert [row.seed for row in results.cases[0].rows] == [5, 6, 7]


def test_documents_are_as_good_as_files(project: Project) -> None:
    (project.folder / "notes.txt").write_text("Hello from a file")
    question = {"role": "user", "content": [{"type": "file", "value": "notes.txt"}]}
    results = ran(project, {"evalcases": [CASE]}, "evals/x.yaml", {"evalcases": [{**CASE, "input": [question]}]})
    assert [each.suite for each in results.cases] == [*["evals/x.yaml"] * 2, "document-1.yaml", "document-2.yaml"]
    assert [each.verdict for each in results.cases] == ["pass", "fail", "pass", "pass"]


def test_plan_cannot_be_combined_with_documents(project: Project) -> None:
    project.run("compile", "evals/", "--out", "plan.json")
    with pytest.raises(UsageError, match="is a plan, which cannot be combined"):
        ran(project, "plan.json", {"evalcases": [CASE]})


def test_documents_are_named_like_no_file(project: Project) -> None:
    project.write({"document-1.yaml": project.text("evals/x.yaml")})
    results = ran(project, "document-1.yaml", {"evalcases": [CASE]}, {"evalcases": [CASE]})
    assert [each.suite for each in results.cases] == [*["document-1.yaml"] * 2, "document-2.yaml", "document-3.yaml"]


def test_documents_are_json(project: Project) -> None:
    question = MappingProxyType({"role": "user", "content": "Hi"})
    assert ran(project, MappingProxyType({"evalcases": ({**CASE, "input": (question,)},)})).passed
    for value, said in {
        date(2026, 1, 2): "datetime.date(2026, 1, 2) is not JSON",
        math.inf: "not JSON compliant",
    }.items():
        with pytest.raises(UsageError, match=re.escape(said)):
            ran(project, {"evalcases": [{**CASE, "metadata": {"value": value}}]})


def test_diagnostics_of_documents_are_raised(project: Project) -> None:
    with pytest.raises(InvalidInput) as error:
        ran(project, {"evalcases": [{**CASE, "inptu": "x"}]})
    (diagnostic,) = error.value.diagnostics
    assert (diagnostic.rule, diagnostic.pointer, diagnostic.line) == ("AV202", "evalcases[0].inptu", 1)


def test_warnings_are_returned(project: Project) -> None:
    results = ran(project, {"evalcases": [{**CASE, "input": "@[User]: Hi"}]})
    (warning,) = results.warnings
    assert warning == f"{project.folder}/document-1.yaml:1:1: the text contains the role marker '@[User]:'"


@pytest.mark.parametrize(
    ("evals", "options", "error"),
    [
        (["nowhere"], {}, UsageError),
        (["evals/"], {"eval_ids": ["nothing"]}, NothingToRun),
        (["evals/"], {"target": "keyed", "env": {}}, MissingVariables),
        (["evals/"], {"target": "agent"}, TargetUnavailable),
    ],
)
def test_errors(project: Project, evals: list[str], options: dict[str, Any], error: type[Exception]) -> None:
    keyed = {"name": "keyed", "provider": "openai", "model": "m", "api_key": "${{ SOME_KEY }}"}
    agent = {"name": "agent", "provider": "codex", "executable": "/no/such/program"}
    project.targets(GREETS, keyed, agent)
    with pytest.raises(error):
        ran(project, *evals, **options)


def test_no_evals() -> None:
    with pytest.raises(UsageError, match="no evals are given"):
        agentv_ci.run()


def test_results_are_written_where_they_should(project: Project) -> None:
    ran(project, out="kept/results.yaml")
    assert sorted(path.name for path in (project.folder / "kept").iterdir()) == ["results.report.json", "results.yaml"]


def test_environment_replaces_that_of_the_process(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREETING", "Goodbye")
    project.targets({"name": "default", "provider": "mock", "response": "${{ GREETING }}"})
    assert ran(project, eval_ids=["greets"]).cases[0].verdict == "fail"
    assert ran(project, eval_ids=["greets"], env={**os.environ, "GREETING": "Hello"}).passed


@pytest.mark.parametrize("rows", [0, 1])
def test_interrupt_is_raised_after_rows_are_written(project: Project, rows: int) -> None:
    interrupts = f"test -e {'evals' if rows == 0 else 'asked'} && kill -INT {os.getpid()} && sleep 9"
    command = f"{interrupts}; touch asked; echo Hello # {{PROMPT}}"
    project.targets({"name": "default", "provider": "cli", "command_template": command, "cwd": str(project.folder)})
    with pytest.raises(KeyboardInterrupt):
        ran(project, workers=1, out="r.jsonl")
    assert len(project.rows() if rows else []) == rows


async def test_cancelled_run_is_cancelled(project: Project) -> None:
    project.targets({"name": "default", "provider": "cli", "command_template": "sleep 9 # {PROMPT}"})
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(agentv_ci.run_async("evals/", cwd=project.folder), 1)


def test_in_a_running_loop(project: Project) -> None:
    async def both() -> list[bool]:
        runs = (agentv_ci.run_async("evals/", eval_ids=[each], cwd=project.folder) for each in ("greets", "leaves"))
        return [each.passed for each in await asyncio.gather(*runs)]

    assert asyncio.run(both()) == [True, False]


def test_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="module 'agentv_ci' has no attribute 'rnu'"):
        agentv_ci.rnu  # noqa: B018


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"dryrun": True}, TypeError, "unexpected option 'dryrun' (did you mean 'dry_run'?)"),
        ({"max_cost": 1}, TypeError, "unexpected option 'max_cost' (did you mean 'max_cost_usd'?)"),
        ({"baseline": "x"}, TypeError, "unexpected option 'baseline'"),
        ({"target": ["a", 1]}, UsageError, "target: ['a', 1] is not a name, a list of names or a function"),
        ({"threshold": 80}, UsageError, "threshold: 80 is not a number from 0 to 1"),
        ({"repeat": 0}, UsageError, "repeat: 0 is not a whole number of at least 1"),
        ({"workers": "2"}, UsageError, "workers: '2' is not a whole number of at least 1"),
        ({"max_cost_usd": "1"}, UsageError, "max_cost_usd: '1' is not a number of at least 0"),
    ],
)
def test_wrong_options_are_refused(
    project: Project, options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as refusal:
        ran(project, **options)
    assert said in str(refusal.value)


def test_diagnostics_are_in_tracebacks(project: Project) -> None:
    with pytest.raises(InvalidInput) as error:
        ran(project, {"evalcases": [{**CASE, "inptu": "x"}]})
    assert str(error.value).endswith("document-1.yaml:1:1: unknown field 'inptu' (did you mean 'input'?)")


def shout(question: str) -> str:
    return f"{question.upper()}!"


async def greeter(question: str) -> plugins.Answer:
    call = {"role": "assistant", "content": "Hello", "tool_calls": [{"tool": "greet"}]}
    return plugins.Answer(text="Hello", messages=[plugins.OutputMessage.model_validate(call)], model="m")


class Bot:
    def __call__(self, question: str) -> str:
        raise ValueError(f"no key for {question}")


@pytest.mark.parametrize(
    ("function", "target", "verdict", "reasons"),
    [
        (shout, "shout", "pass", ()),
        (lambda question: asyncio.sleep(0, f"{question}: HI!"), "lambda", "pass", ()),
        (greeter, "greeter", "fail", ("says: does not contain 'HI!'",)),
        (Bot(), "bot", "error", ("process: the function raised ValueError: no key for Hi",)),
        (lambda _: 5, "lambda", "error", ("malformed: the function returned int, not a text or an Answer",)),
    ],
    ids=["plain", "awaitable", "answer", "raises", "no answer"],
)
def test_function_answers(tmp_path: Path, function: Any, target: str, verdict: str, reasons: tuple[str, ...]) -> None:
    says = {"name": "says", "type": "contains", "value": "HI!"}
    evals = {"$schema": "agentv-eval-v2", "evalcases": [{**CASE, "evaluators": [says]}]}
    (found,) = agentv_ci.run(evals, target=function, cwd=tmp_path, repeat=2).cases
    assert (found.target, found.verdict, found.reasons, len(found.rows)) == (target, verdict, reasons, 2)
    if target == "greeter":
        assert (found.rows[0].model, found.rows[0].trace_summary is not None) == ("m", True)


def test_function_may_answer_two_runs_at_once(tmp_path: Path) -> None:
    evals = {"$schema": "agentv-eval-v2", "evalcases": [{**CASE, "input": "Hello", "evaluators": [HELLO]}]}

    async def both() -> list[Results]:
        runs = (agentv_ci.run_async(evals, target=str, cwd=tmp_path) for _ in range(2))
        return await asyncio.gather(*runs)

    names = {results.cases[0].target for results in asyncio.run(both())}
    assert names == {"str", "str-2"}
