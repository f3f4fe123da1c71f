"""Plugins from the document to the row: evaluators and providers of installed packages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.benchmark import EngineConfig, RunnerSpec, ScenarioSpec, run_benchmark
from agentv_ci.errors import UsageError
from tests.support.plugins import Packages, packages
from tests.support.projects import GREETS, HELLO, Project

__all__ = ["packages"]

POLITE = {"type": "acme/politeness", "words": ["Hello"]}
OF_ACME = "evaluator 'acme/politeness' of acme-evals 1.0"
BOT = {"name": "default", "provider": "acme/bot", "greeting": "Hello"}


@pytest.fixture
def project(repository: Path) -> Project:
    return Project(repository)


def found(project: Project) -> list[str]:
    """Return the messages of `validate`, with rule and place."""
    lines = project.run("validate", ".").out.splitlines()
    return [re.sub(r"^.*/([\w.]+:\d+:\d+): (error|warning):", r"\1", line) for line in lines if "[AV" in line]


def evaluated(project: Project, evaluator: dict[str, Any], **case: Any) -> dict[str, Any]:
    """Run one case with an evaluator beside one that passes, and return the evaluator's result."""
    project.documents({"id": "a", "evaluators": [HELLO, evaluator], **case})
    project.eval()
    (row,) = project.rows()
    passed, result = row["evaluator_results"]
    assert passed["status"] == "ok"
    return dict(result)


def answered(project: Project, **target: Any) -> dict[str, Any]:
    """Run one case against a target of a plugin, and return its row."""
    project.documents("a", targets=({"name": "default", "provider": "acme/ask", **target},), max_retries=0)
    project.eval("--no-trace")
    (row,) = project.rows()
    return row


def test_evaluator_and_provider_run(packages: Packages, project: Project) -> None:
    packages.acme()
    project.env["BOT_TOKEN"] = "very-secret-token"
    project.documents({"id": "a", "evaluators": [POLITE]}, targets=({**BOT, "token": "${{ BOT_TOKEN }}"},))
    done = project.eval()
    (row,) = project.rows()
    assert (done.code, row["provider"], row["candidate_answer"]) == (0, "acme/bot", "Hello Greet me")
    (result,) = row["evaluator_results"]
    assert (result["name"], result["verdict"], result["hits"]) == ("acme/politeness", "pass", ["a"])


def test_plan_has_settings_and_versions_and_its_digest_follows_them(packages: Packages, project: Project) -> None:
    packages.acme()
    digests = []
    for evaluator, target in (
        (POLITE, BOT),
        ({**POLITE, "settings": {"at_least": 2}}, BOT),
        (POLITE, {**BOT, "width": 2}),
    ):
        project.documents({"id": "a", "evaluators": [evaluator]}, targets=(target,))
        project.run("compile", "evals", "--out", "plan.json")
        digests.append(project.json("plan.json")["cases"][0]["digest"])
    plan = project.json("plan.json")
    assert plan["cases"][0]["evaluators"] == [
        {
            "name": "acme/politeness",
            "weight": 1.0,
            "required": False,
            "negate": False,
            "type": "acme/politeness",
            "settings": {"words": ["Hello"]},
            "version": "1.0",
        }
    ]
    assert plan["targets"]["default"] == {
        "name": "default",
        "provider": "acme/bot",
        "version": "1.0",
        "settings": {"greeting": "Hello", "width": 2},
    }
    assert len({*digests}) == 3


def test_plan_runs_only_where_its_plugins_are_installed(packages: Packages, project: Project) -> None:
    packages.acme()
    project.documents({"id": "a", "evaluators": [POLITE]}, targets=(BOT,))
    project.run("compile", "evals", "--out", "plan.json")
    packages.uninstall()
    project.refuses("eval", "plan.json", error="evals/x.yaml:1: evaluator 'acme/politeness' is not installed")
    packages.install("acme-evals", {}, {"evaluators": {"acme/politeness": "acme_politeness:Politeness"}}, version="2.0")
    project.refuses("eval", "plan.json", error="is needed in version 1.0, and acme-evals 2.0 is installed")


