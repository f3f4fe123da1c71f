"""Valid documents with something broken in them: whatever it is, it is spoken of properly in every format."""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agentv_ci.app.validate import check_paths
from agentv_ci.cli.console import show_diagnostics
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import FileDiagnostics
from agentv_ci.contracts.source import Mark, Pointer, locate
from agentv_ci.jsonschema.schemas import SCHEMAS
from agentv_ci.jsonschema.violations import violations
from agentv_ci.load.document import load
from agentv_ci.report.diagnostics import document, render
from agentv_ci.validate.structure import CONTRACTS
from tests.support import REPOSITORY, run_process, write
from tests.validate.test_hostile_input import CASE, time_limit

SAMPLES = sorted(
    path
    for folder in ("valid", "checked")
    for path in (REPOSITORY / "tests" / "corpus" / folder).rglob("*.y*ml")
    if "expected" not in path.parts
)
TEXTS = {path: path.read_text("utf-8") for path in SAMPLES}
PIECES = (
    ": ",
    "- ",
    " ",
    "  ",
    "\n",
    "x",
    "'",
    '"',
    "{",
    "}",
    "[",
    "]",
    "&a ",
    "*a",
    "!t ",
    "#",
    "é",
    "😀",
    "5",
    "null",
)


@st.composite
def mutants(draw: st.DrawFn) -> tuple[str, str]:
    """A document of the corpus with one to three small changes, and its name."""
    path = draw(st.sampled_from(SAMPLES))
    lines = TEXTS[path].splitlines()
    for _ in range(draw(st.integers(1, 3))):
        index = draw(st.integers(0, len(lines) - 1))
        line = lines[index]
        column = draw(st.integers(0, len(line)))
        match draw(st.sampled_from(["leave out", "twice", "insert", "delete", "indent", "swap", "value"])):
            case "leave out":
                lines[index] = ""
            case "twice":
                lines.insert(index, line)
            case "insert":
                lines[index] = line[:column] + draw(st.sampled_from(PIECES)) + line[column:]
            case "delete":
                lines[index] = line[:column] + line[column + 1 :]
            case "indent":
                lines[index] = f"  {line}"
            case "swap":
                other = draw(st.integers(0, len(lines) - 1))
                lines[index], lines[other] = lines[other], line
            case _:
                value = draw(st.sampled_from(["5", "[1]", "{a: 1}", "", "true", "x", ".inf", "-1", "''"]))
                lines[index] = re.sub(r": .*", f": {value}", line)
    return path.name, "\n".join(lines) + "\n"


def checked(name: str, text: str) -> FileDiagnostics:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), {".git/HEAD": "", name: text})
        with time_limit(60):
            (file,) = check_paths([name], targets=None, cwd=Path(folder)).files
    return file


@settings(max_examples=80, deadline=None)
@given(mutant=mutants())
def test_every_diagnostic_of_a_mutant_stands_inside_the_file(mutant: tuple[str, str]) -> None:
    lines = [*mutant[1].split("\n")]
    for each in checked(*mutant).diagnostics:
        assert (1, 1) <= (each.line, each.column) <= (each.end_line, each.end_column)
        assert each.end_line <= len(lines)
        assert each.column <= len(lines[each.line - 1]) + 1
        assert each.end_column <= len(lines[each.end_line - 1]) + 1
        assert each.message
        assert each.message.isprintable()


@settings(max_examples=60, deadline=None)
@given(mutant=mutants())
def test_the_pointer_of_a_diagnostic_leads_to_its_place(mutant: tuple[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), {mutant[0]: mutant[1]})
        source = load(Path(folder, mutant[0]), Path(folder), named=True)
    for each in checked(*mutant).diagnostics:
        if each.pointer is not None and (steps := steps_of(each.pointer, source.data)) is not None:
            assert span(each) in (span_of(locate(source.mark, steps)), span_of(locate(source.mark, steps, key=True)))


def steps_of(pointer: str, data: JsonValue) -> Pointer | None:
    """Return the way a pointer describes; None where keys of the author make it ambiguous."""
    steps = tuple(int(step[1:-1]) if step[0] == "[" else step for step in re.findall(r"\[\d+\]|[^.\[\]]+", pointer))
    return steps if all(re.fullmatch(r"[$\w-]+", key) for key in keys_in(data)) else None


def keys_in(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from keys_in(item)


def span(found: Diagnostic) -> tuple[int, int, int, int]:
    return found.line - 1, found.column - 1, found.end_line - 1, found.end_column - 1


def span_of(mark: Mark) -> tuple[int, int, int, int]:
    return *mark.start, *mark.end


@settings(max_examples=60, deadline=None)
@given(mutant=mutants(), strict=st.booleans())
def test_every_format_says_all_of_it(mutant: tuple[str, str], strict: bool) -> None:
    file = checked(*mutant)
    found = file.diagnostics
    written = document([file], 0, strict=strict)
    data: Any = json.loads(render(written, "json", str))
    assert violations("diagnostics-v1", data) == []
    summary = data["summary"]
    assert summary["errors"] == sum(each.severity == "error" for each in found)
    assert summary["warnings"] == sum(each.severity == "warning" for each in found)
    assert summary["files"] == summary["passed"] + summary["failed"] == 1
    assert bool(summary["passed"]) == data["files"][0]["valid"] == file.is_valid(strict=strict)
    assert len(json.loads(render(written, "sarif", str))["runs"][0]["results"]) == len(found)
    assert render(written, "github", str).count("\n") == len(found)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        show_diagnostics(found, err=False)
    assert out.getvalue().count("\n") == len(found) + sum(each.hint is not None for each in found)


@settings(max_examples=80, deadline=None)
@given(mutant=mutants())
def test_model_and_published_schema_reach_one_verdict(mutant: tuple[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), {mutant[0]: mutant[1]})
        source = load(Path(folder, mutant[0]), Path(folder), named=True)
    if not source.readable or source.kind is None or any(map(is_beyond_json, values_in(source.data))):
        return
    refused = violations(SCHEMAS[source.kind], source.data)
    try:
        CONTRACTS[source.kind].model_validate(source.data)
    except ValidationError:
        assert refused
    else:
        assert refused == []


def values_in(value: JsonValue) -> Iterator[JsonValue]:
    yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from values_in(item)


def is_beyond_json(value: JsonValue) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def test_the_number_of_processes_changes_nothing(repository: Path) -> None:
    texts = [CASE, CASE + "    zzz: 1\n", "a: 1\n", "a: [\n", CASE.replace("role: user", "role: usr"), ""]
    write(repository, {f"{n % 4}/f{n:03}.yaml": texts[n % len(texts)] for n in range(130)})
    write(repository, {"1/targets.yaml": "targets: [{name: default, provider: mock}]\n", "2/targets.yaml": "a: [\n"})
    write(repository, {"3/.agentv.yaml": "rules: {AV102: error}\n"})
    for form in ("text", "json"):
        arguments = ("validate", ".", "--format", form, "--jobs")
        one, two = (run_process(*arguments, jobs, cwd=repository) for jobs in ("1", "2"))
        assert one == two
        assert one.code == 1


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_document_that_ends_too_early_is_diagnosed(path: Path) -> None:
    text = TEXTS[path]
    for share in (1, 2, 3):
        file = checked(path.name, text[: len(text) * share // 4])
        assert all(each.line <= text.count("\n") + 1 for each in file.diagnostics)
