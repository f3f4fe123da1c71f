"""`adopt` is as strict as our own rows: nothing is lost or guessed, and different tests are different cases."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.projects import Project

Adopted = tuple[int, list[dict[str, Any]], str]
"""The exit code, the rows, and what is printed."""


@pytest.fixture
def project(repository: Path) -> Project:
    return Project(repository)


def adopted(project: Project, kind: str, content: str | bytes, *flags: str, name: str = "theirs.json") -> Adopted:
    project.path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    done = project.run("adopt", name, "--from", kind, "--out", "rows.jsonl", *flags)
    rows = project.rows("rows.jsonl") if project.path("rows.jsonl").exists() else []
    return done.code, rows, " ".join((done.out + done.err).split())


def verdicts(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row["eval_id"], row["verdict"]) for row in rows]


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


FAILS = '<failure message="boom"/>'
LONG = "x" * 130
NAN = float("nan")


def case(name: str, inside: str = "", group: str = "t", more: str = "") -> str:
    return f'<testcase classname="{group}" name="{name}" {more}>{inside}</testcase>'


def suite(*inside: str, **attributes: object) -> str:
    written = " ".join(f'{key}="{value}"' for key, value in attributes.items())
    return f"<testsuite {written}>{''.join(inside)}</testsuite>"


def suites(*inside: str, name: str = "all") -> str:
    return f'<testsuites name="{name}">{"".join(inside)}</testsuites>'


def in_browser(name: str, inside: str = "") -> str:
    return suite(case("login", inside), name="a.spec", hostname=name)


ANSWERED = {"success": True, "failureReason": 0, "score": 1, "provider": {"id": "echo"}, "prompt": {"label": "p"}}
FAILED: dict[str, Any] = {"success": False, "failureReason": 1, "score": 0}


def asked(variables: dict[str, Any], **more: Any) -> dict[str, Any]:
    test = {"description": "Greets", "vars": variables, "assert": more.pop("asserts", [])}
    return {**ANSWERED, "vars": variables, "testCase": test, **more}


def promptfoo(*results: Any, **stats: int) -> str:
    return json.dumps({"results": {"version": 3, "results": results, **({"stats": stats} if stats else {})}})


def defined(definition: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a result of promptfoo of a test without description and variables."""
    return {**ANSWERED, "vars": {}, "testCase": definition, "promptIdx": 0, **more}


def old(*assertions: str, **more: Any) -> dict[str, Any]:
    """Return a result as promptfoo wrote it before results had the definition of their test and the column."""
    components = [{"pass": True, "score": 1, "assertion": {"type": kind}} for kind in assertions]
    given = {"provider": {"id": "openai:a", "label": "bot"}, "vars": {"q": "1"}}
    return {**ANSWERED, **given, "gradingResult": {"componentResults": components}, **more}


def inspect(*samples: Any, **log: Any) -> str:
    return json.dumps({"status": "success", "eval": {"task": "t", "model": "m"}, "samples": samples, **log})


def sample(name: object = "a", value: object = "C", **more: Any) -> dict[str, Any]:
    scores = {"match": {"value": value}, "other": {"value": "C"}}
    return {"id": name, "input": "q", "target": "a", "scores": scores, **more}


SPEC: dict[str, Any] = {"spec": {"completion_fns": ["m"], "base_eval": "t", "run_id": "1"}}
END: dict[str, Any] = {"final_report": {"accuracy": 1.0}}


def event(kind: str, run: str = "1", name: object = "s", **data: Any) -> dict[str, Any]:
    return {"run_id": run, "sample_id": name, "type": kind, "data": data}


def graded(
    run: str, task: str = "t", *functions: str, question: str = "q", correct: object = True
) -> list[dict[str, Any]]:
    """Return the log of a run of OpenAI Evals with one sample."""
    spec = {"run_id": run, "base_eval": task, "completion_fns": functions or ("m",)}
    return [
        {"spec": spec},
        event("sampling", run, prompt=question, sampled=["x"]),
        event("match", run, correct=correct),
        {"final_report": {"accuracy": 1.0}},
    ]


def scored(**more: Any) -> dict[str, Any]:
    return {"name": "a", "inputs": "q", "scores": {"near": {"value": 0.9}}, **more}