def test_provider_of_a_plan_must_be_installed(packages: Packages, project: Project) -> None:
    packages.acme()
    project.documents("a", targets=(BOT,))
    project.run("compile", "evals", "--out", "plan.json")
    packages.uninstall()
    project.refuses(
        "eval", "plan.json", error="target 'default': invalid provider: provider 'acme/bot' is not installed"
    )
    assert project.run("eval", "plan.json", "--dry-run").code == 0


@pytest.mark.parametrize(
    ("evaluator", "target", "expected"),
    [
        ({}, {}, [f"missing field 'words' of {OF_ACME} [AV201] (a)"]),
        ({"words": ["x"], "at_laest": 2}, {}, ["unknown field 'at_laest' (did you mean 'at_least'?) [AV202] (a)"]),
        (
            {"words": ["x"], "settings": {"at_least": 0}},
            {},
            [f"'at_least' is not accepted by {OF_ACME}: Input should be greater than or equal to 1 [AV204] (a)"],
        ),
        ({"words": ["x"], "token": "abc"}, {}, ["'token' is a literal secret [AV313] (a)"]),
        ({"words": ["x"]}, {"token": "abc"}, ["'token' is a literal secret [AV313] (default)"]),
        ({"words": ["x"]}, {"width": "${{ WIDTH }}", "token": "${{ TOKEN }}"}, []),
        (
            {"words": ["x"]},
            {"greetings": "Hi"},
            ["unknown field 'greetings' (did you mean 'greeting'?) [AV202] (default)"],
        ),
        (
            {"words": ["x"], "settings": {"words": ["y"]}},
            {},
            ["'words' is also given outside of 'settings', where it wins [AV314] (a)"],
        ),
        (
            {"words": ["x"], "version": "2.0"},
            {},
            ["evaluator 'acme/politeness' is needed in version 2.0, and acme-evals 1.0 is installed [AV351] (a)"],
        ),
    ],
)
def test_settings_are_checked_by_the_plugin(
    evaluator: dict[str, Any], target: dict[str, Any], expected: list[str], packages: Packages, project: Project
) -> None:
    packages.acme()
    project.documents(
        {"id": "a", "evaluators": [{"type": "acme/politeness", **evaluator}]}, targets=({**BOT, **target},)
    )
    assert [each.partition(" ")[2] for each in found(project)] == expected


def test_mistake_in_settings_is_reported_where_it_is_written(packages: Packages, project: Project) -> None:
    packages.acme()
    project.documents()
    project.targets(BOT)
    evals = (
        "$schema: agentv-eval-v2\nevalcases:\n  - id: a\n    expected_outcome: x\n    input: x\n    expected: []\n"
        "    evaluators:\n"
        "      - type: acme/politeness\n        at_least: 0\n        words: [x]\n"
        "      - type: acme/politeness\n        settings:\n          words: [1]\n          wrods: [x]\n"
        "      - {name: c, type: acme/politeness, settings: {at_least: 1}}\n"
        "      - {name: d, type: acme/politeness, words: [x], settings: {by: {}}}\n"
    )
    project.write({"evals/x.yaml": evals})
    mistakes = found(project)
    places = [each.partition(" ")[0] for each in mistakes]
    assert "'words.0' is not accepted" in mistakes[1]
    assert places == ["x.yaml:9:19", "x.yaml:13:19", "x.yaml:14:11", "x.yaml:15:9", "x.yaml:16:69"]


def test_value_of_a_variable_is_checked_when_it_is_known(packages: Packages, project: Project) -> None:
    packages.acme()
    project.documents("a", targets=({**BOT, "width": "${{ WIDTH }}"},))
    project.env["WIDTH"] = "wide"
    project.refuses("eval", "evals", error="target 'default': invalid settings.width: Input should be a valid integer")
    project.env["WIDTH"] = "2"
    project.eval()
    assert project.rows()[0]["candidate_answer"] == "HelloHello Greet me"


