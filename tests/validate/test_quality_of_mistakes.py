"""One mistake is one diagnostic, on the line of the mistake, with the right word for what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agentv_ci.app.validate import check_paths
from agentv_ci.contracts.diagnostics import Diagnostic
from tests.support import write
from tests.validate.test_hostile_input import time_limit

EVAL = """\
$schema: agentv-eval-v2
description: Refunds
dataset: refunds
target: agent
execution:
  threshold: 0.8
  timeout_seconds: 60
  max_retries: 1
  seeds: [7, 11]
  repeat:
    max: 3
    require: majority
    stop_when: decided
  validators:
    - outlier_detection
  gate:
    min_pass_rate: 0.9
    max_errors: 1
    max_cost_usd: 5.0
    validators: warn
evalcases:
  - id: late-parcel
    expected_outcome: Offers a refund
    note: the usual one
    conversation_id: one
    input_messages:
      - role: system
        name: rules
        content: Be kind
      - role: user
        content:
          - type: file
            value: policy.md
          - Please
    expected_messages:
      - role: assistant
        content: Sorry
        tool_calls:
          - tool: search
            input: {q: x}
            output: y
    rubrics:
      - Says sorry
      - id: offers
        description: Offers a refund
        weight: 2
        required: false
    execution:
      target: other
    metadata: {owner: me}
  - id: second
    expected_outcome: Says no
    input_messages:
      - role: user
        content: Hello
    expected_messages: []
"""
EVALUATORS = """\
      - name: polite
        type: llm_judge
        prompt: judge.md
        judge_target: judge
        judge_retries: 1
        temperature: 0.1
        max_output_tokens: 100
      - name: script
        type: code
        script: [python, score.py]
        cwd: .
        timeout_seconds: 5
        files: [score.py]
      - name: words
        type: contains_all
        value: [sorry, refund]
        case_sensitive: false
        min_score: 0.5
        negate: false
      - name: shape
        type: regex
        value: a+
      - name: criteria
        type: rubric
        rubrics: [Is polite]
      - name: tools
        type: tool_trajectory
        mode: in_order
        expected:
          - tool: search
        args_match: ignore
      - name: least
        type: tool_trajectory
        mode: any_order
        minimums: {search: 1}
      - name: json
        type: schema
        schema_file: answer.json
        format: json
      - name: fields
        type: field_accuracy
        reference: {total: 12.5}
        fields:
          - path: total
            match: numeric_tolerance
            tolerance: 0.1
      - name: near
        type: similarity
        metric: rouge_l
        reference: Sorry
      - name: short
        type: token_usage
        max_total: 1000
      - name: calm
        type: tool_calls
        max: 3
      - name: together
        type: composite
        evaluators:
          - name: inner
            type: contains
            value: a
        aggregator:
          type: weighted_average
          weights: {inner: 1}
"""
PLAIN = """\
$schema: agentv-eval-v2
target: agent
evalcases:
  - id: a
    expected_outcome: x
    input_messages: [{role: user, content: x}]
    expected_messages: []
    evaluators:
"""
TARGETS = """\
$schema: agentv-targets-v2.2
targets:
  - name: agent
    provider: mock
    judge_target: judge
    workers: 2
    response: Hello
    tool_calls:
      - tool: search
    usage:
      input_tokens: 5
  - name: judge
    provider: openai
    model: gpt-5
    api_key: ${{ OPENAI_API_KEY }}
    temperature: 0
    max_retries: 2
    headers: {x-a: b}
  - name: other
    provider: cli
    judge_target: judge
    command_template: run {PROMPT}
    files_format: -f {path}
    timeout_seconds: 5
    verbose: true
    keep_temp_files: false
    healthcheck:
      type: http
      url: http://localhost:1
  - name: codex
    provider: codex
    executable: codex
    sandbox: read-only
    settings:
      log_dir: logs
      log_format: json
