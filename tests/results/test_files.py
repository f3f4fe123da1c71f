"""What is said of a row that is none."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.results.files import row_of
from tests.report.builders import row

ROW: dict[str, Any] = row().model_dump(exclude_none=True)


def test_row_is_itself() -> None:
    assert row_of(ROW) == row()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            {**ROW, "schema_version": 2, "new": 1},
            "schema_version 2 is not supported; this version of agentv-ci reads 1",
        ),
        ({**ROW, "new": 1}, "new: Extra inputs are not permitted"),
        ({**ROW, "score": 2}, "score: Input should be less than or equal to 1"),
        ([], "Input should be a valid dictionary or instance of ResultRow"),
        ({**ROW, **dict.fromkeys("abcde")}, "c: Extra inputs are not permitted; and 2 more"),
    ],
)
def test_row_that_is_none_is_told_in_a_sentence(data: object, said: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as caught:
        row_of(data)
    assert str(caught.value).endswith(said)
    assert "\n" not in str(caught.value)
