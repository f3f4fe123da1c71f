"""Part of a plan is the plan of that part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentv_ci.app.documents.documents import Documents
from agentv_ci.compile.overrides import narrowed
from agentv_ci.compile.selection import CaseFilter, facts_of, matches_id
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.documents import CaseFacts
from agentv_ci.contracts.documents import facts_of as authored_facts
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.errors import NothingToRun, UsageError
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
    part = text_of(compile_here(repository, files, only=CaseFilter(ids)))
    assert text_of(narrowed(whole, lambda each: matches_id(each.id, ids))) == part
    write_repository(repository, {**files, "plan.json": text_of(whole)})
    assert text_of(compile_here(repository, files, patterns=["plan.json"], only=CaseFilter(ids))) == part


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
    assert [each.id for each in compile_here(repository, {EVAL: document}, only=CaseFilter(patterns)).cases] == ids


def test_selection_of_nothing_is_an_error(repository: Path) -> None:
    with pytest.raises(NothingToRun, match="no case matches --eval-id"):
        compile_here(repository, only=CaseFilter(["x"]))


TAGGED: Files = {
    "evals/day.yaml": evals(
        case("fast", tags=["smoke"], metadata={"team": "payments", "size": 3}),
        case("slow", tags=["smoke", "slow-one"], metadata={"owner": {"name": "Ada L"}, "ready": True}),
        tags=["shop"],
    ),
    "evals/sub/night.test.yaml": evals(case("plain")),
}


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        ({"tags": ["smoke"]}, ["fast", "slow"]),
        ({"tags": ["slow*", "slow-one"]}, ["slow"]),
        ({"tags": ["shop"], "not_tags": ["slow-one"]}, ["fast"]),
        ({"not_tags": ["shop"]}, ["plain"]),
        ({"eval_ids": ["*a*"], "tags": ["smoke"]}, ["fast"]),
        ({"expression": "tag:smoke and not tag:slow-one"}, ["fast"]),
        ({"expression": "not tag:smoke or id:slow"}, ["slow", "plain"]),
        ({"expression": "not (tag:smoke or id:slow)"}, ["plain"]),
        ({"expression": "tag:none or tag:shop and id:fast"}, ["fast"]),
        ({"expression": "not not tag:shop"}, ["fast", "slow"]),
        ({"expression": "suite:night"}, ["plain"]),
        ({"expression": "suite:evals/d*"}, ["fast", "slow"]),
        ({"expression": "meta.team=payments"}, ["fast"]),
        ({"expression": "meta.team=pay*"}, ["fast"]),
        ({"expression": "meta.size=3"}, ["fast"]),
        ({"expression": "meta.ready=true"}, ["slow"]),
        ({"expression": 'meta.owner.name="Ada L"'}, ["slow"]),
        ({"expression": "(meta.team=payments)or(id:plain)"}, ["fast", "plain"]),
    ],
)
def test_cases_are_selected_by_conditions(repository: Path, given: dict[str, Any], ids: list[str]) -> None:
    only = CaseFilter(**given)
    plan = compile_here(repository, TAGGED, only=only)
    assert [each.id for each in plan.cases] == ids
    whole = compile_here(repository, TAGGED)
    assert [each.id for each in whole.cases if only.selects(facts_of(each))] == ids


@pytest.mark.parametrize(
    ("expression", "selected"),
    [
        ("tag:[wip]", True),
        ("tag:w", False),
        ("suite:evals/[a].yaml", True),
        ("suite:[a]", True),
        ("meta.label=[x]", True),
        ("meta.missing=*", False),
        ("not meta.missing=*", True),
        ("meta.nothing=*", True),
        ("meta.teams=pay", True),
        ("meta.teams=sh*", True),
        ("meta.teams=none", False),
        ("meta.n=1", True),
        ("meta.n=1.0", True),
        ("meta.x=1", True),
        ("meta.x=1.0", True),
        ("meta.x=1.5", False),
        ("meta.ready=1", False),
        ('meta.sign="=="', True),
        ("(" * 100 + "tag:[wip]" + ")" * 100, True),
        ("not " * 100 + "tag:[wip]", True),
    ],
)
def test_condition(expression: str, selected: bool) -> None:
    metadata: JsonObject = {
        "label": "[x]",
        "nothing": None,
        "teams": ["pay", "shop"],
        "n": 1,
        "x": 1.0,
        "ready": True,
        "sign": "==",
    }
    facts = CaseFacts("one", "evals/[a].yaml", ("[wip]",), metadata)
    assert CaseFilter(expression=expression).selects(facts) is selected


@pytest.mark.parametrize("expression", ["(" * 101 + "tag:a" + ")" * 101, "(" * 9_000, "not " * 9_000 + "tag:a"])
def test_deeply_nested_expression_is_refused(expression: str) -> None:
    with pytest.raises(UsageError, match="more than 100 conditions are nested"):
        _ = CaseFilter(expression=expression).predicate


def test_validate_and_compile_select_by_the_same_facts(repository: Path) -> None:
    write_repository(repository, TAGGED)
    path = repository / "evals" / "day.yaml"
    checked = Documents(repository, None).check(path, named=True)
    assert isinstance(checked.document, EvalDocument)
    authored = [authored_facts(checked.document, each, checked.source) for each in checked.document.evalcases]
    assert authored == [facts_of(each) for each in compile_here(repository, TAGGED).cases[:2]]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "a condition is missing at the end"),
        ("tag:a and", "a condition is missing at the end"),
        ("or tag:a", "a condition is missing before 'or'"),
        ("(tag:a", "')' is missing"),
        ("tag:a)", "unexpected ')'"),
        ("tag:a tag:b", "unexpected 'tag:b'"),
        ("smoke", "'smoke' is not a condition"),
        ("tag:", "'tag:' is not a condition"),
        ("meta.team:x", "'meta.team:x' is not a condition"),
        ("meta.team!=x", "'meta.team!=x' is not a condition"),
        ("meta.team==x", "'meta.team==x' is not a condition"),
        ("tags:a", "unknown condition 'tags' (did you mean 'tag'?)"),
        ('tag:"a', "'tag:' is not a condition"),
    ],
)
def test_invalid_expression_is_refused(expression: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        _ = CaseFilter(expression=expression).predicate
    assert error.value.message == f"--filter '{expression}': {said}"
    assert error.value.hint is not None


def test_options_that_select_nothing_are_named(repository: Path) -> None:
    only = CaseFilter(tags=["none"], expression="id:x")
    with pytest.raises(NothingToRun, match="no case matches --tag none --filter 'id:x'"):
        compile_here(repository, TAGGED, only=only)
    write_repository(repository, {"plan.json": text_of(compile_here(repository, TAGGED))})
    with pytest.raises(NothingToRun, match="no case of the plan is selected: --tag none"):
        compile_here(repository, TAGGED, patterns=["plan.json"], only=only)


def test_a_tag_that_no_case_has_may_mean_another(repository: Path) -> None:
    with pytest.raises(NothingToRun) as error:
        compile_here(repository, TAGGED, only=CaseFilter(tags=["smokee"]))
    assert error.value.hint == "no case has the tag 'smokee' (did you mean 'smoke'?)"


def test_tags_of_the_file_come_first(repository: Path) -> None:
    fast, slow, plain = compile_here(repository, TAGGED).cases
    assert (fast.tags, slow.tags, plain.tags) == (("shop", "smoke"), ("shop", "smoke", "slow-one"), None)


AGENT = {"name": "default", "provider": "cli", "command_template": "agent {PROMPT}"}


def test_missing_judge_blocks_only_cases_that_run(repository: Path) -> None:
    judged = [case(name, evaluators=[{"type": "llm_judge"}]) for name in ("judged", "judged-too")]
    files = {EVAL: evals(case("default-judge"), *judged, case("plain", evaluators=[contains()]))}
    files["targets.yaml"] = targets(AGENT)
    assert [each.id for each in compile_here(repository, files, only=CaseFilter(["plain"])).cases] == ["plain"]
    for name, who in {"default-judge": "there are no evaluators", "judged-too": "evaluator 'llm_judge' needs"}.items():
        with pytest.raises(AssertionError, match=f"^\\[.AV312 {who}[^\\[]*.\\]$"):
            compile_here(repository, files, only=CaseFilter(["plain", name]))


OWN: Document = {"target": "own"}


@pytest.mark.parametrize(
    ("own", "option", "expected"),
    [
        ({}, ["other"], ["other"]),
        (OWN, ["other"], ["other"]),
        (OWN, ["default"], ["own"]),
        (OWN, ["other", "own", "other"], ["other", "own"]),
        ({"targets": ["other", "own"]}, ["default", "default"], ["other", "own"]),
        ({"targets": ["other", "own"]}, ["own"], ["own"]),
    ],
)
def test_option_replaces_the_targets_of_every_case(
    repository: Path, own: Document, option: list[str], expected: list[str]
) -> None:
    listed = targets(MOCK, *({**MOCK, "name": name} for name in ("own", "other")))
    files = {EVAL: evals(case(execution=own), execution=own), "targets.yaml": listed}
    assert [each.target for each in compile_here(repository, files, target_names=option).cases] == expected


def test_a_tag_that_no_case_has_is_no_condition_beside_others(repository: Path) -> None:
    only = CaseFilter(tags=["smoke", "smokee", "sm*k"])
    error = "no case has the tag 'smokee' (did you mean 'smoke'?)"
    with pytest.raises(NothingToRun) as refused:
        compile_here(repository, TAGGED, only=only)
    assert refused.value.message.startswith(error)
    write_repository(repository, {"plan.json": text_of(compile_here(repository, TAGGED))})
    with pytest.raises(NothingToRun) as refused:
        compile_here(repository, TAGGED, patterns=["plan.json"], only=only)
    assert refused.value.message.startswith(error)
