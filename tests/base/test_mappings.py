"""Mappings keep the order of what they are made from."""

from __future__ import annotations

from agentv_ci.base.mappings import duplicates, gathered, grouped, known, picked, without


def test_groups_are_in_the_order_of_their_first_items() -> None:
    assert list(grouped(["bb", "a", "cc", "d"], len).items()) == [(2, ["bb", "cc"]), (1, ["a", "d"])]
    assert list(gathered([("b", 1), ("a", 2), ("b", 3)]).items()) == [("b", [1, 3]), ("a", [2])]


def test_entries_without_a_value_are_left_out_but_not_those_with_an_empty_one() -> None:
    assert known({"a": 0, "b": None, "c": 1}) == {"a": 0, "c": 1}


def test_entries_are_chosen_by_key() -> None:
    values = {"a": 1, "b": 2, "c": 3}
    assert list(without(values, ("b", "x"))) == ["a", "c"]
    assert list(picked(values, ["c", "a"]).items()) == [("c", 3), ("a", 1)]


def test_duplicates_are_named_once() -> None:
    assert duplicates(["b", "a", "b", "a", "b", "c"]) == ["b", "a"]
