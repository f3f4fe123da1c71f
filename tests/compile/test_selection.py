"""Part of a plan is the plan of that part."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentv_ci.app.compile import Selection, compile_paths
from agentv_ci.compile.overrides import is_selected, narrowed
from tests.compile.builders import EVAL, case, compile_here, contains, evals, targets, text_of, write_repository
from tests.compile.test_digest import rich

MANY = {
    **rich(),
    "evals/b.yaml": evals(
        case("three", execution={"target": "other"}),
        case(
            "four",
            evaluators=[
                {
                    "name": "all",
                    "type": "composite",
                    "evaluators": [{"name": "m", "type": "llm_judge", "judge_target": "strict", "prompt": "m.md"}],
                    "aggregator": {"type": "llm_judge", "prompt": "a.md"},
                },
                {
                    "name": "coded",
                    "type": "composite",
                    "evaluators": [contains()],
                    "aggregator": {"type": "code", "script": "a.py"},
                },
            ],
        ),
    ),
    "evals/m.md": "Member",
    "evals/a.md": "Aggregate",
    "evals/a.py": "print(1)",
}


@pytest.mark.parametrize("ids", [["one"], ["two"], ["three"], ["four"], ["t*"], ["one", "four"], ["*"]], ids=str)
def test_part_of_a_plan_is_the_plan_of_that_part(ids: list[str], repository: Path) -> None:
    whole = compile_here(repository, MANY)
    part = compile_paths(Selection(["evals"], eval_ids=ids), cwd=repository).plan
    assert text_of(narrowed(whole, lambda each: is_selected(each.id, ids))) == text_of(part)


def test_no_case_is_a_plan_of_nothing(repository: Path) -> None:
    plan = narrowed(compile_here(repository, MANY), lambda _: False)
    assert (plan.suites, plan.targets, plan.files, plan.cases) == ((), {}, {}, ())


def test_plan_read_again_is_narrowed_alike(repository: Path) -> None:
    write_repository(repository, MANY)
    (repository / "plan.json").write_text(text_of(compile_here(repository, MANY)), "utf-8")
    read = compile_paths(Selection(["plan.json"], eval_ids=["four"]), cwd=repository).plan
    assert text_of(read) == text_of(compile_paths(Selection(["evals"], eval_ids=["four"]), cwd=repository).plan)


def test_unused_targets_need_no_environment(repository: Path) -> None:
    keyed = {"name": "keyed", "provider": "openai", "model": "m", "api_key": "${{ NOT_SET }}"}
    files = {
        EVAL: evals(case("free", evaluators=[contains()]), case("keyed", execution={"target": "keyed"})),
        "targets.yaml": targets({"name": "default", "provider": "mock"}, keyed),
    }
    plan = narrowed(compile_here(repository, files), lambda each: each.id == "free")
    assert list(plan.targets) == ["default"]
