"""Part of a plan is the plan of that part."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentv_ci.compile.overrides import is_selected, narrowed
from agentv_ci.errors import NothingToRun
from tests.compile.builders import (
    EVAL,
    MOCK,
    Document,
    Files,
    case,
    compile_here,
    contains,
    evals,
    rich,
    targets,
    text_of,
    with_file,
    write_repository,
)


def combined(name: str, member: Document, **aggregator: str) -> Document:
    return {"name": name, "type": "composite", "evaluators": [member], "aggregator": aggregator}


JUDGED = {"name": "m", "type": "llm_judge", "judge_target": "strict", "prompt": "m.md"}
BY_JUDGE = combined("all", JUDGED, type="llm_judge", prompt="a.md")
BY_CODE = combined("coded", contains(), type="code", script="a.py")
MANY: Files = {
    **rich(),
    "evals/b.yaml": evals(case("three", execution={"target": "other"}), case("four", evaluators=[BY_JUDGE, BY_CODE])),
    "evals/m.md": "Member",
    "evals/a.md": "Aggregate",
    "evals/a.py": "print(1)",
}


ASKING = [with_file(path, path, evaluators=[contains()]) for path in ("a.txt", "b.txt")]
EQUAL_FILES: Files = {EVAL: evals(*ASKING), "evals/a.txt": "", "evals/b.txt": ""}
ONE_NAME: Files = {
    "evals/a/e.yaml": evals(case("one")),
    "evals/a/targets.yaml": targets({**MOCK, "response": "x"}),
    "evals/b/e.yaml": evals(case("two")),
    "evals/b/targets.yaml": targets({**MOCK, "response": "y"}),
}


@pytest.mark.parametrize(
    ("files", "ids"),
    [
        *((MANY, ids) for ids in (["one"], ["three"], ["t*"], ["one", "four"], ["*"])),
        (EQUAL_FILES, ["b.txt"]),
        (ONE_NAME, ["two"]),
    ],
    ids=lambda value: ", ".join(value) if isinstance(value, list) else "",
)
def test_part_of_a_plan_is_the_plan_of_that_part(files: Files, ids: list[str], repository: Path) -> None:
    whole = compile_here(repository, files)
    part = text_of(compile_here(repository, files, eval_ids=ids))
    assert text_of(narrowed(whole, lambda each: is_selected(each.id, ids))) == part
    write_repository(repository, {**files, "plan.json": text_of(whole)})
    assert text_of(compile_here(repository, files, patterns=["plan.json"], eval_ids=ids)) == part


def test_plan_of_no_case_is_empty(repository: Path) -> None:
    plan = narrowed(compile_here(repository, MANY), lambda _: False)
    assert (plan.suites, plan.targets, plan.files, plan.cases) == ((), {}, {}, ())


@pytest.mark.parametrize(
    ("patterns", "ids"),
    [
        (["refund-*"], ["refund-1", "refund-2"]),
        (["*1*"], ["refund-1", "a[1]", "A[1]"]),
        (["refund-2", "refund-1"], ["refund-1", "refund-2"]),
        (["a[1]"], ["a[1]"]),
        (["refund-[12]"], ["refund-1", "refund-2"]),
    ],
)
def test_cases_are_selected_by_id_or_glob(repository: Path, patterns: list[str], ids: list[str]) -> None:
    document = evals(*(case(name) for name in ("refund-1", "refund-2", "a[1]", "A[1]")))
    assert [each.id for each in compile_here(repository, {EVAL: document}, eval_ids=patterns).cases] == ids


def test_selection_of_nothing_is_an_error(repository: Path) -> None:
    with pytest.raises(NothingToRun, match="no case matches --eval-id"):
        compile_here(repository, eval_ids=["x"])


AGENT = {"name": "default", "provider": "cli", "command_template": "agent {PROMPT}"}


def test_missing_judge_blocks_only_cases_that_run(repository: Path) -> None:
    judged = [case(name, evaluators=[{"type": "llm_judge"}]) for name in ("judged", "judged-too")]
    files = {EVAL: evals(case("default-judge"), *judged, case("plain", evaluators=[contains()]))}
    files["targets.yaml"] = targets(AGENT)
    assert [each.id for each in compile_here(repository, files, eval_ids=["plain"]).cases] == ["plain"]
    for name, who in {"default-judge": "there are no evaluators", "judged-too": "evaluator 'llm_judge' needs"}.items():
        with pytest.raises(AssertionError, match=f"^\\[.AV312 {who}[^\\[]*.\\]$"):
            compile_here(repository, files, eval_ids=["plain", name])


OWN: Document = {"target": "own"}


@pytest.mark.parametrize(
    ("own", "option", "target"), [({}, "other", "other"), (OWN, "other", "other"), (OWN, "default", "own")]
)
def test_option_replaces_the_target_of_every_case(repository: Path, own: Document, option: str, target: str) -> None:
    listed = targets(MOCK, *({**MOCK, "name": name} for name in ("own", "other")))
    files = {EVAL: evals(case(execution=own), execution=own), "targets.yaml": listed}
    assert compile_here(repository, files, target=option).cases[0].target == target