def test_message_of_a_model_does_not_show_secrets(packages: Packages, project: Project) -> None:
    packages.provider(
        "from pydantic import BaseModel, SecretStr, model_validator\n"
        "class S(BaseModel):\n    key: SecretStr\n"
        "    @model_validator(mode='after')\n    def check(self):\n"
        "        raise ValueError(f'bad key {self.key.get_secret_value()}')\n"
        "class Plugin:\n    settings = S\n    async def ask(self, question, settings): ...\n"
    )
    project.env["MY_WORD"] = "very-hidden-word"
    project.documents("a", targets=({"name": "default", "provider": "acme/ask", "key": "${{ MY_WORD }}"},))
    assert found(project) == []
    project.refuses("eval", "evals", error="target 'default': invalid settings: Value error, bad key ***")
    project.documents("a", targets=({"name": "default", "provider": "acme/ask", "key": "x"},))
    refused = [each.partition(" ")[2] for each in found(project)]
    assert "provider 'acme/ask' of acme 1.0 refuses it: Value error, bad key x [AV204] (default)" in refused


def test_secrets_of_settings_are_masked(packages: Packages, project: Project) -> None:
    packages.provider(
        "from pydantic import BaseModel, SecretStr\n"
        "from agentv_ci.plugins import Answer\n"
        "class S(BaseModel):\n    auth: dict[str, list[str]]\n    key: SecretStr\n"
        "class Plugin:\n    settings = S\n"
        "    async def ask(self, question, settings):\n"
        "        return Answer(text=settings.key.get_secret_value() + ' ' + settings.auth['keys'][0] + ' Hello')\n"
    )
    project.env |= {"FIRST": "first-hidden-text", "SECOND": "second-hidden-text"}
    row = answered(project, key="${{ FIRST }}", auth={"keys": ["${{ SECOND }}"]})
    assert (row["candidate_answer"], row["masked"]) == ("*** *** Hello", True)


HEAD = (
    "import asyncio, time\nfrom pydantic import BaseModel\nfrom agentv_ci.plugins import *\n"
    "class S(BaseModel):\n    pass\nclass Plugin:\n    settings = S\n"
)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def score(self, answer, settings): return Score(0.5, reasoning='so so')", ("ok", 0.5, "so so")),
        ("async def score(self, answer, settings): return Score(1)", ("ok", 1.0, "")),
        ("def score(self, answer, settings): raise KeyError('x')", ("error", 0.0, "KeyError: 'x'")),
        ("def score(self, answer, settings): raise SystemExit(3)", ("error", 0.0, "RuntimeError: SystemExit: 3")),
        ("def score(self, answer, settings): raise StopIteration", ("error", 0.0, "RuntimeError: StopIteration")),
        ("async def score(self, answer, settings): 1 / 0", ("error", 0.0, "ZeroDivisionError: division by zero")),
        (
            "def score(self, answer, settings): return 0.5",
            ("error", 0.0, "the plugin returned float, not agentv_ci.plugins.Score"),
        ),
        (
            "def score(self, answer, settings): return Score(float('nan'))",
            ("error", 0.0, "the plugin returned the score nan, which is not a finite number"),
        ),
        (
            "def score(self, answer, settings): return Score(1.0, hits='all')",
            ("error", 0.0, "the plugin returned 'hits' that are not a list of texts"),
        ),
        (
            "def score(self, answer, settings): return Score(1.0, reasoning=None)",
            ("error", 0.0, "the plugin returned a reasoning that is NoneType, not a text"),
        ),
        ("def score(self, answer, settings): time.sleep(9)", ("error", 0.0, "no score within 0.05 s")),
        ("async def score(self, answer, settings): await asyncio.sleep(9)", ("error", 0.0, "no score within 0.05 s")),
        ("def score(self, answer, settings): raise TimeoutError('mine')", ("error", 0.0, "TimeoutError: mine")),
    ],
)
def test_evaluator_scores_or_has_an_error_of_its_own(
    code: str, expected: tuple[str, float, str], packages: Packages, project: Project
) -> None:
    packages.evaluator(f"{HEAD}    {code}\n")
    limit = {"execution": {"timeout_seconds": 0.05}} if "0.05" in expected[2] else {}
    result = evaluated(project, {"name": "mine", "type": "acme/score"}, **limit)
    assert (result["status"], result["score"], result["reasoning"]) == expected


