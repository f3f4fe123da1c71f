"""The base of all contracts."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agentv_ci.contracts.targets import CliTarget, MockTarget, TargetsDocument


def test_union_by_kind_builds_the_member_of_the_key() -> None:
    given = [{"name": "a", "provider": "mock"}, {"name": "b", "provider": "cli", "commandTemplate": "true"}]
    document = TargetsDocument.model_validate({"targets": given})
    assert [type(each) for each in document.targets] == [MockTarget, CliTarget]
    assert TargetsDocument(targets=document.targets) == document


@pytest.mark.parametrize(
    "target",
    [None, 3, [], {}, {"name": "a"}, {"name": "a", "provider": "mokc"}, {"name": "a", "provider": ["mock"]}],
    ids=str,
)
def test_union_by_kind_rejects_unknown_kinds(target: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        TargetsDocument.model_validate({"targets": [{"name": "b", "provider": "mock"}, target]})
    assert [each["loc"] for each in refused.value.errors()] == [("targets", 1)]


def test_union_by_kind_has_the_place_of_an_error() -> None:
    with pytest.raises(ValidationError) as refused:
        TargetsDocument.model_validate({"targets": [{"name": "b", "provider": "mock", "delay_ms": "x"}]})
    assert {each["loc"][:3] for each in refused.value.errors()} >= {("targets", 0, "delay_ms")}