# Results of which one fails, and the ids of their cases: as many as there are tests, and the failed one fails the gate.
DIFFERENT: list[tuple[str, str, list[str]]] = [
    ("junit", suite(case("a &lt; 1"), case("a = 1"), case("a &gt; 1", FAILS)), ["t.a < 1", "t.a = 1", "t.a > 1"]),
    ("junit", suite(case("😀"), case("😁"), case("🤖", FAILS)), ["t.😀", "t.😁", "t.🤖"]),
    (
        "junit",
        suite(case(f"{LONG}1"), case(f"{LONG}2", FAILS)),
        [f"t.{'x' * 109}-79abcd3f", f"t.{'x' * 109}-b70f52b8"],
    ),
    (
        "junit",
        suite(case("b.c", group="a"), case("c", FAILS, group="a.b")),
        ["a.b.c [a::b.c]", "a.b.c [a.b::c]"],
    ),
    (
        "junit",
        suites(in_browser("chromium"), in_browser("firefox"), in_browser("webkit", FAILS)),
        ["t.login [chromium]", "t.login [firefox]", "t.login [webkit]"],
    ),
    (
        "junit",
        suites(suite(case("x"), name="one"), suite(suite(case("x", FAILS), name="inner"), name="two")),
        ["t.x [one]", "t.x [two > inner]"],
    ),
    # As Mocha writes suites of one name in several files, and `node --test` without the files.
    (
        "junit",
        suites(suite(case("x"), name="s", file="/w/a.js"), suite(case("x", FAILS), name="s", file="/w/b.js")),
        ["t.x [/w/a.js]", "t.x [/w/b.js]"],
    ),
    (
        "junit",
        suites(suite(case("x"), name="s"), suite(case("x"), name="t"), suite(case("x", FAILS), name="s")),
        ["t.x [s, 1]", "t.x [t, 1]", "t.x [s, 2]"],
    ),
    (
        "junit",
        suites(suite(case("x"), name="s", id="0"), suite(case("x", FAILS), name="s", id="1")),
        ["t.x [0]", "t.x [1]"],
    ),
    (
        "junit",
        suites(suite(case("x"), name="s", package="one"), suite(case("x", FAILS), name="s", package="two")),
        ["t.x [one]", "t.x [two]"],
    ),
    (
        "junit",
        suite(case("x", more='retries="1" time="0.1"'), case("x", FAILS, more='retries="2" time="0.2"')),
        ["t.x [48d527fc]", "t.x [f04c6525]"],
    ),
    (
        "jsonl",
        lines(*({"id": name, "passed": name != "x  y"} for name in ("x y", "x-y", "x  y"))),
        ["x y", "x-y", "x  y"],
    ),
    (
        "jsonl",
        lines({"id": "a", "passed": 1, "question": "1"}, {"id": "a", "passed": 0, "question": "2"}),
        ["a [1]", "a [2]"],
    ),
    (
        "jsonl",
        lines({"id": "a [1]", "passed": 0}, {"id": "a", "passed": 1, "question": "1"}, {"id": "a", "passed": 1}),
        ["a [1]", "a [1]-dc5b60e0", "a [-]"],
    ),
    (
        "jsonl",
        lines(
            {"id": "a [1]", "question": "1", "passed": 0},
            {"id": "a", "question": "1", "passed": 1},
            {"id": "a", "question": "2", "passed": 1},
        ),
        ["a [1]", "a [1]-dc5b60e0", "a [2]"],
    ),
    (
        "jsonl",
        lines({"id": "a", "question": "-", "passed": 0}, {"id": "a", "passed": 1}),
        ["a [-]-e5e41278", "a [-]"],
    ),
    # Two names with the same digits of their digests.
    (
        "jsonl",
        lines(*({"id": f"{'p' * 111} question {n}", "passed": n == 70956} for n in (70956, 142177))),
        [f"{'p' * 111}-1eb80ba5 [1eb80ba5]-3ec88f38", f"{'p' * 111}-1eb80ba5 [1eb80ba5]"],
    ),
    (
        "jsonl",
        lines(*({"id": "a", "input": str(n), "passed": n != 2, "score": 1} for n in (1, 2, 3))),
        ["a [1]", "a [2]", "a [3]"],
    ),
    ("jsonl", lines({"id": 1, "passed": 1}, {"id": "1", "passed": 0}), ['1 [{"id":1}]', '1 [{"id":"1"}]']),
    (
        "jsonl",
        lines(*({"id": "a", "case": {"q": {"text": str(n)}, "tries": n}, "passed": n != 2} for n in (1, 2))),
        ['a [{"q": {"text": "1"}, "tries": 1}]', 'a [{"q": {"text": "2"}, "tries": 2}]'],
    ),
    ("promptfoo", promptfoo(asked({"q": "a"}), asked({"q": "b"}, **FAILED)), ["Greets [q=a]", "Greets [q=b]"]),
    ("promptfoo", promptfoo(asked({"q": 1}), asked({"q": "1"}, **FAILED)), ['Greets [{"q":1}]', 'Greets [{"q":"1"}]']),
    (
        "promptfoo",
        promptfoo(asked({"q": 1}, prompt={"label": "short"}), asked({"q": 1}, prompt={"label": "long"}, **FAILED)),
        ["Greets [short]", "Greets [long]"],
    ),
    (
        "promptfoo",
        promptfoo(asked({}, asserts=[{"type": "equals"}]), asked({}, asserts=[{"type": "is-json"}], **FAILED)),
        ['Greets [[{"type": "equals"}]]', 'Greets [[{"type": "is-json"}]]'],
    ),
    (
        "promptfoo",
        promptfoo(defined({"metadata": {"conversationId": 1}}), defined({"metadata": {"conversationId": 2}}, **FAILED)),
        [f'test-44136fa355b3 [{{"metadata":{{"conversationId":{n}}}}}]' for n in (1, 2)],
    ),
    (
        "promptfoo",
        promptfoo(defined({"metadata": {"id": 2**53}}), defined({"metadata": {"id": 2**53 + 1}}, **FAILED)),
        [f'test-44136fa355b3 [{{"metadata":{{"id":{n}}}}}]' for n in (2**53, 2**53 + 1)],
    ),
    (
        "promptfoo",
        promptfoo(defined({"threshold": 0.1}), defined({"threshold": 0.9}, **FAILED)),
        ['test-44136fa355b3 [{"threshold":0.1}]', 'test-44136fa355b3 [{"threshold":0.9}]'],
    ),
    (
        "promptfoo",
        # Variables can be left out of results.
        promptfoo(
            defined({}, prompt={"raw": "one", "label": "p"}), defined({}, prompt={"raw": "two", "label": "p"}, **FAILED)
        ),
        ["test-44136fa355b3 [one]", "test-44136fa355b3 [two]"],
    ),
    (
        "promptfoo",
        promptfoo(asked({}, prompt={"display": "p"}), asked({}, prompt={"display": "q"}, **FAILED)),
        ["Greets [p]", "Greets [q]"],
    ),
    (
        "promptfoo",
        promptfoo(*(defined({"vars": {"q": n}}, vars={"q": "file"}, **more) for n, more in enumerate(({}, FAILED)))),
        [f'test-76c2c99a61a3 [[{{"q":{n}}},{{"label":"p"}}]]' for n in range(2)],
    ),
    (
        "promptfoo",
        promptfoo(old("equals"), old("is-json", **FAILED)),
        ['test-8d62329445c6 [[{"type": "equals"}]]', 'test-8d62329445c6 [[{"type": "is-json"}]]'],
    ),
    (
        "openai-evals",
        lines(*graded("1", "a"), *graded("2", "b", correct=False), *graded("3", "c")),
        ["s [a]", "s [b]", "s [c]"],
    ),
    (
        "openai-evals",
        lines(*graded("1"), *graded("2", question="p", correct=False)),
        ["s [q]", "s [p]"],
    ),
    (
        "openai-evals",
        lines(SPEC, event("match", name=1, correct=True), event("match", name="1", correct=False), END),
        ["1 [1]", '1 ["1"]'],
    ),
    (
        "openai-evals",
        lines(*graded("1", "t", "m", "judge-1"), *graded("2", "t", "m", "judge-2", correct=False)),
        ['s [["m", "judge-1"]]', 's [["m", "judge-2"]]'],
    ),
    ("inspect", inspect(sample("a b"), sample("a-b", "I")), ["a b", "a-b"]),
    ("inspect", inspect(sample(1), sample("1", "I")), ["1 [1]", '1 ["1"]']),
    (
        "pydantic-evals",
        json.dumps({"cases": [scored(), scored(inputs="p", scores={"near": {"value": 0}})]}),
        ["a [q]", "a [p]"],
    ),
    (
        "pydantic-evals",
        json.dumps(
            {
                "cases": [
                    scored(metadata={"lang": "de"}),
                    scored(metadata={"lang": "fr"}, scores={"near": {"value": 0}}),
                ]
            }
        ),
        ['a [{"lang": "de"}]', 'a [{"lang": "fr"}]'],
    ),
    (
        "pydantic-evals",
        json.dumps({"cases": [scored(inputs=1), scored(inputs="1", scores={"near": {"value": 0}})]}),
        ["a [[1,null,null]]", 'a [["1",null,null]]'],
    ),
]


