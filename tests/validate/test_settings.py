"""Severities, strictness, and the targets and config files of an eval file."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentv_ci.app.documents.validate import check_paths
from agentv_ci.contracts.diagnostics import FIXED_RULES
from agentv_ci.errors import UsageError
from tests.support import run_command, write
from tests.validate.builders import CASE, found_in

EMPTY = CASE.replace("content: x", "content: [{type: file, value: e.md}]")
CONFIG = "$schema: agentv-config-v2\n"
TARGETS = "$schema: agentv-targets-v2.2\ntargets: [{name: t, provider: mock}]\n"


def found(folder: Path, *paths: str, targets: str | None = None) -> list[tuple[str, str, str]]:
    return [(Path(each.path).name, each.rule, each.severity) for each in found_in(folder, *paths, targets=targets)]


@pytest.mark.parametrize(
    ("near", "far", "severity"),
    [
        ("", "", "warning"),
        ("rules: {AV303: error}\n", "", "error"),
        ("", "rules: {AV303: error}\n", "error"),
        ("rules: {AV303: off}\n", "rules: {AV303: error}\n", None),
        ("rules: {AV303: 'off'}\n", "", None),
        ("guideline_patterns: []\n", "rules: {AV303: off}\n", None),
        ("rules: {AV308: off}\n", "rules: {AV303: off}\n", "warning"),
        ("rules: {}\n", "rules: {AV303: off}\n", "warning"),
        ("rules: {AV303: nonsense}\n", "", "warning"),
        ("rules: {AV303: off, AV308: nonsense}\n", "", None),
        ("rules: [\n", "rules: {AV303: off}\n", None),
    ],
)
def test_nearest_rules_set_severities(repository: Path, near: str, far: str, severity: str | None) -> None:
    write(repository, {"a/x.yaml": EMPTY, "a/e.md": "", "a/.agentv.yaml": CONFIG + near})
    write(repository, {".agentv/config.yaml": CONFIG + far})
    expected = [] if severity is None else [("x.yaml", "AV303", severity)]
    assert [each for each in found(repository, "a/x.yaml") if each[0] == "x.yaml"] == expected


@pytest.mark.parametrize("rule", sorted(FIXED_RULES))
def test_fixed_rules_cannot_be_changed(repository: Path, rule: str) -> None:
    write(repository, {".agentv.yaml": f"{CONFIG}rules: {{{rule}: off}}\n", "x.yaml": CASE + "    id: b\n    z: 1\n"})
    expected = [(".agentv.yaml", "AV317", "error"), ("x.yaml", "AV104", "error"), ("x.yaml", "AV202", "error")]
    assert found(repository, ".") == expected


@pytest.mark.parametrize(
    ("rule", "broken"),
    [
        ("AV301", "evaluators: [{name: a, type: is_json}, {name: a, type: is_json}]"),
        ("AV302", "evaluators: [{name: a, type: code, script: ./missing.py}]"),
        ("AV304", "execution: {target: missing}"),
        ("AV309", "evaluators: [{name: a, type: schema, schema_inline: {$ref: missing.json}}]"),
        ("AV312", "rubrics: [x]"),
        ("AV320", "evaluators: [{name: a, type: schema}]"),
        ("AV325", "evaluators: [{name: a, type: code, script: ./s.sh 'x}]"),
    ],
)
def test_plan_is_not_compiled_without_the_rules_that_it_needs(repository: Path, rule: str, broken: str) -> None:
    agent = TARGETS.replace(
        "name: t, provider: mock", "name: default, provider: cli, command_template: x, prompt: none"
    )
    write(repository, {"targets.yaml": agent, ".agentv.yaml": f"{CONFIG}rules: {{{rule}: off}}\n", "s.sh": "x"})
    write(repository, {"x.yaml": f"{CASE}    {broken}\n"})
    done = run_command("compile", "x.yaml", cwd=repository)
    assert done.code in (1, 2)
    assert f"[{rule}]" in done.err


def test_a_metric_needs_its_package(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    near = "evaluators: [{name: near, type: similarity, metric: bleu, reference: x}]"
    write(
        repository,
        {
            "targets.yaml": TARGETS,
            "x.yaml": f"{CASE}target: t\n".replace("    expected_m", f"    {near}\n    expected_m"),
        },
    )
    assert found(repository, "x.yaml") == []
    monkeypatch.setattr("agentv_ci.validate.rules.evaluators.find_spec", lambda _: None)
    assert found(repository, "x.yaml") == [("x.yaml", "AV330", "error")]


@pytest.mark.parametrize("targets", ["gone.yaml", "empty", "x.yaml", "a" * 5000])
def test_path_without_a_targets_file_is_a_usage_error(repository: Path, targets: str) -> None:
    write(repository, {"x.yaml": CASE + "target: t\n", "empty/keep": ""})
    with pytest.raises(UsageError, match=targets):
        found(repository, "x.yaml", targets=targets)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("given.yaml", "a: 1\n"),
        ("given.yaml", "targets: [\n"),
        ("given.yaml", ""),
        ("targets.yaml", "targets: [\n"),
        (".agentv.yaml", "a: [\n"),
    ],
)
def test_broken_document_of_an_eval_file_is_reported(repository: Path, name: str, content: str) -> None:
    write(repository, {"x.yaml": CASE + "target: t\n", name: content})
    option = ("--targets", name) if name == "given.yaml" else ()
    done = run_command("validate", "x.yaml", *option, cwd=repository)
    assert done.code in (1, 2)
    assert name in done.out + done.err
    assert "unknown target" not in done.out


@pytest.mark.parametrize("line", ["$schemas: agentv-eval-v2", "schema: agentv-eval-v2", "$schema: 5", "$schema:"])
def test_wrong_schema_line_is_one_diagnostic(repository: Path, line: str) -> None:
    write(repository, {"x.yaml": CASE.replace("$schema: agentv-eval-v2", line)})
    assert len(found(repository, "x.yaml")) == 1


@pytest.mark.parametrize("name", [".agentv.yaml", "targets.yaml", ".agentv/config.yaml"])
@pytest.mark.parametrize("paths", [("x.yaml", "{}"), ("{}", "x.yaml"), (".",)])
def test_eval_file_named_like_another_kind_is_checked(repository: Path, name: str, paths: tuple[str, ...]) -> None:
    write(repository, {"x.yaml": CASE, name: CASE.replace("user", "usr")})
    assert found(repository, *(path.format(name) for path in paths)) == [(Path(name).name, "AV205", "error")]


def test_diagnostics_of_a_targets_file_do_not_depend_on_other_names(tmp_path: Path) -> None:
    targets = "$schema: https://example.com/x\ntargets: [{name: default, provider: mock}]\n"
    results = []
    for name in ("a", "z"):
        write(tmp_path / name, {".git/HEAD": "", "targets.yaml": targets, f"{name}.yaml": CASE})
        files = check_paths(["."], targets=None, cwd=tmp_path / name).files
        results.append([[each.rule for each in file.diagnostics] for file in files if file.path.name == "targets.yaml"])
    assert results[0] == results[1]


@pytest.mark.parametrize("schema", ["", CONFIG])
def test_settings_of_agentv_are_not_read_as_ours(schema: str, repository: Path) -> None:
    theirs = f"{schema}providers: file://providers.yaml\ndefaults: {{provider: a}}\neval_patterns: ['**/*.yaml']\n"
    write(repository, {".agentv/config.yaml": theirs, "x.yaml": EMPTY, "e.md": ""})
    assert found(repository, "x.yaml", ".") == [("x.yaml", "AV303", "warning")]
    assert found(repository, ".agentv/config.yaml") == [("config.yaml", "AV103", "error")]
    write(repository, {".agentv/config.yaml": f"{theirs}rules: {{AV303: off}}\n"})
    assert ("config.yaml", "AV202", "error") in found(repository, ".")
