"""Scenarios that are about evaluators, in the order of their specifications, run as a user runs them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import model_api as served
from tests.servers.model_api import ModelApi, Step, model_api
from tests.support import CommandResult
from tests.support.projects import Project

GOOD = '{"score": 0.9, "hits": ["greets"], "misses": ["long"], "reasoning": "It greets."}'
MOCK = {"name": "default", "provider": "mock", "response": "Hello, Ann!"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["name", "age"],
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
}


class Repository(Project):
    """A repository with one eval file of one case, in a folder of its own."""

    def case(self, *evaluators: dict[str, Any], targets: tuple[dict[str, Any], ...] = (MOCK,), **case: Any) -> None:
        one = {
            "id": "one",
            "expected_outcome": "It greets.",
            "input_messages": [{"role": "user", "content": "Say hello."}],
            "expected_messages": [{"role": "assistant", "content": "Hi!"}],
            **({"evaluators": [*evaluators]} if evaluators else {}),
        }
        self.write({"evals/x.yaml": json.dumps({"$schema": "agentv-eval-v2", "evalcases": [one | case]})})
        self.targets(*targets, name="evals/targets.yaml")

    @property
    def row(self) -> dict[str, Any]:
        (row,) = self.rows()
        return row


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    (tmp_path / ".git").mkdir()
    return Repository(tmp_path, {"OPENAI_API_KEY": "sk-canary-0123456789abcdef"})


def judged(repository: Repository, *steps: Step, **evaluator: Any) -> tuple[CommandResult, ModelApi]:
    """Run with a judge behind an API."""
    with model_api(*steps) as api:
        judge = {"name": "judge", "provider": "openai", "model": "m", "base_url": f"{api.url}/v1"}
        targets = ({**MOCK, "judge_target": "judge"}, judge)
        repository.case({"name": "quality", "type": "llm_judge", **evaluator}, targets=targets)
        return repository.eval(), api


def messages(api: ModelApi) -> Iterator[tuple[str, str]]:
    """Yield the system prompt and the question of everything that was asked."""
    for question in api.questions:
        system, user = question.body["messages"]
        yield system["content"], user["content"]


class TestLlmJudgeContract:
    def test_enforce_json_prompt_contract(self, repository: Repository) -> None:
        done, api = judged(repository, served.says(GOOD))
        assert done.code == 0
        ((system, user),) = messages(api)
        for name in ("expected_outcome", "request", "reference_answer", "generated_answer"):
            assert f"- {name}: " in system
            assert user.count(f"<{name}-") == 1
        assert '{"score": float, "hits": string[], "misses": string[], "reasoning": string}' in system
        assert "exactly one JSON object and nothing else" in system
        assert "from 0.0" in system
        assert "to 1.0" in system
        assert system.count("at most four") == 2
        for text in ("It greets.", "Say hello.", "Hi!", "Hello, Ann!"):
            assert text in user

    @pytest.mark.parametrize(
        ("reply", "score", "hits"),
        [
            (f"My verdict:\n```json\n{GOOD}\n```", 0.9, ["greets"]),
            ('{"score": 7} {"score": 0}', 1, []),
            ('{"score": -7}', 0, []),
            ('{"score": 0.8, "hits": [" a ", "", 5, "b", "  ", "c", "d", "e"]}', 0.8, ["a", "b", "c", "d"]),
            ('{"score": 0.8, "hits": "all of it", "misses": null}', 0.8, []),
        ],
        ids=["first-object", "clamped-above", "clamped-below", "trimmed-and-at-most-four", "empty-by-default"],
    )
    def test_parse_json_evaluator_response(
        self, repository: Repository, reply: str, score: float, hits: list[str]
    ) -> None:
        judged(repository, served.says(reply))
        (result,) = repository.row["evaluator_results"]
        assert (result["status"], result["score"], result["hits"]) == ("ok", score, hits)

    def test_evaluation_failure(self, repository: Repository) -> None:
        done, api = judged(repository, served.says("nine out of ten"))
        assert (done.code, len(api.questions)) == (4, 3)
        (result,) = repository.row["evaluator_results"]
        assert (result["score"], result["hits"], result["misses"]) == (0, [], [])
        assert (result["status"], result["raw_response"]) == ("error", "nine out of ten")
        assert (repository.row["error_kind"], repository.row["verdict"]) == ("evaluator", "error")

    def test_judge_tokens_are_in_the_row(self, repository: Repository) -> None:
        judged(repository, served.says("unreadable"), served.says(GOOD))
        assert repository.row["judge_usage"]["total_tokens"] == 2 * served.USAGE.total
        assert repository.row.get("usage") is None


class TestCustomEvaluators:
    SCRIPT = """\