@pytest.mark.parametrize(("kind", "content", "ids"), DIFFERENT)
def test_different_tests_are_different_cases(kind: str, content: str, ids: list[str], project: Project) -> None:
    code, rows, _ = adopted(project, kind, content)
    assert [row["eval_id"] for row in rows] == ids
    assert {row["trials"] for row in rows} == {1}
    assert (code, [row["verdict"] for row in rows].count("fail")) == (1, 1)


# Results of tests with one name for several targets.
COLUMNS = [
    ("promptfoo", promptfoo(asked({}, promptIdx=0), asked({}, promptIdx=2, **FAILED)), ["echo", "echo-2"]),
    ("promptfoo", promptfoo(asked({}, provider="a b"), asked({}, provider="a-b", **FAILED)), ["a b", "a-b"]),
    (
        "promptfoo",
        promptfoo(old(), old(provider={"id": "openai:b", "label": "bot"}, **FAILED)),
        ["bot", "bot-2"],
    ),
    ("jsonl", lines({"id": "a", "passed": 1, "model": "m"}, {"id": "a", "passed": 0, "model": "n"}), ["m", "n"]),
    (
        "openai-evals",
        lines(
            SPEC,
            event("match", correct=True),
            END,
            {"spec": {"completion_fns": ["n"], "run_id": "2"}},
            event("match", "2", correct=False),
            END,
        ),
        ["m", "n"],
    ),
]


@pytest.mark.parametrize(("kind", "content", "targets"), COLUMNS)
def test_different_configurations_are_different_targets(
    kind: str, content: str, targets: list[str], project: Project
) -> None:
    code, rows, _ = adopted(project, kind, content)
    assert [row["target"] for row in rows] == targets
    assert (code, [row["verdict"] for row in rows]) == (1, ["pass", "fail"])


# Equal tests, the verdicts of their trials, and whether the case passes.
EQUAL = [
    # As pytest-rerunfailures writes a test that failed three times, and one that passed in the end.
    ("junit", suite(case("x"), case("x"), case("x", FAILS), tests=3, failures=1), ["pass", "pass", "fail"], False),
    ("junit", suite(case("x"), case("x")), ["pass", "pass"], True),
    (
        "junit",
        suite(case("x", more='time="1" timestamp="a"'), case("x", more='time="2" timestamp="b"')),
        ["pass", "pass"],
        True,
    ),
    ("junit", suite(case("x"), case("x", '<error message="teardown"/>')), ["pass", "error"], False),
    # As Surefire writes them.
    ("junit", suite(case("x", '<flakyFailure message="boom"/>')), ["pass"], True),
    ("junit", suite(case("x", f'{FAILS}<rerunFailure message="boom"/>')), ["fail"], False),
    ("inspect", inspect(sample(), sample(epoch=2), sample(value="I", epoch=3)), ["pass", "pass", "fail"], True),
    (
        "pydantic-evals",
        json.dumps({"cases": [scored(name=f"a [{n}/2]", source_case_name="a") for n in (1, 2)]}),
        ["pass", "pass"],
        True,
    ),
    (
        "promptfoo",
        promptfoo(*(asked({"q": 1, "sessionId": n}, testIdx=n) for n in range(2))),
        ["pass", "pass"],
        True,
    ),
    (
        "promptfoo",
        promptfoo(*(asked({"_conversation": [n]}, prompt={"raw": f"{n}", "label": "p"}) for n in range(2))),
        ["pass", "pass"],
        True,
    ),
    ("openai-evals", lines(*graded("1"), *graded("2")), ["pass", "pass"], True),
]


EQUAL += [
    (
        "jsonl",
        lines(
            *(
                {"id": "a", "passed": n > 0, "answer": str(n), "trial": n, "Latency": n, "out": {"timestamp": n}}
                for n in (0, 1, 2)
            )
        ),
        ["fail", "pass", "pass"],
        True,
    ),
    ("jsonl", lines({"id": "a", "passed": 1}, {"id": "a", "passed": 1, "model": None}), ["pass", "pass"], True),
]


@pytest.mark.parametrize("flag", [["--ignore", "out.text"], ["--ignore", "out"], ["--map", "answer=out.text"]])
def test_columns_may_differ_between_trials(flag: list[str], project: Project) -> None:
    rows = lines(*({"id": "a", "passed": 1, "score": 1, "out": {"text": str(n)}} for n in (1, 2)))
    assert len({row["eval_id"] for row in adopted(project, "jsonl", rows)[1]}) == 2
    assert len({row["eval_id"] for row in adopted(project, "jsonl", rows, *flag)[1]}) == 1


@pytest.mark.parametrize(("kind", "content", "expected", "passes"), EQUAL)
def test_equal_tests_are_trials(kind: str, content: str, expected: list[str], passes: bool, project: Project) -> None:
    code, rows, _ = adopted(project, kind, content)
    assert len({row["eval_id"] for row in rows}) == 1
    assert [(row["verdict"], row["trial"]) for row in rows] == [*zip(expected, range(1, 9), strict=False)]
    assert (code == 0) is passes


def test_numbers_of_providers_are_free(project: Project) -> None:
    numbered = asked({}, promptIdx=2, provider={"id": "x", "label": "echo-2"})
    _, rows, _ = adopted(project, "promptfoo", promptfoo(asked({}, promptIdx=0), asked({}, promptIdx=1), numbered))
    assert [row["target"] for row in rows] == ["echo", "echo-3", "echo-2"]


def test_repeated_failures_of_surefire_are_named(project: Project) -> None:
    _, (row,), _ = adopted(project, "junit", suite(case("x", '<flakyFailure message="boom"/>')))
    assert row["reasoning"] == "passed after 1 failed attempt: boom"


