"""Configs of promptfoo: what their cases become, and what passes."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.load.parse import parse_yaml
from tests.support.projects import Project

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is missing")
ECHO = {"prompts": ["{{a}}"], "providers": ["echo"]}


@pytest.fixture
def project(repository: Path) -> Project:
    return Project(repository, env={"PATH": os.environ["PATH"]})


def verdicts(project: Project, config: dict[str, Any], files: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the verdicts of an imported config by the names of its cases."""
    project.write({"promptfooconfig.yaml": json.dumps({**ECHO, **config}), **(files or {})})
    assert project.run("import", "promptfooconfig.yaml", "--out", "ours").code == 0
    assert project.run("validate", "--strict", "ours").code == 0
    project.run("eval", "ours", "--out", "r.jsonl", "--max-retries", "0")
    rows = project.rows("r.jsonl")
    return {re.sub("-[0-9a-f]{12}$", "", row["eval_id"]): row["verdict"] for row in rows}


def test(name: str, answer: object, *asserts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"description": name, "vars": {"a": answer}, "assert": list(asserts)} | more


test.__test__ = False  # type: ignore[attr-defined]  # a test of promptfoo
BOT = "module.exports = async (q) => ({output: {answer: `the SECRET of ${q}`, sources: [1]}});\n"
OBJECT = {"prompts": ["{{a}}"], "providers": ["file://bot.js"]}
JS, PY = "javascript", "python"
SKILL = {"role": "assistant", "tool_calls": [{"tool": "Skill", "input": {"skill": "csv"}}]}


