"""Documents are compiled one by one, and wherever they lie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentv_ci.app.workspace import Documents
from agentv_ci.cli import run
from agentv_ci.compile.compilation import Compilation
from agentv_ci.contracts.documents import CheckedDocument, DocumentContext
from tests.compile.builders import case, evals, targets, write_repository


def test_cases_come_before_the_next_document_is_asked_for(repository: Path) -> None:
    """Else the memory of a compilation would grow with its cases."""
    names = ("a", "b", "c")
    write_repository(repository, {f"evals/{name}.yaml": evals(case(f"{name}1"), case(f"{name}2")) for name in names})
    documents = Documents(repository, None)
    asked: list[str] = []

    def one_by_one() -> Iterator[tuple[CheckedDocument, DocumentContext]]:
        for name in names:
            asked.append(name)
            path = repository / "evals" / f"{name}.yaml"
            yield documents.check(path, named=True), documents.context(path)

    compilation = Compilation(one_by_one(), read_text=Path.read_text)
    seen = [(found.id, "".join(asked)) for found in compilation.cases()]
    assert seen == [("a1", "a"), ("a2", "a"), ("b1", "ab"), ("b2", "ab"), ("c1", "abc"), ("c2", "abc")]
    assert [suite.path for suite in compilation.head().suites] == [f"evals/{name}.yaml" for name in names]


def test_documents_outside_a_repository_and_the_working_directory_are_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_repository(tmp_path / "documents", {"evals/a.yaml": evals(), "targets.yaml": targets()})
    (tmp_path / "documents" / ".git").rmdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run(["compile", str(tmp_path / "documents" / "evals"), "--out", "plan.json"]) == 0
    assert run(["eval", "../documents/evals", "--out", "rows.jsonl"]) in (0, 1)
    assert "bug" not in capsys.readouterr().err
