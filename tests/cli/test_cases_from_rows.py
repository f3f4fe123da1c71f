"""Cases from rows: stable ids and digests, samples, and many rows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.projects import Project

TARGETS = "$schema: agentv-targets-v2.2\ntargets: [{name: default, provider: mock, response: '5'}]\n"
TEMPLATE = """$schema: agentv-eval-v2
evalcases:
  - id: %s
    cases_from: {file: rows.jsonl%s}
    input: What is {{ q }}?
    expected: []
    expected_outcome: right
    evaluators: [contains: "{{ a }}"]
"""


def compiled(project: Project, rows: list[dict[str, Any]], *, id_: str = "sum", more: str = "") -> dict[str, str]:
    """Return id → digest."""
    project.write(
        {
            "targets.yaml": TARGETS,
            "sums.eval.yaml": TEMPLATE % (id_, more),
            "rows.jsonl": "".join(f"{json.dumps(each)}\n" for each in rows),
        }
    )
    done = project.run("compile", "sums.eval.yaml", "--out", "plan.json")
    assert done.code == 0, done
    return {each["id"]: each["digest"] for each in json.loads(project.text("plan.json"))["cases"]}


ROWS: list[dict[str, Any]] = [{"q": f"{n} + 1", "a": n + 1} for n in range(40)]


@pytest.mark.parametrize("id_", ["sum", "'{{ q }}'"])
def test_new_row_changes_no_other_case(project: Project, id_: str) -> None:
    before = compiled(project, ROWS, id_=id_)
    after = compiled(project, [*ROWS[:20], {"q": "new", "a": 1}, *ROWS[20:]], id_=id_)
    assert len(after) == len(before) + 1
    assert before.items() < after.items()


def test_sample_is_stable(project: Project) -> None:
    chosen = compiled(project, ROWS, more=", sample: {n: 10, seed: 1}")
    assert len(chosen) == 10
    assert compiled(project, ROWS[::-1], more=", sample: {n: 10, seed: 1}") == chosen
    assert compiled(project, ROWS, more=", sample: {n: 10, seed: 2}") != chosen
    later = compiled(project, [*ROWS, {"q": "new", "a": 1}], more=", sample: {n: 10, seed: 1}")
    assert len(chosen.keys() & later.keys()) >= 9


def test_limit_reads_the_first_rows(project: Project) -> None:
    assert len(compiled(project, ROWS, id_="'{{ q }}'", more=", limit: 3")) == 3


def test_diff_names_the_changed_row(project: Project) -> None:
    compiled(project, ROWS, id_="'{{ q }}'")
    (project.folder / "plan.json").rename(project.folder / "old.json")
    compiled(project, [*ROWS[:7], {"q": "7 + 1", "a": "eight"}, *ROWS[8:]], id_="'{{ q }}'")
    done = project.run("compile", "sums.eval.yaml", "--diff", "old.json")
    assert "7 + 1  (rows.jsonl:8)" in done.out
    assert "evaluator 'contains' value" in done.out
    assert len([line for line in done.out.splitlines() if " + 1" in line]) == 1


def test_case_of_a_row_is_selected_and_named_by_its_id(project: Project) -> None:
    compiled(project, ROWS, id_="'sum {{ q }}'")
    done = project.run("eval", ".", "--eval-id", "sum 3 + 1", "--out", "out.jsonl")
    assert done.code == 1, done
    assert "(rows.jsonl:4)" in done.out
    missing = project.run("eval", ".", "--eval-id", "sum 3 + 2")
    assert "no case matches --eval-id sum 3 + 2 (did you mean 'sum " in missing.err


@pytest.mark.parametrize(("id_", "glob"), [("sum", "sum-*"), ("sum {{ q }}", "sum *")])
def test_id_of_a_template_is_explained(id_: str, glob: str, project: Project) -> None:
    compiled(project, ROWS[:2], id_=f"'{id_}'")
    hint = f"'{id_}' makes a case of each row: --eval-id '{glob}'"
    project.refuses("eval", ".", "--eval-id", id_, error=hint, code=3)
    assert project.run("compile", ".", "--eval-id", glob, "--list").out.endswith("2 cases, 2 trials\n")


def test_rows_are_not_overwritten(project: Project) -> None:
    compiled(project, ROWS)
    done = project.run("eval", ".", "--out", "rows.jsonl")
    assert done.code == 2, done


def test_mistakes_in_many_rows_are_cut_short(project: Project) -> None:
    project.write(
        {
            "targets.yaml": TARGETS,
            "sums.eval.yaml": TEMPLATE % ("'{{ n }}'", ""),
            "rows.jsonl": "".join(f'{{"n": {n}, "q": 1}}\n' for n in range(1000)),
        }
    )
    done = project.run("validate", "sums.eval.yaml")
    assert done.code == 1
    assert done.out.count("[AV332]") == 20


def test_warnings_of_many_rows_do_not_hide_an_error(project: Project) -> None:
    rows = [{"q": f"@[User]: {n}", "a": "x"} for n in range(500)]
    project.write(
        {
            "targets.yaml": TARGETS,
            "sums.eval.yaml": TEMPLATE % ("sum", ""),
            "rows.jsonl": "".join(f"{json.dumps(each)}\n" for each in [*rows, {"q": "x"}]),
        }
    )
    done = project.run("validate", "sums.eval.yaml")
    assert done.code == 1
    assert done.out.count("[AV308]") == 20
    assert "rows.jsonl:501:1: error: " in done.out.replace(f"{project.folder}/", "")


@pytest.mark.parametrize(
    ("rows", "template", "expected"),
    [
        ("", "id: sum\ninput: '{{ q }}'", "file 'rows.jsonl' has no rows [AV331]"),
        ('{"q": "{{ reference_answer }}"}', "id: sum\ninput: Hi\nevaluators: [llm_judge: 'Rate {{ q }}']", "[AV332]"),
        ('{"q": "a"}', "input: '{{ q }}'", "missing field 'id'"),
        (
            '{"q": "a"}\n{"q": "a"}',
            "id: '{{ q }}'\ninput: Hi",
            "case id 'a' is given twice; first at rows.jsonl:1:1 [AV301]",
        ),
        ('{"q": ""}', "id: '{{ q }}'\ninput: Hi", "rows.jsonl:1:1: error: 'id' must not be empty [AV204]"),
    ],
)
def test_unusable_rows_are_refused(project: Project, rows: str, template: str, expected: str) -> None:
    case = {"expected": [], "expected_outcome": "right", "cases_from": {"file": "rows.jsonl"}}
    lines = [*template.splitlines(), *(f"{key}: {json.dumps(value)}" for key, value in case.items())]
    written = "\n    ".join(lines)
    project.write(
        {
            "targets.yaml": TARGETS,
            "rows.jsonl": rows,
            "x.eval.yaml": f"$schema: agentv-eval-v2\nevalcases:\n  - {written}\n",
        }
    )
    done = project.run("validate", "x.eval.yaml")
    assert done.code == 1
    assert expected in done.out


def test_dollar_before_a_variable_is_text(project: Project) -> None:
    project.write(
        {
            "targets.yaml": TARGETS.replace("'5'", "costs $5"),
            "x.eval.yaml": (TEMPLATE % ("sum", "")).replace('"{{ a }}"', '"${{ a }}"'),
            "rows.jsonl": '{"q": "it", "a": 5}',
        }
    )
    done = project.run("eval", "x.eval.yaml")
    assert (done.code, done.err.count("warning")) == (0, 0), done


def test_ids_of_two_templates_and_of_one_line_are_unique(project: Project) -> None:
    template = (TEMPLATE % ("'{{ q }}'", "")).replace("rows.jsonl", "rows.json")
    twice = template + template.split("evalcases:\n")[1]
    project.write(
        {"targets.yaml": TARGETS, "x.eval.yaml": template, "rows.json": '[{"q": "a", "a": 1}, {"q": "a", "a": 2}]'}
    )
    assert "rows.json:1:22: error: case id 'a' is given twice" in project.run("validate", "x.eval.yaml").out
    project.write({"x.eval.yaml": twice, "rows.json": '[{"q": "a", "a": 1}]'})
    assert "case id 'a' is given twice; first at rows.json:1:2" in project.run("validate", "x.eval.yaml").out


def test_data_may_have_the_names_of_commands_and_prompts(project: Project) -> None:
    template = (TEMPLATE % ("sum", "")) + "    metadata: {code: '{{ a }}', prompt: 'is {{ question }}', n: '{{ a }}'}\n"
    project.write(
        {"targets.yaml": TARGETS, "x.eval.yaml": template, "rows.jsonl": '{"q": "x", "a": 5, "question": "it"}'}
    )
    assert project.run("compile", "x.eval.yaml", "--out", "plan.json").code == 0
    (case,) = json.loads(project.text("plan.json"))["cases"]
    assert case["metadata"] == {"code": 5, "prompt": "is it", "n": 5}


def test_row_that_only_leaves_out_is_known(project: Project) -> None:
    template = (
        TEMPLATE % ("'{{ q }}'", "")
    ) + "  - {id: b, only: true, input: Hi, expected: [], expected_outcome: E, evaluators: [is_json]}\n"
    project.write({"targets.yaml": TARGETS, "x.eval.yaml": template, "rows.jsonl": '{"q": "x", "a": 5}'})
    assert "leaves out 1 other case" in project.run("validate", "x.eval.yaml").out