import json, sys
given = json.load(sys.stdin)
found = given["eval_id"] == "one" and "Ann" in given["candidate_answer"]
print(json.dumps({"score": float(found), "hits": [given["question"]], "misses": [], "reasoning": "seen"}))
"""

    def test_multiple_evaluators(self, repository: Repository) -> None:
        repository.write({"evals/check.py": self.SCRIPT})
        judge = {"name": "judge", "provider": "mock", "response": '{"score": 0.5, "misses": ["long"]}'}
        repository.case(
            {"name": "script", "type": "code", "script": "./check.py", "weight": 3},
            {"name": "model", "type": "llm_judge"},
            targets=({**MOCK, "judge_target": "judge"}, judge),
        )
        assert repository.eval().code == 0
        row = repository.row
        assert [(each["name"], each["type"], each["score"]) for each in row["evaluator_results"]] == [
            ("script", "code", 1),
            ("model", "llm_judge", 0.5),
        ]
        assert (row["score"], row["verdict"]) == (0.875, "pass")

    @pytest.mark.parametrize("name", ["prompt", "prompt_path", "promptPath"])
    def test_custom_prompt_in_a_file(self, repository: Repository, name: str) -> None:
        repository.write({"evals/prompts/strict.md": "UNIQUE {{ candidate_answer }} of {{ question }}"})
        _, api = judged(repository, served.says(GOOD), **{name: "./prompts/strict.md"})
        ((system, user),) = messages(api)
        assert user.startswith("UNIQUE <candidate_answer-")
        assert user.endswith(" of Say hello.")
        assert "You judge how well" not in system
        assert '{"score": float' in system

    def test_custom_prompt_in_place(self, repository: Repository) -> None:
        _, api = judged(repository, served.says(GOOD), prompt="UNIQUE {{ generated_answer }} {{ unknown }} { {%")
        ((system, user),) = messages(api)
        assert user.startswith("UNIQUE <generated_answer-")
        assert user.endswith("> {{ unknown }} { {%")
        assert '{"score": float' in system

    def test_custom_prompt_without_variables(self, repository: Repository) -> None:
        _, api = judged(repository, served.says(GOOD), prompt="UNIQUE: be strict.")
        ((system, user),) = messages(api)
        assert system.startswith("UNIQUE: be strict.")
        assert '{"score": float' in system
        assert "Hello, Ann!" in user

    def test_code_evaluator(self, repository: Repository) -> None:
        repository.write({"evals/scripts/check.py": self.SCRIPT})
        repository.case({"name": "script", "type": "code", "script": "scripts/check.py"})
        assert repository.eval().code == 0
        (result,) = repository.row["evaluator_results"]
        assert (result["score"], result["hits"], result["misses"], result["reasoning"]) == (
            1,
            ["Say hello."],
            [],
            "seen",
        )

    def test_dry_run_of_every_judge(self, repository: Repository) -> None:
        criteria = ["Is kind", {"id": "short", "description": "Is short", "weight": 2}]
        script = [sys.executable, "-c", "print('{\"score\": 1}')"]
        members = [{"name": "m", "type": "llm_judge"}, {"name": "r", "type": "rubric", "rubrics": criteria}]
        aggregators: dict[str, Any] = {
            "mean": {"type": "weighted_average"},
            "script": {"type": "code", "script": script},
            "judge": {"type": "llm_judge"},
            "own-prompt": {"type": "llm_judge", "prompt": "Weigh {{ evaluator_results }}"},
        }
        judge = {"name": "judge", "provider": "anthropic", "model": "m", "base_url": "http://127.0.0.1:1"}
        repository.case(
            {"name": "plain", "type": "llm_judge"},
            {"name": "own", "type": "llm_judge", "prompt": "Judge {{ candidate_answer }}"},
            {"name": "listed", "type": "llm_judge", "rubrics": criteria},
            {"name": "criteria", "type": "rubric", "rubrics": criteria},
            *(
                {"name": name, "type": "composite", "evaluators": members, "aggregator": aggregator}
                for name, aggregator in aggregators.items()
            ),
            targets=({**MOCK, "judge_target": "judge"}, judge),
            rubrics=criteria,
        )
        assert repository.eval("--dry-run").code == 0
        results = repository.row["evaluator_results"]
        assert results[0]["name"] == "rubrics"
        assert len(results) == 9
        assert {(each["status"], each["score"]) for each in results} == {("ok", 1)}


class TestSchemaCheck:
    """Document 003."""

    def check(self, repository: Repository, answer: str, **settings: Any) -> dict[str, Any]:
        repository.case({"name": "shape", "type": "schema", **settings}, targets=({**MOCK, "response": answer},))
        repository.eval()
        (result,) = repository.row["evaluator_results"]
        found: dict[str, Any] = result
        return found

    ANSWERS = (("json", '{"name": "Ann", "age": 7}'), ("yaml", "name: Ann\nage: 7\n"))

    @pytest.mark.parametrize(("form", "answer"), ANSWERS)
    @pytest.mark.parametrize("name", ["person.json", "person.yaml", "person.yml"])
    def test_schema_file_relative_to_the_yaml(self, repository: Repository, name: str, form: str, answer: str) -> None:
        text = json.dumps(SCHEMA) if name.endswith("json") else "type: object\nrequired: [name, age]\n"
        repository.write({f"evals/schemas/{name}": text, f"schemas/{name}": "false"})
        assert self.check(repository, answer, schema_file=f"./schemas/{name}", format=form)["hits"] == ["Valid"]

    @pytest.mark.parametrize(("form", "answer"), ANSWERS)
    def test_schema_inline(self, repository: Repository, form: str, answer: str) -> None:
        assert self.check(repository, answer, schema_inline=SCHEMA, format=form)["score"] == 1

    def test_answers_are_json_by_default(self, repository: Repository) -> None:
        result = self.check(repository, "name: Ann\nage: 7\n", schema_inline=SCHEMA)
        assert result["score"] == 0
        assert result["misses"][0].startswith("not JSON: ")

    def test_violations_are_misses(self, repository: Repository) -> None:
        result = self.check(repository, '{"name": 5}', schema_inline=SCHEMA)
        assert (result["status"], result["score"]) == ("ok", 0)
        assert result["misses"] == ["$: 'age' is a required property", "$.name: 5 is not of type 'string'"]

    @pytest.mark.parametrize(
        ("settings", "error"),
        [
            ({"schema_file": "person.xml"}, "a schema file must end in .json, .yaml, .yml, not '.xml' [AV309]"),
            ({"schema_file": "./schemas/none.json"}, "/evals/schemas/none.json [AV302]"),
            ({}, "either 'schema_file' or 'schema_inline' is required [AV320]"),
            ({"schema_file": "person.json"}, "not a JSON Schema"),
        ],
        ids=["unsupported suffix", "missing file", "neither is given", "file is not a schema"],
    )
    def test_invalid_settings(self, repository: Repository, settings: dict[str, str], error: str) -> None:
        repository.write({"evals/person.xml": "<x/>", "evals/person.json": '{"type": "no such type"}'})
        repository.case({"name": "shape", "type": "schema", **settings})
        done = repository.run("validate", "evals/x.yaml")
        assert (done.code, error in done.out) == (1, True)
        assert (repository.eval().code, repository.path("r.jsonl").exists()) == (2, False)

    def test_summary_has_valid_answers_on_one_line(self, repository: Repository) -> None:
        answer = {**MOCK, "response": '{"name": "Ann", "age": 7}'}
        repository.case(
            {"name": "shape", "type": "schema", "schema_inline": SCHEMA},
            {"name": "word", "type": "contains", "value": "Bob"},
            targets=(answer,),
        )
        assert "    pass       1.000  shape: Valid\n" in repository.eval().out

    @pytest.mark.parametrize("others", [[], [{"name": "word", "type": "contains", "value": "Ann"}]])
    def test_summary_cuts_violations_at_eighty_characters(
        self, repository: Repository, others: list[dict[str, Any]]
    ) -> None:
        wrong = {**MOCK, "response": json.dumps({"name": ["Ann"] * 100})}
        repository.case({"name": "shape", "type": "schema", "schema_inline": SCHEMA}, *others, targets=(wrong,))
        (line,) = [line for line in repository.eval().out.splitlines() if "'age' is a required property" in line]
        assert len(line) == 80
        assert line.endswith("…")


class TestJudgeTemplatesInARun:
    """Document 004, for a run; `validate` is tested in test_validation.py."""

    def run(self, repository: Repository, *arguments: str, **settings: Any) -> CommandResult:
        judge = {"name": "judge", "provider": "mock", "response": GOOD}
        tone = {"name": "tone", "type": "llm_judge", **settings}
        repository.case(tone, targets=({**MOCK, "judge_target": "judge"}, judge))
        return repository.eval(*arguments)

    @pytest.mark.parametrize(
        ("settings", "warnings"),
        [
            (
                {"prompt": "{{ question }}"},
                [
                    "Custom evaluator template at 'prompt' of evaluator 'tone' is missing required fields",
                    *("{{ candidate_answer }}", "{{ expected_messages }}"),
                    "Without these, there is nothing to evaluate against",
                ],
            ),
            ({"promptPath": "./my-eval.md"}, ["Custom evaluator template at {}/evals/my-eval.md is missing"]),
            (
                {"prompt": "{{ candiate_answer }} for {{ invalid_var }}"},
                [
                    "unknown variables: {{ candiate_answer }}, {{ invalid_var }}",
                    "valid variables: {{ candidate_answer }}, {{ expected_messages }}, {{ question }}",
                ],
            ),
        ],
        ids=["missing fields", "file named by its path", "invalid variables"],
    )
    def test_problem_is_a_warning(self, repository: Repository, settings: dict[str, str], warnings: list[str]) -> None:
        repository.write({"evals/my-eval.md": "{{ question }}"})
        done = self.run(repository, **settings)
        assert [text for text in warnings if text.replace("{}", str(repository.folder)) not in done.err] == []
        assert (done.code, repository.row["score"]) == (0, 0.9)

    @pytest.mark.parametrize("name", ["candidate_answer", "expected_messages"])
    def test_either_field_is_enough(self, repository: Repository, name: str) -> None:
        done = self.run(repository, prompt=f"{{{{ {name} }}}}")
        assert (done.code, done.err) == (0, "")

    def test_warnings_are_yellow_only_when_requested(self, repository: Repository) -> None:
        assert "\x1b[33m" in self.run(repository, "--color", "always", prompt="{{ question }}").err
        assert "\x1b[" not in self.run(repository, prompt="{{ question }}").err