# What is lost, and the sentence of the gate, which does not pass.
STARTED = {"eval": {"dataset": {"samples": 4, "sample_ids": ["a", "b", "c"]}, "config": {"limit": 3, "epochs": 2}}}
LOST = [
    ("junit", suites(suite(case("x"), name="a"), suite('<error message="no"/>', name="b")), "suite 'b': no"),
    ("junit", suite(case("x"), FAILS, name="b"), "suite 'b': boom"),
    ("junit", suite(case("x"), name="b", tests=3), "suite 'b' counts 3 tests, and 1 are in the file"),
    (
        "junit",
        suite(case("x"), name="b", failures=1, errors=1),
        "counts 1 failed and 1 with errors, and 0 are in the file",
    ),
    ("junit", suite(case("x"), name="b", skipped=1), "suite 'b' counts 1 skipped, and 0 are in the file"),
    ("junit", suite(case("x"), name="pytest", failures=1), "suite 'pytest' counts 1 failed and 0 with errors"),
    ("inspect", inspect(sample(), status="error", error={"message": "oom"}), "its status is error (oom); 1 sample"),
    ("inspect", inspect(sample(), status="cancelled"), "its status is cancelled"),
    ("inspect", inspect(sample(), status="started", **STARTED), "its status is started; 1 of 6 samples"),
    ("inspect", inspect(sample(), status=None), "its status is missing"),
    ("inspect", inspect(sample(), results={"total_samples": 2}), "samples are missing: 1 of 2 samples"),
    ("inspect", inspect(sample(), sample(), results={"total_samples": 2}), "samples are missing: 1 of 2 samples"),
    ("inspect", inspect(sample(epoch=1), sample()), "more than once: a (epoch 1)"),
    ("inspect", inspect(sample("a"), sample("b"), results={"total_samples": 1}), "it counts 1 sample, and 2 are in it"),
    (
        "inspect",
        inspect(sample(), results={"total_samples": 1, "completed_samples": 0}),
        "it counts 0 completed samples, and 1 is in it",
    ),
    ("inspect", inspect(sample(), invalidated=True), "the log is invalidated"),
    ("openai-evals", lines(SPEC, event("match", correct=True)), "the run did not finish: 1 run, 0 final reports"),
    (
        "openai-evals",
        lines(SPEC, event("match", correct=True), SPEC | {"spec": {"run_id": "2"}}, END),
        "2 runs, 1 final",
    ),
    ("openai-evals", lines(event("match", correct=True), END), "its beginning is missing"),
    ("openai-evals", lines(SPEC, {**event("match", correct=True), "event_id": 2}, END), "2 events missing"),
    (
        "openai-evals",
        lines(SPEC, {**event("match", correct=True), "event_id": 1}, END),
        "1 event missing: the number of the last one is 1, counted from 0, and 1 is in the log",
    ),
    ("openai-evals", lines(*graded("1"), END, *graded("2")[:-1]), "2 runs, 1 final report"),
    ("openai-evals", lines(*graded("1"), event("match", "2", correct=True)), "run '2' has no spec"),
    (
        "openai-evals",
        lines(*graded("1"), {"run_id": "1", "type": "match", "data": {"correct": False}}),
        "1 event with a result or an error names no sample",
    ),
    (
        "openai-evals",
        lines(SPEC, event("metrics", choice="Y", score=1), {"final_report": {"counts/Y": 1, "counts/N": 1.0}}),
        "the final report counts 2 choices, and 1 is in the log",
    ),
    ("openai-evals", lines(*graded("1"), *graded("2")[::3]), "run '2' has no results"),
    (
        "promptfoo",
        promptfoo(asked({}), successes=1, failures=1, errors=0),
        "it counts 2 results, and 1 are in the file",
    ),
    ("promptfoo", promptfoo(asked({"q": 1}), asked({"q": 2}), successes=1, failures=1), "it counts 1 failed"),
    (
        "promptfoo",
        json.dumps(
            {"version": 3, "results": [asked({})], "stats": {"successes": "1", "failures": 1.0, "errors": None}}
        ),
        "it counts 2 results, and 1 are in the file",
    ),
    (
        "pydantic-evals",
        json.dumps({"cases": [scored()], "report_evaluator_failures": [{"name": "f1", "error_message": "no"}]}),
        "evaluator 'f1' of the report: no",
    ),
]


@pytest.mark.parametrize(("kind", "content", "sentence"), LOST)
def test_gate_does_not_pass_if_something_is_lost(kind: str, content: str, sentence: str, project: Project) -> None:
    code, rows, said = adopted(project, kind, content, "--min-pass-rate", "0")
    assert {row["verdict"] for row in rows} == {"pass"}
    assert (code, "theirs.json: " in said, sentence in said) == (1, True, True), said
    again = project.run("report", "rows.jsonl")
    assert (again.code, sentence in " ".join(again.out.split())) == (1, True)


def test_several_failures_of_a_test_hide_no_lost_one(project: Project) -> None:
    written = suite(case("ok"), case("x", FAILS * 2), name="b", tests=3, failures=2)
    _, _, said = adopted(project, "junit", written, "--min-pass-rate", "0")
    assert "suite 'b' counts 3 tests, and 2 are in the file" in said
    assert "suite 'b' counts 2 failed and 0 with errors, and 1 are in the file" in said


@pytest.mark.parametrize(
    ("content", "found"),
    [
        # As pytest writes subtests: `tests` counts those that pass, and each failure is an element of their test.
        (suite(case("x"), case("y"), name="pytest", tests=8), ["pass", "pass"]),
        (suite(case("x", FAILS * 3), name="pytest", tests=5, failures=3), ["fail"]),
        (
            suite(case("x", FAILS), case("x", "<error/>"), name="pytest", tests=1, failures=1, errors=1),
            ["fail", "error"],
        ),
        # As Catch2 and doctest write assertions.
        (suite(case("x"), case("y"), tests=2179, skipped=0, hostname="tbd"), ["pass", "pass"]),
        (
            suite(case("x", FAILS * 3), case("y", "<error/>"), tests=9, failures=3, errors=1, hostname="tbd"),
            ["fail", "error"],
        ),
        (suite(case("x", FAILS * 2), tests=5, failures=2, doctest_version="2.4.11"), ["fail"]),
        # As GoogleTest writes failures.
        (suite(case("x", FAILS * 2), name="gtest", tests=1, failures=1), ["fail"]),
        (suite(case("x", "<skipped/>"), case("y", more='status="notrun"'), tests=2, skipped=2), ["skipped"] * 2),
    ],
)
def test_counts_of_runners_are_theirs(content: str, found: list[str], project: Project) -> None:
    _, rows, said = adopted(project, "junit", suites(content, suite(case("ok"))))
    assert [row["verdict"] for row in rows] == [*found, "pass"]
    assert "in the file" not in said