@needs_node
@pytest.mark.parametrize(
    ("config", "files", "expected"),
    [
        pytest.param(
            {
                **OBJECT,
                "tests": [
                    test("field", "x", {"type": "contains", "value": "x"}, options={"transform": "output.answer"}),
                    test("leak", "x", {"type": "not-contains", "value": "S"}, options={"transform": "output.answer"}),
                    test("gone", "x", {"type": "not-contains", "value": "S"}, options={"transform": "output.no"}),
                    test("script", "x", {"type": JS, "value": "output.sources.length === 1"}),
                    test("python", "x", {"type": PY, "value": "output['sources'] == [1]"}),
                    test("own", "x", {"type": "contains", "value": "1", "transform": "output.sources"}),
                    test("text", "x", {"type": "contains", "value": '"sources":[1]'}),
                ],
            },
            {"bot.js": BOT},
            {
                "field": "pass",
                "leak": "fail",
                "gone": "error",
                "script": "pass",
                "python": "pass",
                "own": "pass",
                "text": "pass",
            },
            id="objects",
        ),
        pytest.param(
            {
                "providers": [{"id": "file://bot.js", "transform": "output.answer"}],
                "tests": [test("read", "x", {"type": "equals", "value": "the SECRET of x"})],
            },
            {"bot.js": BOT},
            {"read": "pass"},
            id="transform-of-a-provider",
        ),
        pytest.param(
            {"tests": "file://t.csv"},
            {
                "t.csv": 'a,__expected,__description\n"{""x"": 1}",is-json,j\nword,is-json,w\n'
                '"x, y","contains-any:"", "",z",q\n'
            },
            {"j": "pass", "w": "fail", "q": "pass"},
            id="tables-without-values",
        ),
        pytest.param(
            {
                "prompts": ["{{a}}"],
                "defaultTest": {
                    "assert": [
                        {"type": "contains-any", "value": "{{any}}"},
                        {"type": "not-contains-all", "value": ["{{any}}", "zoo"]},
                        {"type": "regex", "value": "{{pattern}}"},
                        {"type": "contains", "value": "{{text}}"},
                    ]
                },
                "tests": [
                    test("list", "x", vars={"a": "say x", "any": "x, q", "pattern": "^say", "text": "x"}),
                    test("other", "x", vars={"a": "say z", "any": "x, q", "pattern": "^say", "text": "z"}),
                    test("pattern", "x", vars={"a": "say x", "any": "x, q", "pattern": "(", "text": "x"}),
                    test("empty", "x", vars={"a": "say x", "any": "x, q", "pattern": "^say", "text": ""}),
                ],
            },
            {},
            {"list": "pass", "other": "borderline", "pattern": "borderline", "empty": "borderline"},
            id="values-that-rows-fill-in",
        ),
        pytest.param(
            {"tests": [test("1", "one", {"type": "contains", "value": "one"})] * 2},
            {},
            {"1": "pass", "1-2": "pass"},
            id="equal-tests-with-names",
        ),
        pytest.param(
            {"tests": ["file://cases/t.yaml"]},
            {
                "cases/t.yaml": "[{description: v, vars: {a: 'file://d/q.txt'}, assert: [{type: equals, value: q}]},"
                " {description: w, vars: {a: q}, assert: [{type: contains, value: 'file://d/q.txt'}]},"
                " {description: x, vars: {a: q}, assert: [{type: contains, value: 'file://gone.txt'}]}]",
                "d/q.txt": "q\n",
            },
            {"v": "pass", "w": "pass", "x": "skipped"},
            id="paths-are-from-the-config",
        ),
        pytest.param(
            {
                "scenarios": [
                    {
                        "config": [
                            {"vars": {"a": "x"}, "assert": [{"type": "contains", "value": "y"}]},
                            {"vars": {"a": "z"}, "options": {"prefix": "y"}, "threshold": 0.1},
                        ],
                        "tests": [{"description": "s", "assert": [{"type": "icontains", "value": "Z"}]}],
                    }
                ]
            },
            {},
            {"s": "fail", "s-2": "pass"},
            id="scenarios",
        ),
        pytest.param(
            {
                "prompts": [{"raw": "A {{a}}", "label": "first"}, {"raw": "B {{a}}", "label": "second"}],
                "providers": [{"id": "echo", "label": "e"}, {"id": "echo", "label": "f", "prompts": ["second"]}],
                "tests": [
                    test("only-b", "x", {"type": "equals", "value": "B x"}, prompts=["sec*"], providers=["e"]),
                    test("of-f", "x", {"type": "equals", "value": "B x"}, providers=["f"]),
                ],
            },
            {},
            {"only-b": "pass", "of-f": "pass"},
            id="prompts-and-providers-of-a-test",
        ),
        pytest.param(
            {
                "tests": [
                    test("given", "x", {"type": "equals", "value": "y"}, providerOutput="y"),
                    test("scored", "x", {"type": "contains", "value": "x"}, assertScoringFunction="file://s.js"),
                    test("changed", "x", {"type": "contains", "value": "x"}, options={"transformVars": "({a: 1})"}),
                    test("secret", "x", {"type": "contains", "value": "{{ env.HOME }}"}),
                    test("filter", "x", {"type": "contains", "value": "{{ a | no_such_filter }}"}),
                    test("code", "x", {"type": "contains", "value": "{{ a.constructor.constructor('return 1')() }}"}),
                ]
            },
            {},
            {
                "given": "pass",
                "scored": "skipped",
                "changed": "skipped",
                "secret": "skipped",
                "filter": "skipped",
                "code": "skipped",
            },
            id="one-construct-costs-its-case",
        ),
        pytest.param(
            {
                "env": {"WORD": "x"},
                "prompts": ["{% for k, v in a %}{{ k }}={{ v }};{% endfor %}{{ env.WORD }}"],
                "tests": [test("pairs", {"k": 1}, {"type": "equals", "value": "k=1;x"})],
            },
            {},
            {"pairs": "pass"},
            id="nunjucks",
        ),
        pytest.param(
            {
                "prompts": ["{{ item.q }}?"],
                "tests": [
                    {
                        "description": "hosted",
                        "vars": {"item": {"q": "x", "n": 2, "gone": None}},
                        "assert": [{"type": "contains", "value": "{{ item.q }}"}],
                    },
                ],
            },
            {},
            {"hosted": "pass"},
            id="exports-of-hosted-evals",
        ),
        pytest.param(
            {
                "providers": ["exec:python3 bot.py"],
                "prompts": ['[{"role": "user", "content": "{{a}}"}]', "file://p.csv"],
                "tests": [test("json", 'say "hi"', {"type": "equals", "value": 'say "hi"'})],
            },
            {
                "bot.py": "import json, sys\np = sys.argv[1]\n"
                "print(json.loads(p)[0]['content'] if p.startswith('[') else p)\n",
                "p.csv": 'prompt,label\n"{{a}}",one\n{{a}}!,two\n',
            },
            {"json": "pass", "json-2": "pass", "json-3": "fail"},
            id="programs-get-json-and-csv-has-prompts",
        ),
    ],
)
def test_imported_cases_pass_as_they_did(
    config: dict[str, Any], files: dict[str, str], expected: dict[str, str], project: Project
) -> None:
    assert verdicts(project, config, files) == expected


