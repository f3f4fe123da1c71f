"""Render the tables of docs/ from the code: `make docs`; with --check, say which are stale."""

from __future__ import annotations

import sys
from pathlib import Path

from agentv_ci.contracts.diagnostics import FIXED_RULES, RULES

RULES_PAGE = Path(__file__).parent.parent / "docs" / "rules.md"
BEGIN, END = "<!-- rules: make docs -->\n", "<!-- /rules -->"


def rendered() -> str:
    """Return the page of rules as it should be."""
    page = RULES_PAGE.read_text("utf-8")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    rows = [
        f"| [{rule_id}](#{rule_id.lower()}-{rule.name}) | {rule.name} "
        f"| {rule.severity}{'*' if rule_id in FIXED_RULES else ''} | {rule.says} |"
        for rule_id, rule in RULES.items()
    ]
    table = "\n".join(["| id | name | default | says |", "|---|---|---|---|", *rows])
    return f"{before}{BEGIN}\n{table}\n\n{END}{after}"


def main() -> int:
    """Write the tables, or check them."""
    text = rendered()
    if "--check" in sys.argv[1:]:
        if RULES_PAGE.read_text("utf-8") != text:
            sys.stderr.write("docs/rules.md is stale; run: make docs\n")
            return 1
        return 0
    RULES_PAGE.write_text(text, "utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
