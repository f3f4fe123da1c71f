"""`type: acme/politeness`: counts polite words."""

from pydantic import BaseModel, ConfigDict, Field

from agentv_ci.plugins import AnsweredCase, Score


class PolitenessSettings(BaseModel):
    """What authors may write beside `type: acme/politeness`."""

    model_config = ConfigDict(extra="forbid")

    words: list[str] = Field(default=["please", "thank you"], min_length=1, description="Polite words.")
    at_least: int = Field(default=1, ge=1, description="Number of polite words for a score of 1.")


class Politeness:
    """Scores the share of the polite words that an answer should have."""

    settings = PolitenessSettings

    def score(self, answer: AnsweredCase, settings: PolitenessSettings) -> Score:
        """Return the share of the words, at most 1."""
        said = [word for word in settings.words if word in answer.candidate_answer.lower()]
        missed = [] if len(said) >= settings.at_least else [f"only {len(said)} of {settings.at_least} polite words"]
        return Score(min(1.0, len(said) / settings.at_least), hits=said, misses=missed)
