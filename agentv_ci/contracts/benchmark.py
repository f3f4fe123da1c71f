"""Configuration and results of the benchmark engine."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agentv_ci.contracts.report import GateVerdict


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ScenarioSpec(_Spec):
    """A scenario: an eval file or a registered function."""

    key: str = Field(min_length=1)
    params: dict[str, Any] = Field(default_factory=dict)
    """Passed to the function."""
    repetitions: int = Field(1, ge=1)
    """Trials; without this and `seeds`, an eval file's own `repeat` is used."""
    seeds: list[int] = Field(default_factory=list)
    """The n-th trial uses the n-th seed; there are at least as many trials as seeds."""

    @property
    def trial_seeds(self) -> list[int | None]:
        """The seed of each trial."""
        return [*self.seeds, *[None] * (self.repetitions - len(self.seeds))]


class RunnerSpec(_Spec):
    """A runner: a registered function, a target of the documents, or a provider."""

    key: str = Field(min_length=1)
    config: dict[str, Any] = Field(default_factory=dict)
    """Passed to the function, or settings of the target, which override its own."""
    name: str | None = Field(None, min_length=1)
    """Name in reports; default: the key, with `#2` for the second runner of a key."""


class EngineConfig(_Spec):
    """Every scenario with every runner, and the checks of the runs."""

    scenarios: list[ScenarioSpec] = Field(min_length=1)
    runners: list[RunnerSpec] = Field(min_length=1)
    metrics: list[str] = Field(default_factory=list)
    """Evaluators whose scores are metrics of a run; empty: all."""
    validators: list[str] = Field(default_factory=list)
    validator_context: dict[str, Any] = Field(default_factory=dict)
    """Settings for all validators; a mapping under a validator's key applies to that one."""


class RunResult(_Spec):
    """One trial of one scenario, or of one of its cases, with one runner."""

    scenario_key: str
    runner_key: str
    case_id: str | None = None
    """Only for eval files."""
    status: Literal["success", "error", "timeout"]
    seed: int | None
    duration_ms: int
    metrics: dict[str, Any]
    output: dict[str, Any] | None
    config_digest: str
    error: str | None = None
    """Why the output is missing."""

    def as_run(self) -> dict[str, Any]:
        """Return the run in the form that validators read."""
        return self.model_dump(exclude={"case_id", "error"} if self.case_id is None else {"error"})


class ScenarioReport(_Spec):
    """The runs of a scenario, and their aggregates."""

    scenario_key: str
    runs: list[RunResult]
    verdict: GateVerdict
    """The worst of its runners: for an eval file, of its gate; for a function, `error` if a run
    failed.
    """
    reasons: list[str]
    """Why it is not `pass`, with the runner if there are several."""
    aggregates: dict[str, Any]
    """`runs`, `errors`, and `validations`: `[{"validator", "issues", "summary"} | {"validator",
    "error"}]`.
    """


class EngineReport(_Spec):
    """The results of a benchmark."""

    scenario_reports: list[ScenarioReport]
    verdict: GateVerdict
    """The worst of its scenarios."""
    reasons: list[str]
    """Why it is not `pass`, with the scenario if there are several."""
    config_digest: str
    """Of the configuration."""
    warnings: list[str]
