"""The pytest plugin: cases are tests."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.support.projects import GREETS, HELLO, Project

pytest_plugins = ("pytester",)

BYE = {"name": "bye", "type": "contains", "value": "bye"}
THIRD = {**GREETS, "name": "third"}
SECOND = {"name": "second", "provider": "mock", "response": "bye"}


@pytest.fixture(scope="module", autouse=True)
def loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Load what runs need: pytester drops modules that are loaded during a test, and not all can be loaded twice."""
    project = Project(tmp_path_factory.mktemp("loaded"))
    project.documents("a", targets=({"name": "default", "provider": "cli", "command_template": "echo {PROMPT}"},))
    project.eval("evals/", "--record", "recordings")
    project.eval("evals/", "--replay", "recordings")


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    found = Project(pytester.path)
    found.documents(
        {"id": "greets", "tags": ["smoke"]},
        {"id": "leaves", "evaluators": [BYE], "tags": ["slow-one"]},
        targets=(GREETS, SECOND, THIRD),
        name="evals/x.test.yaml",
    )
    return found


def outcomes(pytester: pytest.Pytester, *options: str) -> dict[str, int]:
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:cov", *options)
    return result.parseoutcomes()


def test_skipped_case_is_skipped_with_its_reason(pytester: pytest.Pytester, project: Project) -> None:
    project.documents("greets", {"id": "later", "skip": "Not ready"}, name="evals/x.test.yaml")
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:cov", "--agentv", "-rs")
    assert result.parseoutcomes() == {"passed": 1, "skipped": 1}
    result.stdout.fnmatch_lines(["SKIPPED [[]1] evals/x.test.yaml: Not ready"])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--agentv",), {"passed": 1, "failed": 1}),
        (("-o", "agentv=true"), {"passed": 1, "failed": 1}),
        ((), {}),
        (("--agentv", "-k", "greets"), {"passed": 1, "deselected": 1}),
        (("--agentv", "--strict-markers", "-m", "smoke"), {"passed": 1, "deselected": 1}),
        (("--agentv", "-m", "not slow-one"), {"passed": 1, "deselected": 1}),
        (("--agentv", "--agentv-target=second"), {"passed": 1, "failed": 1}),
        (("--agentv", "--agentv-target=third", "--agentv-target=second"), {"passed": 2, "failed": 2}),
        (("--agentv", "--agentv-target=third", "evals/x.test.yaml::greets"), {"passed": 1}),
        (
            ("--agentv", "--agentv-target=third", "--agentv-target=second", "evals/x.test.yaml::greets[third]"),
            {"passed": 1},
        ),
        pytest.param(("--agentv", "-n", "2"), {"passed": 1, "failed": 1}, marks=pytest.mark.slow),
    ],
)
def test_cases_are_tests(
    project: Project, pytester: pytest.Pytester, options: tuple[str, ...], expected: dict[str, int]
) -> None:
    assert outcomes(pytester, *options) == expected


@pytest.mark.parametrize("tag", ["skip", "xfail", "usefixtures", "filterwarnings", "_internal", "slow: 5", "quick(b)"])
def test_tag_that_cannot_be_a_mark_is_a_keyword(pytester: pytest.Pytester, tag: str) -> None:
    Project(pytester.path).documents({"id": "one", "tags": [tag]}, "two", name="x.test.yaml")
    assert outcomes(pytester, "--agentv", "--strict-markers") == {"passed": 2}
    assert outcomes(pytester, "--agentv", "-k", tag.partition(":")[0].partition("(")[0]) == {
        "passed": 1,
        "deselected": 1,
    }


def test_cases_of_large_plans_are_tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentv_ci.contracts.packed_cases.MANY", 2)
    monkeypatch.setattr("agentv_ci.contracts.packed_cases.BLOCK", 2)
    said = [{"id": f"row-{number}", "evaluators": [HELLO if number % 2 else BYE]} for number in range(5)]
    Project(pytester.path).documents(*said, name="x.test.yaml")
    assert outcomes(pytester, "--agentv") == {"passed": 2, "failed": 3}
    assert outcomes(pytester, "--agentv", "-k", "row-3") == {"passed": 1, "deselected": 4}


def test_other_files_are_not_collected(pytester: pytest.Pytester) -> None:
    Project(pytester.path).documents("a", name="evals/x.yaml")
    assert outcomes(pytester, "--agentv") == {}


def test_failure_says_why_and_where(project: Project, pytester: pytest.Pytester) -> None:
    text = json.dumps(json.loads((project.folder / "evals/x.test.yaml").read_text()), indent=1)
    project.write({"evals/x.test.yaml": text})
    line = 1 + text.splitlines().index('   "id": "leaves",') - 1
    result = pytester.runpytest_inprocess("--agentv", "-p", "no:cacheprovider", "--junitxml=junit.xml")
    expected = [
        "*_ leaves _*",
        f"evals/x.test.yaml:{line}: leaves fail 0.000 (target default)",
        "  bye: does not contain 'bye'",
        "answer:",
        "  Hello!",
    ]
    result.stdout.fnmatch_lines(expected)
    junit = (project.folder / "junit.xml").read_text()
    assert '<property name="agentv_score" value="1.0" />' in junit
    assert not (project.folder / ".agentv").exists()


@pytest.mark.parametrize(
    ("case", "targets", "said"),
    [
        ({"inptu": "x"}, (GREETS,), "*x.test.yaml:1:*: unknown field 'inptu' (did you mean 'input'?)"),
        ({}, ({**GREETS, "name": "other"},), "*no target 'default'*"),
        ({}, ({"name": "default", "provider": "codex", "executable": "/no/such"},), "*/no/such*"),
    ],
)
def test_errors_are_sentences(
    pytester: pytest.Pytester, case: dict[str, Any], targets: tuple[dict[str, Any], ...], said: str
) -> None:
    Project(pytester.path).documents({"id": "a", "evaluators": [HELLO], **case}, targets=targets, name="x.eval.yaml")
    result = pytester.runpytest_inprocess("--agentv", "-p", "no:cacheprovider")
    assert result.ret != 0
    assert "Traceback" not in result.stdout.str()
    result.stdout.fnmatch_lines([said.replace("x.test", "x.eval")])


def test_replayed_answers(project: Project, pytester: pytest.Pytester) -> None:
    project.targets({"name": "default", "provider": "cli", "command_template": "echo Hello bye {PROMPT}"})
    project.run("eval", "evals/", "--record", "recordings/")
    project.targets({"name": "default", "provider": "cli", "command_template": "exit 3 # {PROMPT}"})
    assert outcomes(pytester, "--agentv") == {"failed": 2}
    project.targets({"name": "default", "provider": "cli", "command_template": "echo Hello bye {PROMPT}"})
    assert outcomes(pytester, "--agentv", "--agentv-replay=recordings") == {"passed": 2}


def test_one_interrupt_stops_pytest(project: Project, pytester: pytest.Pytester) -> None:
    interrupts = f"kill -INT {os.getpid()}; sleep 9 # {{PROMPT}}"
    project.targets({"name": "default", "provider": "cli", "command_template": interrupts})
    with pytest.raises(KeyboardInterrupt):
        outcomes(pytester, "--agentv")


def test_dry_run(project: Project, pytester: pytest.Pytester) -> None:
    project.targets({"name": "default", "provider": "openai", "model": "m", "api_key": "${{ NO_SUCH_KEY }}"})
    assert sum(outcomes(pytester, "--agentv", "--agentv-dry-run").values()) == 2
