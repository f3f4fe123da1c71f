"""`agentv-ci fmt`: documents in one style, with the same data."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.app.documents.fmt import FormattedFile, format_paths
from agentv_ci.load.events import Unparsable
from agentv_ci.load.parse import parse_yaml
from tests.support import REPOSITORY, run_command, write
from tests.support.projects import Project

CORPUS = REPOSITORY / "tests" / "corpus"
SAMPLES = sorted(
    path
    for folder in ("valid", "checked", "judged", "formatted")
    for path in (CORPUS / folder).rglob("*.y*ml")
    if "expected" not in path.parts
)
MESSY = "$schema: agentv-eval-v2\nevalcases:\n- id: a\n  outcome: Greets\n  input: Hello\n  expected: []\n"
TIDY = """\
$schema: agentv-eval-v2
evalcases:
  - id: a
    expected_outcome: Greets
    input: Hello
    expected: []
"""


def formatted(text: str, name: str = "a.eval.yaml") -> FormattedFile | None:
    """Return what becomes of a document; None if it is not ours."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), {name: text})
        return next(format_paths([name], cwd=Path(folder)), None)


def comments(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.lstrip().startswith("# mark")]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.relative_to(CORPUS).as_posix())
def test_document_of_the_corpus_is_stable_after_once(path: Path) -> None:
    once = formatted(path.read_bytes().decode("utf-8-sig"), path.name)
    if once is not None and not once.refusals:
        again = formatted(once.after, path.name)
        assert again is not None
        assert (again.after, again.refusals) == (once.after, ())


def plan_in(folder: Path) -> Any:
    """Return the plan of a folder without places in files; None if its documents do not compile."""
    project = Project(folder)
    if project.run("compile", ".", "--out", "plan.json").code:
        return None
    plan = project.json("plan.json")
    plan.pop("digest")
    return {**plan, "cases": [{**each, "source": None} for each in plan["cases"]]}


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder",
    [path for kind in ("valid", "checked") for path in sorted((CORPUS / kind).iterdir())],
    ids=lambda path: path.name,
)
def test_plan_stays(folder: Path, repository: Path) -> None:
    shutil.copytree(folder, repository, dirs_exist_ok=True, ignore=shutil.ignore_patterns("expected"))
    before = plan_in(repository)
    assert before is not None
    assert run_command("fmt", ".", cwd=repository).code == 0
    assert plan_in(repository) == before


def values(data: Any) -> Iterator[str]:
    """Yield all values that are no collections, as texts in which 1 and 1.0 differ."""
    for each in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from values(each)
    if not isinstance(data, (dict, list)):
        yield repr(data)


CURRENT = {"'code_judge'": "'code'", "'azure'": "'azure-openai'", "'openai-compatible'": "'openai'"}
PIECES = ("# mark", "    # mark", "", "  ", "\t")


@st.composite
def untidy(draw: st.DrawFn) -> str:
    """Return a document of the corpus with other indentation, comments and blank lines."""
    lines = draw(st.sampled_from(SAMPLES)).read_bytes().decode("utf-8-sig").splitlines()
    factor = draw(st.sampled_from([1, 2, 3]))
    lines = [" " * (factor * (len(line) - len(line.lstrip(" ")))) + line.lstrip(" ") for line in lines]
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(lines)))
        lines.insert(place, draw(st.sampled_from(PIECES)))
    return "\n".join(lines)


@settings(max_examples=200, deadline=None)
@given(text=untidy())
def test_untidy_document_keeps_its_data_and_comments(text: str) -> None:
    try:
        known = parse_yaml(text)
    except Unparsable:
        return
    once = formatted(text)
    if known.problems or once is None or once.refusals:
        return
    assert comments(once.after) == comments(text)
    again = formatted(once.after)
    assert again is not None
    assert again.after == once.after
    before, after = (
        [CURRENT.get(each, each) for each in values(data)] for data in (known.data, parse_yaml(once.after).data)
    )
    assert before == after


def test_only_files_that_change_are_written(project: Project) -> None:
    others = {"evals/c.txt": "x:   1", "evals/d.yaml": "on:   push\n"}
    project.write({"evals/a.yaml": MESSY, "evals/b.yaml": TIDY, **others})
    times = {name: project.path(name).stat().st_mtime_ns for name in ("evals/b.yaml", "evals/d.yaml")}
    done = project.run("fmt")
    assert (done.code, done.out, done.err) == (0, "formatted evals/a.yaml\n1 file formatted, 1 unchanged\n", "")
    assert project.text("evals/a.yaml") == TIDY
    assert {name: project.path(name).stat().st_mtime_ns for name in times} == times
    assert project.run("fmt", "evals/").out == "0 files formatted, 2 unchanged\n"


def test_check_writes_nothing(project: Project) -> None:
    project.write({"evals/a.yaml": MESSY})
    before = project.files()
    done = project.run("fmt", "--check")
    assert (done.code, done.out) == (1, "would format evals/a.yaml\n1 file would change, 0 unchanged\n")
    assert project.files() == before
    project.write({"evals/a.yaml": TIDY})
    assert project.run("fmt", "--check").code == 0


