"""`agentv-ci adopt`: results of other tools become rows that every command reads."""

from __future__ import annotations

import json
import sys
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.other_tools.adopt import inspect_logs
from tests.support.projects import Project

PROMPTFOO = {
    "results": {
        "results": [
            {
                "success": True,
                "score": 1,
                "response": {"output": "Hello", "tokenUsage": {"prompt": 3, "completion": 2}},
                "provider": {"id": "openai:gpt-5.6-luna", "label": "luna"},
                "prompt": {
                    "raw": '[{"role": "system", "content": "S"}, {"role": "user", "content": "Q"}]',
                    "label": "p",
                },
                "testCase": {"description": "Greets Ada", "assert": [{"type": "contains", "value": "Hello"}]},
                "vars": {"name": "Ada"},
                "gradingResult": {
                    "reason": "All assertions passed",
                    "componentResults": [{"pass": True, "score": 1, "assertion": {"type": "contains", "weight": 2}}],
                },
                "latencyMs": 12,
                "cost": 0.5,
            },
            {"success": False, "vars": {"name": "Bob"}, "response": {"output": {"a": 1}}, "failureReason": 1},
            {"success": False, "vars": {"name": "Cid"}, "error": "no key", "failureReason": 2},
        ]
    }
}
INSPECT = {
    "status": "success",
    "eval": {"task": "sums", "model": "mockllm/model"},
    "samples": [
        {
            "id": 1,
            "input": [{"role": "user", "content": [{"type": "text", "text": "1 + 1"}]}],
            "target": "2",
            "output": {"model": "m", "choices": [{"message": {"content": "It is 2"}}]},
            "scores": {"includes": {"value": "C"}, "graded": {"value": {"tone": 0.9, "length": True}}},
            "model_usage": {"m": {"input_tokens": 3, "output_tokens": 4}},
            "total_time": 0.5,
        },
        {
            "id": 2,
            "input": "2 + 2",
            "target": ["4", "four"],
            "output": {"completion": "5"},
            "scores": {"includes": {"value": "I"}},
        },
        {"id": 3, "input": "3 + 3", "error": {"message": "lost"}},
        {"id": 4, "input": "4 + 4"},
    ],
}
PYDANTIC = {
    "name": "task",
    "cases": [
        {"name": "a", "inputs": "hi", "output": "hi", "assertions": {"Same": {"value": True}}, "task_duration": 0.02},
        {
            "name": "b",
            "inputs": {"x": 1},
            "output": "ho",
            "assertions": {"Same": {"value": False, "reason": "differs"}},
        },
        {"name": "c", "inputs": "hi", "output": "h", "scores": {"Near": {"value": 0.9}}},
        {"name": "d", "inputs": "hi", "output": "h"},
    ],
    "failures": [{"name": "e", "inputs": "boom", "error_message": "RuntimeError: no"}],
}
OPENAI = [
    {"spec": {"completion_fns": ["gpt-5.6-luna"], "base_eval": "sums"}},
    {
        "sample_id": "s.1",
        "type": "sampling",
        "data": {"prompt": [{"role": "user", "content": "1 + 1"}], "sampled": ["2"]},
    },
    {"sample_id": "s.1", "type": "match", "data": {"correct": True, "expected": "2"}},
    {"sample_id": "s.2", "type": "match", "data": {"correct": False, "expected": "4", "sampled": "5"}},
    {"sample_id": "s.3", "type": "metrics", "data": {"f1": 0.9}},
    {"sample_id": "s.4", "type": "error", "data": {"message": "lost"}},
    {"final_report": {"accuracy": 0.5}},
]
JUNIT = """<testsuites><testsuite name="s">
  <testcase classname="tests.t" name="passes" file="tests/t.py" line="3" time="0.25">
    <system-out>seen</system-out>
  </testcase>
  <testcase classname="tests.t" name="fails"><failure message="not equal">1 != 2</failure></testcase>
  <testcase name="breaks"><error message="no key"/></testcase>
  <testcase name="later"><skipped message="no account"/></testcase>
</testsuite></testsuites>
"""
LINES = [
    {"id": "a", "passed": True, "answer": "A", "question": "Q"},
    {"id": "b", "passed": "no"},
    {"id": "c", "score": 0.9},
    {"id": "c", "score": 0.1},
    {"id": "d", "error": "lost"},
    {"id": "e", "skip": "later"},
    {"id": "f"},
]


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