def test_suites_of_pytest_may_have_any_name(project: Project) -> None:
    written = suites(suite(case("x"), name="nightly", tests=8), name="pytest tests")
    code, (row,), said = adopted(project, "junit", written)
    assert (code, row["verdict"]) == (0, "pass"), said
    _, _, said = adopted(project, "junit", written.replace("tests=", "failures='1' tests="))
    assert "counts 1 failed and 0 with errors, and 0 are in the file" in said


def test_runners_of_assertions_lose_no_failure(project: Project) -> None:
    catch2 = suite(case("x", FAILS), tests=9, failures=2, hostname="tbd")
    empty = suite(tests=9, hostname="tbd", name="e")
    _, _, said = adopted(project, "junit", suites(catch2, empty), "--min-pass-rate", "0")
    assert "counts 2 failed and 0 with errors, and 1 are in the file" in said
    assert "suite 'e' counts 9 tests, and 0 are in the file" in said


BROWSERS = suites(in_browser("chromium", FAILS), in_browser("firefox"))
IN_TWO_SUITES = suites(suite(case("x", FAILS), name="s"), suite(case("x"), name="s"), suite(case("x"), name="t"))
RENAMED = [
    ("junit", suites(in_browser("chromium")), BROWSERS, "t.login (t.login [chromium], t.login [firefox])"),
    ("junit", suites(in_browser("chromium"), in_browser("firefox")), suites(in_browser("firefox", FAILS)), "(t.login)"),
    (
        "junit",
        suites(suite(case("x"), name="s"), suite(case("x"), name="t")),
        IN_TWO_SUITES,
        "t.x [s] (t.x [s, 1], t.x [s, 2])",
    ),
    (
        "junit",
        suites(in_browser("chromium"), in_browser("firefox")),
        suites(in_browser("chromium-2"), in_browser("firefox")),
        "t.login [chromium] (t.login [chromium-2])",
    ),
    (
        "jsonl",
        lines({"id": "a", "input": "1", "passed": True}),
        lines({"id": "a", "input": "1", "passed": False}, {"id": "a", "input": "2", "passed": True}),
        "a (a [1], a [2])",
    ),
]


@pytest.mark.parametrize(("kind", "before", "now", "sentence"), RENAMED)
def test_a_test_that_gets_another_id_is_not_a_new_one(
    kind: str, before: str, now: str, sentence: str, project: Project
) -> None:
    adopted(project, kind, before)
    project.path("base.jsonl").write_bytes(project.path("rows.jsonl").read_bytes())
    code, _, said = adopted(project, kind, now, "--min-pass-rate", "0", "--baseline", "base.jsonl")
    assert (code == 0, sentence in said, "accept a new baseline" in said) == (False, True, True), (code, said)


def test_another_test_is_a_new_one(project: Project) -> None:
    kept = {"id": "b", "passed": True}
    adopted(project, "jsonl", lines({"id": "a", "question": "1", "passed": True}, kept))
    project.path("base.jsonl").write_bytes(project.path("rows.jsonl").read_bytes())
    code, _, said = adopted(project, "jsonl", lines({"id": "c", "passed": True}, kept), "--baseline", "base.jsonl")
    assert code == 0, said


def test_a_file_without_results_beside_others_is_lost(project: Project) -> None:
    project.write({"empty.xml": "<testsuites/>", "none.jsonl": "\n"})
    code, _, said = adopted(project, "junit", suite(case("x")), "empty.xml")
    assert (code, "empty.xml: it has no test cases" in said) == (1, True)
    code, _, said = adopted(project, "jsonl", lines({"id": "a", "passed": True}), "none.jsonl")
    assert (code, "none.jsonl: it has no results" in said) == (1, True)


def archive(project: Project, files: dict[str, str], compression: int = zipfile.ZIP_STORED) -> bytes:
    path = project.path("made.zip")
    with zipfile.ZipFile(path, "w", compression) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return path.read_bytes()


def test_an_archive_without_header_is_unfinished(project: Project) -> None:
    start = {"eval": {"task": "sums", "model": "m", "dataset": {"samples": 3}}}
    files = {"_journal/start.json": json.dumps(start), "samples/a_epoch_1.json": json.dumps(sample())}
    code, (row,), said = adopted(project, "inspect", archive(project, files), name="log.eval")
    assert (code, row["target"], row["tags"]) == (1, "m", ["sums"])
    assert "its status is without a header.json; 1 of 3 samples" in said
    files["samples/b_epoch_1.json"] = "{"
    code, _, said = adopted(project, "inspect", archive(project, files), name="log.eval")
    assert (code, "samples/b_epoch_1.json is not JSON" in said) == (2, True)


def damaged(content: bytes) -> bytes:
    """Return an archive with other bytes in its compressed data."""
    start = content.index(b"header.json") + 40
    return content[:start] + b"\xff" * 40 + content[start + 40 :]


def encrypted(content: bytes) -> bytes:
    """Return an archive that says that its first file is encrypted."""
    flags = content.index(b"PK\x01\x02") + 8
    return content[:flags] + b"\x01" + content[flags + 1 :]


@pytest.mark.parametrize(
    ("damage", "error"), [(damaged, "header.json cannot be unpacked"), (encrypted, "header.json cannot be unpacked")]
)
def test_a_damaged_archive_is_refused(damage: Callable[[bytes], bytes], error: str, project: Project) -> None:
    header = json.dumps({"status": "success", "seeds": [*range(500)]})
    content = damage(archive(project, {"header.json": header}, zipfile.ZIP_DEFLATED))
    code, _, said = adopted(project, "inspect", content, name="log.eval")
    assert (code, error in said) == (2, True), said


