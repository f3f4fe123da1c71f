"""`schema_adherence`: outputs have the fields that a contract requires."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.validators.builtin.schema_adherence import validate
from tests.validators.builders import details, found, ids, report, run


def required(**fields: Any) -> dict[str, Any]:
    return {"contract": {"required": fields}}


def test_output_with_all_fields_has_no_issue() -> None:
    contract = {"a": "int", "b.c": ["str", "list"], "d": {"path": "e.0", "type": "number"}}
    result = validate(report(run(output={"a": 1, "b": {"c": "x"}, "e": [1.5]})), {"contract": {"required": contract}})
    assert result["issues"] == []
    assert details(result) == {"required_fields": ["a", "b.c", "e.0"], "total_checked": 3, "violations": 0}


def test_missing_fields_and_other_types_are_errors() -> None:
    runs = (
        run(output={"a": 1, "b": {"c": "x"}}),
        run(output={"a": "1", "b": {}}),
        run(output={"a": 1, "b": {"c": None}}),
    )
    nested = {"path": "b.c", "type": ["int", "str"]}
    result = validate(report(*runs), required(a="int", b=nested))
    assert found(result) == [
        ("schema_type_mismatch", "error", "runs.1.output.a"),
        ("schema_missing_field", "error", "runs.1.output.b.c"),
        ("schema_type_mismatch", "error", "runs.2.output.b.c"),
    ]
    assert [each["message"] for each in result["issues"]] == [
        "'a' of run 1 must be int, not \"1\"",
        "'b.c' is missing from the output of run 1",
        "'b.c' of run 2 must be int or str, not null",
    ]
    assert details(result) == {"required_fields": ["a", "b.c"], "total_checked": 6, "violations": 3}


@pytest.mark.parametrize("output", [None, ..., "text", [1]])
def test_success_without_an_object_is_an_error(output: Any) -> None:
    result = validate(report(run(output=output), run()), required(text="str"))
    assert found(result) == [("missing_output", "error", "runs.0.output")]
    assert details(result) == {"required_fields": ["text"], "total_checked": 1, "violations": 1}


@pytest.mark.parametrize("status", ["failed", "error", "timeout", None])
def test_only_success_is_checked(status: Any) -> None:
    result = validate(report(run(status=status, output=None)), required(text="str"))
    assert (result["issues"], details(result)["total_checked"]) == ([], 0)


@pytest.mark.parametrize(
    ("name", "accepted", "refused"),
    [
        ("str", ["", "a"], [1, None, True, []]),
        ("int", [0, -1, 10**5000], [1.0, True, "1", None]),
        ("float", [0.5, float("nan")], [1, True, "0.5"]),
        ("number", [0, 0.5, float("inf")], [True, "1", None]),
        ("bool", [True, False], [0, 1, "true"]),
        ("list", [[], [1], (1,)], [{}, "a"]),
        ("dict", [{}, {"a": 1}], [[], None]),
    ],
)
def test_type_accepts_only_its_values(name: str, accepted: list[Any], refused: list[Any]) -> None:
    assert ids(validate(report(*(run(output={"a": value}) for value in accepted)), required(a=name))) == []
    mismatches = ["schema_type_mismatch"] * len(refused)
    assert ids(validate(report(*(run(output={"a": value}) for value in refused)), required(a=name))) == mismatches


@pytest.mark.parametrize("demand", ["text", None, 5, [], ["text", 1], {}, {"type": "text"}, {"path": 5}, {"path": ""}])
def test_field_of_unknown_type_may_have_any_type(demand: Any) -> None:
    assert ids(validate(report(run(output={"a": True}), run(output={"a": None})), required(a=demand))) == []
    assert ids(validate(report(run(output={})), required(a=demand))) == ["schema_missing_field"]


@pytest.mark.parametrize(
    "settings", [None, [], {"contract": []}, {"contract": {"required": ["a"]}}, {"contract": {"required": {1: "a"}}}]
)
def test_invalid_contract_requires_only_an_output(settings: Any) -> None:
    result = validate(report(run(), run(output=None)), settings)
    assert (ids(result), details(result)["required_fields"]) == (["missing_output"], [])
