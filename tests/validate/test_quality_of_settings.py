"""Severities, strictness, targets files and how documents are recognised, as the command line shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentv_ci.app.validate import check_paths
from agentv_ci.errors import UsageError
from agentv_ci.jsonschema.schemas import schema_id
from tests.support import run_process, write
from tests.validate.test_hostile_input import CASE

EMPTY = CASE.replace("content: x", "content: [{type: file, value: e.md}]")
CONFIG = "$schema: agentv-config-v2\n"
TARGETS = "$schema: agentv-targets-v2.2\ntargets: [{name: t, provider: mock}]\n"


def found(folder: Path, *paths: str, targets: str | None = None) -> list[tuple[str, str, str]]:
    checks = check_paths(paths, targets=targets, cwd=folder)
    return [(file.path.name, each.rule, each.severity) for file in checks.files for each in file.diagnostics]


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
def test_the_nearest_document_with_rules_sets_severities(
    repository: Path, near: str, far: str, severity: str | None
) -> None:
    write(repository, {"a/x.yaml": EMPTY, "a/e.md": "", "a/.agentv.yaml": CONFIG + near})
    write(repository, {".agentv/config.yaml": CONFIG + far})
    expected = [] if severity is None else [("x.yaml", "AV303", severity)]
    assert [each for each in found(repository, "a/x.yaml") if each[0] == "x.yaml"] == expected


@pytest.mark.parametrize("rule", ["AV101", "AV103", "AV104", "AV105", "AV106", "AV201", "AV202", "AV206"])
def test_rules_without_which_nothing_goes_on_cannot_be_changed(repository: Path, rule: str) -> None:
    write(repository, {".agentv.yaml": f"{CONFIG}rules: {{{rule}: off}}\n", "x.yaml": CASE + "    id: b\n    z: 1\n"})
    assert found(repository, ".") == [
        (".agentv.yaml", "AV317", "error"),
        ("x.yaml", "AV104", "error"),
        ("x.yaml", "AV202", "error"),
    ]


@pytest.mark.parametrize("severity", ["off", "warning", "error"])
def test_a_missing_schema_may_be_of_any_severity(repository: Path, severity: str) -> None:
    bare = CASE.partition("\n")[2]
    write(repository, {".agentv.yaml": f"{CONFIG}rules: {{AV102: {severity}}}\n", "x.yaml": bare})
    assert found(repository, ".") == ([] if severity == "off" else [("x.yaml", "AV102", severity)])


@pytest.mark.parametrize(("rules", "plain", "strict"), [("", 0, 1), ("AV303: off", 0, 0), ("AV303: error", 1, 1)])
def test_strict_fails_on_warnings_and_on_nothing_that_is_off(
    repository: Path, rules: str, plain: int, strict: int
) -> None:
    write(repository, {".agentv.yaml": f"{CONFIG}rules: {{{rules}}}\n", "x.yaml": EMPTY, "e.md": ""})
    assert run_process("validate", "x.yaml", cwd=repository).code == plain
    assert run_process("validate", "x.yaml", "--strict", cwd=repository).code == strict


@pytest.mark.parametrize("targets", ["o", "o/targets.yaml", "./o/../o"])
def test_the_targets_file_may_be_named_or_be_in_a_named_folder(repository: Path, targets: str) -> None:
    write(repository, {"x.yaml": CASE + "target: t\n", "o/targets.yaml": TARGETS, "targets.yaml": ""})
    assert found(repository, "x.yaml", targets=targets) == []


@pytest.mark.parametrize("targets", ["gone.yaml", "empty", "x.yaml"])
def test_targets_that_are_none_are_a_usage_error(repository: Path, targets: str) -> None:
    write(repository, {"x.yaml": CASE + "target: t\n", "empty/keep": ""})
    with pytest.raises(UsageError, match=targets):
        found(repository, "x.yaml", targets=targets)


@pytest.mark.parametrize("content", ["a: 1\n", "targets: [\n", ""])
def test_a_named_targets_file_that_is_wrong_is_what_is_spoken_of(repository: Path, content: str) -> None:
    write(repository, {"x.yaml": CASE + "target: t\n", "named.yaml": content})
    done = run_process("validate", "x.yaml", "--targets", "named.yaml", cwd=repository)
    assert done.code in (1, 2)
    assert "named.yaml" in done.out + done.err
    assert "unknown target" not in done.out


@pytest.mark.parametrize("name", [".agentv.yaml", "targets.yaml"])
def test_a_document_that_others_are_read_with_is_not_ignored_when_it_is_broken(repository: Path, name: str) -> None:
    write(repository, {"x.yaml": CASE, name: "a: [\n"})
    done = run_process("validate", "x.yaml", cwd=repository)
    assert name in done.out + done.err


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("x.yaml", f"$schema: {schema_id('eval-v2')}\n", "eval"),
        ("x.yaml", "$schema: agentv-targets-v2\n", "targets"),
        ("x.yaml", f"$schema: {schema_id('targets-v2')}\n", "targets"),
        ("x.yaml", f"$schema: '{schema_id('config-v2')}'\n", "config"),
        ("targets.yml", "x: 1\n", "targets"),
        (".agentv/targets.yml", "x: 1\n", "targets"),
        (".agentv/config.yaml", "x: 1\n", "config"),
        ("x.yaml", "evalcases: 5\n", "eval"),
        ("x.yaml", "targets: [{provider: x}]\n", "targets"),
        ("x.yaml", "guidelinePatterns: []\n", "config"),
    ],
)
def test_documents_are_recognised_by_schema_name_or_content(repository: Path, name: str, text: str, kind: str) -> None:
    write(repository, {name: text})
    (file,) = check_paths(["."], targets=None, cwd=repository).files
    assert file.kind == kind


@pytest.mark.parametrize("line", ["$schemas: agentv-eval-v2", "schema: agentv-eval-v2", "$schema: 5", "$schema:"])
def test_a_wrong_schema_line_is_one_diagnostic(repository: Path, line: str) -> None:
    write(repository, {"x.yaml": CASE.replace("$schema: agentv-eval-v2", line)})
    assert len(found(repository, "x.yaml")) == 1


@pytest.mark.parametrize("name", [".agentv.yaml", "targets.yaml", ".agentv/config.yaml"])
@pytest.mark.parametrize("paths", [("x.yaml", "{}"), ("{}", "x.yaml"), (".",)])
def test_an_eval_document_with_the_name_of_another_kind_is_checked_like_any(
    repository: Path, name: str, paths: tuple[str, ...]
) -> None:
    write(repository, {"x.yaml": CASE, name: CASE.replace("user", "usr")})
    assert found(repository, *(path.format(name) for path in paths)) == [(Path(name).name, "AV205", "error")]
