"""What stands in a results file, as a row."""

from __future__ import annotations

from pydantic import ValidationError

from agentv_ci.contracts.results import RESULT_VERSION, ResultRow
from agentv_ci.model_errors import sentence


def row_of(data: object) -> ResultRow:
    """Return the row that a value is; raises ValueError with a sentence about what it lacks."""
    version = data.get("schema_version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > RESULT_VERSION:
        raise ValueError(f"its schema_version is {version}, and this version of agentv-ci reads {RESULT_VERSION}")
    try:
        return ResultRow.model_validate(data)
    except ValidationError as error:
        raise ValueError(sentence(error)) from error
