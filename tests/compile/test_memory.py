"""What a compiled plan keeps in memory."""

from __future__ import annotations

from agentv_ci.contracts.packed_cases import share_field_names
from agentv_ci.contracts.plan_parts import PlanMessage, TextPart


def message(text: str) -> PlanMessage:
    return PlanMessage(role="user", content=(TextPart(text=text),))


def test_equal_models_share_the_names_of_their_fields() -> None:
    one, two, other = message("a"), message("b"), PlanMessage(role="user")
    for each in (one, two, other):
        share_field_names(each)
    assert one.model_fields_set is two.model_fields_set
    assert one.content[0].model_fields_set is two.content[0].model_fields_set
    assert one.model_fields_set == {"role", "content"}
    assert other.model_fields_set == {"role"}
    copied = other.model_copy(update={"name": "Ada"})
    assert (copied.model_fields_set, other.model_fields_set) == ({"role", "name"}, {"role"})
