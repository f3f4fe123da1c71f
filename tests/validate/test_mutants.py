"""Random changes of the corpus: diagnostics have positions in the file."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.app.documents.validate import check_paths
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.diagnostics import Diagnostic, FileDiagnostics
from agentv_ci.contracts.source import Mark, Pointer, Source, locate
from agentv_ci.load.document import load
from tests.support import REPOSITORY, write
from tests.validate.builders import time_limit

SAMPLES = sorted(
    path
    for folder in ("valid", "checked")
    for path in (REPOSITORY / "tests" / "corpus" / folder).rglob("*.y*ml")
    if "expected" not in path.parts
)
PIECES = (*"\n x'\"{}[]#é😀5", ": ", "- ", "  ", "&a ", "*a", "!t ", "null")
VALUES = ("5", "[1]", "{a: 1}", "", "true", "x", ".inf", "-1", "''")


@st.composite
def mutants(draw: st.DrawFn) -> tuple[str, str]:
    """Return the name of a document of the corpus, and its text with up to three changes."""
    path = draw(st.sampled_from(SAMPLES))
    lines = path.read_text("utf-8").splitlines() or [""]
    for _ in range(draw(st.integers(1, 3))):
        index, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        line = lines[index]
        column = draw(st.integers(0, len(line)))
        before, after = line[:column], line[column:]
        end, changed = draw(
            st.sampled_from(
                [
                    *((index + 1, new) for new in ([""], [line, line], [before + after[1:]], [f"  {line}"])),
                    (index + 1, [before + draw(st.sampled_from(PIECES)) + after]),
                    (index + 1, [re.sub(r": .*", f": {draw(st.sampled_from(VALUES))}", line)]),
                    (index + 1, [lines[other]]),
                    (len(lines), [before]),
                ]
            )
        )
        lines[index:end] = changed
    return path.name, "\n".join(lines) + "\n"


def checked(name: str, text: str) -> tuple[FileDiagnostics, Source]:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), {".git/HEAD": "", name: text})
        with time_limit():
            (file,) = check_paths([name], targets=None, cwd=Path(folder)).files
        source = load(Path(folder, name), Path(folder), named=True)
        with contextlib.suppress(Exception):
            _ = source.mark
    return file, source


@settings(max_examples=150)
@given(mutant=mutants())
def test_mutant_is_diagnosed(mutant: tuple[str, str]) -> None:
    file, source = checked(*mutant)
    lines = mutant[1].split("\n")
    for each in file.diagnostics:
        check_position(each, lines)
        if each.pointer is not None and (steps := steps_of(each.pointer, source.data)) is not None:
            assert span(each) in (span_of(locate(source.mark, steps)), span_of(locate(source.mark, steps, key=True)))


def check_position(found: Diagnostic, lines: list[str]) -> None:
    assert (1, 1) <= (found.line, found.column) <= (found.end_line, found.end_column)
    assert found.end_line <= len(lines)
    assert found.column <= len(lines[found.line - 1]) + 1
    assert found.end_column <= len(lines[found.end_line - 1]) + 1
    assert found.message
    assert found.message.isprintable()


def steps_of(pointer: str, data: JsonValue) -> Pointer | None:
    """Return the steps of a pointer; None if keys of the document make it ambiguous."""
    steps = tuple(int(step[1:-1]) if step[0] == "[" else step for step in re.findall(r"\[\d+\]|[^.\[\]]+", pointer))
    keys = (key for value in values_in(data) if isinstance(value, dict) for key in value)
    return steps if all(re.fullmatch(r"[$\w-]+", key) for key in keys) else None


def span(found: Diagnostic) -> tuple[int, int, int, int]:
    return found.line - 1, found.column - 1, found.end_line - 1, found.end_column - 1


def span_of(mark: Mark) -> tuple[int, int, int, int]:
    return *mark.start, *mark.end


def values_in(value: JsonValue) -> Iterator[JsonValue]:
    yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from values_in(item)
