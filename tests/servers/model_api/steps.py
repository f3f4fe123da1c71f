"""What the server does when it is asked: one step per question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.servers.model_api.dialect import ANSWER, Answer, Dialect, Trouble
from tests.servers.model_api.wire import Asked, Reply, pieces


@dataclass(frozen=True, slots=True)
class Step:
    """How one question is answered, in whichever protocol it was asked."""

    reply: Callable[[Dialect, Asked], Reply]


def answers_with(answer: Answer) -> Step:
    """Say anything that a model can say."""
    return Step(lambda dialect, asked: dialect.answer(asked, answer))


def says(text: str = ANSWER) -> Step:
    """Answer with a text."""
    return answers_with(Answer(text))


def calls_tool(command: str, text: str = ANSWER) -> Step:
    """Ask the agent to run a shell command.

    The answer is the text when no tool is declared, or when the request carries a tool's result already.
    """
    return answers_with(Answer(text, command=command))


def reasons(text: str = ANSWER, thought: str = "mock thought") -> Step:
    """Think aloud, then answer with a text."""
    return answers_with(Answer(text, thought=thought))


def refuses(text: str = "I can't help with that.") -> Step:
    """Refuse, as the model's own decision."""
    return answers_with(Answer(text, stop="refusal"))


def filters() -> Step:
    """Hold the answer back for its content, with status 200."""
    return answers_with(Answer(stop="filter"))


def filters_prompt() -> Step:
    """Refuse the prompt for its content: Azure with status 400, the others with what they have for it."""
    return Step(lambda dialect, asked: dialect.filtered_prompt(asked))


def truncates(text: str = ANSWER) -> Step:
    """Stop at the limit of tokens."""
    return answers_with(Answer(text, stop="length"))


def fails(status: int, message: str = "mock failure", *, retry_after_s: float | None = None) -> Step:
    """Answer with an error of the vendor."""
    trouble = Trouble(status, message, retry_after_s=retry_after_s)
    return Step(lambda dialect, _asked: dialect.error(trouble))


def rejects(parameter: str, *, new_name: str | None = None) -> Step:
    """Refuse a parameter as unsupported for as long as the request carries it; then answer.

    OpenAI's chat completions let a temperature or top_p of 1 pass.
    """

    def reply(dialect: Dialect, asked: Asked) -> Reply:
        trouble = dialect.unsupported(asked, parameter, new_name)
        return dialect.error(trouble) if trouble else dialect.answer(asked, Answer())

    return Step(reply)


def lacks_quota() -> Step:
    """Say that nothing is left to spend: status 429, but no retry will help."""
    return Step(lambda dialect, _asked: dialect.lacks_quota())


def failed_inside() -> Step:
    """Report an error behind status 200."""
    return Step(lambda dialect, asked: dialect.failed_inside(asked))


def garbage(status: int = 200) -> Step:
    """Answer with HTML, as a proxy would."""
    reply = Reply(status, b"<html><body>not the API</body></html>", {"content-type": "text/html"})
    return Step(lambda _dialect, _asked: reply)


def cuts(text: str = ANSWER) -> Step:
    """Drop the connection in the middle of the answer; a stream has begun with the text by then."""

    def reply(dialect: Dialect, asked: Asked) -> Reply:
        whole = dialect.answer(asked, Answer(text))
        if not whole.streamed:
            return replace(whole, cut_at=len(whole.body) // 2)
        begun = whole.body.find(pieces(text)[0].encode())
        return replace(whole, cut_at=whole.body.find(b"data:", begun) + 20)

    return Step(reply)
