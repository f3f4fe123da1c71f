"""Values that are meant for whoever reads what `validate` prints: a terminal, a workflow's runner, code scanning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentv_ci.cli import run
from agentv_ci.jsonschema.violations import violations

HOSTILE = r"a\e[31m\e]0;t\a\n::error::b\r::stop-commands::c\r\n##[add-mask]d\u2028e\u202Ef%0A::warning::g\x9b31mh\0i"
DOCUMENT = f"""\
$schema: agentv-eval-v2
target: "{HOSTILE}1"
execution:
  validators: ["{HOSTILE}2"]
evalcases:
  - id: "{HOSTILE}"
    expected_outcome: x
    input_messages: [{{role: "{HOSTILE}3", content: x}}]
    expected_messages: []
    evaluators: [{{name: "{HOSTILE}", type: "{HOSTILE}4"}}]
    "{HOSTILE}": 1
  - id: "{HOSTILE}"
    expected_outcome: x
    input_messages: [{{role: user, content: [{{type: file, value: "{HOSTILE}.md"}}]}}]
    expected_messages: []
    evaluators: [{{name: "{HOSTILE}", type: regex, value: "("}}, {{name: "{HOSTILE}", type: is_json}}]
"""
TARGETS = '$schema: agentv-targets-v2.2\ntargets: [{name: "' + HOSTILE + '", provider: mock}]\n'


@pytest.fixture
def printed(
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> str:
    (repository / "x.yaml").write_text(DOCUMENT, encoding="utf-8")
    (repository / "targets.yaml").write_text(TARGETS, encoding="utf-8")
    monkeypatch.chdir(repository)
    assert run(["validate", "--format", request.param, "."]) == 1
    return capsys.readouterr().out


COUNT = 9
"""Mistakes in the document."""


@pytest.mark.parametrize("printed", ["text"], indirect=True)
def test_text_is_one_line_for_a_diagnostic_and_does_nothing_to_a_terminal(printed: str) -> None:
    lines = printed.split("\n")
    assert all(line.isprintable() for line in lines)
    assert sum("x.yaml:" in line and "[AV" in line for line in lines) == COUNT


@pytest.mark.parametrize("printed", ["text"], indirect=True)
def test_text_commands_no_runner(printed: str) -> None:
    assert "##[" not in printed
    assert not any(line.lstrip().startswith("::") for line in printed.split("\n"))


@pytest.mark.parametrize("printed", ["github"], indirect=True)
def test_a_diagnostic_is_one_command_to_the_runner(printed: str) -> None:
    lines = printed.split("\n")
    commands = [line for line in lines if "::" in line or "##[" in line]
    assert len(commands) == COUNT
    assert all(line.startswith("::error file=x.yaml,line=") for line in commands)
    assert len(lines) == COUNT + 2


@pytest.mark.parametrize("printed", ["github"], indirect=True)
def test_annotations_do_nothing_to_a_terminal(printed: str) -> None:
    assert "\x1b" not in printed
    assert "\x9b" not in printed
    assert "\u202e" not in printed


@pytest.mark.parametrize("printed", ["json"], indirect=True)
def test_json_keeps_what_was_written(printed: str) -> None:
    document = json.loads(printed)
    assert violations("diagnostics-v1", document) == []
    cases = {each["case"] for file in document["files"] for each in file["diagnostics"]}
    assert any(case is not None and case.startswith("a\x1b[31m") for case in cases)
    assert document["summary"]["errors"] == COUNT


@pytest.mark.parametrize("printed", ["sarif"], indirect=True)
def test_sarif_has_a_result_for_each_with_a_fingerprint_of_its_own(printed: str) -> None:
    (found,) = json.loads(printed)["runs"]
    fingerprints = {json.dumps(each["partialFingerprints"]) for each in found["results"]}
    assert len(found["results"]) == len(fingerprints) == COUNT
