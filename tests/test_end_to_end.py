"""The main job on real input: the bundled examples, an API behind a socket, and plans."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from junitparser import JUnitXml

from agentv_ci.jsonschema.violations import violations
from tests.servers.chat_api import chat_api, fails, says
from tests.support import REPOSITORY
from tests.support.projects import Project

pytestmark = pytest.mark.slow

EXAMPLE = "evals/example.test.yaml"


def copied(name: str, folder: Path) -> Project:
    """Copy a bundled example into a repository of its own."""
    shutil.copytree(REPOSITORY / "docs" / "examples" / name, folder / name)
    (folder / name / ".git").mkdir()
    return Project(folder / name)


def edit(project: Project, name: str, old: str, new: str) -> None:
    assert old in project.text(name)
    project.write({name: project.text(name).replace(old, new)})


class TestBundledExample:
    @pytest.fixture
    def example(self, tmp_path: Path) -> Project:
        return copied("simple", tmp_path)

    def test_it_passes_and_all_files_are_valid(self, example: Project) -> None:
        done = example.process("eval", EXAMPLE, "--out", "r.jsonl", "--junit", "r.xml")
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith("4 cases: 4 passed, 0 failed, 0 errors\n")
        rows = {row["eval_id"]: row for row in example.rows()}
        cases = ["writes-a-function", "reviews-a-file", "remembers-the-conversation", "answers-with-json"]
        assert [*rows] == cases
        assert [violations("result-v1", row) for row in rows.values()] == [[]] * 4
        assert violations("report-v1", example.json("r.report.json")) == []
        junit = JUnitXml.fromfile(str(example.path("r.xml")))
        assert (junit.tests, junit.failures, junit.errors) == (4, 0, 0)
        # Guidelines and earlier turns reach the agent.
        written, remembered = rows["writes-a-function"], rows["remembers-the-conversation"]
        assert "Begin every function with a JSDoc comment" in written["request"]["prompt"]
        assert written["candidate_answer"].startswith("```js\n/**")
        assert "@[Assistant]:" in remembered["request"]["prompt"]
        assert remembered["candidate_answer"] == "Your name is Ada."

    def test_misspelled_field_is_named_and_nothing_runs(self, example: Project) -> None:
        case = "  - id: reviews-a-file\n    "
        edit(example, EXAMPLE, f"{case}expected_outcome:", f"{case}expectd_outcome:")
        line = example.text(EXAMPLE).partition("expectd_outcome")[0].count("\n") + 1
        mistake = "unknown field 'expectd_outcome' (did you mean 'expected_outcome'?) [AV202] (reviews-a-file)"
        example.refuses("eval", EXAMPLE, "--out", "r.jsonl", error=f"{EXAMPLE}:{line}:5: error: {mistake}\n")


def test_scripts_in_three_languages_score_alike(tmp_path: Path) -> None:
    project = copied("code-evaluators", tmp_path)
    assert project.eval().code == 0
    (good,) = project.rows()
    edit(project, "evals/targets.yaml", "30 days", "a month")
    assert project.eval().code == 1
    (bad,) = project.rows()
    found = [(each["name"], each["status"], each["score"]) for each in good["evaluator_results"]]
    assert found == [("python", "ok", 1.0), ("bash", "ok", 1.0), ("node", "ok", 1.0)]
    assert [(each["score"], each["misses"]) for each in bad["evaluator_results"]] == [
        (0.5, ["does not mention '30 days'"]),
        (0.0, ["does not mention 30 days"]),
        (0.5, ["does not mention '30 DAYS'"]),
    ]


class TestApi:
    SECRET = "sk-canary-0123456789abcdef"

    @pytest.fixture
    def project(self, repository: Path) -> Project:
        """A case for an API whose settings are environment references, scored by a judge too."""
        project = Project(repository)
        names = {"base_url": "URL", "api_key": "KEY", "model": "MODEL", "max_output_tokens": "LIMIT"}
        references = {field: f"${{{{ API_{name} }}}}" for field, name in names.items()}
        api = {"name": "default", "provider": "openai", "retry_initial_delay_ms": 1, **references}
        evaluators = [
            {"name": "has-42", "type": "contains", "value": "42"},
            {"name": "is-judged", "type": "llm_judge", "temperature": 0.5},
        ]
        question = {"input_messages": [{"role": "user", "content": "What is the answer?"}]}
        project.documents(question, targets=(api,), evaluators=evaluators)
        return project

    def test_target_and_judge_over_the_wire(self, project: Project) -> None:
        judgement = json.dumps({"score": 0.9, "hits": ["names 42"], "misses": [], "reasoning": "right"})
        steps = (fails(429, "slow down", retry_after="0.01"), says("It is 42."), says(f"Sure: {judgement}"))
        with chat_api(*steps) as api:
            project.env = {"API_URL": f"{api.base_url}/", "API_KEY": f" {self.SECRET}\n", "API_MODEL": "m-1"}
            project.env["API_LIMIT"] = "50"
            done = project.eval("--verbose")
        assert done.code == 0, done.err
        first, again, judge = (request["body"] for request in api.requests)
        system, user = first.pop("messages")
        assert again == {**first, "messages": [system, user]}
        assert (first, user) == ({"model": "m-1", "max_tokens": 50}, {"role": "user", "content": "What is the answer?"})
        assert {request["path"] for request in api.requests} == {"/v1/chat/completions"}
        assert {request["headers"]["authorization"] for request in api.requests} == {f"Bearer {self.SECRET}"}
        assert judge["temperature"] == 0.5
        assert "expected_outcome" in judge["messages"][0]["content"]
        assert "It is 42." in judge["messages"][1]["content"]
        (row,) = project.rows()
        assert (row["attempts"], row["requests"], row["model"], row["score"]) == (1, 2, "mock-model-2030", 0.95)
        assert row["usage"] == {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110, "cached_tokens": 20}
        assert row["judge_usage"]["total_tokens"] == 110
        assert "HTTP 429: slow down; retry 1 of 3 in 0.0 s" in done.err
        written = "".join(path.read_text("utf-8") for path in project.folder.rglob("*") if path.is_file())
        assert self.SECRET not in written + done.out + done.err

    def test_missing_variables_are_named_before_the_first_request(self, project: Project) -> None:
        project.env = {"API_URL": "", "API_LIMIT": "50"}
        project.write({".env": "API_MODEL=from-dotenv\n"})
        project.refuses("eval", "evals", error="API_KEY (api_key), API_URL (base_url)\n")


def test_plan_runs_the_scripts_that_were_compiled(repository: Path) -> None:
    """Later edits of a script or a file beside it do not change the scores of an older plan."""
    grader = "import json, helper\nprint(json.dumps({'score': helper.SCORE}))\n"
    scripts = {"evals/graders/grade.py": grader, "evals/graders/helper.py": "SCORE = 1\n"}
    project = Project(repository)
    evaluator = {"name": "graded", "type": "code", "script": "graders/grade.py", "files": ["graders/helper.py"]}
    project.documents({"id": "a", "evaluators": [evaluator]})
    project.write(scripts)
    assert project.run("compile", "evals", "--out", "plan.json").code == 0
    for changed in ({"evals/graders/helper.py": "SCORE = 0\n"}, {"evals/graders/grade.py": grader + "# remark\n"}):
        project.write({**scripts, **changed})
        done = project.run("eval", "plan.json", "--out", "r.jsonl")
        assert (done.code, "1 passed" in done.out) == (0, True), done
