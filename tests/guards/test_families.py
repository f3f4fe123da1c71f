"""Every kind of a contract has a file, a corpus case and a row in the docs, and vice versa."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

from agentv_ci.cli.report_options import ReportOptions
from agentv_ci.contracts.base import members_of
from agentv_ci.contracts.evaluators import AuthoredEvaluator
from agentv_ci.contracts.experiment import PairwiseJudge
from agentv_ci.contracts.plan_evaluators import PlanEvaluator
from agentv_ci.contracts.targets import Target
from agentv_ci.report.renderers import ReportFormat
from agentv_ci.scaffold.drafts import STARTERS
from agentv_ci.validators.builtin import BUILT_IN
from tests.support import REPOSITORY

PACKAGE = REPOSITORY / "agentv_ci"


def written(folder: str) -> str:
    """Return the authored documents of the corpus as one text."""
    paths = sorted((REPOSITORY / "tests" / "corpus" / folder).rglob("*.y*ml"))
    return "\n".join(path.read_text("utf-8") for path in paths if "expected" not in path.parts)


CORPUS, CHECKED = written("valid") + written("experiments"), written("checked")
DOCS = {path.stem: path.read_text("utf-8") for path in (REPOSITORY / "docs").glob("*.md")}


def kinds(union: Any, key: str) -> list[str]:
    """Return the kinds of a discriminated union without plugins; of several names of one branch the first."""
    members = dict.fromkeys(members_of(union, key).values())
    return [str(get_args(member.model_fields[key].annotation)[0]) for member in members]


def files(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.py")} - {"__init__"}


@pytest.mark.parametrize("kind", kinds(Target, "provider"))
def test_provider_is_complete(kind: str) -> None:
    assert kind.replace("-", "_") in files(PACKAGE / "execute" / "providers"), "add execute/providers/<kind>.py"
    assert f"[`{kind}`](#{kind})" in DOCS["providers"], "add it to the table of docs/providers.md"
    assert kind in STARTERS, "add it to scaffold/drafts.py, and a file to scaffold/files/targets/"


APIS = {"azure-openai", "openai", "anthropic", "gemini"}


@pytest.mark.parametrize("kind", [kind for kind in kinds(Target, "provider") if kind not in APIS])
def test_provider_is_in_the_corpus(kind: str) -> None:
    # APIs need a server: tests/execute/apis/test_every_api.py.
    assert f"provider: {kind}" in CORPUS, "add a case to tests/corpus/valid/"


def scorers() -> list[str]:
    """Return the functions that score, each named by its kind."""
    texts = [path.read_text("utf-8") for path in (PACKAGE / "evaluate" / "evaluators").glob("[!_]*.py")]
    return re.findall(r"^async def ([a-z]\w*)\(", "\n".join(texts), re.MULTILINE)


EVALUATORS = [*kinds(AuthoredEvaluator, "type"), *get_args(PairwiseJudge.model_fields["type"].annotation)]


@pytest.mark.parametrize("kind", EVALUATORS)
def test_evaluator_is_complete(kind: str) -> None:
    assert kind in scorers(), "add a function <kind> to a file of evaluate/evaluators/"
    assert f"type: {kind}" in CORPUS, "add a case to tests/corpus/valid/ or experiments/"
    assert f"`{kind}`" in DOCS["evaluators"].split("## ")[0], "add it to the table of docs/evaluators.md"


def test_every_file_has_a_kind() -> None:
    providers = {kind.replace("-", "_") for kind in kinds(Target, "provider")}
    assert files(PACKAGE / "execute" / "providers") == {*providers, "plugin"}
    assert sorted(scorers()) == sorted([*EVALUATORS, "plugin"])
    assert files(PACKAGE / "validators" / "builtin") == {*BUILT_IN}


def test_plan_knows_the_evaluators_that_authors_know() -> None:
    assert set(kinds(PlanEvaluator, "type")) == set(EVALUATORS)


@pytest.mark.parametrize("kind", get_args(ReportFormat))
def test_report_is_complete(kind: str) -> None:
    folder = PACKAGE / "report" / "renderers"
    assert (folder / f"{kind}.py").exists() or (folder / kind).is_dir(), "add report/renderers/<kind>.py"
    assert kind in {each.name for each in fields(ReportOptions)}, "add its option"
    assert f"`--{kind}`" in DOCS["reports"], "add it to the table of docs/reports.md"
