"""What stands in a results file, as a row."""

from __future__ import annotations

from pydantic import ValidationError

from agentv_ci.contracts.results import RESULT_VERSION, ResultRow

MAX_NAMED = 3


def row_of(data: object) -> ResultRow:
    """Return the row that a value is; raises ValueError with a sentence about what it lacks."""
    version = data.get("schema_version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > RESULT_VERSION:
        raise ValueError(f"its schema_version is {version}, and this version of agentv-ci reads {RESULT_VERSION}")
    try:
        return ResultRow.model_validate(data)
    except ValidationError as error:
        raise ValueError(_told(error)) from error


def _told(error: ValidationError) -> str:
    problems = [(".".join(map(str, each["loc"])), each["msg"]) for each in error.errors(include_url=False)]
    said = "; ".join(f"{where}: {what}" if where else what for where, what in problems[:MAX_NAMED])
    more = len(problems) - MAX_NAMED
    return f"{said}; and {more} more" if more > 0 else said
