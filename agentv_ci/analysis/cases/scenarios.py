"""Build the scenario reports that validators check: a suite is a scenario, a target is a runner."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import starmap

from agentv_ci.base.json_access import read_answer
from agentv_ci.base.mappings import known
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.results import ResultRow


def scenario_report(suite: str, rows: Iterable[tuple[ResultRow, str | None]]) -> JsonObject:
    """Return the scenario report of a suite from its rows, each with the digest of its plan.

    The order of the runs does not depend on the order of the rows.
    """
    ordered = sorted(rows, key=_place)
    runs: list[JsonValue] = list(starmap(run_of, ordered))
    return {"scenario_key": suite, "runs": runs, "aggregates": {}}


def _place(planned: tuple[ResultRow, str | None]) -> tuple[int, str, CaseKey, int]:
    row, _ = planned
    return row.source.line, row.eval_id, row.case_key, row.trial


def run_of(row: ResultRow, config_digest: str | None) -> JsonObject:
    """Return a row as a run."""
    return {
        "scenario_key": row.suite,
        "runner_key": row.arm or row.target,
        "case_id": row.eval_id,
        "status": _status(row),
        "seed": row.seed,
        "duration_ms": row.duration_ms,
        "metrics": _metrics(row),
        "output": None if row.status == "error" else _output(row.candidate_answer),
        "config_digest": config_digest,
    }


def _status(row: ResultRow) -> str:
    """Return the status of a run: `success` when it has an answer, whatever its score."""
    if row.status == "ok":
        return "success"
    if row.error_kind == "timeout":
        return "timeout"
    return "error"


def _metrics(row: ResultRow) -> JsonObject:
    """Return the metrics that were measured."""
    tokens = row.usage.model_dump(include={"input_tokens", "output_tokens", "total_tokens"})
    score = row.score if row.status == "ok" else None
    measured: JsonObject = {"score": score, **tokens, "cost_usd": row.cost_usd}
    return known(measured)


def _output(answer: str) -> JsonObject:
    try:
        value = read_answer(answer)
    except ValueError:
        return {"text": answer}
    if not isinstance(value, dict):
        return {"text": answer}
    return value
