"""`provider: acme/bot`: an agent that is called from Python."""

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from agentv_ci.plugins import Answer, ProviderError, Question, Usage


class BotSettings(BaseModel):
    """What authors may write beside `provider: acme/bot`."""

    model_config = ConfigDict(extra="forbid")

    greeting: str = Field(description="How an answer begins.")
    token: SecretStr | None = Field(default=None, description="Key of the bot, as ${{ NAME }}.")


class Bot:
    """Repeats the question, politely."""

    settings = BotSettings

    async def ask(self, question: Question, settings: BotSettings) -> Answer:
        """Return the answer; a real provider awaits its client here."""
        if not question.prompt.strip():
            raise ProviderError("request", "the question is empty")
        text = f"{settings.greeting} You said: {question.prompt.strip()}. Thank you!"
        read, written = len(question.prompt.split()), len(text.split())
        usage = Usage(input_tokens=read, output_tokens=written, total_tokens=read + written)
        return Answer(text=text, usage=usage, model="acme-bot-1")