@pytest.mark.parametrize(
    ("provider", "expected"),
    [
        ("openai:image:dall-e-3", {"provider": "mock"}),
        ("openai:embedding:text-embedding-3-large", {"provider": "mock"}),
        ("openai:realtime:gpt-realtime", {"provider": "mock"}),
        ("openai:assistant:asst_1", {"provider": "mock"}),
        ("azure:assistant:asst_1", {"provider": "mock"}),
        ("vertex:claude-sonnet-4", {"provider": "mock"}),
        ("ollama:embeddings:nomic", {"provider": "mock"}),
        ("anthropic:claude-code", {"provider": "claude-code"}),
        ({"id": "openai:codex-sdk", "config": {"model": "m", "sandbox_mode": "read-only"}}, {"provider": "codex"}),
        ("openai:chat:ft:gpt-4o:me:x", {"provider": "openai", "model": "ft:gpt-4o:me:x"}),
        ({"openai:gpt-4o": {"config": {"passthrough": {"a": 1}}}}, {"extra_body": {"a": 1}}),
        ({"id": "openai:chat", "config": {"model": "gpt-4o", "apiHost": "h"}}, {"base_url": "https://h/v1"}),
        (
            {"id": "ollama:chat:qwen3:8b", "config": {"num_predict": 9, "num_ctx": 4096, "top_p": 0.5}},
            {"model": "qwen3:8b", "max_output_tokens": 9, "extra_body": {"top_p": 0.5}},
        ),
        (
            {"id": "google:gemini-3", "config": {"generationConfig": {"temperature": 0, "topK": 3}}},
            {"temperature": 0, "extra_body": {"generationConfig": {"topK": 3}}},
        ),
    ],
)
def test_providers_are_what_they_are(provider: Any, expected: dict[str, Any], project: Project) -> None:
    project.write({"promptfooconfig.yaml": json.dumps({**ECHO, "providers": [provider], "tests": [test("t", "x")]})})
    assert project.run("import", "promptfooconfig.yaml", "--out", "ours").code == 0
    targets: Any = parse_yaml(project.text("ours/targets.yaml")).data
    (target,) = (each for each in targets["targets"] if each["name"] != "judge")
    assert expected.items() <= target.items()


@pytest.mark.parametrize(
    "prompt",
    [
        "Strictly: {{ output }} for {{rubric}}",
        [{"role": "system", "content": "Strictly:"}, {"role": "user", "content": "{{output}} for {{ rubric }}"}],
        json.dumps(
            [{"role": "user", "content": "Strictly:"}, {"role": "user", "content": "{{output}} for {{rubric}}"}]
        ),
        "file://judge.txt",
    ],
)
def test_the_prompt_of_a_judge_is_kept(prompt: Any, project: Project) -> None:
    asked = {"type": "llm-rubric", "value": "is x"}
    own = {**ECHO, "defaultTest": {"options": {"rubricPrompt": prompt}}, "tests": [test("t", "x", asked)]}
    project.write({"promptfooconfig.yaml": json.dumps(own), "judge.txt": "Strictly: {{output}} for {{rubric}}"})
    assert project.run("import", "promptfooconfig.yaml", "--out", "ours").code == 0
    document: Any = parse_yaml(project.text("ours/promptfooconfig.eval.yaml")).data
    (judge,) = document["evalcases"][0]["evaluators"]
    assert judge["prompt"].split() == ["Strictly:", "{{", "candidate_answer", "}}", "for", "is", "x"]


@needs_node
@pytest.mark.parametrize(
    ("check", "verdict"),
    [
        ({"type": "trajectory:tool-used", "value": ["search"]}, "pass"),
        ({"type": "trajectory:tool-used", "value": {"pattern": "se*", "max": 1}}, "fail"),
        ({"type": "not-trajectory:tool-used", "value": ["delete", "search"]}, "fail"),
        ({"type": "trajectory:tool-sequence", "value": ["search", "Skill"]}, "pass"),
        ({"type": "trajectory:tool-sequence", "value": {"mode": "exact", "steps": ["search"]}}, "fail"),
        ({"type": "trajectory:tool-args-match", "value": {"name": "search", "args": {"q": "x"}}}, "pass"),
        (
            {"type": "trajectory:tool-args-match", "value": {"name": "search", "args": {"q": "x"}, "mode": "exact"}},
            "fail",
        ),
        ({"type": "trajectory:step-count", "value": {"pattern": "search", "min": 2, "max": 2}}, "pass"),
        ({"type": "skill-used", "value": "csv"}, "pass"),
        ({"type": "skill-used", "value": {"name": "csv", "max": 0}}, "fail"),
        ({"type": "not-skill-used", "value": "csv"}, "fail"),
    ],
)
def test_tool_calls_are_checked(check: dict[str, Any], verdict: str, project: Project) -> None:
    calls = [{"tool": "search", "input": {"q": "x", "n": 1}}, {"tool": "search", "input": {}}]
    skill = {"tool": "Skill", "input": {"skill": "csv"}}
    said = {"role": "assistant", "content": "done", "tool_calls": [*calls, skill]}
    agent = f"print({json.dumps(json.dumps({'output_messages': [said]}))})\n"
    config = {"providers": ["exec:python3 agent.py"], "tests": [test("t", "x", check)]}
    assert verdicts(project, config, {"agent.py": agent}) == {"t": verdict}