"""
CONFIG = """\
$schema: agentv-config-v2
guideline_patterns:
  - docs/*.md
rules:
  AV303: error
prices:
  gpt-5:
    input_per_mtok: 1.0
    output_per_mtok: 2.0
"""
EACH_EVALUATOR = {
    f"{settings.partition('- name: ')[2].split()[0]}.yaml": f"{PLAIN}{settings}"
    for settings in re.split(r"(?m)^(?=      - name)", EVALUATORS)[1:]
}
DOCUMENTS: Mapping[str, str] = {
    "eval.yaml": EVAL,
    **EACH_EVALUATOR,
    "targets.yaml": TARGETS,
    ".agentv.yaml": CONFIG,
}
OTHERS = {"judge.md": "{{ candidate_answer }}", "policy.md": "x", "score.py": "x", "answer.json": '{"type": "object"}'}

KEY = re.compile(r"(?P<before>\s*(?:- )?)(?P<key>[$a-z_]+):(?P<value>.*)")


def keys_of(name: str) -> Iterator[tuple[int, re.Match[str]]]:
    begin = PLAIN.count("\n") if name in EACH_EVALUATOR else 0
    for index, line in enumerate(DOCUMENTS[name].splitlines()):
        if index >= begin and (match := KEY.fullmatch(line)):
            yield index, match


@pytest.fixture
def project(repository: Path) -> Path:
    write(repository, {"eval.yaml": EVAL, "targets.yaml": TARGETS, ".agentv.yaml": CONFIG, **OTHERS})
    return repository


def found_with(project: Path, name: str, text: str) -> list[Diagnostic]:
    """Return what is said when one document is another one."""
    write(project, {name: text})
    try:
        paths = ["."] if name == "targets.yaml" else [name]
        with time_limit(30):
            checks = check_paths(paths, targets=None, cwd=project)
    finally:
        if name in EACH_EVALUATOR:
            (project / name).unlink()
        else:
            write(project, {name: DOCUMENTS[name]})
    return [each for file in checks.files for each in file.diagnostics]


def with_line(project: Path, name: str, index: int, *new: str) -> tuple[list[tuple[int, str]], str]:
    """Return line and message of what is said when one line is another one, and all of it for people to read."""
    lines = DOCUMENTS[name].splitlines()
    lines[index : index + 1] = new
    try:
        found = found_with(project, name, "\n".join(lines) + "\n")
    except TimeoutError as error:
        return [(0, str(error))] * 2, str(error)
    return [(each.line, each.message) for each in found], shown(found)


def known(found: Diagnostic) -> str:
    """Return the keys a hint lists, each as messages write one."""
    hint = found.hint or ""
    return "".join(f" '{key}'" for key in re.findall(r"[$\w]+", hint) if "known fields" in hint)


def shown(found: list[Diagnostic]) -> str:
    return "; ".join(f"{Path(each.path).name}:{each.line}: {each.message} [{each.rule}]{known(each)}" for each in found)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_documents_have_no_mistake(project: Path, name: str) -> None:
    assert shown(found_with(project, name, DOCUMENTS[name])) == ""


def misspellings(key: str) -> tuple[str, str]:
    """Return a key with a letter too much, and with two letters in the wrong order."""
    swapped = key[:-2] + key[-1] + key[-2]
    return key + "x", swapped if swapped not in (key, "respones") else key[1:]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_misspelt_key_is_one_error_that_names_the_key(project: Path, name: str) -> None:
    wrong = []
    for index, match in keys_of(name):
        for misspelt in misspellings(match["key"]):
            found, text = with_line(project, name, index, f"{match['before']}{misspelt}:{match['value']}")
            others = [line for line, _ in found] != [index + 1]
            if others or f"unknown field '{misspelt}'" not in text or f"'{match['key']}'" not in text:
                wrong.append(f"{match['key']} → {misspelt}: {text}")
    assert wrong == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_missing_key_is_at_most_one_diagnostic(project: Path, name: str) -> None:
    wrong = []
    for index, match in keys_of(name):
        if match["before"].endswith("- ") or not match["value"]:
            continue
        found, text = with_line(project, name, index)
        if len(found) > 1:
            wrong.append(f"{match['key']}: {text}")
    assert wrong == []


@pytest.mark.parametrize("value", ["[1]", "true", ""])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_wrong_value_is_at_most_one_error_on_its_line(project: Path, name: str, value: str) -> None:
    wrong = []
    for index, match in keys_of(name):
        if not match["value"]:
            continue
        found, text = with_line(project, name, index, f"{match['before']}{match['key']}: {value}")
        if [line for line, _ in found] not in ([], [index + 1]):
            wrong.append(f"{match['key']}: {value} → {text}")
    assert wrong == []


REPLACED: tuple[tuple[str, str, str, str, str], ...] = (
    ("eval.yaml", "role: user", "role: usr", "AV205", "system, user, assistant, tool"),
    ("polite.yaml", "type: llm_judge", "type: llm_jugde", "AV204", "did you mean 'llm_judge'"),
    ("polite.yaml", "type: llm_judge", "type: llm-judge", "AV204", "did you mean 'llm_judge'"),
    ("words.yaml", "type: contains_all", "type: containsAll", "AV204", "did you mean 'contains_all'"),
    ("eval.yaml", "type: file", "type: flie", "AV204", "did you mean 'file'"),
    ("tools.yaml", "mode: in_order", "mode: inorder", "AV204", "did you mean 'in_order'"),
    ("eval.yaml", "target: agent", "target: agnet", "AV304", "did you mean 'agent'"),
    ("eval.yaml", "target: other", "target: othr", "AV304", "did you mean 'other'"),
    ("polite.yaml", "judge_target: judge", "judge_target: jugde", "AV304", "did you mean 'judge'"),
    ("eval.yaml", "value: policy.md", "value: polcy.md", "AV302", "polcy.md' does not exist"),
    ("polite.yaml", "prompt: judge.md", "prompt: juge.md", "AV302", "juge.md' does not exist"),
    ("json.yaml", "schema_file: answer.json", "schema_file: anwser.json", "AV302", "anwser.json' does not exist"),
    ("json.yaml", "schema_file: answer.json", "schema_file: answer.jso", "AV302", "answer.jso' does not exist"),
    ("script.yaml", "files: [score.py]", "files: [scor.py]", "AV302", "scor.py' does not exist"),
    ("script.yaml", "[python, score.py]", "[python, scor.py]", "AV302", "scor.py' does not exist"),
    ("eval.yaml", "- outlier_detection", "- outlier_detecton", "AV311", "did you mean 'outlier_detection'"),
    ("together.yaml", "weights: {inner: 1}", "weights: {iner: 1}", "AV324", "'iner'"),
    ("least.yaml", "minimums: {search: 1}", "minimums: {search: one}", "AV203", "'search' must be an integer"),
    ("shape.yaml", "value: a+", "value: a(", "AV310", "not a regular expression"),
    ("eval.yaml", "threshold: 0.8", "threshold: 80%", "AV203", "must be a number, not '80%'"),
    ("eval.yaml", "threshold: 0.8", "threshold: 80", "AV204", "at most 1"),
    ("words.yaml", "negate: false", "negate: no", "AV203", "must be true or false, not 'no'"),
    ("eval.yaml", "id: second", "id: late-parcel", "AV301", "given twice"),
    ("eval.yaml", "id: second", "id: 2", "AV203", "must be a string, not 2"),
    ("eval.yaml", "  - id: second", "   - id: second", "AV101", "not valid YAML"),
    ("eval.yaml", "  - id: second", "- id: second", "AV101", "not valid YAML"),
    ("eval.yaml", "  - id: second", "    id: second", "AV104", "key 'id' is given twice"),
    ("eval.yaml", "outcome: Says no", "outcome: Says: no", "AV101", "not valid YAML"),
    ("eval.yaml", "outcome: Says no", "outcome: @no", "AV101", "not valid YAML"),
    ("eval.yaml", "outcome: Says no", "outcome: *no", "AV101", "alias *no has no anchor"),
    ("eval.yaml", "outcome: Says no", "outcome: {{ no }}", "AV101", "a key must be a string, not a mapping or a list"),
    ("eval.yaml", "    expected_outcome: Says no", "\texpected_outcome: Says no", "AV101", "tab"),
    ("eval.yaml", "expected_messages: []", "expected_messages: No", "AV203", "must be a list, not 'No'"),
    ("eval.yaml", "expected_messages: []", "expected_messages:", "AV203", "must be a list, not null"),
    ("eval.yaml", "        content: Hello\n", "", "AV201", "missing field 'content'"),
    ("eval.yaml", "      - role: user\n        content: Hello", "      Hello", "AV203", "must be a list"),
    ("eval.yaml", "      - role: user\n        content: Hello", "      - Hello", "AV203", "must be a mapping"),
    ("eval.yaml", "evalcases:", "eval_cases:", "AV202", "did you mean 'evalcases'"),
    ("eval.yaml", "evalcases:", "cases:", "AV202", "did you mean 'evalcases'"),
    ("targets.yaml", "provider: mock", "provider: mok", "AV204", "did you mean 'mock'"),
    ("targets.yaml", "provider: openai", "provider: open-ai", "AV204", "did you mean 'openai'"),
    ("targets.yaml", "judge_target: judge", "judge_target: jugde", "AV304", "did you mean 'judge'"),
    ("targets.yaml", "{PROMPT}", "{PROMT}", "AV305", "did you mean 'PROMPT'"),
    ("targets.yaml", "${{ OPENAI_API_KEY }}", "${{ OPENAI-API-KEY }}", "AV315", "${{ NAME }}"),
    ("targets.yaml", "${{ OPENAI_API_KEY }}", "$OPENAI_API_KEY", "AV313", "api_key"),
    ("targets.yaml", "type: http", "type: htp", "AV204", "did you mean 'http'"),
    ("targets.yaml", "verbose: true", "verbose: yes", "AV203", "not 'yes'"),
    ("targets.yaml", "targets:\n", "targets: [\n", "AV101", "not valid YAML"),
    ("targets.yaml", "targets:\n", "target:\n", "AV202", "did you mean 'targets'"),
    (".agentv.yaml", "AV303: error", "AV303: eror", "AV204", "did you mean 'error'"),
    (".agentv.yaml", "AV303: error", "AV303: false", "AV204", "error, warning, off"),
    (".agentv.yaml", "AV303: error", "empty-file: error", "AV317", "did you mean 'AV303'"),
    (".agentv.yaml", "- docs/*.md", "- **/*.md", "AV101", "alias"),
)


