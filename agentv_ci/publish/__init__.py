"""Stage 7: what a run came to, told to GitHub: annotations, a job's summary, outputs, one comment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentv_ci.contracts.action import Annotation, PastRun
from agentv_ci.publish.annotations import Wish, shown
from agentv_ci.publish.comment import Comment, NotCommented
from agentv_ci.publish.context import Access, Workflow
from agentv_ci.publish.outputs import encoded
from agentv_ci.publish.summary import fitted
from agentv_ci.redaction import MIN_LENGTH, Redactor
from agentv_ci.workflow_commands import annotation_command

__all__ = ["publish"]

CommentWish = Literal["auto", "always", "never"]


@dataclass(frozen=True, slots=True)
class Told:
    """What is to be told of a run."""

    annotations: Iterable[Annotation]
    """What matters most first."""
    text: Callable[[int], str]
    """Makes Markdown of at most so many characters."""
    outputs: Mapping[str, str]
    run: PastRun
    is_part: bool
    """Whether another run tells the whole: it is a shard, or was cancelled, such as by the next push."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the workflow wants to hear."""

    annotations: Wish
    comment: CommentWish
    key: str
    """Tells the comments of several jobs apart."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where the runner reads what a step says, and what makes outputs that nobody else could have written."""

    summary: Path | None
    outputs: Path | None
    delimiter: str


@dataclass(frozen=True, slots=True)
class Published:
    """What is left to tell and to keep."""

    comment: str
    """The comment as it would be on a pull request without one."""
    url: str | None
    """Where it is now, when it is there."""


async def publish(
    told: Told, workflow: Workflow, wishes: Wishes, places: Places, access: Access | None, say: Callable[[str], None]
) -> Published:
    """Write the summary and the outputs, and comment; `access` is None where there is no token.

    `say` prints commands to the runner, among them a notice of whatever GitHub refuses. Raises OSError where the
    runner's own files cannot be written.
    """
    redactor = _redactor(access)

    def text(limit: int) -> str:
        return redactor.text(told.text(limit))

    for each in shown(told.annotations, wishes.annotations):
        say(redactor.text(annotation_command(each)))
    if places.summary is not None:
        begun = places.summary.stat().st_size if places.summary.exists() else 0
        _append(places.summary, fitted(text, begun))
    if places.outputs is not None:
        _append(places.outputs, encoded(told.outputs, places.delimiter).encode("utf-8", "surrogateescape"))
    comment = Comment(wishes.key, text, told.run, workflow)
    url = None
    try:
        url = await _comment(comment, workflow, wishes.comment, access, is_part=told.is_part)
    except NotCommented as problem:
        said = f"{problem}; the summary of this job and comment.md say the same"
        say(annotation_command(Annotation("notice", "No comment on the pull request", said)))
    return Published(comment.text(None), url)


async def _comment(
    comment: Comment, workflow: Workflow, wish: CommentWish, access: Access | None, *, is_part: bool
) -> str | None:
    """Comment where that is wanted, and return the address; raises NotCommented where somebody will wonder."""
    if wish == "never" or (wish == "auto" and (is_part or not workflow.is_of_pull_request)):
        return None
    if not workflow.is_of_pull_request:
        raise NotCommented("this run is of no pull request")
    if access is None:
        raise NotCommented("GITHUB_TOKEN is not set; hand it to this step by `env:`")
    # httpx loads slowly, and many runs have no comment.
    from agentv_ci.publish.pull_request import comment_on

    return await comment_on(comment, workflow, access)


def _redactor(access: Access | None) -> Redactor:
    """Return what takes the job's token out: agents find it where a checkout keeps it, and GitHub masks no comments."""
    token = access.token if access is not None else ""
    return Redactor([token, f"x-access-token:{token}"] if len(token) >= MIN_LENGTH else [])


def _append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)
