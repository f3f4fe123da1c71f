"""Commands that people are told to type mean the one case."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given

from agentv_ci.compile.overrides import is_selected
from agentv_ci.report.view import rerun_command
from tests.report.builders import well_formed_text


@pytest.mark.parametrize(("target", "ending"), [("default", ""), ("gpt", " --target=gpt"), ("-a", " --target=-a")])
def test_the_target_is_named_unless_it_is_everybodys(target: str, ending: str) -> None:
    assert rerun_command("evals/a.yaml", "one", target) == f"agentv-ci eval evals/a.yaml --eval-id=one{ending}"


@given(well_formed_text)
def test_a_shell_and_the_glob_come_back_to_the_id(case_id: str) -> None:
    words = shlex.split(rerun_command("a.yaml", case_id, "default"))
    pattern = words[3].removeprefix("--eval-id=")
    assert is_selected(case_id, [pattern])
    assert not is_selected(f"{case_id}x", [pattern])