@pytest.mark.parametrize(
    ("name", "right", "wrong", "rule", "says"), REPLACED, ids=[f"{each[2].strip()[:40]!r}" for each in REPLACED]
)
def test_a_mistake_is_one_error_that_says_what_is_wrong(
    project: Path, name: str, right: str, wrong: str, rule: str, says: str
) -> None:
    assert right in DOCUMENTS[name]
    found = found_with(project, name, DOCUMENTS[name].replace(right, wrong, 1))
    assert [(each.rule, each.severity) for each in found] == [(rule, "error")], shown(found)
    assert says in found[0].message


ADDED: tuple[tuple[str, str, str], ...] = (
    ("expected_outcome: again", "AV104", "error"),
    ("expectedOutcome: again", "AV314", "warning"),
    ("outcome: again", "AV314", "warning"),
    ("evaluators: {name: a, type: contains, value: x}", "AV203", "error"),
    ("evaluators: contains", "AV203", "error"),
    ("evaluators: [contains]", "AV203", "error"),
    ("evaluators: [{contains: x}]", "AV201", "error"),
    ("evaluators: [{type: contains, value: x}]", "AV201", "error"),
    ("evaluators: [{name: x, type: contains}]", "AV201", "error"),
    ("rubrics: Is polite", "AV203", "error"),
    ("rubrics: []", "AV204", "error"),
    ("threshold: 0.5", "AV202", "error"),
)


