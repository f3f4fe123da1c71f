"""The plan's files as files on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentv_ci.execute.materials import Materials
from tests.evaluate.builders import Texts
from tests.support import write

TEXT = "Be brief.\r\nÜberall.\n"


@pytest.mark.parametrize(
    ("now", "is_own"),
    [
        (TEXT, True),
        ("Be verbose.", False),
        ("", False),
        (None, False),
        (TEXT.replace("\r\n", "\n"), False),
        (f"\ufeff{TEXT}", False),
    ],
)
def test_an_unchanged_file_is_the_repositorys_own_and_any_other_a_scratch_copy(
    now: str | None, is_own: bool, repository: Path
) -> None:
    texts = Texts()
    reference = texts.add("docs/rules.md", TEXT)
    (repository / "docs").mkdir()
    if now is not None:
        (repository / "docs" / "rules.md").write_bytes(now.encode())
    with Materials(texts.by_digest, repository) as materials:
        found = materials.locate(reference)
        assert (found == repository / "docs" / "rules.md", found.is_relative_to(repository)) == (is_own, is_own)
        assert (found.is_absolute(), found.name, found.read_bytes()) == (True, "rules.md", TEXT.encode())
    assert found.exists() is is_own


def test_files_that_belong_together_are_all_own_or_all_copies_with_the_same_places(repository: Path) -> None:
    texts = Texts()
    script, helper = texts.add("evals/judge.py", "import lib.words"), texts.add("evals/lib/words.py", "WORDS = []")
    write(repository, {"evals/judge.py": "import lib.words", "evals/lib/words.py": "WORDS = []"})
    with Materials(texts.by_digest, repository) as materials:
        found = materials.locate_together([script, helper])
        assert found == {each.path: repository / each.path for each in (script, helper)}
        write(repository, {"evals/lib/words.py": "WORDS = ['changed']"})
        found = materials.locate_together([script, helper])
        assert found is materials.locate_together([script, helper])
        assert [path.read_text("utf-8") for path in found.values()] == ["import lib.words", "WORDS = []"]
        assert found["evals/lib/words.py"] == found["evals/judge.py"].parent / "lib" / "words.py"
        assert not found["evals/judge.py"].is_relative_to(repository)


def test_a_copy_is_kept_and_a_changed_file_is_noticed(repository: Path) -> None:
    texts = Texts()
    copied, own = texts.add("a.md", TEXT), texts.add("rules.md", "old")
    write(repository, {"rules.md": "old"})
    with Materials(texts.by_digest, repository) as materials:
        copy = materials.locate(copied)
        assert materials.locate(own) == repository / "rules.md"
        write(repository, {"a.md": TEXT, "rules.md": "new"})
        assert materials.locate(copied) == copy
        assert materials.locate(own).read_text("utf-8") == "old"


def test_no_two_files_share_a_copy(repository: Path) -> None:
    texts = Texts()
    given = [("a.md", "one"), ("a.md", "two"), ("../b.md", "3"), ("up/b.md", "4")]
    references = [texts.add(path, text) for path, text in given]
    with Materials(texts.by_digest, repository) as materials:
        found = [materials.locate(each).read_text(encoding="utf-8") for each in references * 2]
    assert found == [text for _, text in given] * 2


@pytest.mark.parametrize("path", ["../../escape.md", "/etc/agentv-ci-escape.md", "a/../../escape.md"])
def test_a_copy_never_leaves_the_scratch_folder(path: str, repository: Path) -> None:
    texts = Texts()
    reference, inside = texts.add(path, TEXT), texts.add("inside.md", TEXT + TEXT)
    with Materials(texts.by_digest, repository) as materials:
        scratch = materials.locate(inside).parent
        assert materials.locate(reference).resolve().is_relative_to(scratch.resolve())


def test_scratch_copies_are_removed_after_a_failure_too(repository: Path) -> None:
    texts, copies = Texts(), list[Path]()

    def fail() -> None:
        with Materials(texts.by_digest, repository) as materials:
            copies.append(materials.locate(texts.add("deep/er/a.md", TEXT)))
            raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        fail()
    assert not copies[0].parent.parent.parent.exists()


def test_a_directory_is_not_a_file_and_a_link_keeps_its_name(repository: Path) -> None:
    texts = Texts()
    (repository / "a.md").mkdir()
    write(repository, {"v3.md": "three"})
    (repository / "current.md").symlink_to("v3.md")
    with Materials(texts.by_digest, repository) as materials:
        assert materials.locate(texts.add("a.md", TEXT)).read_bytes() == TEXT.encode()
        assert materials.locate(texts.add("current.md", "three")) == repository / "current.md"
