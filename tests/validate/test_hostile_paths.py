"""Paths that are no plain files: loops, devices, pipes, strange names; and whole folders of what is none of ours."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from agentv_ci.app.validate import check_paths
from agentv_ci.contracts.documents import FileDiagnostics
from agentv_ci.errors import UsageError
from tests.support import run_process, write

CASE = """\
$schema: agentv-eval-v2
evalcases:
  - id: a
    expected_outcome: x
    input_messages: [{role: user, content: x}]
    expected_messages: []
"""
REFERRING = CASE.replace("content: x", "content: [{type: file, value: r.md}]")


def files_of(folder: Path, *patterns: str) -> tuple[FileDiagnostics, ...]:
    return check_paths(patterns, targets=None, cwd=folder).files


def said(folder: Path, *patterns: str) -> list[tuple[str, str]]:
    """Return the name of each file with the rule of each diagnostic."""
    return [(file.path.name, each.rule) for file in files_of(folder, *patterns) for each in file.diagnostics]


def make_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


STRANGE: Mapping[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "socket": make_socket,
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to nothing": lambda path: path.symlink_to("nothing"),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_what_is_no_file_is_one_error_when_named_and_when_walked_over(repository: Path, kind: str) -> None:
    STRANGE[kind](repository / "x.yaml")
    assert said(repository, "x.yaml") == [("x.yaml", "AV105")]
    assert said(repository, ".") == [("x.yaml", "AV105")]


@pytest.mark.parametrize("kind", STRANGE)
def test_a_reference_to_what_is_no_file_is_one_error(repository: Path, kind: str) -> None:
    STRANGE[kind](repository / "r.md")
    write(repository, {"x.yaml": REFERRING})
    (found,) = said(repository, "x.yaml")
    assert found[1] in ("AV105", "AV302", "AV318")


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero"])
def test_a_device_is_not_read(repository: Path, device: str) -> None:
    assert [rule for _, rule in said(repository, device)] == ["AV105"]
    write(repository, {"x.yaml": REFERRING.replace("r.md", f"../../../../../../../..{device}")})
    assert said(repository, "x.yaml") == [("x.yaml", "AV318")]


def test_a_folder_that_is_called_like_a_file_is_a_folder(repository: Path) -> None:
    write(repository, {"x.yaml/y.yaml": CASE, "targets.yaml/z.yaml": CASE, ".agentv.yaml/keep": ""})
    names = ["y.yaml", "z.yaml"]
    assert sorted(file.path.name for file in files_of(repository, ".")) == names
    assert [file.path.name for file in files_of(repository, "x.yaml", "targets.yaml")] == names


def test_a_file_outside_the_repository_is_refused_and_not_looked_into(tmp_path: Path) -> None:
    write(tmp_path, {"r/x.yaml": REFERRING.replace("r.md", "../out.md"), "r/.git/HEAD": "", "out.md": "@[User]: x"})
    assert said(tmp_path / "r", ".") == [("x.yaml", "AV318")]


def make_loops(folder: Path) -> None:
    write(folder, {"e/x.yaml": CASE})
    for name in ("a", "b", "c"):
        (folder / "e" / name).symlink_to(".")


def test_links_in_a_circle_are_not_followed_by_a_walk(repository: Path) -> None:
    make_loops(repository)
    assert len(files_of(repository, "e")) == 1


def test_links_in_a_circle_are_not_followed_by_a_glob(repository: Path) -> None:
    make_loops(repository)
    try:
        done = run_process("validate", "e/**/*.yaml", cwd=repository, timeout_s=30)
    except subprocess.TimeoutExpired:
        pytest.fail("the glob never ends")
    assert (done.code, done.out.splitlines()[-1].split(",")[0]) == (0, "1 file checked")


@pytest.mark.parametrize("arguments", [("a" * 5000,), ("x.yaml", "--targets", "a" * 5000)])
def test_a_path_that_is_too_long_for_the_system_does_not_exist(repository: Path, arguments: tuple[str, ...]) -> None:
    write(repository, {"x.yaml": CASE})
    assert run_process("validate", *arguments, cwd=repository).code == 2


def test_a_path_that_does_not_exist_is_a_usage_error(repository: Path) -> None:
    with pytest.raises(UsageError, match=r"path 'x\.yaml' does not exist"):
        files_of(repository, "x.yaml")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_one_error(repository: Path) -> None:
    write(repository, {"x.yaml": CASE, "f/y.yaml": CASE})
    (repository / "x.yaml").chmod(0)
    (repository / "f").chmod(0)
    try:
        assert said(repository, "x.yaml") == [("x.yaml", "AV105")]
        assert said(repository, "f") != []
    finally:
        (repository / "f").chmod(0o700)


NAMES = {
    "line break": "a\n::error::b.yaml",
    "escape": "a\x1b[31mb.yaml",
    "glob characters": "a[1]*?{b}.yaml",
    "not UTF-8": os.fsdecode(b"a\xff.yaml"),
    "percent and colon": "a%0A::b,c=d.yaml",
    "direction": "a\u202eb.yaml",
    "command": "##[error]a.yaml",
    "space": " a b .yaml",
    "hyphen": "-x.yaml",
}


@pytest.mark.parametrize("form", ["text", "json", "github", "sarif"])
@pytest.mark.parametrize("name", NAMES)
def test_any_file_name_can_be_spoken_of(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str, form: str
) -> None:
    from agentv_ci.cli import run

    (repository / NAMES[name]).write_text(CASE + "    zzz: 1\n", encoding="utf-8")
    monkeypatch.chdir(repository)
    assert run(["validate", "--format", form, "."]) == 1
    out = capfd.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out or form in ("json", "sarif")
    if form in ("text", "github"):
        assert len([line for line in out.split("\n") if "AV202" in line]) == 1
        assert sum(line.lstrip().startswith("::") for line in out.split("\n")) == (form == "github")


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\n",
        "- 1\n",
        "",
        "a: 1\na: 2\n",
        "--- 1\n--- 2\n",
        "markdown_extensions:\n  - emoji: !!python/name:material.emoji\n",
        "Value: !Ref Parameter\n",
        "include: !reference [a, b]\n",
        "? [a, b]\n: 1\n",
        "a: &a [*a]\n",
        "%YAML 1.1\n---\na: 1\n",
        "targets: [a, b]\n",
        "$schema: https://json-schema.org/draft/2020-12/schema\n",
    ],
)
def test_a_yaml_file_that_is_none_of_ours_is_skipped_in_a_folder(repository: Path, text: str) -> None:
    write(repository, {"other.yaml": text, "x.yaml": CASE})
    checks = check_paths(["."], targets=None, cwd=repository)
    assert ([file.path.name for file in checks.files], checks.skipped) == (["x.yaml"], 1)
    assert said(repository, ".") == []


def test_thousands_of_files_that_are_none_of_ours_are_counted(repository: Path) -> None:
    write(repository, {f"f{n}.yaml": "a: 1\n" for n in range(2000)} | {"x.yaml": CASE})
    checks = check_paths(["."], targets=None, cwd=repository)
    assert (len(checks.files), checks.skipped) == (1, 2000)


@pytest.mark.parametrize(
    "declared", ["agentev-eval-v2", "agent-eval-v2", "eval-v2", "Agentv-eval-v2", "agentv_eval_v2"]
)
def test_an_eval_document_with_a_misspelt_schema_is_not_skipped_in_silence(repository: Path, declared: str) -> None:
    write(repository, {"x.yaml": CASE.replace("agentv-eval-v2", declared), "y.yaml": CASE})
    assert [file.path.name for file in files_of(repository, ".")] == ["x.yaml", "y.yaml"]


def test_what_is_said_of_a_targets_file_does_not_depend_on_the_names_of_others(tmp_path: Path) -> None:
    targets = "$schema: https://example.com/x\ntargets: [{name: default, provider: mock}]\n"
    for name in ("a", "z"):
        write(tmp_path / name, {".git/HEAD": "", "targets.yaml": targets, f"{name}.yaml": CASE})
    first, last = (
        {file.path.name: [found.rule for found in file.diagnostics] for file in files_of(tmp_path / name, ".")}
        for name in ("a", "z")
    )
    assert first.get("targets.yaml") == last.get("targets.yaml")


def test_paths_are_checked_in_order_and_once(repository: Path) -> None:
    write(repository, dict.fromkeys(("b.yaml", "a.yaml", "f/c.yaml"), CASE))
    paths = ("b.yaml", "./b.yaml", str(repository / "b.yaml"), "f/../b.yaml", "f", "*.yaml", ".")
    assert [file.path.name for file in files_of(repository, *paths)] == ["b.yaml", "c.yaml", "a.yaml"]


def test_a_walk_enters_only_folders_that_people_write_evals_in(repository: Path) -> None:
    skipped = ("node_modules/a.yaml", "env/b.yaml", ".github/c.yaml", "__pycache__/d.yaml", "venv/e.yaml")
    write(repository, dict.fromkeys((*skipped, ".agentv/f.yaml", "x/node_modules.yaml"), CASE) | {"env/pyvenv.cfg": ""})
    assert [file.path.name for file in files_of(repository, ".")] == ["f.yaml", "node_modules.yaml"]


def test_a_name_with_glob_characters_means_itself_when_it_exists(repository: Path) -> None:
    write(repository, {"a[1].yaml": CASE, "a1.yaml": CASE})
    assert [file.path.name for file in files_of(repository, "a[1].yaml")] == ["a[1].yaml"]
    assert [file.path.name for file in files_of(repository, "a[0-9].yaml")] == ["a1.yaml"]
