"""The plan's files as files on the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentv_ci.contracts.plan import FileReference
from agentv_ci.execute.materials import Materials
from tests.evaluate.builders import Texts
from tests.support import write

TEXT = "Be brief.\r\nÜberall.\n"


def test_a_file_that_still_says_the_same_is_the_repositorys_own(repository: Path) -> None:
    texts = Texts()
    reference = texts.add("docs/rules.md", TEXT)
    (repository / "docs").mkdir()
    (repository / "docs" / "rules.md").write_bytes(TEXT.encode())
    with Materials(texts.by_digest, repository) as materials:
        assert materials.locate(reference) == repository / "docs" / "rules.md"


@pytest.mark.parametrize("now", ["Be verbose.", "", None, TEXT.replace("\r\n", "\n"), f"\ufeff{TEXT}"])
def test_a_file_that_has_changed_or_gone_is_a_scratch_copy_of_what_the_plan_knows(
    now: str | None, repository: Path
) -> None:
    texts = Texts()
    reference = texts.add("docs/rules.md", TEXT)
    if now is not None:
        (repository / "docs").mkdir()
        (repository / "docs" / "rules.md").write_bytes(now.encode())
    with Materials(texts.by_digest, repository) as materials:
        copy = materials.locate(reference)
        assert copy.is_absolute()
        assert not copy.is_relative_to(repository)
        assert (copy.name, copy.read_bytes()) == ("rules.md", TEXT.encode())


def test_scratch_copies_keep_their_places_towards_each_other(repository: Path) -> None:
    texts = Texts()
    first, second = texts.add("evals/judge.py", "import lib.words"), texts.add("evals/lib/words.py", "WORDS = []")
    with Materials(texts.by_digest, repository) as materials:
        assert materials.locate(second) == materials.locate(first).parent / "lib" / "words.py"


def test_files_that_belong_together_are_all_the_repositorys_or_all_copies(repository: Path) -> None:
    texts = Texts()
    script, helper = texts.add("evals/judge.py", "import words"), texts.add("evals/words.py", "WORDS = []")
    write(repository, {"evals/judge.py": "import words", "evals/words.py": "WORDS = []"})
    with Materials(texts.by_digest, repository) as materials:
        found = materials.locate_together([script, helper])
        assert found == {each.path: repository / each.path for each in (script, helper)}
    write(repository, {"evals/words.py": "WORDS = ['changed']"})
    with Materials(texts.by_digest, repository) as materials:
        found = materials.locate_together([script, helper])
        assert found is materials.locate_together([script, helper])
        assert [path.read_text("utf-8") for path in found.values()] == ["import words", "WORDS = []"]
        assert found["evals/judge.py"].parent == found["evals/words.py"].parent
        assert not found["evals/judge.py"].is_relative_to(repository)


def test_a_file_is_looked_for_once(repository: Path) -> None:
    texts = Texts()
    reference = texts.add("a.md", TEXT)
    with Materials(texts.by_digest, repository) as materials:
        copy = materials.locate(reference)
        write(repository, {"a.md": TEXT})
        assert materials.locate(reference) == copy


def test_two_files_never_share_a_copy(repository: Path) -> None:
    texts = Texts()
    references = [
        texts.add("a.md", "one"),
        texts.add("a.md", "two"),
        texts.add("../b.md", "3"),
        texts.add("up/b.md", "4"),
    ]
    with Materials(texts.by_digest, repository) as materials:
        assert [materials.locate(each).read_text(encoding="utf-8") for each in references * 2] == [
            "one",
            "two",
            "3",
            "4",
        ] * 2


@pytest.mark.parametrize("path", ["../../escape.md", "/etc/agentv-ci-escape.md", "a/../../escape.md"])
def test_a_copy_never_leaves_the_scratch_folder(path: str, repository: Path) -> None:
    texts = Texts()
    reference, inside = texts.add(path, TEXT), texts.add("inside.md", TEXT + TEXT)
    with Materials(texts.by_digest, repository) as materials:
        scratch = materials.locate(inside).parent
        assert materials.locate(reference).resolve().is_relative_to(scratch.resolve())


def test_scratch_copies_are_removed_at_the_end(repository: Path) -> None:
    texts = Texts()
    references = [texts.add("a.md", "one"), texts.add("deep/er/b.md", "two")]
    with Materials(texts.by_digest, repository) as materials:
        copies = [materials.locate(each) for each in references]
    assert [each.exists() for each in (*copies, copies[0].parent)] == [False] * 3


def test_scratch_copies_are_removed_after_a_failure_too(repository: Path) -> None:
    copies: list[Path] = []

    def fail() -> None:
        texts = Texts()
        with Materials(texts.by_digest, repository) as materials:
            copies.append(materials.locate(texts.add("a.md", TEXT)))
            raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        fail()
    assert [each.exists() for each in copies] == [False]


def test_nothing_is_written_where_the_repository_has_everything(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    scratch = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    texts = Texts()
    write(repository, {"a.md": "one"})
    with Materials(texts.by_digest, repository) as materials:
        materials.locate(texts.add("a.md", "one"))
        assert list(scratch.iterdir()) == []


def test_a_folder_in_the_place_of_a_file_is_a_file_that_has_gone(repository: Path) -> None:
    texts = Texts()
    (repository / "a.md").mkdir()
    with Materials(texts.by_digest, repository) as materials:
        assert materials.locate(texts.add("a.md", TEXT)).read_bytes() == TEXT.encode()


def test_a_file_that_the_plan_does_not_know_is_a_bug_and_not_a_wrong_file(repository: Path) -> None:
    write(repository, {"a.md": "other"})
    with Materials({}, repository) as materials, pytest.raises(KeyError):
        materials.locate(FileReference(path="a.md", sha256="0" * 64))