# Values that are no scores: an error of the result, whatever else is good.
UNKNOWN = [
    ("inspect", inspect(sample(value=NAN)), "score 'match' is NaN"),
    ("inspect", inspect(sample(value=None)), "score 'match' is null"),
    ("inspect", inspect(sample(value="A")), "score 'match' is A: say what it is worth with --map 'A=SCORE'"),
    ("inspect", inspect(sample(value=["C", "C"])), 'score \'match\' is ["C", "C"]: leave the score out'),
    ("inspect", inspect(sample(value={"tone": "B"})), "score 'match.tone' is B"),
    ("inspect", inspect(sample(value=7)), "score 'match' is 7, which is not from 0 to 1"),
    ("inspect", inspect(sample(value=-0.5)), "score 'match' is -0.5"),
    ("openai-evals", lines(SPEC, event("match", correct=True), event("match", correct=False), END), "contradict"),
    ("openai-evals", lines(SPEC, event("metrics", f1=0.9), event("metrics", f1=0.1), END), "contradict"),
    ("openai-evals", lines(SPEC, event("metrics", f1=1.0), event("metrics", f1=0.81), END), "contradict"),
    ("openai-evals", lines(SPEC, event("metrics", f1=0.9, grade="F"), END), "score 'grade' is F"),
    ("openai-evals", lines(SPEC, event("metrics", choice="__invalid__", score=None), END), "score 'score' is null"),
    ("openai-evals", lines(SPEC, event("match", correct="maybe"), END), "score 'match' is maybe"),
    ("openai-evals", lines(SPEC, event("error", message="lost"), event("match", correct=True), END), "lost"),
    ("pydantic-evals", json.dumps({"cases": [scored(assertions={"a": {"value": NAN}})]}), "score 'a' is NaN"),
    ("pydantic-evals", json.dumps({"cases": [scored(scores={"length": {"value": 350}})]}), "'length' is 350"),
    ("promptfoo", promptfoo(asked({}, score=5)), "score 'score' is 5"),
    ("promptfoo", promptfoo(asked({}, success="yes")), "'success' is yes, not true or false"),
    ("promptfoo", promptfoo(asked({}, gradingResult={"pass": False})), "'pass' of its grading is false"),
    ("promptfoo", promptfoo({"vars": {"q": 1}, "success": False, "error": "no key"}), "no key"),
    (
        "promptfoo",
        promptfoo(asked({}, gradingResult={"componentResults": [{"pass": "false", "score": 1}]})),
        "'pass' of assertion 1 is false, not true or false",
    ),
    ("inspect", inspect(sample(invalidation={"author": "me"})), "the sample is invalidated"),
    ("jsonl", lines({"id": "a", "passed": True, "score": NAN}), "score 'score' is NaN"),
    ("jsonl", lines({"id": "a", "passed": "maybe"}), "'passed' is maybe"),
    ("jsonl", lines({"id": "a", "passed": 0.5}), "'passed' is 0.5"),
    ("jsonl", lines({"id": "a", "passed": ["yes"]}), "'passed' is"),
    ("jsonl", lines({"id": "a", "score": "B"}), "score 'score' is B"),
    ("jsonl", lines({"id": "a", "score": 1e999}), "score 'score' is Infinity"),
    ("jsonl", lines({"id": "a", "passed": True, "error": True}), "error"),
]


@pytest.mark.parametrize(("kind", "content", "error"), UNKNOWN)
def test_unknown_values_are_errors(kind: str, content: str, error: str, project: Project) -> None:
    code, (row,), _ = adopted(project, kind, content, "--min-pass-rate", "0")
    assert (row["verdict"], error in row["error"]) == ("error", True), row["error"]
    assert code in {1, 4}


def test_a_score_of_another_scale_is_never_full_marks(project: Project) -> None:
    stars = lines(*({"id": str(number), "score": number} for number in (1, 2, 5)))
    code, rows, said = adopted(project, "jsonl", stars)
    assert (code, [row["verdict"] for row in rows]) == (4, ["error"] * 3)
    assert "score 'score' is 1, and 2 elsewhere" in said
    code, rows, _ = adopted(project, "jsonl", stars, "--scale", "1:5")
    assert (code, [row["score"] for row in rows]) == (1, [0.0, 0.25, 1.0])


# Scores, flags, and the verdict.
JUDGED = [
    (1.0000000000000002, [], "pass"),
    (-1e-9, [], "fail"),
    (1.0000001192092896, [], "pass"),
    (1.4, ["--scale", "1:5", "--threshold", "0.1"], "pass"),
    (5.0000000001, ["--scale", "1:5"], "pass"),
    (True, ["--scale", "1:0"], "error"),
    ("yes", ["--scale", "score=1:0"], "error"),
    (True, ["--scale", "1:0", "--map", "true=1"], "pass"),
    (True, ["--scale", "0:10"], "pass"),
    (False, ["--threshold", "0"], "fail"),
    ("fail", ["--threshold", "0"], "fail"),
    (0, ["--threshold", "0"], "pass"),
    ("yes", ["--map", "yes=0.5", "--threshold", "0.5"], "pass"),
]


@pytest.mark.parametrize(("score", "flags", "verdict"), JUDGED)
def test_scores_are_judged(score: object, flags: list[str], verdict: str, project: Project) -> None:
    _, (row, *_), _ = adopted(project, "jsonl", lines({"id": "a", "score": score}), *flags)
    assert row["verdict"] == verdict, row


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("openai-evals", lines(SPEC, event("match", correct=False), END)),
        ("pydantic-evals", json.dumps({"cases": [scored(assertions={"a": {"value": False}})]})),
        ("jsonl", lines({"id": "a", "passed": "fail"})),
        ("jsonl", lines({"id": "a", "passed": 0, "score": 1})),
    ],
)
def test_no_threshold_overrides_a_verdict(kind: str, content: str, project: Project) -> None:
    code, (row,), _ = adopted(project, kind, content, "--threshold", "0")
    assert (code, row["verdict"]) == (1, "fail")


def test_results_of_two_files_are_different_cases(project: Project) -> None:
    row = {"id": "a", "suite": "tests/a.py", "passed": True}
    project.write({"two.jsonl": lines(row)})
    code, rows, _ = adopted(project, "jsonl", lines({**row, "passed": False}), "two.jsonl", name="one.jsonl")
    assert (code, verdicts(rows)) == (1, [("a [one.jsonl]", "fail"), ("a [two.jsonl]", "pass")])


def test_files_of_two_repositories_are_different_suites(project: Project) -> None:
    for name in ("one", "two", "three"):
        project.write({f"{name}/.git/HEAD": "ref: refs/heads/main", f"{name}/r.jsonl": lines({"id": "a", "passed": 1})})
    names = ["one/r.jsonl", "two/r.jsonl", "three/r.jsonl"]
    assert project.run("adopt", *names, "--from", "jsonl", "--out", "rows.jsonl").code == 0
    assert [(row["suite"], row["trials"]) for row in project.rows("rows.jsonl")] == [(name, 1) for name in names]


