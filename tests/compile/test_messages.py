"""Messages in their long form, guidelines split off."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.plan import FilePart, PlanMessage, PlanToolCall, TextPart
from tests.compile.builders import EVAL, Document, case, compile_case, compile_here, evals

CONFIG = "agentv-config-v2"


def file_part(path: str, text: str, *, is_guideline: bool = False) -> FilePart:
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    return FilePart(type="guideline" if is_guideline else "file", path=path, sha256=digest)


def block(path: str) -> Document:
    return {"type": "file", "value": path}


def kinds(root: Path, path: str, files: dict[str, str | Document] | None = None) -> list[str]:
    """Return what a file at `path` of the repository is taken for."""
    found = compile_case(
        root, {path: "text", **(files or {})}, input_messages=[{"role": "user", "content": [block(f"/{path}")]}]
    )
    return [part.type for part in found.input_messages[0].content]


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("Hello", (TextPart(text="Hello"),)),
        ("", (TextPart(text=""),)),
        ("  two\n lines ", (TextPart(text="  two\n lines "),)),
        (["one", "two"], (TextPart(text="one"), TextPart(text="two"))),
        ([{"type": "text", "value": "one"}, "two"], (TextPart(text="one"), TextPart(text="two"))),
        (["see", block("a.txt")], (TextPart(text="see"), file_part("evals/a.txt", "a"))),
        ([], ()),
        ("${{ NAME }} {{ x }}", (TextPart(text="${{ NAME }} {{ x }}"),)),
    ],
)
def test_content_is_made_long(repository: Path, content: object, parts: tuple[TextPart | FilePart, ...]) -> None:
    found = compile_case(repository, {"evals/a.txt": "a"}, input_messages=[{"role": "user", "content": content}])
    assert found.input_messages == (PlanMessage(role="user", content=parts),)


def test_turns_keep_their_order_roles_and_names(repository: Path) -> None:
    turns = [("system", None), ("user", "Ann"), ("assistant", None), ("tool", "search"), ("user", "Ann")]
    messages = [{"role": role, "content": role, **({"name": name} if name else {})} for role, name in turns]
    found = compile_case(repository, input_messages=messages)
    assert [(each.role, each.name) for each in found.input_messages] == turns


def test_expected_messages_keep_calls_and_structured_answers(repository: Path) -> None:
    expected: list[Document] = [
        {
            "role": "assistant",
            "tool_calls": [{"tool": "search", "input": {"q": [1, None]}}, {"tool": "x", "output": "y"}],
        },
        {"role": "tool", "name": "search", "content": "found"},
        {"role": "assistant", "content": {"answer": 42, "list": [1]}},
    ]
    assert compile_case(repository, expected_messages=expected).expected_messages == (
        PlanMessage(
            role="assistant",
            tool_calls=(PlanToolCall(tool="search", input={"q": [1, None]}), PlanToolCall(tool="x", output="y")),
        ),
        PlanMessage(role="tool", name="search", content=(TextPart(text="found"),)),
        PlanMessage(role="assistant", value={"answer": 42, "list": [1]}),
    )


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ([], ""),
        ([{"role": "assistant", "content": "Hello"}], "Hello"),
        ([{"role": "assistant", "content": "one"}, {"role": "assistant", "content": "two"}], "two"),
        ([{"role": "assistant", "content": "one"}, {"role": "user", "content": "two"}], "one"),
        (
            [{"role": "assistant", "content": "one"}, {"role": "assistant", "tool_calls": [{"tool": "x"}]}],
            "one",
        ),
        ([{"role": "assistant", "content": ["one", {"type": "text", "value": "two"}]}], "one\n\ntwo"),
        ([{"role": "assistant", "content": ["one", block("a.txt")]}], "one\n\nfrom a file"),
        ([{"role": "assistant", "content": {"answer": "ü"}}], '{\n  "answer": "ü"\n}'),
        ([{"role": "user", "content": "one"}], ""),
    ],
)
def test_reference_answer_is_the_last_thing_the_assistant_should_say(
    repository: Path, expected: list[Document], answer: str
) -> None:
    found = compile_case(repository, {"evals/a.txt": "from a file"}, expected_messages=expected)
    assert found.reference_answer == answer


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a.instructions.md", "guideline"),
        ("evals/python.instructions.md", "guideline"),
        (".github/a.instructions.md", "guideline"),
        ("instructions/a.txt", "guideline"),
        ("evals/instructions/deep/er/a.txt", "guideline"),
        ("a.prompt.md", "guideline"),
        ("evals/deep/a.prompt.md", "guideline"),
        ("prompts/a.txt", "guideline"),
        ("evals/prompts/.hidden", "guideline"),
        ("evals/a.md", "file"),
        ("evals/instructions.md", "file"),
        ("evals/a.instructions.txt", "file"),
        ("evals/my-instructions/a.txt", "file"),
        ("evals/a.INSTRUCTIONS.md", "file"),
        ("evals/prompts", "file"),
    ],
)
def test_guidelines_are_known_by_the_usual_patterns(repository: Path, path: str, kind: str) -> None:
    assert kinds(repository, path) == [kind]


@pytest.mark.parametrize(
    ("patterns", "path", "kind"),
    [
        (["**/*.rules.md"], "evals/deep/a.rules.md", "guideline"),
        (["**/*.rules.md"], "a.rules.md", "guideline"),
        (["**/*.rules.md"], "a.instructions.md", "file"),
        (["docs/*.md"], "docs/a.md", "guideline"),
        (["docs/*.md"], "docs/deep/a.md", "file"),
        (["docs/*.md"], "evals/docs/a.md", "file"),
        (["docs/**"], "docs/deep/a.md", "guideline"),
        (["a.md"], "a.md", "guideline"),
        (["a.md"], "evals/a.md", "file"),
        (["a.md", "evals/*.txt"], "evals/b.txt", "guideline"),
        ([], "a.instructions.md", "file"),
    ],
)
def test_patterns_are_anchored_at_the_repository(repository: Path, patterns: list[str], path: str, kind: str) -> None:
    config = {"$schema": CONFIG, "guideline_patterns": patterns}
    assert kinds(repository, path, {"evals/.agentv.yaml": config}) == [kind]


@pytest.mark.parametrize(
    ("configs", "kind"),
    [
        ({".agentv/config.yaml": ["**/rules.md"]}, "guideline"),
        ({"evals/.agentv/config.yaml": ["**/rules.md"]}, "guideline"),
        ({"evals/.agentv.yaml": [], "evals/.agentv/config.yaml": ["**/rules.md"]}, "file"),
        ({"evals/.agentv/config.yaml": [], ".agentv/config.yaml": ["**/rules.md"]}, "file"),
        ({"evals/.agentv/config.yaml": None, ".agentv/config.yaml": ["**/rules.md"]}, "guideline"),
        ({".agentv.yaml": ["**/rules.md"]}, "file"),
        ({"evals/deep/.agentv.yaml": ["**/rules.md"]}, "file"),
    ],
    ids=str,
)
def test_nearest_patterns_count(repository: Path, configs: dict[str, list[str] | None], kind: str) -> None:
    files: dict[str, str | Document] = {
        path: {"$schema": CONFIG, **({} if patterns is None else {"guideline_patterns": patterns})}
        for path, patterns in configs.items()
    }
    assert kinds(repository, "evals/rules.md", files) == [kind]


def test_guidelines_are_listed_once_in_their_order(repository: Path) -> None:
    contents = [["x", block("b.prompt.md"), block("c.txt")], [block("a.prompt.md"), block("b.prompt.md")]]
    found = compile_case(
        repository,
        {"evals/a.prompt.md": "a", "evals/b.prompt.md": "b", "evals/c.txt": "c"},
        input_messages=[{"role": "user", "content": content} for content in contents],
    )
    assert [each.path for each in found.guidelines] == ["evals/b.prompt.md", "evals/a.prompt.md"]
    assert found.input_messages[1].content == (
        file_part("evals/a.prompt.md", "a", is_guideline=True),
        file_part("evals/b.prompt.md", "b", is_guideline=True),
    )


def test_file_of_an_expected_answer_is_never_a_guideline(repository: Path) -> None:
    expected: Any = [{"role": "assistant", "content": [block("a.prompt.md")]}]
    found = compile_case(repository, {"evals/a.prompt.md": "a"}, expected_messages=expected)
    assert found.expected_messages[0].content == (file_part("evals/a.prompt.md", "a"),)
    assert (found.guidelines, found.reference_answer) == ((), "a")


def test_every_suite_has_the_patterns_beside_it(repository: Path) -> None:
    asking = evals(case(input_messages=[{"role": "user", "content": [block("/rules.md")]}]))
    plan = compile_here(
        repository,
        {
            "evals/a/a.yaml": asking,
            "evals/a/.agentv.yaml": {"$schema": CONFIG, "guideline_patterns": ["rules.md"]},
            "evals/b/b.yaml": asking,
            "rules.md": "rules",
        },
    )
    assert [len(each.guidelines) for each in plan.cases] == [1, 0]
    assert EVAL not in [each.path for each in plan.suites]
