"""Files become sources: their kind, encoding and problems."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from agentv_ci.contracts.source import Source
from agentv_ci.jsonschema.schemas import schema_id
from agentv_ci.load.document import load
from agentv_ci.load.files import MAX_BYTES
from tests.support import write


def loaded(folder: Path, content: str | bytes, name: str = "x.yaml", *, named: bool = True) -> Source:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return load(path, folder, named=named)


def problems(source: Source) -> list[tuple[str, str]]:
    return [(each.rule, each.message) for each in source.diagnostics]


@pytest.mark.parametrize(
    ("name", "text", "kind", "rules"),
    [
        *(("x.yaml", f"$schema: {each}\n", "eval", []) for each in ("agentv-eval-v2", schema_id("eval-v2"))),
        *(("x.yaml", f"$schema: {each}\n", "targets", []) for each in ("agentv-targets-v2", schema_id("targets-v2"))),
        ("targets.yaml", "$schema: agentv-eval-v2\n", "eval", []),
        *((name, "a: 1\n", "targets", ["AV102"]) for name in ("targets.yml", ".agentv/targets.yaml")),
        *((name, "a: 1\n", "config", ["AV102"]) for name in (".agentv.yaml", ".agentv/config.yaml")),
        ("x.yaml", "evalcases: 5\n", "eval", ["AV102"]),
        ("x.yaml", "targets: [{provider: mock}]\n", "targets", ["AV102"]),
        ("x.test.yaml", "evalcase: 5\n", "eval", ["AV102"]),
        ("x.test.yaml", "targets: [a, b]\nevalcase: 5\n", "eval", ["AV102"]),
        ("x.eval.yml", "$shema: agentv-eval-v2\neval_cases: 5\n", "eval", []),
        *(("x.yaml", f"{key}: []\n", "config", ["AV102"]) for key in ("guideline_patterns", "guidelinePatterns")),
    ],
)
def test_schema_name_or_content_set_the_kind(tmp_path: Path, name: str, text: str, kind: str, rules: list[str]) -> None:
    source = loaded(tmp_path, text, name, named=False)
    assert (source.kind, [each.rule for each in source.diagnostics]) == (kind, rules)


def test_list_of_names_does_not_make_a_targets_file(tmp_path: Path) -> None:
    assert loaded(tmp_path, "targets: [a, b]\nevalcase: 5\n", "x.test.yaml").kind == "eval"
    assert loaded(tmp_path, "targets: []\n", "x.test.yaml").kind == "targets"


LATER_AGENTV = "this is an eval file of a later version of AgentV"
PROMPTFOO = "this is a promptfoo config"


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("EVAL.yaml", "tests:\n  - {id: a, criteria: Hi, input: Hi}\n", LATER_AGENTV),
        ("EVAL.yaml", "name: a\ntests: ./cases.yaml\n", LATER_AGENTV),
        ("a.EVAL.yml", "tests: [file://a.jsonl]\n", LATER_AGENTV),
        ("a.eval.yaml", "prompts: ['{{ input }}']\nproviders: [a]\ntests: [{id: a, vars: {}}]\n", LATER_AGENTV),
        ("x.yaml", "execution: {target: a}\ntests: ./cases.jsonl\n", LATER_AGENTV),
        ("x.yaml", "target: a\ncases: [file://x.yaml, {id: a, input: Hi}]\n", LATER_AGENTV),
        ("x.yaml", "tests:\n  - {id: a, input: Hi}\n", "'tests' looks like evaluations in another format"),
        ("x.yaml", "cases: [{name: a, expected_output: Hi}]\n", "'cases' looks like evaluations in another format"),
        ("x.yaml", "prompts: [Hi]\nproviders: [openai:gpt-5]\n", PROMPTFOO),
        ("promptfooconfig.yaml", "$schema: https://promptfoo.dev/x.json\nprompts: a\ntests: a.csv\n", PROMPTFOO),
    ],
)
def test_evaluation_in_another_format_is_never_skipped(
    tmp_path: Path, name: str, text: str, says: str, named: bool
) -> None:
    source = loaded(tmp_path, text, name, named=named)
    assert problems(source) == [("AV103", f"{says}, which agentv-ci does not read")]
    assert source.kind is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ci.yaml", "on: push\njobs: {tests: {runs-on: ubuntu-latest, steps: [{run: make test}]}}\n"),
        ("ci.yaml", "tests:\n  unit: {script: pytest}\n"),
        ("ci.yaml", "name: CI\ntests: ci/unit.yaml\n"),
        ("compose.yaml", "services: {tests: {image: a, command: [b]}}\n"),
        ("x.yaml", "tests: [unit, lint]\n"),
        ("x.yaml", "tests: [{name: adds, input: 1 + 1, expected: 2}]\n"),
        ("x.yaml", "cases:\n  - {id: a}\n"),
        ("x.yaml", "prompts: [Hi]\n"),
        ("play.yaml", "- {hosts: all, vars: {a: 1}}\n"),
        ("eval.yaml", "checkpoint: a.pt\n"),
        ("a.eval.yaml", "a: 1\n"),
        ("a.test.yaml", "suite: x\ntests: [{asserts: []}]\n"),
        ("x.yaml", "evalcase: 5\n"),
    ],
)
def test_ordinary_yaml_is_skipped(tmp_path: Path, name: str, text: str) -> None:
    source = loaded(tmp_path, text, name, named=False)
    assert (source.kind, source.diagnostics) == (None, ())


@pytest.mark.parametrize("name", ["a.test.yaml", "a.eval.yml", "EVAL.yaml"])
def test_empty_file_with_the_name_of_eval_files_is_an_error(tmp_path: Path, name: str) -> None:
    assert problems(loaded(tmp_path, "", name, named=False)) == [("AV103", "the file is empty")]


@pytest.mark.parametrize(
    "text",
    [
        *("targets: {a: 1}\n", "a: 1\n", "- 1\n", "text\n", "", "a: 1\na: 2\n", "--- 1\n--- 2\n"),
        *("x:\n  - emoji: !!python/name:material.emoji\n", "Value: !Ref Parameter\n", "? [a, b]\n: 1\n"),
        *("a: &a [*a]\n", "%YAML 1.1\n---\na: 1\n", "$schema: https://json-schema.org/draft/2020-12/schema\n"),
    ],
)
def test_file_of_another_program_is_an_error_only_if_named(tmp_path: Path, text: str) -> None:
    source = loaded(tmp_path, text, named=False)
    assert (source.kind, source.diagnostics) == (None, ())
    assert text.startswith("targets") or problems(loaded(tmp_path, text))[0][0] in ("AV101", "AV103", "AV104", "AV106")


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("declared", ["agentv-eval-v9", "eval-v2", "Agentv-eval-v2", "agentv_eval_v2"])
def test_unknown_schema_of_an_eval_file_is_reported(tmp_path: Path, declared: str, named: bool) -> None:
    source = loaded(tmp_path, f"$schema: {declared}\nevalcases: []\n", named=named)
    assert [each.rule for each in source.diagnostics] == ["AV103"]


def make_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


NOT_FILES: Mapping[str, tuple[Callable[[Path], None], str]] = {
    "pipe": (os.mkfifo, "not a regular file"),
    "socket": (make_socket, "not a regular file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
    "circular link": (lambda path: path.symlink_to(path.name), "cannot be read: Too many levels of symbolic links"),
    "missing": (lambda _: None, "cannot be read: No such file or directory"),
}


@pytest.mark.parametrize(("make", "message"), NOT_FILES.values(), ids=NOT_FILES)
def test_anything_but_a_regular_file_is_unreadable(tmp_path: Path, make: Callable[[Path], None], message: str) -> None:
    make(tmp_path / "x.yaml")
    assert problems(load(tmp_path / "x.yaml", tmp_path, named=True)) == [("AV105", message)]


def test_name_with_a_nul_byte_and_file_over_the_limit_are_not_read(tmp_path: Path) -> None:
    with (tmp_path / "x.yaml").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    found = [problems(load(tmp_path / name, tmp_path, named=True)) for name in ("a\0b", "x.yaml")]
    assert found == [[("AV105", "cannot be read: its name contains a NUL byte")], [("AV101", "larger than 64 MiB")]]


def test_file_references_are_relative_to_the_file_or_the_repository(tmp_path: Path) -> None:
    write(tmp_path, {"evals/x.yaml": "$schema: agentv-eval-v2\n"})
    source = load(tmp_path / "evals" / "x.yaml", tmp_path, named=True)
    assert source.resolve("a/../b.md") == tmp_path / "evals" / "b.md"
    assert source.resolve("../c.md") == tmp_path / "c.md"
    assert source.resolve("/docs/d.md") == tmp_path / "docs" / "d.md"
