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
def test_reference_answer_is_the_last_answer(repository: Path, expected: list[Document], answer: str) -> None:
    found = compile_case(repository, {"evals/a.txt": "from a file"}, expected_messages=expected)
    assert found.reference_answer == answer


NEAR, NEXT, FAR = "evals/.agentv.yaml", "evals/.agentv/config.yaml", ".agentv/config.yaml"
RULES = ["**/rules.md"]
GUIDELINES: list[tuple[str, Files]] = [
    *((path, {}) for path in ("a.instructions.md", ".github/a.instructions.md", "evals/instructions/deep/er/a.txt")),
    *((path, {}) for path in ("a.prompt.md", "evals/prompts/.hidden")),
    *((path, {NEAR: ["**/*.rules.md"]}) for path in ("evals/deep/a.rules.md", "a.rules.md")),
    ("docs/a.md", {NEAR: ["docs/*.md"]}),
    ("evals/b.txt", {NEAR: ["a.md", "evals/*.txt"]}),
    *(("evals/rules.md", configs) for configs in ({FAR: RULES}, {NEXT: None, FAR: RULES})),
]
OTHERS: list[tuple[str, Files]] = [
    *((path, {}) for path in ("evals/instructions.md", "evals/my-instructions/a.txt", "evals/a.INSTRUCTIONS.md")),
    ("evals/prompts", {}),
    ("docs/deep/a.md", {NEAR: ["docs/*.md"]}),
    ("a.instructions.md", {NEAR: []}),
    *(("evals/rules.md", configs) for configs in ({NEAR: [], NEXT: RULES}, {NEXT: [], FAR: RULES})),
    *(("evals/rules.md", {path: RULES}) for path in (".agentv.yaml", "evals/deep/.agentv.yaml")),
]


@pytest.mark.parametrize(
    ("path", "configs", "expected"),
    [*((*each, "guideline") for each in GUIDELINES), *((*each, "file") for each in OTHERS)],
)
def test_guidelines_match_the_nearest_patterns(repository: Path, path: str, configs: Files, expected: str) -> None:
    documents = {
        name: {"$schema": CONFIG, **({} if patterns is None else {"guideline_patterns": patterns})}
        for name, patterns in configs.items()
    }
    (found,) = compile_here(repository, {path: "text", **documents, EVAL: evals(asking(f"/{path}"))}).cases
    assert found.input_messages[0].content[0].type == expected


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
