"""Messages in their long form, with guidelines, and the files of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentv_ci.canonical import digest_of
from agentv_ci.contracts.plan import FilePart, FileReference, Plan, PlanMessage, TextPart
from tests.compile.builders import EVAL, Document, Files, case, compile_case, compile_here, evals

CONFIG = "agentv-config-v2"


def file_part(path: str, text: str, *, is_guideline: bool = False) -> FilePart:
    return FilePart(type="guideline" if is_guideline else "file", path=path, sha256=digest_of(text))


def block(path: str) -> Document:
    return {"type": "file", "value": path}


def asking(*paths: str, **given: Any) -> Document:
    return case(input_messages=[{"role": "user", "content": [block(path) for path in paths]}], **given)


def kind(root: Path, path: str, files: Files) -> str:
    """Return the type of part that a file at `path` of the repository becomes."""
    (found,) = compile_here(root, {path: "text", **files, EVAL: evals(asking(f"/{path}"))}).cases
    return found.input_messages[0].content[0].type


def files_of(plan: Plan) -> list[tuple[str, str]]:
    return [(each.path, each.text) for each in plan.files.values()]


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("Hello", (TextPart(text="Hello"),)),
        ("  two\n lines ", (TextPart(text="  two\n lines "),)),
        ([{"type": "text", "value": "one"}, "two"], (TextPart(text="one"), TextPart(text="two"))),
        (["see", block("a.txt")], (TextPart(text="see"), file_part("evals/a.txt", "a"))),
        ([], ()),
        ("${{ NAME }} {{ x }}", (TextPart(text="${{ NAME }} {{ x }}"),)),
    ],
)
def test_content_becomes_parts(repository: Path, content: object, parts: tuple[TextPart | FilePart, ...]) -> None:
    found = compile_case(repository, {"evals/a.txt": "a"}, input_messages=[{"role": "user", "content": content}])
    assert found.input_messages == (PlanMessage(role="user", content=parts),)


def assistant(content: Any) -> Document:
    return {"role": "assistant", "content": content}


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ([], ""),
        ([assistant("one"), assistant("two")], "two"),
        ([assistant("one"), {"role": "user", "content": "two"}], "one"),
        ([assistant("one"), {"role": "assistant", "tool_calls": [{"tool": "x"}]}], "one"),
        ([assistant(["one", {"type": "text", "value": "two"}])], "one\n\ntwo"),
        ([assistant(["one", block("a.txt")])], "one\n\nfrom a file"),
        ([assistant({"ü": 1, "a": 2})], '{\n  "a": 2,\n  "ü": 1\n}'),
        ([{"role": "user", "content": "one"}], ""),
    ],
)
def test_reference_answer_is_the_last_assistant_message(
    repository: Path, expected: list[Document], answer: str
) -> None:
    found = compile_case(repository, {"evals/a.txt": "from a file"}, expected_messages=expected)
    assert found.reference_answer == answer


@pytest.mark.parametrize(
    ("path", "is_guideline"),
    [
        ("a.instructions.md", True),
        (".github/a.instructions.md", True),
        ("evals/instructions/deep/er/a.txt", True),
        ("a.prompt.md", True),
        ("evals/prompts/.hidden", True),
        ("evals/instructions.md", False),
        ("evals/my-instructions/a.txt", False),
        ("evals/a.INSTRUCTIONS.md", False),
        ("evals/prompts", False),
    ],
)
def test_default_guideline_patterns(repository: Path, path: str, is_guideline: bool) -> None:
    assert kind(repository, path, {}) == ("guideline" if is_guideline else "file")


@pytest.mark.parametrize(
    ("patterns", "path", "is_guideline"),
    [
        (["**/*.rules.md"], "evals/deep/a.rules.md", True),
        (["**/*.rules.md"], "a.rules.md", True),
        (["docs/*.md"], "docs/a.md", True),
        (["docs/*.md"], "docs/deep/a.md", False),
        (["a.md", "evals/*.txt"], "evals/b.txt", True),
        ([], "a.instructions.md", False),
    ],
)
def test_guideline_patterns_are_relative_to_the_repository(
    repository: Path, patterns: list[str], path: str, is_guideline: bool
) -> None:
    config = {"$schema": CONFIG, "guideline_patterns": patterns}
    assert kind(repository, path, {"evals/.agentv.yaml": config}) == ("guideline" if is_guideline else "file")


RULES = ["**/rules.md"]


@pytest.mark.parametrize(
    ("configs", "is_guideline"),
    [
        ({".agentv/config.yaml": RULES}, True),
        ({"evals/.agentv.yaml": [], "evals/.agentv/config.yaml": RULES}, False),
        ({"evals/.agentv/config.yaml": [], ".agentv/config.yaml": RULES}, False),
        ({"evals/.agentv/config.yaml": None, ".agentv/config.yaml": RULES}, True),
        ({".agentv.yaml": RULES}, False),
        ({"evals/deep/.agentv.yaml": RULES}, False),
    ],
    ids=str,
)
def test_nearest_guideline_patterns_are_used(repository: Path, configs: Document, is_guideline: bool) -> None:
    files = {
        path: {"$schema": CONFIG, **({} if patterns is None else {"guideline_patterns": patterns})}
        for path, patterns in configs.items()
    }
    assert kind(repository, "evals/rules.md", files) == ("guideline" if is_guideline else "file")


def test_guidelines_are_listed_once_in_order(repository: Path) -> None:
    contents = [["x", block("b.prompt.md"), block("c.txt")], [block("a.prompt.md"), block("b.prompt.md")]]
    found = compile_case(
        repository,
        {f"evals/{name}": name[0] for name in ("a.prompt.md", "b.prompt.md", "c.txt")},
        input_messages=[{"role": "user", "content": content} for content in contents],
    )
    a, b = (file_part(f"evals/{name}.prompt.md", name, is_guideline=True) for name in "ab")
    assert found.input_messages[1].content == (a, b)
    assert found.guidelines == tuple(FileReference(path=each.path, sha256=each.sha256) for each in (b, a))


def test_file_of_an_expected_message_is_not_a_guideline(repository: Path) -> None:
    found = compile_case(repository, {"evals/a.prompt.md": "a"}, expected_messages=[assistant([block("a.prompt.md")])])
    assert found.expected_messages[0].content == (file_part("evals/a.prompt.md", "a"),)
    assert (found.guidelines, found.reference_answer) == ((), "a")


def test_every_suite_has_the_patterns_beside_it(repository: Path) -> None:
    files = {f"evals/{name}/e.yaml": evals(asking("/rules.md")) for name in "ab"}
    config = {"$schema": CONFIG, "guideline_patterns": ["rules.md"]}
    plan = compile_here(repository, {**files, "evals/a/.agentv.yaml": config, "rules.md": "rules"})
    assert [len(each.guidelines) for each in plan.cases] == [1, 0]


def test_text_of_a_file_is_kept_unchanged_under_its_digest(repository: Path) -> None:
    text = "\ufeffGrüße\r\ntwo\rthree\n\n "
    (repository / "evals").mkdir()
    (repository / "evals/a.txt").write_bytes(text.encode())
    plan = compile_here(repository, {EVAL: evals(asking("a.txt", "b.txt")), "evals/b.txt": ""})
    assert files_of(plan) == [("evals/a.txt", text), ("evals/b.txt", "")]
    assert list(plan.files) == [digest_of(text), digest_of("")]


@pytest.mark.parametrize(
    ("reference", "path"),
    [
        ("./a.txt", "evals/a.txt"),
        ("deep/../a.txt", "evals/a.txt"),
        ("../common.txt", "common.txt"),
        ("/common.txt", "common.txt"),
    ],
)
def test_paths_of_files_are_relative_to_the_repository(repository: Path, reference: str, path: str) -> None:
    files = {"evals/a.txt": "a", "evals/deep/b.txt": "b", "common.txt": "c"}
    assert [name for name, _ in files_of(compile_here(repository, {EVAL: evals(asking(reference)), **files}))] == [path]


def test_files_are_sorted_and_kept_once(repository: Path) -> None:
    names = ["z.txt", "b/a.txt", "a.txt", "B.txt"]
    files: Files = {f"evals/{name}": name for name in names}
    twice = {EVAL: evals(asking(*names, "same.txt")), "evals/b.yaml": evals(asking("same.txt", "z.txt"))}
    plan = compile_here(repository, {**files, **twice, "evals/same.txt": "a.txt"})
    assert [path for path, _ in files_of(plan)] == ["evals/B.txt", "evals/a.txt", "evals/b/a.txt", "evals/z.txt"]
    assert [getattr(part, "path", "") for part in plan.cases[1].input_messages[0].content] == [
        "evals/same.txt",
        "evals/z.txt",
    ]
