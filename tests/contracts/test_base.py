"""The base of all contracts."""

from __future__ import annotations

from agentv_ci.contracts.cli_target import CliTarget
from agentv_ci.contracts.targets import MockTarget, TargetsDocument


def test_union_by_kind_builds_the_member_of_the_key() -> None:
    given = [{"name": "a", "provider": "mock"}, {"name": "b", "provider": "cli", "commandTemplate": "true"}]
    document = TargetsDocument.model_validate({"targets": given})
    assert [type(each) for each in document.targets] == [MockTarget, CliTarget]
    assert TargetsDocument(targets=document.targets) == document
