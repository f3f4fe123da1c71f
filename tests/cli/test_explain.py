"""`agentv-ci explain`: what a rule means."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentv_ci.contracts.diagnostics import PROOF_RULES, RULES
from tests.support import run_command


@pytest.mark.parametrize("rule", [*RULES, *PROOF_RULES])
def test_every_rule_has_a_text(rule: str, tmp_path: Path) -> None:
    done = run_command("explain", rule.lower(), cwd=tmp_path)
    first, *rest = done.out.splitlines()
    assert (done.code, done.err, first.startswith(f"{rule} ")) == (0, "", True)
    assert len(" ".join(rest)) > 20


def test_unknown_rule(tmp_path: Path) -> None:
    done = run_command("explain", "AV999", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "unknown rule 'AV999'" in done.err