def test_names_of_checks_are_unique(project: Project) -> None:
    checks = [{"pass": True, "score": 1, "assertion": {"metric": name}} for name in ("x", "x", "x-2")]
    graded = asked({}, gradingResult={"pass": True, "componentResults": checks})
    _, (row,), _ = adopted(project, "promptfoo", promptfoo(graded))
    assert [check["name"] for check in row["evaluator_results"]] == ["x", "x-3", "x-2"]


# How the user says to read values: the scores of the first row.
GRADED = inspect(sample(value={"grade": "B", "risk": 8, "length": 350}))
HOW = ["--map", "B=0.5", "--scale", "match.risk=10:0", "--ignore", "match.length"]
METRICS = lines(SPEC, event("metrics", f1=90, grade="F"), END)
LENGTH = {"componentResults": [{"pass": True, "score": 5, "assertion": {"type": "javascript", "metric": "length"}}]}
METRIC = {"componentResults": [{"pass": True, "score": 350, "assertion": {"type": "javascript", "weight": 0}}]}
HOLDS = {"ok": {"value": True}}
READ = [
    ("inspect", GRADED, HOW, [0.5, 0.2, 1.0]),
    ("inspect", inspect(sample(value=NAN)), ["--map", "NaN=0"], [0.0, 1.0]),
    ("inspect", inspect(sample(value=["C"])), ["--ignore", "match"], [1.0]),
    ("inspect", inspect(sample(value="P"), sample(value="N")), [], [0.5, 1.0]),
    ("inspect", inspect(sample(value="yes")), [], [1.0, 1.0]),
    ("inspect", inspect({"id": 1, "score": {"value": "P"}}), [], [0.5]),
    ("openai-evals", METRICS, ["--scale", "f1=0:100", "--map", "F=0"], [0.9, 0.0]),
    ("openai-evals", lines(SPEC, event("metrics", choice="A", score=1), END), [], [1.0]),
    ("promptfoo", promptfoo(asked({}, score=5, gradingResult=LENGTH)), ["--scale", "length=0:10"], [0.5]),
    ("promptfoo", promptfoo(asked({}, gradingResult=METRIC)), [], []),
    ("promptfoo", promptfoo(asked({}, gradingResult={"componentResults": [None]})), [], []),
    ("pydantic-evals", json.dumps({"cases": [scored(scores={"cost": {"value": 3.5}}, assertions=HOLDS)]}), [], [1.0]),
]


@pytest.mark.parametrize(("kind", "content", "flags", "scores"), READ)
def test_users_say_how_values_are_read(
    kind: str, content: str, flags: list[str], scores: list[float], project: Project
) -> None:
    _, (row, *_), _ = adopted(project, kind, content, *flags)
    assert [result["score"] for result in row["evaluator_results"]] == pytest.approx(scores)


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        ({"eval.score": 0.4, "eval": {"score": 1}}, ["--map", "score=eval.score"]),
        ({"eval": {"score": 0.4}}, ["--map", "score=eval.score"]),
        ({"a.b": {"score": 0.4}, "score": 0.4, "c.d": 7}, ["--ignore", "c.d"]),
    ],
)
def test_names_of_columns_may_have_dots(line: dict[str, Any], flags: list[str], project: Project) -> None:
    _, rows, said = adopted(project, "jsonl", lines({"id": "a", **line}, {"id": "a", **line, "c.d": 8}), *flags)
    assert [row["score"] for row in rows] == [0.4, 0.4], said
    assert ({row["trial"] for row in rows} == {1, 2}) == ("--ignore" in flags)


# Verdicts that no threshold changes.
FAILURES = [
    ("openai-evals", lines(*graded("1", correct=False))),
    ("openai-evals", lines(*graded("1", correct=0))),
    ("pydantic-evals", json.dumps({"cases": [scored(assertions={"ok": {"value": False}})]})),
]


@pytest.mark.parametrize(("kind", "content"), FAILURES)
def test_a_verdict_is_no_score(kind: str, content: str, project: Project) -> None:
    _, (row,), _ = adopted(project, kind, content, "--threshold", "0")
    assert row["verdict"] == "fail"


@pytest.mark.parametrize(("seconds", "duration_ms"), [(-0.5, 0), (1e308, 0), (0.5, 500), ("1", 0)])
@pytest.mark.parametrize("kind", ["inspect", "pydantic-evals"])
def test_times_are_never_negative_or_infinite(kind: str, seconds: object, duration_ms: int, project: Project) -> None:
    timed = {
        "inspect": inspect(sample(total_time=seconds)),
        "pydantic-evals": json.dumps({"cases": [scored(task_duration=seconds)]}),
    }
    _, (row,), _ = adopted(project, kind, timed[kind])
    assert (row["verdict"], row["duration_ms"]) == ("pass", duration_ms)


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        ({"passed": False, "skip": False}, "fail"),
        ({"passed": False, "skip": ""}, "fail"),
        ({"passed": False, "skip": "no"}, "fail"),
        ({"passed": False, "skip": 0}, "fail"),
        ({"passed": False, "skip": NAN}, "fail"),
        ({"passed": False, "skip": " n/a "}, "fail"),
        ({"passed": False, "skip": "Off"}, "fail"),
        ({"passed": False, "skip": "-"}, "fail"),
        ({"passed": False, "skip": "n"}, "fail"),
        ({"passed": True, "error": NAN}, "pass"),
        ({"passed": True, "cost_usd": 10**400, "duration_ms": 10**400}, "pass"),
        ({"passed": False, "skip": []}, "fail"),
        ({"passed": True, "skip": True}, "skipped"),
        ({"passed": True, "skip": "no account"}, "skipped"),
        ({"passed": True, "error": False}, "pass"),
        ({"passed": True, "error": None, "skip": "later"}, "skipped"),
        ({"skip": True, "error": "lost"}, "error"),
        ({"passed": 0, "score": 1}, "fail"),
        ({"score": "0.9"}, "pass"),
        ({"passed": "FAILED"}, "fail"),
    ],
)
def test_lines_mean_what_they_say(row: dict[str, Any], verdict: str, project: Project) -> None:
    _, (adopted_row,), _ = adopted(project, "jsonl", lines({"id": "a", **row}))
    assert adopted_row["verdict"] == verdict


