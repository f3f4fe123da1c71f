"""`agentv-ci import`: what it writes, refuses and reports."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import REPOSITORY, write
from tests.support.projects import Project

CONFIG = {"prompts": ["Say {{a}}"], "providers": ["echo"], "tests": [{"vars": {"a": "b"}, "assert": ["contains: b"]}]}
SCRIPTS = REPOSITORY / "agentv_ci" / "other_tools" / "imports" / "scripts"


@pytest.fixture
def project(repository: Path) -> Project:
    project = Project(repository)
    project.write({"promptfooconfig.yaml": json.dumps(CONFIG)})
    return project


def test_imported_files_run_at_once(project: Project) -> None:
    assert project.run("import", "promptfooconfig.yaml", "--out", "evals").code == 0
    done = project.run("eval", "evals", "--out", "r.jsonl")
    assert (done.code, project.rows("r.jsonl")[0]["candidate_answer"]) == (0, "Say b")


def test_nothing_is_overwritten_unless_it_is_said(project: Project) -> None:
    assert project.run("import", "promptfooconfig.yaml", "--out", "evals").code == 0
    project.refuses("import", "promptfooconfig.yaml", "--out", "evals", error="exists")
    assert project.run("import", "promptfooconfig.yaml", "--out", "evals", "--overwrite").code == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["services.yaml", "--out", "x"], "cannot tell which tool services.yaml is from"),
        (["evals.json", "--out", "x"], "evals.json has evaluations of an agent skill"),
        (["broken.yaml", "--out", "x"], "broken.yaml:2"),
        (["missing.yaml", "--out", "x"], "does not exist"),
        (["promptfooconfig.yaml", "--out", "x", "--map", "answer=b"], "expected FIELD=COLUMN"),
        (["promptfooconfig.yaml"], "missing option '--out'"),
    ],
)
def test_what_cannot_be_imported_is_refused(arguments: list[str], error: str, project: Project) -> None:
    project.write({"services.yaml": "services: {}\n", "broken.yaml": "a: [\n"})
    project.write({"evals.json": '{"skill_name": "tidy", "evals": [{"id": 0, "prompt": "a"}]}'})
    project.refuses("import", *arguments, error=error)


def test_what_is_dropped_fails_with_strict(project: Project) -> None:
    project.write({"promptfooconfig.yaml": json.dumps({**CONFIG, "redteam": {}, "future": 1})})
    done = project.run("import", "promptfooconfig.yaml", "--out", "evals", "--strict")
    assert (done.code, "1 case run as they did, 0 changed, 0 skipped" in done.out) == (1, True)
    assert "     1  future: unknown to agentv-ci (promptfooconfig.yaml:1)" in done.out
    report = project.text("evals/MIGRATION.md")
    assert "| `redteam` | agentv-ci has no counterpart | promptfooconfig.yaml:1 |" in report
    assert "| `future` | unknown to agentv-ci | promptfooconfig.yaml:1 |" in report


def test_cases_without_their_checks_are_skipped(project: Project) -> None:
    config = {**CONFIG, "tests": [{"vars": {"a": "b"}, "assert": [{"type": "moderation"}]}]}
    project.write({"promptfooconfig.yaml": json.dumps(config)})
    project.run("import", "promptfooconfig.yaml", "--out", "evals")
    done = project.run("eval", "evals", "--out", "r.jsonl")
    assert done.code != 0
    assert "its checks could not be imported: moderation" in project.text("r.jsonl")


THROWS = "JSON.parse(output).ok === true"
RAISES = "json.loads(output)['ok']"


@pytest.mark.parametrize(
    ("assertion", "verdict", "reason"),
    [
        ({"type": "javascript", "value": THROWS}, "fail", "the function threw: Unexpected token"),
        ({"type": "not-javascript", "value": THROWS}, "fail", "the function threw: Unexpected token"),
        ({"type": "javascript", "value": "output ===", "threshold": 0.5}, "fail", "the function threw: Unexpected"),
        ({"type": "javascript", "value": "undefined"}, "fail", "it returned undefined"),
        ({"type": "javascript", "value": "file://check.mjs"}, "fail", "the function threw: no word"),
        ({"type": "javascript", "value": "file://check.mjs:absent"}, "error", "has no function absent"),
        ({"type": "not-javascript", "value": "output === 'x'"}, "pass", ""),
        ({"type": "python", "value": RAISES}, "fail", "the function raised JSONDecodeError"),
        ({"type": "not-python", "value": RAISES}, "fail", "the function raised JSONDecodeError"),
        ({"type": "python", "value": "None"}, "fail", "the function raised TypeError"),
        ({"type": "python", "value": "'true'"}, "pass", ""),
        ({"type": "python", "value": "file://check.py"}, "fail", "the function raised ValueError: no word"),
        ({"type": "python", "value": "file://check.py:absent"}, "error", "has no attribute 'absent'"),
        ({"type": "not-python", "value": "output == 'x'"}, "pass", ""),
    ],
)
def test_checks_that_throw_have_failed(assertion: dict[str, Any], verdict: str, reason: str, project: Project) -> None:
    if "javascript" in assertion["type"] and shutil.which("node") is None:
        pytest.skip("node is missing")
    config = {**CONFIG, "tests": [{"vars": {"a": "b"}, "assert": [assertion]}]}
    own = {
        "check.mjs": "export default () => { throw new Error('no word'); };\n",
        "check.py": "def get_assert(output, context):\n    raise ValueError('no word')\n",
    }
    project.write({"promptfooconfig.yaml": json.dumps(config), **own})
    assert project.run("import", "promptfooconfig.yaml", "--out", "evals").code == 0
    project.run("eval", "evals", "--out", "r.jsonl")
    (row,) = project.rows("r.jsonl")
    (result,) = row["evaluator_results"]
    assert (row["verdict"], reason in json.dumps(result)) == (verdict, True), result


def test_files_of_another_repository_are_copied(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    write(other, {"rows.csv": "a\nb\n", "c.yaml": json.dumps({**CONFIG, "tests": "file://rows.csv"})})
    (other / ".git").mkdir()
    assert project.run("import", str(other / "c.yaml"), "--out", "evals").code == 0
    assert project.text("evals/files/rows.csv") == "a\nb\n"
    assert project.run("validate", "evals").code == 0


def test_keys_are_never_written(project: Project) -> None:
    provider = {"id": "openai:gpt-5.6-luna", "config": {"apiKey": "sk-0123456789abcdef"}}
    project.write({"promptfooconfig.yaml": json.dumps({**CONFIG, "providers": [provider]})})
    project.run("import", "promptfooconfig.yaml", "--out", "evals")
    assert "sk-0123456789abcdef" not in "".join(
        content.decode() for name, content in project.files().items() if "evals" in name
    )


def _given(**more: Any) -> str:
    given = {"expected_outcome": "c", "question": "q", "candidate_answer": "a", "input_messages": [], "has_trace": True}
    return json.dumps({**given, "expected_messages": [], "output_messages": [], **more})


def _scored(script: str, folder: Path, **given: Any) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / script)],
        input=_given(**given),
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    scored: dict[str, Any] = json.loads(done.stdout)
    return scored


@pytest.mark.parametrize(
    ("call", "score"),
    [
        ({"tool": "Skill", "input": {"skill": "csv-analyzer"}}, 1),
        ({"tool": "Read", "input": {"file_path": "/x/skills/csv/SKILL.md"}}, 1),
        ({"tool": "bash", "input": "ls", "output": "skills/csv/SKILL.md"}, 1),
        ({"tool": "Skill", "input": {"skill": "other"}}, 0),
    ],
)
def test_skills_are_found_in_the_calls(call: dict[str, Any], score: int, tmp_path: Path) -> None:
    messages = [{"role": "assistant", "tool_calls": [call]}]
    assert _scored("agentv_skill.py", tmp_path, config={"skill": "csv"}, output_messages=messages)["score"] == score


def test_graders_of_agentv_get_their_input(tmp_path: Path) -> None:
    reply = "{'score': 0.5, 'assertions': [{'text': given['output'], 'passed': True}, {'text': 'no', 'passed': False}]}"
    write(tmp_path, {"g.py": f"import json, sys\ngiven = json.load(sys.stdin)\nprint(json.dumps({reply}))\n"})
    scored = _scored("agentv_grader.py", tmp_path, config={"command": [sys.executable, "g.py"]})
    assert scored == {"score": 0.5, "hits": ["a"], "misses": ["no"], "reasoning": ""}


def test_file_is_not_written_through_a_link_that_leads_nowhere(project: Project) -> None:
    project.path("evals").mkdir()
    project.path("evals/targets.yaml").symlink_to("../../nothing-there.yaml")
    project.refuses("import", "promptfooconfig.yaml", "--out", "evals", error="targets.yaml' exists")
    assert not project.path("../nothing-there.yaml").exists()