# Tool → its file, and the verdict of each case.
TOOLS: dict[str, tuple[str, str, list[str]]] = {
    "promptfoo": ("r.json", json.dumps(PROMPTFOO), ["pass", "fail", "error"]),
    "inspect": ("r.json", json.dumps(INSPECT), ["pass", "fail", "error", "error"]),
    "pydantic-evals": ("r.json", json.dumps(PYDANTIC), ["pass", "fail", "pass", "error", "error"]),
    "openai-evals": ("r.jsonl", lines(OPENAI), ["pass", "fail", "pass", "error"]),
    "junit": ("r.xml", JUNIT, ["pass", "fail", "error", "skipped"]),
    "jsonl": ("r.jsonl", lines(LINES), ["pass", "fail", "pass", "fail", "error", "skipped", "error"]),
}


@pytest.fixture
def project(repository: Path) -> Project:
    return Project(repository)


def adopt(project: Project, kind: str, *flags: str, code: int = 1) -> list[dict[str, Any]]:
    name, text, _ = TOOLS[kind]
    project.write({name: text})
    done = project.run("adopt", name, "--from", kind, "--out", "rows.jsonl", *flags)
    assert done.code == code, done
    return project.rows("rows.jsonl")


@pytest.mark.parametrize("kind", TOOLS)
def test_verdicts_are_those_of_the_tool(kind: str, project: Project) -> None:
    rows = adopt(project, kind)
    assert [row["verdict"] for row in rows] == TOOLS[kind][2]
    assert {row["provider"] for row in rows} == {kind}


@pytest.mark.parametrize("kind", TOOLS)
def test_every_command_reads_them(kind: str, project: Project) -> None:
    adopt(project, kind, "--html", "r.html", "--markdown", "r.md", "--sarif", "r.sarif", "--junit", "out.xml")
    assert "again:" not in project.run("report", "rows.jsonl").out
    assert project.run("compare", "rows.jsonl", "rows.jsonl").code in {0, 4}
    assert project.run("baseline", "accept", "rows.jsonl", "--out", "b.json").code in {0, 1, 2, 4}
    assert "Run it again" not in project.text("r.sarif")


def test_rows_say_what_the_tool_recorded(project: Project) -> None:
    row, *_ = adopt(project, "promptfoo")
    assert row["eval_id"] == "Greets Ada"
    assert (row["target"], row["candidate_answer"], row["duration_ms"], row["cost_usd"]) == ("luna", "Hello", 12, 0.5)
    assert [(each["role"], each["content"]) for each in row["input_messages"]] == [("system", "S"), ("user", "Q")]
    assert row["usage"]["total_tokens"] == 5
    assert [(each["name"], each["weight"], each["verdict"]) for each in row["evaluator_results"]] == [
        ("contains", 2.0, "pass")
    ]
    assert row["source"] == {"path": "r.json", "line": 1}


def test_tests_of_other_runners_keep_their_place(project: Project) -> None:
    first, second, *_ = adopt(project, "junit")
    assert first["source"] == {"path": "tests/t.py", "line": 3}
    assert (first["eval_id"], first["duration_ms"], first["candidate_answer"]) == ("tests.t.passes", 250, "seen")
    assert second["reasoning"] == "not equal\n1 != 2"


def test_several_results_of_a_case_are_its_trials(project: Project) -> None:
    rows = adopt(project, "jsonl")
    assert [(row["eval_id"], row["trial"], row["trials"]) for row in rows[2:4]] == [("c", 1, 2), ("c", 2, 2)]


