"""`agentv-ci validate` does not check files again that were clean and are unchanged."""

from __future__ import annotations

import os
from collections.abc import Callable
from unittest.mock import Mock, create_autospec

import pytest

from agentv_ci.app.clean_files import CACHE
from agentv_ci.app.workspace import Documents
from tests.support.projects import GREETS, JUDGE, Project

EVAL = "evals/x.yaml"
FILE = {"role": "user", "content": [{"type": "file", "value": "notes.txt"}]}
EVALUATORS = [
    {"name": "shape", "type": "schema", "schema_file": "shape.json"},
    {"name": "script", "type": "code", "script": ["./grade.sh"]},
]
Change = Callable[[Project], object]


@pytest.fixture
def checks(project: Project, monkeypatch: pytest.MonkeyPatch) -> Mock:
    """A clean project with files of every kind, and a count of the files that are checked."""
    program = {"name": "program", "type": "code", "script": [str(project.path("program"))]}
    project.documents(
        {"id": "a", "input_messages": [FILE], "evaluators": [*EVALUATORS, program]},
        {"id": "b-{{ n }}", "cases_from": {"file": "rows.csv"}},
    )
    plain = {"evals/notes.txt": "n", "evals/shape.json": "{}", "evals/grade.sh": "#!", "evals/rows.csv": "n\n1\n"}
    project.write(
        {**plain, "program": "#!", "other.yaml": "a: 1\n", "evals/.agentv.yaml": "$schema: agentv-config-v2\n"}
    )
    monkeypatch.setattr("agentv_ci.app.clean_files.SETTLED_NS", -(10**12))
    counted: Mock = create_autospec(Documents.check_file, side_effect=Documents.check_file)
    monkeypatch.setattr(Documents, "check_file", counted)
    return counted


def remove(name: str) -> Change:
    return lambda project: project.path(name).unlink()


CHANGES: dict[str, Change] = {
    "eval": lambda project: project.write({EVAL: project.text(EVAL).replace('"user"', '"usor"')}),
    "targets": lambda project: project.targets({**GREETS, "name": "other"}, JUDGE),
    "nearer-targets": lambda project: project.targets({**GREETS, "name": "other"}, name="evals/targets.yaml"),
    "no-targets": remove("targets.yaml"),
    "config": lambda project: project.write({"evals/.agentv.yaml": "$schema: agentv-config-v2\nrule: {}\n"}),
    "new-config": lambda project: project.write({".agentv/config.yaml": "$schema: agentv-config-v2\nrule: {}\n"}),
    "attached-file": remove("evals/notes.txt"),
    "schema": lambda project: project.write({"evals/shape.json": "[]"}),
    "script": remove("evals/grade.sh"),
    "program": remove("program"),
    "rows": lambda project: project.write({"evals/rows.csv": "m\n1\n"}),
    "not-ours": lambda project: project.write({"other.yaml": "$schema: agentv-eval-v2\n"}),
}


def test_unchanged_files_are_not_checked_again(checks: Mock, project: Project) -> None:
    first = project.run("validate", ".")
    assert (first.code, checks.call_count) == (0, 4), first
    again = project.run("validate", ".")
    assert (again, checks.call_count) == (first, 4)
    assert project.run("validate", ".", "--no-cache") == first
    assert checks.call_count == 8


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_every_change_is_noticed(change: Change, checks: Mock, project: Project) -> None:
    first = project.run("validate", ".")
    change(project)
    done = project.run("validate", ".")
    assert done == project.run("validate", ".", "--no-cache")
    assert done != first


def test_files_with_diagnostics_are_checked_each_time(checks: Mock, project: Project) -> None:
    project.write({"evals/notes.txt": ""})
    first, again = (project.run("validate", "evals") for _ in range(2))
    assert "warning" in first.out
    assert first == again
    assert [call.args[1].path.name for call in checks.call_args_list].count("x.yaml") == 2


def test_another_question_is_answered_anew(checks: Mock, project: Project) -> None:
    project.run("validate", "evals")
    project.targets({**GREETS, "name": "other"}, name="others.yaml")
    assert project.run("validate", "evals", "--targets", "others.yaml").code == 1


def test_a_file_that_has_just_changed_is_not_remembered(
    checks: Mock, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentv_ci.app.clean_files.SETTLED_NS", 10**12)
    project.run("validate", ".")
    assert not project.path(str(CACHE)).exists()


@pytest.mark.parametrize(("arguments", "env"), [(["--no-cache"], {}), ([], {"CI": "1"})])
def test_nothing_is_written_on_request_or_in_ci(
    arguments: list[str], env: dict[str, str], checks: Mock, project: Project
) -> None:
    project.env |= env
    before = project.files()
    project.run("validate", ".", *arguments)
    assert project.files() == before


@pytest.mark.parametrize("text", ["", "[]", '{"version": 1}', '{"version": "", "files": 3, "other": 1}'])
def test_a_damaged_cache_is_ignored(text: str, checks: Mock, project: Project) -> None:
    project.write({f"{CACHE}/validate.json": text})
    assert project.run("validate", ".").code == 0
    assert checks.call_count == 4


def test_a_cache_that_cannot_be_written_is_ignored(checks: Mock, project: Project) -> None:
    project.write({str(CACHE): "a file"})
    assert [project.run("validate", "evals").code for _ in range(2)] == [0, 0]
    assert checks.call_count == 4


def test_a_cache_from_elsewhere_never_matches(checks: Mock, project: Project) -> None:
    project.run("validate", ".")
    path, bad = project.path(EVAL), project.text(EVAL).replace('"user"', '"usor"')
    times = path.stat()
    path.unlink()
    project.write({EVAL: bad})
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert project.run("validate", ".").code == 1
