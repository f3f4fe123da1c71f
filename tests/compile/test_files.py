"""The texts a plan carries."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.plan import FileReference, FileText, Plan
from tests.compile.builders import EVAL, Document, case, compile_here, evals


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def asking(*paths: str, **given: Any) -> Document:
    """A case whose question is made of files."""
    content = [{"type": "file", "value": path} for path in paths]
    return case(input_messages=[{"role": "user", "content": content}], **given)


def files_of(plan: Plan) -> list[tuple[str, str]]:
    return [(each.path, each.text) for each in plan.files.values()]


def test_text_is_kept_under_its_sha256(repository: Path) -> None:
    plan = compile_here(repository, {EVAL: evals(asking("a.txt")), "evals/a.txt": "Grüße\n"})
    assert plan.files == {sha256("Grüße\n"): FileText(path="evals/a.txt", text="Grüße\n")}


def test_text_is_kept_as_it_is(repository: Path) -> None:
    (repository / "evals").mkdir()
    (repository / "evals/a.txt").write_bytes("\ufeffone\r\ntwo\rthree\n\n ".encode())
    plan = compile_here(repository, {EVAL: evals(asking("a.txt"))})
    assert files_of(plan) == [("evals/a.txt", "\ufeffone\r\ntwo\rthree\n\n ")]


@pytest.mark.parametrize(
    ("reference", "path"),
    [
        ("a.txt", "evals/a.txt"),
        ("./a.txt", "evals/a.txt"),
        ("deep/../a.txt", "evals/a.txt"),
        ("../common.txt", "common.txt"),
        ("/common.txt", "common.txt"),
        ("/evals/a.txt", "evals/a.txt"),
        ("deep/b.txt", "evals/deep/b.txt"),
    ],
)
def test_path_is_the_repositorys_however_it_is_referred_to(repository: Path, reference: str, path: str) -> None:
    files = {"evals/a.txt": "a", "evals/deep/b.txt": "b", "common.txt": "c"}
    assert [name for name, _ in files_of(compile_here(repository, {EVAL: evals(asking(reference)), **files}))] == [path]


def test_files_are_sorted_by_their_paths(repository: Path) -> None:
    names = ["z.txt", "b/a.txt", "a.txt", "B.txt"]
    files = {f"evals/{name}": name for name in names}
    plan = compile_here(repository, {EVAL: evals(asking(*names)), **files})
    assert [path for path, _ in files_of(plan)] == ["evals/B.txt", "evals/a.txt", "evals/b/a.txt", "evals/z.txt"]


def test_equal_texts_are_kept_once_under_the_first_path(repository: Path) -> None:
    files = {"evals/z.txt": "same", "evals/a.txt": "same"}
    plan = compile_here(repository, {EVAL: evals(asking("z.txt", "a.txt")), **files})
    assert files_of(plan) == [("evals/a.txt", "same")]
    assert [part.path for part in plan.cases[0].input_messages[0].content if part.type == "file"] == [
        "evals/z.txt",
        "evals/a.txt",
    ]


def test_file_is_kept_once_when_several_suites_use_it(repository: Path) -> None:
    files: dict[str, str | Document] = {
        EVAL: evals(asking("/common.txt")),
        "evals/b.yaml": evals(asking("../common.txt")),
        "common.txt": "x",
    }
    assert files_of(compile_here(repository, files)) == [("common.txt", "x")]


def test_files_of_messages_prompts_and_scripts_are_kept(repository: Path) -> None:
    evaluators = [
        {"name": "judge", "type": "llm_judge", "prompt": "./judge.md"},
        {"name": "script", "type": "code", "script": "judge.py", "files": ["data.json"]},
        {"name": "schema", "type": "schema", "schema_file": "schema.json"},
    ]
    files: dict[str, str | Document] = {
        EVAL: evals(asking("question.txt", evaluators=evaluators)),
        "evals/question.txt": "1",
        "evals/judge.md": "2",
        "evals/judge.py": "3",
        "evals/data.json": "4",
        "evals/schema.json": "{}",
        "evals/unused.txt": "5",
    }
    assert [path for path, _ in files_of(compile_here(repository, files))] == [
        "evals/data.json",
        "evals/judge.md",
        "evals/judge.py",
        "evals/question.txt",
    ]


def test_plan_has_no_files_when_nothing_refers_to_one(repository: Path) -> None:
    assert compile_here(repository).files == {}


def test_every_reference_leads_to_a_text(repository: Path) -> None:
    files = {"evals/rules.prompt.md": "rules", "evals/a.txt": "a"}
    plan = compile_here(repository, {EVAL: evals(asking("rules.prompt.md", "a.txt")), **files})
    assert plan.cases[0].guidelines == (FileReference(path="evals/rules.prompt.md", sha256=sha256("rules")),)
    assert set(plan.files) == {sha256("rules"), sha256("a")}


def test_empty_file_is_kept(repository: Path) -> None:
    assert files_of(compile_here(repository, {EVAL: evals(asking("a.txt")), "evals/a.txt": ""})) == [
        ("evals/a.txt", "")
    ]