def test_digests_are_those_of_the_content(project: Project) -> None:
    before = adopt(project, "promptfoo")
    again = adopt(project, "promptfoo")
    assert [row["digest"] for row in before] == [row["digest"] for row in again]
    assert len({row["digest"] for row in before}) == 3
    changed = json.loads(json.dumps(PROMPTFOO).replace('"value": "Hello"', '"value": "Bye"'))
    project.write({"r.json": json.dumps(changed)})
    project.run("adopt", "r.json", "--from", "promptfoo", "--out", "rows.jsonl")
    after = project.rows("rows.jsonl")
    assert [one["digest"] == two["digest"] for one, two in zip(before, after, strict=True)] == [False, True, True]


@pytest.mark.parametrize(("trials", "code", "word"), [(1, 6, "undecided"), (10, 1, "regress")])
def test_worse_results_than_a_baseline_do_not_pass(trials: int, code: int, word: str, project: Project) -> None:
    project.write({"good.jsonl": lines([{"id": "a", "passed": True}] * trials)})
    assert project.run("adopt", "good.jsonl", "--from", "jsonl", "--out", "good-rows.jsonl").code == 0
    assert project.run("baseline", "accept", "good-rows.jsonl", "--out", "b.json").code == 0
    project.write({"good.jsonl": lines([{"id": "a", "passed": False}] * trials)})
    flags = ["--baseline", "b.json", "--min-pass-rate", "0"]
    done = project.run("adopt", "good.jsonl", "--from", "jsonl", "--out", "bad-rows.jsonl", *flags)
    assert (done.code, word in done.out) == (code, True), done


def test_columns_are_mapped(project: Project) -> None:
    project.write({"r.jsonl": lines([{"case": {"name": "x y"}, "mark": 0.75, "said": {"text": "T"}}])})
    maps = ["--map", "id=case.name", "--map", "score=mark", "--map", "answer=said.text"]
    done = project.run("adopt", "r.jsonl", "--from", "jsonl", "--out", "rows.jsonl", *maps, "--threshold", "0.7")
    assert done.code == 0, done
    row = project.rows("rows.jsonl")[0]
    assert (row["eval_id"], row["score"], row["candidate_answer"]) == ("x y", 0.75, "T")


ZSTANDARD = 93


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZSTANDARD])
def test_archives_of_inspect_are_read(compression: int, project: Project) -> None:
    archives: Any = zipfile if compression != ZSTANDARD else zstandard_archives()
    sample = INSPECT["samples"][0]  # type: ignore[index]
    with archives.ZipFile(project.path("log.eval"), "w", compression) as archive:
        archive.writestr("header.json", json.dumps({"status": "success", "eval": INSPECT["eval"]}))
        for epoch in (1, 2):
            archive.writestr(f"samples/1_epoch_{epoch}.json", json.dumps({**sample, "epoch": epoch}))
    assert project.run("adopt", "log.eval", "--from", "inspect", "--out", "rows.jsonl").code == 0
    rows = project.rows("rows.jsonl")
    assert [(row["tags"], row["trial"], row["trials"]) for row in rows] == [(["sums"], 1, 2), (["sums"], 2, 2)]


