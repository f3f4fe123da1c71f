"""What all contracts are made of."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agentv_ci.contracts.targets import CliTarget, MockTarget, TargetsDocument


def test_union_by_kind_makes_the_member_that_the_key_names() -> None:
    given = [{"name": "a", "provider": "mock"}, {"name": "b", "provider": "cli", "commandTemplate": "true"}]
    document = TargetsDocument.model_validate({"targets": given})
    assert [type(each) for each in document.targets] == [MockTarget, CliTarget]
    assert TargetsDocument(targets=document.targets) == document


@pytest.mark.parametrize(
    "target",
    [None, 3, [], {}, {"name": "a"}, {"name": "a", "provider": "mokc"}, {"name": "a", "provider": ["mock"]}],
    ids=str,
)
def test_union_by_kind_refuses_what_is_of_none(target: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        TargetsDocument.model_validate({"targets": [{"name": "b", "provider": "mock"}, target]})
    assert [each["loc"] for each in refused.value.errors()] == [("targets", 1)]


def test_union_by_kind_tells_where_a_member_is_wrong() -> None:
    with pytest.raises(ValidationError) as refused:
        TargetsDocument.model_validate({"targets": [{"name": "b", "provider": "mock", "delay_ms": "x"}]})
    assert {each["loc"][:3] for each in refused.value.errors()} >= {("targets", 0, "delay_ms")}
