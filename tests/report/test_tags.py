"""Figures by tag: in the run report, and bounded where people read them."""

from __future__ import annotations

import json
from pathlib import Path

from agentv_ci.analysis.run_report import report
from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.results import ResultRow
from agentv_ci.report.renderers import junit, terminal
from agentv_ci.report.renderers.html import document
from agentv_ci.report.renderers.markdown import LIMIT, text
from agentv_ci.report.view import RunView
from tests.support.projects import Project
from tests.support.runs import case, plan, reported, row, whole

A, B, C = (
    case("a", line=1, tags=("shop", "smoke")),
    case("b", line=2, tags=("shop",)),
    case("c", line=3, skip="Not ready", tags=("shop", "later")),
)
ROWS: list[ResultRow] = [
    row(of=A, tags=A.tags),
    row("fail", 0.25, of=B, tags=B.tags),
    row("skipped", of=C, tags=C.tags, skip="Not ready"),
]


def test_each_tag_has_its_cases() -> None:
    found, _ = report(plan(A, B, C, case("d", line=4)), ROWS, Ending())
    by_tag = {each.name: each for each in found.tags}
    assert [*by_tag] == ["later", "shop", "smoke"]
    shop = by_tag["shop"]
    assert (shop.cases, shop.passed, shop.failed, shop.errored, shop.skipped, shop.mean) == (3, 1, 1, 0, 1, 0.625)
    assert (by_tag["later"].cases, by_tag["later"].mean) == (1, None)


def test_rows_alone_have_the_same_figures() -> None:
    from_plan, _ = report(plan(A, B, C), ROWS, Ending())
    assert whole(ROWS)[0].tags == from_plan.tags


def run_with(tags: int) -> RunView:
    """A run with this many tags, one for each case, of which the last fails."""
    cases = [case(f"c{number}", line=number, tags=(f"t{number}",)) for number in range(1, tags + 1)]
    return reported([row("fail" if each is cases[-1] else "pass", of=each, tags=each.tags) for each in cases])


def test_of_hundreds_of_tags_the_worst_are_shown() -> None:
    run = run_with(300)
    lines = [line.text for line in terminal.render(run)]
    begin = lines.index("by tag:")
    assert lines[begin + 1] == "  t300  0/1 passed, mean 0.200"
    assert lines[begin + 11] == "  … and 290 more"
    assert "  t300  0/1 passed" in text(run, LIMIT)
    page = b"".join(document.render(run)).decode()
    section = page.partition('aria-labelledby="groups-Tag"')[2].partition("</section>")[0]
    assert "t300" in section.partition("</tr>")[2].partition("</tr>")[0]
    assert section.partition("<details>")[0].count("<tr>") < 30
    assert "Cost" not in section


def test_one_tag_is_no_table_in_the_terminal() -> None:
    assert "by tag:" not in [line.text for line in terminal.render(run_with(1))]


def test_junit_has_the_tags_of_each_test() -> None:
    found = b"".join(junit.render(reported(ROWS))).decode()
    assert found.count('<property name="tags" value="shop, smoke" />') == 1
    assert 'name="tags"' not in b"".join(junit.render(reported([row()]))).decode()


def test_merged_shards_have_the_figures(repository: Path) -> None:
    project = Project(repository)
    project.documents({"id": "a", "tags": ["x"]}, {"id": "b", "tags": ["x", "y"]})
    for number in (1, 2):
        assert project.run("eval", "evals", "--shard", f"{number}/2", "--out", f"{number}.jsonl").code == 0
    assert project.run("report", "1.jsonl", "2.jsonl", "--out", "r.jsonl").code == 0
    tags = json.loads(project.text("r.report.json"))["tags"]
    assert [(each["name"], each["cases"], each["passed"]) for each in tags] == [("x", 2, 2), ("y", 1, 1)]
