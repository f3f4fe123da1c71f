"""What a program asks of the run-level engine, and what it gets."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ScenarioSpec(_Spec):
    """What is run: an eval file, or a function that was registered."""

    key: str = Field(min_length=1)
    params: dict[str, Any] = Field(default_factory=dict)
    """Handed to the function."""
    repetitions: int = Field(1, ge=1)
    """Trials; an eval file's own `repeat` holds where neither this nor `seeds` is given."""
    seeds: list[int] = Field(default_factory=list)
    """The n-th trial uses the n-th, or none; there are at least as many trials as seeds."""

    @property
    def trial_seeds(self) -> list[int | None]:
        """The seed of each trial."""
        return [*self.seeds, *[None] * (self.repetitions - len(self.seeds))]


class RunnerSpec(_Spec):
    """Who answers: a function that was registered, a target of the documents, or a kind of provider."""

    key: str = Field(min_length=1)
    config: dict[str, Any] = Field(default_factory=dict)
    """Handed to the function; the settings of the target, or over them."""
    name: str | None = Field(None, min_length=1)
    """What reports call it; its key, and `#2` behind it for the second one of a key."""


class EngineConfig(_Spec):
    """Every scenario with every runner, and what looks at the runs."""

    scenarios: list[ScenarioSpec] = Field(min_length=1)
    runners: list[RunnerSpec] = Field(min_length=1)
    metrics: list[str] = Field(default_factory=list)
    """Evaluators whose scores are among the metrics of a run; none: all."""
    validators: list[str] = Field(default_factory=list)
    validator_context: dict[str, Any] = Field(default_factory=dict)
    """Settings for all validators; a mapping under a validator's key is for that one."""


class RunResult(_Spec):
    """One trial of one scenario, or of one of its cases, with one runner."""

    scenario_key: str
    runner_key: str
    case_id: str | None = None
    """Of an eval file."""
    status: Literal["success", "error", "timeout"]
    seed: int | None
    duration_ms: int
    metrics: dict[str, Any]
    output: dict[str, Any] | None
    config_digest: str
    error: str | None = None
    """Why there is no output."""

    def as_run(self) -> dict[str, Any]:
        """Return the run as validators see it."""
        return self.model_dump(exclude={"case_id", "error"} if self.case_id is None else {"error"})


class ScenarioReport(_Spec):
    """A scenario's runs, and what they come to together."""

    scenario_key: str
    runs: list[RunResult]
    aggregates: dict[str, Any]
    """`runs`, `errors`, and `validations`: `[{"validator", "issues", "summary"} | {"validator", "error"}]`."""


class EngineReport(_Spec):
    """What a benchmark came to."""

    scenario_reports: list[ScenarioReport]
    config_digest: str
    """Of the configuration."""
    warnings: list[str]
    """What people should know."""
