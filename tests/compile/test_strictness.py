"""What a change does to its own test: each way to make it easier to pass is found, and what can be held is held."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.app.documents.documents import read_yaml
from agentv_ci.compile.strictness import Held, held_to
from agentv_ci.contracts.plan import Plan
from tests.compile.builders import EVAL, MOCK, case, compile_here, contains, evals, targets

LOWERINGS: dict[str, Any] = read_yaml(Path(__file__).with_name("lowerings.yaml").read_text("utf-8"))  # type: ignore[assignment]
REAL = {"provider": "cli", "command_template": "cat agent.txt", "prompt": "none"}
GATE = {"min_pass_rate": 0.9, "min_mean_score": 0.5, "max_errors": 1, "max_cost_usd": 2, "max_cost_increase": "10%"}
MEMBERS = [{"name": name, "type": "contains", "value": name} for name in "ab"]


def base() -> dict[str, Any]:
    scored = [
        {"name": "word", "type": "contains", "value": "hello", "weight": 2, "required": True},
        {"name": "polite", "type": "contains", "value": "please"},
        {"name": "whole", "type": "composite", "evaluators": MEMBERS},
        {
            "name": "judged",
            "type": "llm_judge",
            "judge_target": "judge",
            "rubrics": [{"id": each, "description": f"Is {each}"} for each in ("kind", "brief")],
        },
    ]
    one = case("one", evaluators=scored)
    two = case("two", evaluators=[contains()], execution={"target": "real"})
    return {
        EVAL: evals(one, two, execution={"threshold": 0.8, "gate": GATE}),
        "targets.yaml": targets({**MOCK, "response": "Hello"}, {"name": "real", **REAL}, {"name": "judge", **REAL}),
    }


def changed(change: dict[str, Any]) -> dict[str, Any]:
    """Return the documents after a change."""
    files = deepcopy(base())
    suite, listed = files[EVAL], files["targets.yaml"]["targets"]
    one, two = suite["evalcases"]
    parts = {"suite": suite, "case": one, "case two": two, "question": one["input_messages"][0]}
    parts |= {"gate": suite["execution"]["gate"]}
    parts |= {f"evaluator {each['name']}": each for each in one["evaluators"]}
    parts |= {f"target {each['name']}": each for each in listed}
    for where, what in change.items():
        if where == "evaluators":
            one["evaluators"] += what
        elif where == "without":
            one["evaluators"] = [each for each in one["evaluators"] if each["name"] != what]
        else:
            parts[where].update(what)
            for name in [name for name, value in what.items() if value is None]:
                del parts[where][name]
    return files


def lowered(held: Held) -> list[str]:
    """Return what makes a plan easier to pass."""
    return [
        f"{each.found.kind}: {each.found.text}{'*' if each.found.is_held else ''}"
        + (f" ({', '.join(case.id for case in each.cases)})" if each.cases else "")
        for each in held.lowered
    ]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return compile_here(tmp_path_factory.mktemp("base"), base())


@pytest.mark.parametrize("name", LOWERINGS)
def test_what_a_change_lowers(name: str, old: Plan, tmp_path: Path) -> None:
    expected = dict(LOWERINGS[name])
    others = expected.pop("others", [])
    lower = expected.pop("lowered", [])
    new = compile_here(tmp_path, changed(expected))
    held = held_to(old, new)
    assert (lowered(held), [*held.others], held.missing) == (lower, others, 0)
    # What is held is as it was: nothing but the rest is still lower.
    again = held_to(old, held.plan)
    assert lowered(again) == [each for each in lower if "*" not in each]
    assert again.plan == held.plan
    assert (held.plan == new) == (lowered(again) == lower)


OTHER = "evals/b.yaml"


def in_files(**cases: list[dict[str, Any]]) -> dict[str, Any]:
    """Return documents with these cases in `evals/a.yaml` and `evals/b.yaml`, whose gate is lower."""
    gates = {"a": {}, "b": {"gate": {"min_pass_rate": 0.5}}, "c": {"gate": {"min_pass_rate": 0.5}}}
    return {f"evals/{name}.yaml": evals(*own, execution=gates[name]) for name, own in cases.items()}


def asks(name: str, text: str, *evaluators: dict[str, Any]) -> dict[str, Any]:
    found = [*evaluators] or [contains()]
    return case(name, input_messages=[{"role": "user", "content": text}], evaluators=found)


ONE, TWO, THREE = (asks(name, f"Say {name}.") for name in ("one", "two", "three"))
MOVES: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "new": (in_files(a=[ONE, TWO, asks("four", "Say 4")], b=[THREE]), [], ["1 new case: four"]),
    "gone": (in_files(a=[ONE], b=[THREE]), ["case: missing (two)"], []),
    "replaced by another": (
        in_files(a=[ONE, asks("two-b", "Say 2")], b=[THREE]),
        ["case: missing (two)"],
        ["1 new case: two-b"],
    ),
    "renamed": (in_files(a=[ONE, asks("easy", "Say two.")], b=[THREE]), [], ["two renamed to easy"]),
    "renamed and weaker": (
        in_files(a=[ONE, asks("easy", "Say two.", contains("h"), contains("x", name="d", weight=0))], b=[THREE]),
        [],
        ["easy: evaluator 'c' value hello → h", "easy: evaluator 'd' added", "two renamed to easy"],
    ),
    "moved to a lower gate": (
        in_files(a=[ONE], b=[THREE, TWO]),
        ["gate: moved from evals/a.yaml: min_pass_rate 1 → 0.5 (two)"],
        ["two moved from evals/a.yaml to evals/b.yaml"],
    ),
    "moved to a new file": (
        in_files(a=[ONE], b=[THREE], c=[TWO]),
        ["gate: min_pass_rate 1 → 0.5*"],
        ["two moved from evals/a.yaml to evals/c.yaml"],
    ),
    "a whole file moved": (
        in_files(c=[ONE, TWO], b=[THREE]),
        ["gate: min_pass_rate 1 → 0.5*"],
        ["one moved from evals/a.yaml to evals/c.yaml", "two moved from evals/a.yaml to evals/c.yaml"],
    ),
    "names exchanged": (
        in_files(a=[asks("two", "Say one."), asks("one", "Say two.")], b=[THREE]),
        [],
        ["two, one: input message 1 text changed"],
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_cases_are_recognised_by_what_they_ask(name: str, tmp_path: Path) -> None:
    files, expected, others = MOVES[name]
    before = compile_here(tmp_path / "old", in_files(a=[ONE, TWO], b=[THREE]))
    held = held_to(before, compile_here(tmp_path / "new", files))
    assert (lowered(held), [*held.others]) == (expected, others)
    assert held.missing == sum("missing" in each for each in expected)


def test_pinned_settings_are_those_of_options(old: Plan, tmp_path: Path) -> None:
    change = {"gate": {"min_pass_rate": 0.1, "max_errors": 9}, "case": {"execution": {"threshold": 0}}}
    new = compile_here(tmp_path, changed(change))
    assert lowered(held_to(old, new, {"min_pass_rate", "threshold"})) == ["gate: max_errors 1 → 9*"]


def test_all_targets_of_a_matrix_are_cases_of_their_own(tmp_path: Path) -> None:
    documents = {
        EVAL: evals(ONE, TWO),
        "targets.yaml": targets(MOCK, *({**MOCK, "name": name} for name in ("first", "other"))),
    }
    old, new = (
        compile_here(tmp_path / "-".join(names), documents, target_names=names)
        for names in (("first", "other"), ("other",))
    )
    assert lowered(held_to(old, new)) == ["case: missing (one, two)"]


def test_plans_of_many_cases_are_compared_without_unpacking_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentv_ci.contracts.packed_cases.MANY", 3)
    many = [asks(f"c{number}", f"Say {number}.") for number in range(20)]
    lower = [{**each, "execution": {"threshold": 0.1}} for each in many]
    old, new = (compile_here(tmp_path / str(len(own)), in_files(a=own)) for own in (many, lower[1:]))
    held = held_to(old, new)
    assert [(each.found.text, len(each.cases)) for each in held.lowered] == [
        ("missing", 1),
        ("threshold 0.8 → 0.1", 19),
    ]
    assert {each.threshold for each in held.plan.cases} == {0.8}


FAST = {"name": "fast", "type": "latency", "max_ms": 100}
CHECKED = evals(
    case("one", evaluators=[{"name": "script", "type": "code", "script": ["python3", "check.py"]}]),
    case(
        "two-{{ n }}",
        cases_from={"file": "rows.jsonl"},
        evaluators=[{"name": "fast", "type": "latency", "max_ms": 100}],
    ),
    case("three", inherit_evaluators=True),
    execution={"evaluators": [contains(name="shared")]},
)
ROWS = '{"n": 1}\n{"n": 2}\n'
NEIGHBOURS: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "only": (
        {"only": True},
        ["case: missing (one, two-1, two-2)"],
        [],
    ),
    "not inherited": (
        {"inherit_evaluators": False, "evaluators": [contains("h", name="own")]},
        ["evaluator: evaluator shared (contains) removed (three)"],
        [],
    ),
    "not inherited, but the same": (
        {"inherit_evaluators": False, "evaluators": [contains(name="own")]},
        [],
        ["three: evaluator 'shared' removed", "three: evaluator 'own' added"],
    ),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_settings_of_a_case_that_leave_something_out(name: str, tmp_path: Path) -> None:
    change, expected, others = NEIGHBOURS[name]
    files: dict[str, Any] = {EVAL: CHECKED, "evals/check.py": "print(1)", "evals/rows.jsonl": ROWS}
    lower = deepcopy(files)
    lower[EVAL]["evalcases"][2] |= change
    held = held_to(compile_here(tmp_path / "old", files), compile_here(tmp_path / "new", lower))
    assert (lowered(held), [*held.others]) == (expected, others)


@pytest.mark.parametrize(
    ("path", "text", "expected", "others"),
    [
        ("evals/check.py", "print(2)", [], ["one: evaluator 'script' file evals/check.py changed"]),
        ("evals/rows.jsonl", '{"n": 2}\n', ["case: missing (two-1)"], []),
        (EVAL, "max_ms", [], ["two-1, two-2: evaluator 'fast' max_ms 100 → 9000"]),
    ],
)
def test_files_that_a_test_consists_of(
    path: str, text: str, expected: list[str], others: list[str], tmp_path: Path
) -> None:
    files: dict[str, Any] = {EVAL: CHECKED, "evals/check.py": "print(1)", "evals/rows.jsonl": ROWS}
    lower = deepcopy(files)
    if path == EVAL:
        lower[EVAL]["evalcases"][1]["evaluators"][0][text] = 9000
    else:
        lower[path] = text
    held = held_to(compile_here(tmp_path / "old", files), compile_here(tmp_path / "new", lower))
    assert (lowered(held), [*held.others]) == (expected, others)


def test_prices_and_validators_are_named(tmp_path: Path) -> None:
    def sides(price: float, *validators: Any) -> Plan:
        priced = {"$schema": "agentv-config-v2", "prices": {"m": {"input_per_mtok": price, "output_per_mtok": 1}}}
        documents = {EVAL: evals(ONE, execution={"validators": validators}), ".agentv/config.yaml": priced}
        return compile_here(tmp_path / f"{price}", documents)

    old = sides(1.0, {"key": "fairness_balance", "metric_path": "a"}, "reproducibility_metadata")
    new = sides(0.0, {"key": "fairness_balance", "metric_path": "b"}, "structural_consistency")
    held = held_to(old, new)
    assert lowered(held) == ["gate: validator reproducibility_metadata removed"]
    assert [*held.others] == [
        "prices of evals/a.yaml changed",
        "validator fairness_balance of evals/a.yaml changed",
        "validator structural_consistency of evals/a.yaml added",
    ]