def test_evaluator_gets_the_case_and_its_answer(packages: Packages, project: Project) -> None:
    packages.evaluator(
        f"{HEAD}    def score(self, answer, settings):\n"
        "        answer.metadata['team'].append('changed')\n"
        "        return Score(1.0, reasoning=repr((answer.case_id, answer.candidate_answer, answer.expected_outcome,\n"
        "            answer.reference_answer, answer.question, answer.input_messages[0].content,\n"
        "            answer.expected_messages[0].content, answer.output_messages[0].tool_calls[0].tool, answer.seed,\n"
        "            answer.metadata, answer.has_trace, answer.usage, answer.cost_usd)))\n"
    )
    case = {"expected_messages": [{"role": "assistant", "content": "Hi"}], "metadata": {"team": ["a"]}}
    seeds = {"execution": {"seeds": [7]}}
    result = evaluated(project, {"name": "mine", "type": "acme/score"}, **case, **seeds)
    metadata = {"team": ["a", "changed"]}
    assert result["reasoning"] == repr(
        ("a", "Hello!", "A greeting", "Hi", "Greet me", "Greet me", "Hi", "greet", 7, metadata, True, None, None)
    )
    assert '"changed"' not in project.rows()[0]["metadata"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            "async def ask(self, question, settings): raise ProviderError('auth', 'wrong key')",
            ("auth", "wrong key"),
        ),
        (
            "async def ask(self, question, settings): raise OSError('gone')",
            ("process", "the plugin raised OSError: gone"),
        ),
        ("def ask(self, question, settings): raise SystemExit", ("process", "the plugin raised SystemExit")),
        (
            "async def ask(self, question, settings): raise TimeoutError('slow')",
            ("timeout", "the plugin raised TimeoutError: slow"),
        ),
        (
            "async def ask(self, question, settings): return 'Hello'",
            ("malformed", "the plugin returned str, not agentv_ci.plugins.Answer"),
        ),
        (
            "async def ask(self, question, settings): return Answer(text=5)",
            (
                "malformed",
                "the plugin returned an invalid answer: text: Input should be a valid string",
            ),
        ),
        (
            "async def ask(self, question, settings): raise ProviderError('oops', 'odd')",
            ("process", "odd (the plugin gave it the unknown kind 'oops')"),
        ),
    ],
)
def test_provider_that_fails_is_an_error_of_the_answer(
    code: str, expected: tuple[str, str], packages: Packages, project: Project
) -> None:
    packages.provider(f"{HEAD}    {code}\n")
    row = answered(project)
    assert (row["error_kind"], row["error"]) == expected


def test_answer_that_may_come_later_is_asked_for_again(packages: Packages, project: Project) -> None:
    packages.provider(
        f"{HEAD}    asked = 0\n"
        "    async def ask(self, question, settings):\n"
        "        self.asked += 1\n"
        "        if self.asked < 3:\n"
        "            raise ProviderError('rate_limit', 'later', retryable=True, retry_after_s=0)\n"
        "        calls = (ToolCall(tool='look'),)\n"
        "        messages = [OutputMessage(role='assistant', content='Hello', tool_calls=calls)]\n"
        "        return Answer(text='Hello', messages=messages, cost_usd=0.5, model='m', request={'n': self.asked})\n"
    )
    row = answered(project)
    assert (row["verdict"], row["requests"], row["cost_usd"], row["model"]) == ("pass", 3, 0.5, "m")
    assert (row["request"], row["trace_summary"]["event_count"]) == ('{"n": 3}', 1)


