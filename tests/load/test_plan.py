"""A plan is read only if it is complete and consistent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.app.documents.compile import read_plan
from agentv_ci.errors import InvalidInput, UsageError
from tests.compile.builders import compile_here, document_digest, rich, text_of
from tests.support import run_command

Data = dict[str, Any]
Change = Callable[[Data], object]


@pytest.fixture
def plan(repository: Path) -> Data:
    loaded: Data = json.loads(text_of(compile_here(repository, rich())))
    return loaded


def written(folder: Path, plan: object, **layout: Any) -> Path:
    path = folder / "outside.json"
    path.write_text(json.dumps(plan, **layout) + "\n", "utf-8")
    return path


AS_COMPILED: Data = {"indent": 2}
"""The layout that `compile` writes, in which cases are read one by one."""
LAYOUTS: list[Data] = [AS_COMPILED, {"indent": 4}, {"sort_keys": True, "separators": (",", ":")}]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_unchanged_plan_is_read_in_any_layout(repository: Path, plan: Data, layout: Data) -> None:
    found = read_plan(written(repository, plan, **layout))
    assert ([case.id for case in found.cases], found.digest) == (["one", "two"], plan["digest"])


def case(plan: Data) -> Data:
    found: Data = plan["cases"][0]
    return found


def evaluator(plan: Data, name: str) -> Data:
    found: Data = next(each for each in case(plan)["evaluators"] if each["name"] == name)
    return found


def show(plan: Data, **image: str) -> None:
    case(plan)["inputMessages"][0]["content"].append({"type": "image", **image})


def add_composite(plan: Data) -> None:
    average = {"type": "weighted_average", "weights": {"other": 1}}
    whole = {"name": "all", "type": "composite", "evaluators": [evaluator(plan, "c")], "aggregator": average}
    case(plan)["evaluators"].append(whole)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("change", [lambda plan: plan.update(digest="0" * 64), lambda plan: plan["cases"].pop()])
def test_changed_plan_is_rejected(change: Change, layout: Data, repository: Path, plan: Data) -> None:
    change(plan)
    with pytest.raises(UsageError, match="changed after compilation"):
        read_plan(written(repository, plan, **layout))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('    {\n      "id": "two"', '    {    \n      "id": "two"'),
        ("    },\n    {\n", "    }, {\n"),
        ("\n  ]\n}\n", "\n  ]}\n"),
        ("\n  ]\n}\n", "\n  ]\n}\n\n"),
        ('  "cases": [\n', '  "cases":  [\n'),
    ],
)
def test_plan_is_read_in_almost_the_layout_of_compile(old: str, new: str, repository: Path, plan: Data) -> None:
    path = written(repository, plan, **AS_COMPILED)
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    assert [case.id for case in read_plan(path).cases] == ["one", "two"]


@pytest.mark.parametrize(
    ("old", "new"), [("    },\n", "    }\n"), ("    }\n  ]", "    },\n  ]"), ("  ]\n}\n", "  ]\n}\n  ]\n}\n")]
)
def test_lines_of_cases_that_are_not_json_are_rejected(old: str, new: str, repository: Path, plan: Data) -> None:
    path = written(repository, plan, **AS_COMPILED)
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    with pytest.raises(UsageError, match="is not valid JSON"):
        read_plan(path)


def test_case_with_a_wrong_digest_is_named(repository: Path, plan: Data) -> None:
    for number, names in enumerate(("case one", "cases one, two")):
        plan["cases"][number]["threshold"] = 0.1
        plan["digest"] = document_digest(plan)
        with pytest.raises(UsageError, match=f"digest mismatch: {names} changed after compilation"):
            read_plan(written(repository, plan))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda plan: next(iter(plan["files"].values())).update(text="another"), "does not match its digest"),
        (lambda plan: plan["files"].update({"0" * 64: {"path": "a", "base64": "AAA"}}), "does not match its digest"),
        (lambda plan: plan["files"].update({"0" * 64: {"path": "a", "base64": "AA==", "text": ""}}), "is not valid"),
        (show, "a part of type 'image' must have either 'url' or 'path', 'sha256' and 'mediaType'"),
        (lambda plan: show(plan, path="a.png", sha256="0" * 64), "a part of type 'image' must have either 'url' or"),
        (lambda plan: show(plan, url="https://x.org/a", path="a", sha256="0" * 64, mediaType="x"), "must have either"),
        (lambda plan: show(plan, path="a", sha256="0" * 64, mediaType="image/png"), "file 'a' is not in 'files'"),
        (lambda plan: next(iter(plan["files"].values())).update(path="a\0b"), "the path contains a NUL byte"),
        (lambda plan: case(plan)["inputMessages"][0]["content"][0].update(path="a\0b"), "the path contains a NUL byte"),
        (lambda plan: plan.update(files={}), "is not in 'files'"),
        (lambda plan: plan["targets"].pop("strict"), "case 'one': 'strict' is not in 'targets'"),
        (lambda plan: case(plan).update(target="x"), "case 'one': 'x' is not in 'targets'"),
        (lambda plan: case(plan).update(judgeTarget="x"), "case 'one': 'x' is not in 'targets'"),
        (lambda plan: case(plan).update(suite="x"), "'x' is not in 'suites'"),
        (lambda plan: plan["suites"].append(plan["suites"][0]), "duplicate suite"),
        (lambda plan: plan["cases"].append(case(plan)), "duplicate case 'one' in 'evals/a.yaml'"),
        (lambda plan: case(plan)["evaluators"].append(case(plan)["evaluators"][0]), "duplicate evaluator 'c'"),
        (lambda plan: evaluator(plan, "p").pop("argv"), "evaluator 'p' must have either 'argv' or 'command'"),
        (lambda plan: evaluator(plan, "p").update(command="x"), "evaluator 'p' must have either 'argv' or 'command'"),
        (add_composite, "'c' must be both a member and a weight of evaluator 'all'"),
        (lambda plan: case(plan).update(evaluators=[]), "[] should be non-empty"),
    ],
)
def test_inconsistent_plan_is_rejected(change: Change, problem: str, repository: Path, plan: Data) -> None:
    change(plan)
    plan["digest"] = document_digest(plan)
    for layout in LAYOUTS:
        with pytest.raises(InvalidInput) as raised:
            read_plan(written(repository, plan, **layout))
        assert any(problem in each.message for each in raised.value.diagnostics)


def test_error_in_a_plan_has_its_line(repository: Path, plan: Data) -> None:
    case(plan)["threshold"] = "high"
    path = written(repository, plan, indent=2)
    line = next(n for n, text in enumerate(path.read_text("utf-8").splitlines(), 1) if '"high"' in text)
    done = run_command("eval", "outside.json", cwd=repository)
    assert done.code == 2
    assert f"{path}:{line}:20: error: 'high' is not of type 'number' [AV204] (cases[0].threshold)" in done.err


VERSION_2 = '{"$schema": "https://org.github.io/agentv-action/schemas/plan-v2.schema.json"}'


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot read"),
        (b"\xe9", "is not valid JSON"),
        (b"{", "is not valid JSON"),
        (b"[]", "expected a mapping"),
        (b'{"$schema": 5}', "its .schema is not https://"),
        (b"[" * 100_000, "is not valid JSON: nested too deep"),
        (b'{"$schema": NaN}', "is not valid JSON: NaN is not JSON"),
        (b"\xef\xbb\xbf{}", "is not valid JSON: it begins with a byte order mark"),
        (VERSION_2.encode(), "is a version 2 plan; this agentv-ci supports version 1"),
    ],
    ids=["missing", "latin-1", "broken", "list", "schema", "deep", "NaN", "mark", "version"],
)
def test_file_that_is_not_a_plan_is_rejected(content: bytes | None, problem: str, repository: Path) -> None:
    path = repository / "outside.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=problem):
        read_plan(path)