@pytest.mark.parametrize(("line", "rule", "severity"), ADDED, ids=[each[0] for each in ADDED])
def test_a_wrong_line_is_one_diagnostic_on_that_line(project: Path, line: str, rule: str, severity: str) -> None:
    text = PLAIN.removesuffix("    evaluators:\n")
    found = found_with(project, "eval.yaml", f"{text}    {line}\n")
    last = text.count("\n") + 1
    assert [(each.rule, each.severity, each.line) for each in found] == [(rule, severity, last)], shown(found)


def test_targets_that_cannot_be_read_are_what_is_wrong_and_not_those_who_name_them(project: Path) -> None:
    write(project, {"targets.yaml": "targets: [\n"})
    checks = check_paths(["eval.yaml"], targets=None, cwd=project)
    messages = [each.message for file in checks.files for each in file.diagnostics]
    assert not any("unknown target" in message for message in messages)


def test_names_of_targets_in_a_message_are_names(project: Path) -> None:
    found = found_with(project, "targets.yaml", TARGETS.replace("name: codex", "nam: codex") + "  - name: [1]\n")
    unknown = found_with(project, "eval.yaml", PLAIN + "      - {name: e, type: llm_judge, judge_target: nobody}\n")
    for each in (*found, *unknown):
        assert "None" not in each.message
        assert "[1]" not in each.message
