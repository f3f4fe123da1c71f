"""A plan from outside is read only when it is whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.app.compile import read_plan
from agentv_ci.cli import run
from agentv_ci.compile.digest import document_digest
from agentv_ci.errors import InvalidInput, UsageError
from tests.compile.builders import compile_here, text_of
from tests.compile.test_digest import rich

Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def plan(repository: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(text_of(compile_here(repository, rich())))
    return loaded


def written(folder: Path, plan: object) -> Path:
    path = folder / "outside.json"
    path.write_text(json.dumps(plan, indent=2), "utf-8")
    return path


def test_plan_that_nobody_touched_is_read(repository: Path, plan: dict[str, Any]) -> None:
    assert [case.id for case in read_plan(written(repository, plan)).cases] == ["one", "two"]


def test_order_of_keys_and_spaces_do_not_matter(repository: Path, plan: dict[str, Any]) -> None:
    path = repository / "outside.json"
    path.write_text(json.dumps(plan, sort_keys=True, separators=(",", ":")), "utf-8")
    assert read_plan(path).digest == plan["digest"]


CHANGES: dict[str, Change] = {
    "a threshold": lambda plan: plan["cases"][0].update(threshold=0.1),
    "metadata": lambda plan: plan["cases"][0].update(metadata={"a": 1}),
    "the gate": lambda plan: plan["suites"][0]["gate"].update(minPassRate=0),
    "a digest": lambda plan: plan["cases"][0].update(digest="0" * 64),
    "the plan's digest": lambda plan: plan.update(digest="0" * 64),
    "one case less": lambda plan: plan["cases"].pop(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_plan_that_was_changed_is_refused(change: Change, repository: Path, plan: dict[str, Any]) -> None:
    change(plan)
    with pytest.raises(UsageError, match="changed after compilation"):
        read_plan(written(repository, plan))


def test_case_whose_digest_was_forged_is_named(repository: Path, plan: dict[str, Any]) -> None:
    plan["cases"][0]["threshold"] = 0.1
    plan["digest"] = document_digest(plan)
    with pytest.raises(UsageError, match="case one changed after compilation"):
        read_plan(written(repository, plan))


def evaluator(plan: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in plan["cases"][0]["evaluators"] if each["name"] == name)
    return found


def swap_text(plan: dict[str, Any]) -> None:
    next(iter(plan["files"].values()))["text"] = "another"


DANGLING: dict[str, tuple[Change, str]] = {
    "another text": (swap_text, "does not match its digest"),
    "a missing file": (lambda plan: plan.update(files={}), "is not in 'files'"),
    "a missing target": (lambda plan: plan["targets"].pop("strict"), "case 'one': 'strict' is not in 'targets'"),
    "a missing answering target": (
        lambda plan: plan["cases"][0].update(target="x"),
        "case 'one': 'x' is not in 'targets'",
    ),
    "a missing suite": (lambda plan: plan["cases"][0].update(suite="x"), "'x' is not in 'suites'"),
    "an evaluator twice": (
        lambda plan: plan["cases"][0]["evaluators"].append(plan["cases"][0]["evaluators"][0]),
        "duplicate evaluator 'c'",
    ),
    "a path that is none": (
        lambda plan: next(iter(plan["files"].values())).update(path="a\0b"),
        "the path contains a NUL byte",
    ),
    "a path in a message that is none": (
        lambda plan: plan["cases"][0]["inputMessages"][0]["content"][0].update(path="a\0b"),
        "the path contains a NUL byte",
    ),
    "a suite twice": (lambda plan: plan["suites"].append(plan["suites"][0]), "duplicate suite"),
    "a script without a command": (
        lambda plan: evaluator(plan, "p").pop("argv"),
        "evaluator 'p' must have either 'argv' or 'command'",
    ),
    "a script with two commands": (
        lambda plan: evaluator(plan, "p").update(command="true"),
        "evaluator 'p' must have either 'argv' or 'command'",
    ),
    "a member that is not weighed": (
        lambda plan: plan["cases"][0]["evaluators"].append(
            {
                "name": "all",
                "type": "composite",
                "evaluators": [evaluator(plan, "c")],
                "aggregator": {"type": "weighted_average", "weights": {"other": 1}},
            }
        ),
        "'c' must be both a member and a weight of evaluator 'all'",
    ),
    "a case twice": (lambda plan: plan["cases"].append(plan["cases"][0]), "duplicate case 'one' in 'evals/a.yaml'"),
}


@pytest.mark.parametrize(("change", "said"), DANGLING.values(), ids=list(DANGLING))
def test_plan_with_names_that_lead_nowhere_is_refused(
    change: Change, said: str, repository: Path, plan: dict[str, Any]
) -> None:
    change(plan)
    plan["digest"] = document_digest(plan)
    with pytest.raises(InvalidInput) as raised:
        read_plan(written(repository, plan))
    assert any(said in each.message for each in raised.value.diagnostics)


def test_mistake_has_its_line(
    repository: Path, plan: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository)
    plan["cases"][0]["threshold"] = "high"
    path = written(repository, plan)
    line = next(n for n, text in enumerate(path.read_text("utf-8").splitlines(), 1) if '"high"' in text)
    assert run(["eval", "outside.json"]) == 2
    assert (
        f"{path}:{line}:20: error: 'high' is not of type 'number' [AV204] (cases[0].threshold)"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda plan: plan["cases"][0].update(evaluators=[]), "cases[0].evaluators"),
        (lambda plan: evaluator(plan, "p").update(argv=[]), "cases[0].evaluators[5].argv"),
    ],
)
def test_plan_that_would_score_nothing_is_refused(
    change: Change, place: str, repository: Path, plan: dict[str, Any]
) -> None:
    change(plan)
    with pytest.raises(InvalidInput) as raised:
        read_plan(written(repository, plan))
    assert [each.pointer for each in raised.value.diagnostics] == [place]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not valid JSON"),
        ("{", "is not valid JSON"),
        ("[]", "expected a mapping"),
        ("{}", "its $schema is not https://"),
        ('{"$schema": 5}', "its $schema is not https://"),
        ("[" * 100_000, "is not valid JSON: nested too deep"),
        ('{"$schema": NaN}', "is not valid JSON: NaN is not JSON"),
        (
            '{"$schema": "https://org.github.io/agentv-action/schemas/plan-v2.schema.json"}',
            "is a version 2 plan; this agentv-ci supports version 1",
        ),
    ],
)
def test_file_that_is_no_plan_of_this_version_is_refused(text: str, said: str, repository: Path) -> None:
    path = repository / "outside.json"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError) as raised:
        read_plan(path)
    assert said in raised.value.message


def test_file_that_is_not_there_is_refused(repository: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read_plan(repository / "missing.json")
    (repository / "latin.json").write_bytes("é".encode("latin-1"))
    with pytest.raises(UsageError, match="is not valid JSON"):
        read_plan(repository / "latin.json")
