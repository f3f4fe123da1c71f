"""Cases that a stopped run did not begin have one name in everything it prints and writes."""

from __future__ import annotations

import json
import re
from collections import Counter

from tests.support.projects import HELLO, Project


def verdicts_on_the_page(project: Project) -> Counter[str]:
    (table,) = re.findall(
        r'<script type="application/json" id="cases">(.*?)</script>', project.text("r.html"), re.DOTALL
    )
    return Counter(each["verdict"] for each in json.loads(table))


def test_cases_that_did_not_run_are_not_errors(project: Project) -> None:
    project.documents("greets", {"evaluators": [{**HELLO, "value": "Bye"}]}, "waves", "bows")
    project.documents("nods", name="evals/y.yaml")
    done = project.eval("--fail-fast", "--html", "r.html", "--markdown", "r.md", "--junit", "r.xml")
    line = "5 cases: 1 passed, 1 failed, 0 errors, 3 not run"
    assert (done.code, line in done.out, line in project.text("r.md")) == (1, True, True)
    assert "  evals/x.yaml  1/4 passed, mean 0.500, 2 not run" in done.out
    assert "stopped at the first failure: 3 of 5 cases not run" in done.out
    report = project.json("r.report.json")
    assert (report["counts"]["errored"], report["counts"]["not_run"]) == (0, 3)
    assert [each["not_run"] for each in report["suites"]] == [2, 1]
    assert project.text("r.xml").count('message="not run: the run stopped at the first failure"') == 3
    page = project.text("r.html")
    (table,) = re.findall(r'<script type="application/json" id="cases">(.*?)</script>', page, re.DOTALL)
    assert Counter(each["verdict"] for each in json.loads(table)) == {"pass": 1, "fail": 1, "not run": 3}
    assert "<dt>not run</dt><dd>3</dd>" in page
    assert line in project.run("report", "r.jsonl").out