@pytest.mark.parametrize(("cost_usd", "costs"), [("0.5", 1.5), ("'much'", 1.0), ("float('nan')", 1.0), ("-1.0", 1.0)])
def test_what_a_failed_question_of_a_plugin_used_counts(
    cost_usd: str, costs: float, packages: Packages, project: Project
) -> None:
    packages.provider(
        f"{HEAD}    asked = 0\n"
        "    async def ask(self, question, settings):\n"
        "        self.asked += 1\n"
        "        error = ProviderError('server', 'later', retryable=True, retry_after_s=0)\n"
        f"        error.cost_usd = {cost_usd} if self.asked == 1 else 1.0\n"
        "        if self.asked < 3:\n"
        "            raise error\n"
        "        raise ProviderError('oops', 'odd')\n"
    )
    row = answered(project)
    assert (row["error_kind"], row["cost_usd"]) == ("process", costs)


LINES = "class Plugin:\n    def write(self, report, rows, out):\n"


def test_reporter_writes_the_report_and_the_rows(packages: Packages, project: Project) -> None:
    packages.reporter(
        f"{LINES}        out.write(f'{{report.gate.verdict}} {{[each.eval_id for each in rows]}}'.encode())\n"
    )
    project.documents("a", "b")
    done = project.eval("--report", "acme/csv=out/rows.csv")
    assert (done.code, project.text("out/rows.csv")) == (0, "pass ['a', 'b']")
    assert "acme/csv: out/rows.csv" in done.out
    assert project.run("report", "r.jsonl", "--report", "acme/csv=again.csv").code == 0
    assert project.text("again.csv") == "pass ['a', 'b']"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("raise KeyError('x')", "KeyError: 'x'"),
        ("raise SystemExit", "SystemExit"),
        ("out.write('text')", "TypeError: a bytes-like object is required, not 'str'"),
        ("raise OSError('full')", "OSError: full"),
    ],
)
def test_reporter_that_fails_is_a_report_that_cannot_be_written(
    code: str, error: str, packages: Packages, project: Project
) -> None:
    packages.reporter(f"{LINES}        {code}\n")
    project.documents("a")
    done = project.eval("--report", "acme/csv=rows.csv", "--junit", "junit.xml")
    assert done.code == 4
    assert f"reporter 'acme/csv' of acme 1.0 failed: {error}" in " ".join(done.out.split())
    assert "Traceback" not in done.err
    assert "cannot be written" not in project.text("r.jsonl")
    assert "acme/csv" in project.text("junit.xml")
    assert not project.path("rows.csv").exists()


@pytest.mark.parametrize(
    ("reports", "error"),
    [
        (["acme/csv"], "--report: 'acme/csv' is not NAME=FILE, such as acme/csv=rows.csv"),
        (["csv=rows.csv"], "--report: 'csv=rows.csv' is not NAME=FILE"),
        (["acme/csv=-"], "--report acme/csv requires a file name"),
        (["acme/csv=a", "acme/csv=b"], "--report acme/csv is given twice"),
        (["acme/cvs=a"], "reporter 'acme/cvs' is not installed (did you mean 'acme/csv'?); installed: acme/csv"),
        (["acme/csv=evals/x.yaml"], "is an input of this run and would be overwritten"),
    ],
)
def test_report_of_a_plugin_must_be_named_and_installed(
    reports: list[str], error: str, packages: Packages, project: Project
) -> None:
    packages.reporter(f"{LINES}        pass\n")
    project.documents("a")
    project.refuses("eval", "evals", *(word for each in reports for word in ("--report", each)), error=error)


