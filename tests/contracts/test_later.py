"""Lazy classes for contracts that are imported when they are used."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, get_args

import pytest
from typing_extensions import TypeAliasType

from agentv_ci.contracts.base import kinds_of
from agentv_ci.contracts.evaluators import AuthoredEvaluator
from agentv_ci.contracts.later import Later, contract_of
from agentv_ci.contracts.plan import PlanEvaluator
from agentv_ci.contracts.targets import Target


@pytest.mark.parametrize(
    ("union", "key"), [(AuthoredEvaluator, "type"), (PlanEvaluator, "type"), (Target, "provider")], ids=str
)
def test_lazy_classes_name_the_kinds_of_their_contracts(union: TypeAliasType, key: str) -> None:
    members: set[Any] = {*kinds_of(union, key).values()}
    assert {type(each) for each in members} == {Later}
    literals = {each: contract_of(each).model_fields[key].annotation for each in members}
    assert {each: each.kinds for each in members} == {each: get_args(literal) for each, literal in literals.items()}


USE = """
import sys
from agentv_ci.contracts.targets import HttpTarget, MockTarget, OpenAITarget, Target

MODULES = ("agentv_ci.contracts.mock_target", "agentv_ci.contracts.api_targets")
print(isinstance(1, MockTarget), issubclass(int, MockTarget), [each in sys.modules for each in MODULES])
mock = MockTarget(name="one", provider="mock")
print(isinstance(mock, MockTarget), isinstance(mock, HttpTarget), isinstance(mock, HttpTarget | MockTarget))
print(issubclass(type(mock), MockTarget), MockTarget.charges, [each in sys.modules for each in MODULES])
openai = OpenAITarget.model_validate({"name": "two", "provider": "openai", "model": "m"})
print(isinstance(openai, HttpTarget), type(openai).__module__)
match openai:
    case MockTarget() | HttpTarget(name="one"):
        print("another")
    case HttpTarget(name="two"):
        print("two")
"""
EXPECTED = """\
False False [False, False]
True False True
True False [True, False]
True agentv_ci.contracts.api_targets
two
"""


def test_a_lazy_class_has_no_instances_before_it_is_used_and_is_its_contract_then() -> None:
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == EXPECTED
