"""What validators find in the runs of a suite."""

from __future__ import annotations

from pydantic import Field

from agentv_ci.contracts.base import Items, JsonObject, Recorded
from agentv_ci.contracts.diagnostics import SEVERITIES_WORST_FIRST, Severity


class ValidatorIssue(Recorded):
    """An issue found by a validator."""

    id: str = Field(description="Kind of issue.")
    severity: Severity = Field(description="Severity of the issue.")
    message: str = Field(description="Description of the issue.")
    path: Items[str] | None = Field(None, description="Path in the scenario report.")


class Validation(Recorded):
    """The result of a validator."""

    validator: str = Field(description="Name of the validator.")
    issues: Items[ValidatorIssue] = Field(description="Issues found.")
    summary: JsonObject = Field(description="Summary of the issues.")

    @property
    def errors(self) -> tuple[str, ...]:
        """Messages of the errors; only the first ones if there are many."""
        return tuple(issue.message for issue in self.issues if issue.severity == "error")

    @property
    def worst_first(self) -> list[ValidatorIssue]:
        """The issues, worst first."""
        return sorted(self.issues, key=lambda issue: SEVERITIES_WORST_FIRST.index(issue.severity))

    def count(self, severity: Severity) -> int:
        """Return the number of issues, including those that are not listed."""
        by_severity = self.summary.get("by_severity")
        counted = by_severity.get(severity) if isinstance(by_severity, dict) else None
        listed = sum(issue.severity == severity for issue in self.issues)
        return max(counted, listed) if isinstance(counted, int) else listed


class FailedValidation(Recorded):
    """A validator that failed to run."""

    validator: str = Field(description="Name of the validator.")
    error: str = Field(description="Error message.")


class ScenarioAggregates(Recorded):
    """Aggregates of the runs of a scenario."""

    runs: int = Field(description="Number of runs.")
    errors: int = Field(description="Runs without an answer.")
    validations: Items[Validation | FailedValidation] = Field(description="Results of validators.")


class ScenarioReport(Recorded):
    """The report of a suite, without its runs."""

    scenario_key: str = Field(description="Path of the suite.")
    aggregates: ScenarioAggregates = Field(description="Aggregates of its runs.")
