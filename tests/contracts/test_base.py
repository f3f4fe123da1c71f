"""The base of all contracts."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import ValidationError

from agentv_ci.contracts.base import Recorded, Resolved
from agentv_ci.contracts.cli_target import CliTarget
from agentv_ci.contracts.comparison import Rate
from agentv_ci.contracts.targets import MockTarget, TargetsDocument


def test_union_by_kind_builds_the_member_of_the_key() -> None:
    given = [{"name": "a", "provider": "mock"}, {"name": "b", "provider": "cli", "commandTemplate": "true"}]
    document = TargetsDocument.model_validate({"targets": given})
    assert [type(each) for each in document.targets] == [MockTarget, CliTarget]
    assert TargetsDocument(targets=document.targets) == document


def test_field_of_a_named_contract_holds_one_that_is_valid() -> None:
    class Holder(Recorded):
        rate: Annotated[Recorded, Resolved("comparison:Rate")] | None = None

    given = {"verdict": "pass", "passed": 1, "graded": 1, "mean": 1.0}
    held = Holder.model_validate({"rate": given})
    assert held.rate == Rate.model_validate(given)
    assert held.model_dump() == {"rate": given}
    assert Holder(rate=held.rate).rate is held.rate
    assert Holder().rate is None
    with pytest.raises(ValidationError, match="verdict"):
        Holder.model_validate({"rate": {**given, "verdict": "good"}})
