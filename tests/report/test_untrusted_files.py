"""Files of a run may be forged: every text and every key of a map in them stays text in every report."""

from __future__ import annotations

import json
import random
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from typing import Any

import pytest
from pydantic import BaseModel

from agentv_ci.analysis.cases.quarantine import in_quarantine
from agentv_ci.analysis.cases.tally import Tally
from agentv_ci.base.workflow_commands import annotation_command
from agentv_ci.cli.console import show_summary
from agentv_ci.contracts.action import ActionRun
from agentv_ci.contracts.command_output import DiagnosticsDocument, PlanDiff
from agentv_ci.contracts.proof import Proof
from agentv_ci.contracts.report import RunReport
from agentv_ci.contracts.results import ResultRow
from agentv_ci.report import diagnostics
from agentv_ci.report.job import Job, text
from agentv_ci.report.renderers import renderer, terminal
from agentv_ci.report.renderers.annotations import annotate
from agentv_ci.report.view import Links, RunView
from tests.schema_rendering import Renderer
from tests.support.markdown import MARKUP, MarkdownPage

ATTACK = (
    "</code></details>]]>\n\n# x @octocat #123 ![x](https://evil.example/x.png) <img src=x onerror=alert(1)>"
    "<script>alert(1)</script> ` ``` | --> ]]> ${{ x }} {{ x }}\n::error::x ##[error]x \x1b[31m\u202e ../../../other"
)
SEEDS = range(12)


@dataclass(slots=True)
class Filler:
    """Fills everything that a schema names: attacks in texts and keys, and one of its choices each."""

    whole: dict[str, Any]
    chance: random.Random
    depth: int = 0

    def document(self, schema: dict[str, Any]) -> Any:
        """Return a document of a part of the schema."""
        if "$ref" in schema:
            below = replace(self, depth=self.depth + 1)
            return below.document(self.whole["$defs"][schema["$ref"].rpartition("/")[2]])
        if "const" in schema or "enum" in schema:
            return schema.get("const") or self.chance.choice(schema["enum"])
        if "anyOf" in schema:
            return self.document(self.chance.choice([each for each in schema["anyOf"] if each.get("type") != "null"]))
        match schema.get("type"):
            case "object":
                named = {name: self.document(each) for name, each in schema.get("properties", {}).items()}
                free = schema.get("additionalProperties")
                keys = schema.get("propertyNames", {}).get("enum", [ATTACK]) if isinstance(free, dict | bool) else []
                return named | {key: self.document(free if isinstance(free, dict) else {}) for key in keys if free}
            case "array":
                number = schema.get("minItems", 2 if self.depth < 4 else 0)
                return [self.document(schema.get("items", {})) for _ in range(number)]
            case "integer" | "number" as kind:
                low, high = (0, 3) if kind == "integer" else (0.0, 1.0)
                number = schema.get("minimum", low) + self.chance.choice((0, high))
                return min(number, schema.get("maximum", number))
            case "boolean":
                return self.chance.random() < 0.5
            case "string" if "pattern" in schema:
                return "AV401" if "AV" in schema["pattern"] else "0" * 64
            case _:
                return f"{self.chance.randrange(9)}{ATTACK}"


def of(contract: type[BaseModel], chance: random.Random, **given: Any) -> Any:
    schema = contract.model_json_schema(schema_generator=Renderer)
    return contract.model_validate_json(json.dumps({**Filler(schema, chance).document(schema), **given}))


class Page(HTMLParser):
    """The scripts, images and handlers of an HTML file."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.active: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.active += [tag] if tag in ("img", "iframe", "object") else []
        self.active += [name for name, value in attrs if name.startswith("on") or "evil.example" in (value or "")]


@pytest.fixture(params=SEEDS)
def job(request: pytest.FixtureRequest) -> Job:
    chance = random.Random(request.param)
    rows = [of(ResultRow, chance, eval_id=f"{number}{ATTACK}", trials=1, trial=1) for number in range(4)]
    tally = Tally()
    for each in rows:
        tally.add(each)
    links = Links.of_commit("https://github.com", "acme/demo", "abc")
    report, ran = of(RunReport, chance), tally.outcomes()
    all_cases = {"id": "*", "suite": None, "target": None}
    everything = tuple(entry.model_copy(update=all_cases) for entry in report.quarantine)
    outcomes = (*in_quarantine(ran[:2], everything), *ran[2:])
    view = RunView(report, outcomes, lambda: rows, links, of(Proof, chance))
    found, changes = of(DiagnosticsDocument, chance), of(PlanDiff, chance)
    return Job(of(ActionRun, chance), view if request.param % 5 else None, found, changes, links, str)


def test_markdown(job: Job) -> None:
    page = MarkdownPage(text(job, 60_000))
    assert page.tags <= MARKUP
    assert page.comments == []
    assert not any(each in page.loose for each in ("@octocat", "evil.example", "#123"))
    assert [each for each in page.links if not (each or "").startswith("https://github.com/acme/demo/blob/abc/")] == []
    assert [each for each in page.links if ".." in (each or "").split("/")] == []


def test_annotations(job: Job) -> None:
    shown = [*diagnostics.annotate(job.diagnostics, str)] if job.diagnostics else []
    shown += annotate(job.reported, lambda *_: None) if job.reported else []
    for each in map(annotation_command, shown):
        assert re.fullmatch(r"::(error|warning|notice)( [^\n\r]*)?::[^\n\r]*", each)
        assert "##[" not in each


def test_terminal(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    """Also in a step whose output the runner reads."""
    if job.reported is not None:
        lines = list(terminal.render(job.reported))
        show_summary(lines)
        shown = capsys.readouterr().out
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]|^\s*::|##\[", shown, re.MULTILINE)
        assert shown.count("\n") == len(lines)


def test_files(job: Job) -> None:
    if job.reported is not None:
        html, junit, sarif = (b"".join(renderer(name)(job.reported)) for name in ("html", "junit", "sarif"))
        assert Page(html.decode()).active == []
        ET.fromstring(junit)
        json.loads(sarif)