@pytest.mark.parametrize(
    ("more", "inside", "verdict"),
    [
        ('status="run"', "", "pass"),
        ('status="notrun" result="suppressed"', "", "skipped"),
        ('status="disabled"', "<disabled/>", "skipped"),
        ("", "<disabled/>", "skipped"),
        ('status="failed"', "", "fail"),
        ('status="error"', "", "error"),
        ('status="notrun"', FAILS, "fail"),
        ("", f"{FAILS}<skipped/>", "fail"),
        ('status="Passed"', "<system-out/><properties/>", "pass"),
        ('result="completed" status="run"', "", "pass"),
        ('status="Not Run"', "", "skipped"),
        *((f'status="{state}"', "", "error") for state in ("timeout", "timedOut", "aborted", "unknown", "blocked")),
        *((f'result="{state}"', "", "error") for state in ("interrupted", "inconclusive", "undefined", "5")),
        ('status="timedOut"', FAILS, "fail"),
        ("", '<rerunFailure message="boom"/>', "fail"),
        ("", "<timeout/>", "error"),
        ("", '<Failure message="boom"/>', "fail"),
        # As CTest writes tests that it could not start, and those that skip themselves.
        ('status="notrun"', '<skipped message="Unable to find executable: x"/>', "error"),
        ('status="notrun"', '<skipped message="SKIP_RETURN_CODE=77"/>', "skipped"),
    ],
)
def test_states_of_test_cases(more: str, inside: str, verdict: str, project: Project) -> None:
    _, rows, _ = adopted(project, "junit", suite(case("x", inside, more=more), case("ran")))
    assert [row["verdict"] for row in rows] == [verdict, "pass"]


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("jsonl", lines({"id": "a", "passed": True})),
        ("promptfoo", promptfoo(asked({}))),
        ("promptfoo", lines(asked({"q": 1}), asked({"q": 2}))),
        ("promptfoo", lines(asked({}))),
        ("inspect", inspect(sample())),
        ("openai-evals", lines(SPEC, event("match", correct=True), END)),
        ("pydantic-evals", json.dumps({"cases": [scored()]})),
        ("junit", suite(case("x"))),
        ("junit", f'<testsuite xmlns="https://example.com/junit">{case("x")}</testsuite>'),
    ],
)
def test_byte_order_marks_and_other_spellings_are_read(kind: str, content: str, project: Project) -> None:
    for encoded in (b"\xef\xbb\xbf" + content.encode(), content.encode("utf-16")):
        code, rows, said = adopted(project, kind, encoded)
        assert (code, {row["verdict"] for row in rows}) == (0, {"pass"}), said


SCORED = lines({"id": "a", "score": 0.9, "input": "q"})
COLUMN = {"provider": "bot", "label": "p"}
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"


@pytest.mark.parametrize(
    ("kind", "content", "flags", "error"),
    [
        ("jsonl", POINTER, [], "git lfs pull"),
        ("junit", POINTER, [], "git lfs pull"),
        ("inspect", POINTER, [], "git lfs pull"),
        ("jsonl", '{"id": "a", "passed": false, "passed": true}', [], "line 1 is not JSON: a key occurs twice"),
        ("promptfoo", '{"results": [], "results": []}', [], "a key occurs twice"),
        ("jsonl", '{"id": "é"}'.encode("latin-1"), [], "it is not in UTF-8"),
        ("jsonl", SCORED, ["--scale", "scor=1:0"], "--scale scor: no result has it (did you mean 'score'?)"),
        ("jsonl", SCORED, ["--ignore", "mtch"], "--ignore mtch: no result has it scores: score"),
        ("jsonl", SCORED, ["--scale", "input=1:0"], "--scale input: no result has it"),
        ("jsonl", SCORED, ["--map", "error=inptu"], "no line has 'inptu', which --map error=inptu names (did you mean"),
        ("jsonl", SCORED, ["--map", "score=s1", "--map", "score=s2"], "'score' is mapped twice"),
        ("jsonl", SCORED, ["--map", "B=0", "--map", " B =1"], "' B ' is mapped twice"),
        ("jsonl", SCORED, ["--scale", "1:5", "--scale", "5:1"], "this scale is stated twice"),
        ("inspect", inspect(sample()), ["--ignore", "mtch"], "--ignore mtch: no result has it (did you mean 'match'?)"),
        ("promptfoo", promptfoo(asked({})), ["--scale", "scor=1:0"], "--scale scor: no result has it"),
        ("openai-evals", lines(SPEC, event("match", correct=True), END), ["--ignore", "mtch"], "--ignore mtch: no"),
        ("pydantic-evals", json.dumps({"cases": [scored()]}), ["--scale", "nea=1:0"], "--scale nea: no result"),
        ("junit", '<?xml version="1.0" encoding="foo"?><testsuite/>', [], "not XML: unknown encoding"),
        ("promptfoo", json.dumps({"results": ["a"]}), [], "result 1 is not an object"),
        (
            "promptfoo",
            json.dumps({"results": {"results": [old()], "table": {"head": {"prompts": [COLUMN, COLUMN]}}}}),
            [],
            "2 columns have the provider 'bot' and one prompt",
        ),
        ("openai-evals", lines(*graded("1"), *graded("1")), [], "two of its runs have the run_id '1'"),
        ("openai-evals", lines({"spec": {}}, END, {"spec": {}}, END), [], "two of its runs have no run_id"),
        ("inspect", json.dumps({"samples": {}}), [], "the samples are not a list"),
        ("jsonl", "", ["theirs.json"], "is named twice"),
        ("jsonl", "", ["--scale", "score"], "expected WORST:BEST"),
        ("jsonl", "", ["--scale", "1:1"], "expected WORST:BEST"),
        ("jsonl", "", ["--scale", "nan:5"], "expected WORST:BEST"),
        ("jsonl", "", ["--map", "B=2"], "unknown field 'B'"),
        ("inspect", "", ["--map", "id=name"], "expected TEXT=SCORE"),
        ("junit", "", ["--scale", "1:5"], "JUnit XML has no scores"),
    ],
)
def test_what_cannot_be_read_is_refused(
    kind: str, content: str | bytes, flags: list[str], error: str, project: Project
) -> None:
    code, _, said = adopted(project, kind, content, *flags)
    assert (code, error in said) == (2, True), said