NAMES = {
    '{"id":"a","outcome":"Greets","input":"Hi","expected":[]}': (
        '{"id": "a", "expected_outcome": "Greets", "input": "Hi", "expected": []}'
    ),
    "{ id: a, outcome: b, 'inputMessages': c, expected: [ ] }": (
        "{id: a, expected_outcome: b, 'input_messages': c, expected: []}"
    ),
    # Two names of one field, of which one wins.
    "{id: a, outcome: b, expected_outcome: c, input: d, expected: []}": None,
    "{id: a, outcome: 3, input: invalid, expected: []}": None,
}


@pytest.mark.parametrize(("before", "after"), NAMES.items())
def test_names_in_brackets(before: str, after: str | None) -> None:
    head = "$schema: agentv-eval-v2\nevalcases: "
    done = formatted(f"{head}[{before}]\n")
    assert done is not None
    assert done.after == f"{head}[{after or before}]\n"


def test_diff_is_a_patch(project: Project) -> None:
    project.write({"evals/a.yaml": MESSY})
    done = project.run("fmt", "--diff")
    assert (done.code, done.err) == (1, "1 file would change, 0 unchanged\n")
    assert done.out.startswith("--- evals/a.yaml\n+++ evals/a.yaml\n@@ -1,6 +1,6 @@\n")
    assert "-  outcome: Greets\n" in done.out
    assert project.text("evals/a.yaml") == MESSY


def test_standard_input_is_refused(project: Project) -> None:
    project.refuses("fmt", "-", error="standard input cannot be formatted; name files or folders")


def test_mode_and_links_stay(project: Project) -> None:
    project.write({"real/a.yaml": MESSY})
    project.path("real/a.yaml").chmod(0o640)
    project.path("evals").mkdir()
    project.path("evals/a.yaml").symlink_to("../real/a.yaml")
    assert project.run("fmt").code == 0
    assert project.path("evals/a.yaml").is_symlink()
    assert (project.text("real/a.yaml"), project.path("real/a.yaml").stat().st_mode & 0o777) == (TIDY, 0o640)


def test_link_out_of_the_repository_is_not_followed_unless_it_is_named(project: Project) -> None:
    project.write({"../elsewhere.yaml": MESSY, ".git/HEAD": ""})
    project.path("a.yaml").symlink_to("../elsewhere.yaml")
    assert project.run("fmt", ".").code in (0, 3)
    assert project.text("../elsewhere.yaml") == MESSY
    assert project.run("fmt", "a.yaml").code == 0
    assert project.text("../elsewhere.yaml") == TIDY


@pytest.mark.parametrize(
    "text",
    [
        "outcome: |+\n    kept\n\n\n\n  input: x\n",
        "outcome: >-\n      a\n\n      b\n  input: '''  '\n",
        'outcome: "a\n\n    b"\n  input: a \\\n',
        "outcome: &o !!str Greets\n  input: *o\n",
        "outcome: a\n  input: ? # no\n",
        "metadata: {a: , b: [1.0, 1, 1e3, 0x1F, .5, ~, 'on'], ? c : d}\n  outcome: a\n  input: b\n",
        "outcome: a\n  input:\n    - role: user\n      content:\n      - a\n      -\n        b\n",
        'outcome: "\\u2028\u2028"\n  input: a\n',
        "? outcome\n  : a\n  input: b\n",
    ],
)
def test_unusual_text_keeps_its_data_or_the_file_is_refused(text: str) -> None:
    document = f"$schema: agentv-eval-v2\nevalcases:\n- id: one\n  {text}  expected: []\n- id: two\n"
    try:
        data: Any = parse_yaml(document).data
    except Unparsable:
        return
    done = formatted(document)
    assert done is not None
    after: Any = parse_yaml(done.after).data
    for each in (data, after):
        case = each["evalcases"][0]
        case["expected_outcome"] = case.pop("outcome", case.get("expected_outcome"))
    assert repr(after["evalcases"][0]["expected_outcome"]) == repr(data["evalcases"][0]["expected_outcome"])
    assert sorted(map(repr, after["evalcases"][0].items())) == sorted(map(repr, data["evalcases"][0].items()))
    assert done.refusals or done.after.endswith("\n")


def shipped() -> Iterator[Path]:
    """Yield the documents that people copy."""
    yield from (REPOSITORY / "docs" / "examples").rglob("*.y*ml")


def test_examples_are_formatted() -> None:
    files = list(
        format_paths(
            [str(path) for path in shipped() if not {"workflows", "clusters"}.intersection(path.parts)], cwd=REPOSITORY
        )
    )
    assert len(files) > 3
    assert [(str(each.path), each.refusals) for each in files if each.is_changed or each.refusals] == []


def test_what_init_writes_is_formatted(repository: Path) -> None:
    assert run_command("init", ".", "--yes", cwd=repository).code == 0
    done = run_command("fmt", ".", "--check", cwd=repository)
    assert (done.code, re.sub(r"\d+ unchanged", "", done.out)) == (0, "0 files would change, \n"), done
