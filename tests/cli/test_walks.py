"""Walks of folders: what is not ours never ends a command, and what looks like an evaluation is never skipped."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support import ORDINARY, run_process
from tests.support.projects import Project

COMMANDS = (("validate", "."), ("eval", ".", "--dry-run"), ("compile", ".", "--out", "plan.json"))
NOT_UTF_8 = os.fsdecode(b"caf\xe9")


def written(content: str | bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content if isinstance(content, bytes) else content.encode())


FOREIGN: Mapping[str, tuple[str, Callable[[Path], object]]] = {
    "dangling link": ("x", lambda path: path.symlink_to("nowhere")),
    "Latin-1": ("x", written(b"a: caf\xe9\n")),
    "binary": ("x", written(bytes(range(256)))),
    "pipe": ("x", os.mkfifo),
    "tab": ("x", written("a:\n\tb: 1\n")),
    "unknown alias": ("x", written("a: *b\n")),
    "template": ("targets", written("{{ if .Values.on }}\ntargets:\n  - {{ .Values.name }}\n")),
    "name that is not UTF-8": (NOT_UTF_8, written("a: 1\n")),
}


@pytest.fixture
def project(repository: Path) -> Project:
    project = Project(repository)
    project.documents("greets")
    return project


@pytest.mark.parametrize(("name", "make"), FOREIGN.values(), ids=FOREIGN)
def test_unreadable_file_of_another_program_is_skipped(
    project: Project, name: str, make: Callable[[Path], object]
) -> None:
    make(project.path(f"{name}-of-others.yaml"))
    for command in COMMANDS:
        done = project.run(*command)
        assert (done.code, "of-others" in done.out + done.err) == (0, False), done
    assert "2 files checked, 2 passed, 0 failed, 0 errors, 0 warnings, 1 skipped" in project.run("validate", ".").out


OURS: Mapping[str, tuple[str, str | bytes, str]] = {
    "schema": ("x.yaml", "$schema: agentv-eval-v2\na:\n\tb: 1\n", "AV101"),
    "published schema": ("x.yaml", b"# https://org.github.io/agentv-action/schemas/eval-v2.schema.json\xe9\n", "AV105"),
    "cases": ("x.yaml", "a: *b\nevalcases: []\n", "AV101"),
    "cases in JSON": ("x.yaml", '{"evalcases": [\t', "AV101"),
    "cases in UTF-16": ("x.yaml", "evalcases: []\n".encode("utf-16"), "AV105"),
    "targets": ("x.yaml", "targets:\n\t- provider: mock\n", "AV101"),
    "patterns": ("x.yaml", "guideline_patterns: *b\n", "AV101"),
    "name of targets": ("evals/targets.yaml", "a: [\n", "AV101"),
    "name of an eval file": ("x.eval.yaml", "a: [\n", "AV101"),
    "name of a later version's eval file": ("EVAL.yaml", "a: [\n", "AV101"),
    "path that is not UTF-8": (f"{NOT_UTF_8}/x.yaml", '{"$schema": "agentv-eval-v2", "evalcases": [', "AV101"),
}


@pytest.mark.parametrize(("name", "content", "rule"), OURS.values(), ids=OURS)
def test_unreadable_file_that_bears_our_mark_is_an_error(
    project: Project, name: str, content: str | bytes, rule: str
) -> None:
    path = project.path(name)
    path.parent.mkdir(exist_ok=True)
    written(content)(path)
    for (*command, _), code in zip((("validate", ""), ("eval", ""), ("compile", "")), (1, 2, 2), strict=True):
        done = project.run(*command, ".")
        assert (done.code, (done.out + done.err).count(f"[{rule}]")) == (code, 1), done


def test_eval_file_with_a_path_that_is_not_utf_8_is_one_error(project: Project) -> None:
    project.path(f"evals/{NOT_UTF_8}.yaml").write_bytes(project.path("evals/x.yaml").read_bytes())
    for command, code in zip(COMMANDS, (1, 2, 2), strict=True):
        done = project.run(*command)
        assert (done.code, (done.out + done.err).count("the path is not valid UTF-8 [AV105]")) == (code, 1), done


@pytest.mark.slow
def test_path_that_permissions_close_is_one_warning(project: Project) -> None:
    project.write(
        {"closed/x.yaml": "a: 1\n", "unlisted/x.yaml": "a: 1\n", "file.yaml": "a: 1\n", "other.yaml": "a: 1\n"}
    )
    for name, mode in {"closed": 0, "unlisted": 0o444, "file.yaml": 0}.items():
        project.path(name).chmod(mode)
    try:
        for command in COMMANDS:
            done = run_process(*command, cwd=project.folder, through=ORDINARY)
            said = done.out + done.err
            assert done.code == 0, done
            for name in ("closed", "unlisted/x.yaml", "file.yaml"):
                assert said.count(f"{name}:1:1: warning: cannot be read: Permission denied [AV105]") == 1, said
        for name in ("closed", "closed/x.yaml", "closed/none.yaml", "file.yaml"):
            done = run_process("validate", name, cwd=project.folder, through=ORDINARY)
            assert (done.code, f"{name}:1:1: error: cannot be read: Permission denied [AV105]" in done.out) == (1, True)
    finally:
        for name in ("closed", "unlisted"):
            project.path(name).chmod(0o755)


@pytest.mark.parametrize("unused", ["notes", "notes/*.yaml", "notes/a.yaml", "targets.yaml"])
@pytest.mark.parametrize("command", [["eval", "--dry-run"], ["compile", "--out", "p.json"], ["eval", "--list"]])
def test_paths_without_eval_documents_beside_others_are_named(
    project: Project, command: list[str], unused: str
) -> None:
    project.write({"notes/a.yaml": "a: 1\n", "notes/b.yaml": "b: 1\n"})
    done = project.run(*command, "evals", unused)
    if unused == "notes/a.yaml":
        # A file that is named is an error of its own.
        assert (done.code, "notes/a.yaml" in done.err) == (2, True)
        return
    assert (done.code, done.err.splitlines()[:1]) == (0, [f"warning: no eval document in '{unused}'"]), done.err
    done = project.run(*command, "evals", "evals/*.yaml", ".")
    assert (done.code, "no eval document" in done.err) == (0, False)
