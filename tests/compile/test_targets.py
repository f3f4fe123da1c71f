"""Contracts of targets agree with what digests leave out; tests/corpus/checked shows targets in plans."""

from __future__ import annotations

import pytest

from agentv_ci.contracts.base import members_of
from agentv_ci.contracts.target_settings import TargetSettings
from agentv_ci.contracts.targets import PluginTarget, Target

KINDS = tuple(dict.fromkeys([*members_of(Target, "provider").values(), PluginTarget]))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_contract_of_a_provider_is_consistent(kind: type[TargetSettings]) -> None:
    for field, value in kind.implied.items():
        description = kind.model_fields[field].description or ""
        assert value in ({}, []) or f"default {str(value).lower()}" in description.lower(), field
    assert TargetSettings.outside_digest <= kind.outside_digest <= kind.model_fields.keys()
