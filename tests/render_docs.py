"""Render the tables of docs/ from the code: `make docs`; with --check, say which are stale."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from pydantic.fields import FieldInfo

from agentv_ci.contracts.agent_targets import AgentTarget
from agentv_ci.contracts.api_targets import HttpTarget
from agentv_ci.contracts.base import Authored
from agentv_ci.contracts.diagnostics import FIXED_RULES, RULES
from agentv_ci.contracts.evaluators import AuthoredEvaluator, ComparedField, EvaluatorSettings, RubricItem
from agentv_ci.contracts.judge_set import LabelledAnswer
from agentv_ci.contracts.target_settings import TargetSettings
from agentv_ci.contracts.targets import Target

DOCS = Path(__file__).parent.parent / "docs"
RULES_PAGE, PROVIDERS_PAGE, EVALUATORS_PAGE = DOCS / "rules.md", DOCS / "providers.md", DOCS / "evaluators.md"
BEGIN, END = "<!-- rules: make docs -->\n", "<!-- /rules -->"
SETTINGS = re.compile(r"<!-- settings: (?P<kind>[\w-]+) -->\n.*?<!-- /settings -->", re.DOTALL)

FIELDS = re.compile(r"<!-- evaluator: (?P<kind>\w+) -->\n.*?<!-- /evaluator -->", re.DOTALL)

PARTS: dict[str, type[Authored]] = {
    "all": EvaluatorSettings,
    "field": ComparedField,
    "criterion": RubricItem,
    "item": LabelledAnswer,
}
"""Name → what evaluators consist of."""

FAMILIES: dict[str, tuple[type[TargetSettings], type[TargetSettings] | None]] = {
    "all": (TargetSettings, None),
    "api": (HttpTarget, TargetSettings),
    "agent": (AgentTarget, TargetSettings),
}
"""Name → what has the settings, and whose settings stand in another table."""


def rendered(page: Path) -> str:
    """Return a page as it should be."""
    return PAGES[page](page.read_text("utf-8"))


def _rules(page: str) -> str:
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    rows = [
        f"| [{rule_id}](#{rule_id.lower()}-{rule.name}) | {rule.name} "
        f"| {rule.severity}{'*' if rule_id in FIXED_RULES else ''} | {rule.says} |"
        for rule_id, rule in RULES.items()
    ]
    table = "\n".join(["| id | name | default | says |", "|---|---|---|---|", *rows])
    return f"{before}{BEGIN}\n{table}\n\n{END}{after}"


def _settings(page: str) -> str:
    def table(match: re.Match[str]) -> str:
        rows = "\n".join(_rows(*_family(match["kind"])))
        text = f"| field | also | is | when absent, read from |\n|---|---|---|---|\n{rows}" if rows else "No others."
        return f"<!-- settings: {match['kind']} -->\n\n{text}\n\n<!-- /settings -->"

    return SETTINGS.sub(table, page)


def _evaluators(page: str) -> str:
    members: tuple[type[EvaluatorSettings], ...] = get_args(get_args(AuthoredEvaluator.__value__)[0])
    names = {str(get_args(member.model_fields["type"].annotation)[0]): member for member in members}

    def table(match: re.Match[str]) -> str:
        kind = match["kind"]
        part = PARTS.get(kind) or names[kind]
        shared = {"type"} if kind in PARTS else {"type", *EvaluatorSettings.model_fields}
        rows = "\n".join(
            f"| `{name}` | {_cell(field.description or '')}{' Required.' if field.is_required() else ''} "
            f"| {_default(field)} |"
            for name, field in part.model_fields.items()
            if name not in shared
        )
        return f"<!-- evaluator: {kind} -->\n\n| field | is | default |\n|---|---|---|\n{rows}\n\n<!-- /evaluator -->"

    return FIELDS.sub(table, page)


def _default(field: FieldInfo) -> str:
    default = None if field.is_required() or field.default_factory else field.default
    return "" if default is None or default == () else f"`{json.dumps(default)}`"


def kinds() -> dict[str, type[TargetSettings]]:
    """Return provider → contract."""
    members: tuple[type[TargetSettings], ...] = get_args(get_args(Target.__value__)[0])
    return {str(get_args(member.model_fields["provider"].annotation)[0]): member for member in members}


def _family(name: str) -> tuple[type[TargetSettings], type[TargetSettings] | None]:
    if name in FAMILIES:
        return FAMILIES[name]
    kind = kinds()[name]
    shared = next((base for base in (HttpTarget, AgentTarget) if issubclass(kind, base)), TargetSettings)
    return kind, shared


def _rows(kind: type[TargetSettings], elsewhere: type[TargetSettings] | None) -> Iterator[str]:
    known = elsewhere.model_fields if elsewhere is not None else {}
    for name, field in kind.model_fields.items():
        is_told = name in known and not kind.variables.get(name)
        if name == "provider" or is_told:
            continue
        also = ", ".join(f"`{older}`" for older in kind.older_names.get(name, ()))
        read = " or ".join(f"`{variable}`" for variable in kind.variables.get(name, ()))
        needed = " Required." if field.is_required() else ""
        yield f"| `{name}` | {also} | {_cell(field.description or '')}{needed} | {read} |"


def _cell(text: str) -> str:
    """A description with its placeholders and references as code, on one line."""
    return re.sub(r"(\$?\{+ ?\w+ ?\}+)", r"`\1`", text.replace("`", "")).replace("|", "\\|")


PAGES = {RULES_PAGE: _rules, PROVIDERS_PAGE: _settings, EVALUATORS_PAGE: _evaluators}


def main() -> int:
    """Write the tables, or check them."""
    stale = [page for page in PAGES if page.read_text("utf-8") != rendered(page)]
    if "--check" in sys.argv[1:]:
        for page in stale:
            sys.stderr.write(f"docs/{page.name} is stale; run: make docs\n")
        return 1 if stale else 0
    for page in stale:
        page.write_text(rendered(page), "utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
