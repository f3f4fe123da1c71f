"""Rule → what it means."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from agentv_ci.base.text import listed
from agentv_ci.contracts.base import Recorded
from agentv_ci.contracts.diagnostics import FIXED_RULES, PROOF_RULES, RULES, Severity
from agentv_ci.errors import UsageError


class RuleExplanation(Recorded):
    """What a rule means."""

    rule: str
    name: str
    severity: Severity
    """Unless a config document sets another one."""
    fixed: bool
    """Whether its severity cannot be changed."""
    summary: str
    """What it reports."""
    text: str
    """Its section of docs/rules.md or docs/proving.md: reasons and examples."""


def explain(rule_id: str) -> RuleExplanation:
    """Return what a rule means; raises UsageError for an unknown one."""
    known = {**RULES, **PROOF_RULES}
    if rule_id not in known:
        raise UsageError(f"unknown rule '{rule_id}'", hint=f"the rules are {listed(known)}")
    rule = known[rule_id]
    return RuleExplanation(
        rule=rule_id,
        name=rule.name,
        severity=rule.severity,
        fixed=rule_id in FIXED_RULES,
        summary=rule.summary,
        text=_section("rules" if rule_id in RULES else "proving", rule_id),
    )


def _section(page: str, rule_id: str) -> str:
    """Return the text below the heading of a rule."""
    found = re.search(
        rf"^(#+) {rule_id} .*\n(?P<text>(?:(?!\1 |## ).*\n?)*)", _page(page), re.MULTILINE
    )
    return found["text"].strip() if found is not None else ""


@cache
def _page(name: str) -> str:
    """Return a page of the documentation: from the wheel, else from the checkout."""
    here = Path(__file__).parents[2]
    shipped = here / "published" / f"{name}.md"
    if shipped.exists():
        return shipped.read_text("utf-8")
    return (here.parent / "docs" / shipped.name).read_text("utf-8")