def test_without_node_a_template_skips_its_case(repository: Path) -> None:
    project = Project(repository, env={"PATH": str(Path(shutil.which("git") or "/usr/bin/git").parent / "nowhere")})
    config = {"tests": [test("t", "x", {"type": "equals", "value": "{{ a | upper }}"})]}
    project.write({"promptfooconfig.yaml": json.dumps({**ECHO, **config})})
    assert project.run("import", "promptfooconfig.yaml", "--out", "ours").code == 0
    assert "Not imported: only Nunjucks, in Node, can fill in" in project.text("ours/promptfooconfig.eval.yaml")
    assert "| `template` | only Nunjucks, in Node, can fill in" in project.text("ours/MIGRATION.md")


def result(answer: str, prompt: str, *, success: bool, **more: Any) -> dict[str, Any]:
    """Return a result as `promptfoo eval -o` writes it."""
    written = {"success": success, "response": {"output": answer}, "prompt": {"raw": prompt, "label": prompt}}
    return {**written, "provider": {"id": "echo"}, "promptIdx": 0, "vars": {"a": "x"}, "testCase": {}, **more}


def test_verdicts_of_the_old_tool_are_compared(project: Project) -> None:
    tests = [
        test("same", "x", {"type": "contains", "value": "x"}),
        test("other", "x", {"type": "contains", "value": "y"}),
        test("changed", "x", {"type": "contains", "value": "x"}, options={"transform": "output + 1"}),
        test("fails", "x", {"type": "contains", "value": "y"}),
    ]
    said = [("same", True), ("other", True), ("changed", True), ("fails", False), ("gone", True)]
    rows = [result("x", "Say x", success=passed, testCase={"description": name}) for name, passed in said]
    config = {**ECHO, "prompts": ["Say {{a}}"], "tests": tests}
    prompts = [{"raw": "Say {{a}}", "label": "Say {{a}}", "provider": "echo"}]
    results = {"results": {"version": 3, "prompts": prompts, "results": rows}}
    project.write({"promptfooconfig.yaml": json.dumps(config), "old.json": json.dumps(results)})
    done = project.run("import", "promptfooconfig.yaml", "--out", "ours", "--check", "old.json")
    assert "2 of 3 verdicts are those of the old tool; 2 could not be compared" in done.out
    assert "passed there; here: fail: contains: does not contain 'y'" in done.out
    assert done.code == 1


def test_the_screen_says_what_to_do(project: Project) -> None:
    tests = [
        test("a", "x", {"type": "contains", "value": "x"}),
        test("b", "x", {"type": "similar", "value": "x"}),
        test("c", "x", {"type": "similar", "value": "y"}),
        test("d", "x", {"type": "contains", "value": "file://gone.txt"}),
    ]
    project.write({"promptfooconfig.yaml": json.dumps({**ECHO, "tests": tests}, indent=1)})
    done = project.run("import", "promptfooconfig.yaml", "--out", "ours")
    assert "1 case run as they did, 2 changed, 1 skipped" in done.out
    place = re.search(
        r"2  similar: one criterion, which a judge checks \(promptfooconfig.yaml:(\d+) and 1 more", done.out
    )
    assert place
    assert "file://gone.txt: the file was not found; its cases are skipped (promptfooconfig.yaml:" in done.out
    (line,) = re.findall(r"configure 'judge' in ours/targets.yaml:(\d+)", done.out)
    message = f"placeholder: configure 'judge' in ours/targets.yaml:{line}"
    assert message.replace("'", "''") in project.text("ours/targets.yaml").splitlines()[int(line) - 1]
    project.run("eval", "ours", "--out", "r.jsonl", "--max-retries", "0")
    assert message in project.text("r.jsonl")