def test_schema_with_plugins_has_their_fields_beside_the_common_ones(packages: Packages, project: Project) -> None:
    packages.acme()
    targets = json.loads(project.run("schema", "targets-v2", "--with-plugins").out)
    bot = targets["$defs"]["acme.bot"]
    assert (bot["title"], bot["additionalProperties"], "$id" in targets) == ("provider acme/bot", False, False)
    assert {"name", "workers", "settings", "greeting", "width", "token"} <= bot["properties"].keys()
    assert bot["properties"]["width"]["default"] == 1
    width = bot["properties"]["width"]["anyOf"]
    assert (width[0], "NAME" not in width[1]["pattern"], width[1]["type"]) == ({"type": "integer"}, True, "string")
    assert bot["properties"]["settings"]["properties"].keys() == {"greeting", "width", "token"}
    kinds = targets["$defs"]["Target"]["properties"]["provider"]["anyOf"][0]
    assert (kinds["enum"][-1], kinds["enumDescriptions"][-1]) == (
        "acme/bot",
        "The provider 'acme/bot' of acme-evals 1.0.",
    )


def test_schema_leaves_out_plugins_that_cannot_be_used(packages: Packages, project: Project) -> None:
    packages.acme()
    packages.evaluator("raise ValueError('broken')", name="other/one", package="one")
    packages.evaluator(
        "from collections.abc import Callable\nfrom pydantic import BaseModel\n"
        "class S(BaseModel):\n    call: Callable[[], int]\n"
        "class Plugin:\n    settings = S\n    def score(self): ...\n",
        name="other/two",
        package="two",
    )
    done = project.run("schema", "eval-v2", "--with-plugins")
    known = json.loads(done.out)["$defs"]
    assert (done.code, "acme.politeness" in known, "other.one" in known) == (0, True, False)
    assert "warning: evaluator 'other/one' of one 1.0 cannot be loaded: ValueError: broken" in done.err
    assert "warning: evaluator 'other/two' of two 1.0 has settings without a JSON Schema: " in done.err
    project.refuses(
        "schema", "plan-v1", "--with-plugins", error="--with-plugins is for eval-v2, targets-v2, not plan-v1"
    )
    project.refuses("schema", "--with-plugins", error="--with-plugins needs the name of a schema")


def test_answers_are_scored_again_by_a_plugin(packages: Packages, project: Project) -> None:
    packages.acme()
    project.documents({"id": "a", "evaluators": [POLITE]}, targets=(BOT,))
    assert project.eval().code == 0
    project.documents({"id": "a", "evaluators": [{**POLITE, "words": ["Bye"]}]}, targets=(BOT,))
    assert project.run("rescore", "r.jsonl", "--out", "again.jsonl").code == 1
    assert project.rows("again.jsonl")[0]["evaluator_results"][0]["verdict"] == "fail"


def test_answers_of_a_plugin_come_from_the_cache(packages: Packages, project: Project) -> None:
    packages.acme()
    project.documents("a", targets=(BOT,))
    for cached in (False, True):
        assert project.eval("--cache").code == 0
        assert project.rows()[0]["cached"] is cached
    project.documents("a", targets=({**BOT, "width": 2},))
    project.eval("--cache")
    assert project.rows()[0]["candidate_answer"] == "HelloHello Greet me"


def test_runner_of_a_benchmark_may_be_a_plugin(
    packages: Packages, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages.acme()
    monkeypatch.chdir(project.folder)
    project.documents("a")
    runner = RunnerSpec(key="acme/bot", config={"greeting": "Hello"})
    report = run_benchmark(EngineConfig(scenarios=[ScenarioSpec(key="evals/x.yaml")], runners=[runner]))
    assert (report.verdict, report.scenario_reports[0].runs[0].output) == ("pass", {"text": "Hello Greet me"})
    with pytest.raises(UsageError, match="provider 'acme/bt' is not installed"):
        run_benchmark(EngineConfig(scenarios=[ScenarioSpec(key="evals/x.yaml")], runners=[RunnerSpec(key="acme/bt")]))


def test_ordinary_documents_search_for_no_plugins(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", pytest.fail)
    project.documents("a", targets=(GREETS,))
    assert project.run("validate", ".").code == 0
    assert project.eval().code == 0