def zstandard_archives() -> Any:
    """Return a module like `zipfile` that reads and writes Zstandard."""
    return zipfile if sys.version_info >= (3, 14) else import_module("backports.zstd.zipfile")


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python reads Zstandard without the extra")
def test_an_archive_in_zstandard_needs_an_extra(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    with zstandard_archives().ZipFile(project.path("log.eval"), "w", ZSTANDARD) as archive:
        archive.writestr("header.json", "{}")
    monkeypatch.setattr(inspect_logs, "zipfile", zipfile)
    project.refuses("adopt", "log.eval", "--from", "inspect", error="Zstandard: install 'agentv-ci[inspect]'")


@pytest.mark.parametrize("is_long", [False, True], ids=["in the short record", "in the long record"])
def test_an_archive_of_very_many_names_is_refused(is_long: bool, project: Project) -> None:
    size = inspect_logs.MOST_OF_NAMES + 1
    short = b"PK\5\6" + bytes(8) + (b"\xff" * 4 if is_long else size.to_bytes(4, "little")) + bytes(6)
    long = b"PK\6\6" + bytes(36) + size.to_bytes(8, "little") + bytes(8)
    project.path("log.eval").write_bytes(long + short if is_long else short)
    project.refuses("adopt", "log.eval", "--from", "inspect", error="its directory is far longer")


def test_tests_of_jest_with_one_name_are_different(project: Project) -> None:
    names = [f"adds {number // 2}" for number in range(27)]
    cases = "".join(f'<testcase classname="{name}" name="{name}"/>' for name in names)
    suites = f'<testsuite name="sums">{cases}</testsuite>' * 157
    project.write({"r.xml": f'<testsuites name="jest tests">{suites}</testsuites>'})
    project.run("adopt", "r.xml", "--from", "junit", "--out", "rows.jsonl")
    ids = [row["eval_id"] for row in project.rows("rows.jsonl")]
    assert len(ids) == len({*ids}) == 4239


def test_repetitions_of_pydantic_evals_are_trials(project: Project) -> None:
    case: dict[str, Any] = {"inputs": "a", "output": "b", "assertions": {"same": {"value": True}}}
    named = [{**case, "name": f"one [{number}/3]", "source_case_name": "one"} for number in (1, 2, 3)]
    project.write({"r.json": json.dumps({"name": "t", "cases": named, "failures": []})})
    project.run("adopt", "r.json", "--from", "pydantic-evals", "--out", "rows.jsonl")
    assert [(row["eval_id"], row["trial"]) for row in project.rows("rows.jsonl")] == [
        ("one", 1),
        ("one", 2),
        ("one", 3),
    ]


@pytest.mark.parametrize(("correct", "verdict"), [(1, "pass"), (1.0, "pass"), (0, "fail"), ("true", "pass")])
def test_matches_of_openai_evals_may_be_numbers(correct: Any, verdict: str, project: Project) -> None:
    match = {"run_id": "r", "event_id": 0, "sample_id": "s", "type": "match", "data": {"correct": correct}}
    project.write({"r.jsonl": lines([{"spec": {"run_id": "r"}}, match, {"final_report": {"accuracy": 1}}])})
    project.run("adopt", "r.jsonl", "--from", "openai-evals", "--out", "rows.jsonl")
    assert project.rows("rows.jsonl")[0]["verdict"] == verdict


@pytest.mark.parametrize(
    ("content", "kind", "error", "code"),
    [
        ("{", "promptfoo", "'r.json' has no results of promptfoo", 2),
        ("{}", "promptfoo", "no result of promptfoo in r.json", 3),
        ("<a", "junit", "not XML", 2),
        ("<testsuite>" * 101 + "</testsuite>" * 101, "junit", "more than 100 suites are within each other", 2),
        ("no zip", "openai-evals", "line 1 is not JSON", 2),
        ("[]\n", "jsonl", "line 1 is not a JSON object", 2),
    ],
)
def test_other_files_are_refused(content: str, kind: str, error: str, code: int, project: Project) -> None:
    project.write({"r.json": content})
    project.refuses("adopt", "r.json", "--from", kind, error=error, code=code)


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--map", "ident=x"], "unknown field 'ident'"),
        (["--map", "id"], "expected FIELD=PATH"),
        (["--out", "r.jsonl"], "r.jsonl"),
    ],
)
def test_wrong_options_are_refused(flags: list[str], error: str, project: Project) -> None:
    project.write({"r.jsonl": lines(LINES)})
    project.refuses("adopt", "r.jsonl", "--from", "jsonl", *flags, error=error)


def test_a_missing_file_and_a_broken_archive_are_refused(project: Project) -> None:
    project.write({"log.eval": "no archive"})
    project.refuses("adopt", "gone.xml", "--from", "junit", error="cannot read")
    project.refuses("adopt", "log.eval", "--from", "inspect", error="not a zip file")
