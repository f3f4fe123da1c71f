"""Documents are compiled one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agentv_ci.app.documents.documents import Documents
from agentv_ci.compile.compilation import Compilation
from agentv_ci.contracts.documents import CheckedDocument, DocumentContext
from agentv_ci.errors import BUG
from tests.compile.builders import case, evals, targets, write_repository
from tests.support import run_command


def test_cases_come_before_the_next_document_is_requested(repository: Path) -> None:
    write_repository(repository, {f"evals/{name}.yaml": evals(case(f"{name}1"), case(f"{name}2")) for name in "abc"})
    documents, requested = Documents(repository, None), ""

    def one_by_one() -> Iterator[tuple[CheckedDocument, DocumentContext]]:
        nonlocal requested
        for name in "abc":
            requested += name
            path = repository / "evals" / f"{name}.yaml"
            yield documents.check(path, named=True), documents.context(path)

    compilation = Compilation(one_by_one(), read_bytes=Path.read_bytes)
    seen = [f"{found.id} {requested}" for found in compilation.cases()]
    assert seen == ["a1 a", "a2 a", "b1 ab", "b2 ab", "c1 abc", "c2 abc"]
    assert [suite.path for suite in compilation.head().suites] == [f"evals/{name}.yaml" for name in "abc"]


def test_documents_outside_a_repository_and_the_working_directory_are_compiled(tmp_path: Path) -> None:
    write_repository(tmp_path / "documents", {"evals/a.yaml": evals(), "targets.yaml": targets()})
    (tmp_path / "documents" / ".git").rmdir()
    (tmp_path / "elsewhere").mkdir()
    done = run_command("compile", tmp_path / "documents" / "evals", "--out", "plan.json", cwd=tmp_path / "elsewhere")
    assert done.code == 0
    assert run_command("eval", "../documents/evals", "--out", "r.jsonl", cwd=tmp_path / "elsewhere").code in (0, 1)


def test_suite_whose_name_is_not_unicode_is_not_a_bug(repository: Path) -> None:
    write_repository(repository, {"evals/a.yaml": evals()})
    (repository / "evals" / "\udcff.yaml").write_bytes((repository / "evals/a.yaml").read_bytes())
    assert run_command("compile", "evals", cwd=repository).code != BUG
