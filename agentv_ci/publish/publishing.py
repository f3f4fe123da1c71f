"""What a run came to, published on GitHub: annotations, a job's summary, the step's outputs, one comment.

Of a whole action GitHub keeps ten annotations a level (actions/runner, `ExecutionContext`), and it shows no summary
that is larger than 1 MiB (GitHub Docs, "Workflow commands").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from agentv_ci.contracts.action import Annotation, Level, PastRun
from agentv_ci.contracts.exchange import Environment
from agentv_ci.publish.comment import Comment, NotCommented
from agentv_ci.publish.workflow import Workflow
from agentv_ci.redaction import MIN_LENGTH, Redactor
from agentv_ci.text import counted, shortened
from agentv_ci.workflow_commands import annotation_command

AnnotationMode = Literal["all", "failures", "none"]
CommentMode = Literal["auto", "always", "never"]

MAX_ANNOTATIONS: Mapping[Level, int] = {"error": 9, "warning": 9, "notice": 8}
"""The tenth error is the runner's own, that the step has failed; a notice says what is not shown, another one what
became of the comment."""
MAX_MESSAGE = 4_000
"""Characters; the runner cuts what is longer than 4,096."""
MAX_SUMMARY_BYTES = 1_000_000
MIN_SUMMARY_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class Publication:
    """What is published of a run."""

    annotations: Iterable[Annotation]
    """What matters most first."""
    text: Callable[[int], str]
    """Makes Markdown of at most so many characters."""
    outputs: Mapping[str, str]
    run: PastRun
    is_part: bool
    """Whether another run has the whole: it is a shard, or was cancelled, such as by the next push."""


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """What the workflow asks for, and where the runner reads it."""

    annotations: AnnotationMode
    comment: CommentMode
    comment_key: str
    """Distinguishes the comments of several jobs."""
    summary: Path | None
    outputs: Path | None
    delimiter: str
    """Separates outputs; nothing that they hold can be it."""


async def publish(
    publication: Publication,
    workflow: Workflow,
    options: PublishOptions,
    *,
    token: str | None,
    environment: Environment,
    say: Callable[[str], None],
) -> tuple[str, str | None]:
    """Write the summary and the outputs, and comment.

    Returns the comment as it would be on a pull request without one, and its address when it is on one. `say` prints
    commands to the runner, among them a notice of whatever GitHub refuses. Raises OSError where the runner's own files
    cannot be written.
    """
    redactor = _redactor(token or "")

    def text(limit: int) -> str:
        return redactor.text(publication.text(limit))

    for each in limited(publication.annotations, options.annotations):
        say(redactor.text(annotation_command(each)))
    if options.summary is not None:
        begun = options.summary.stat().st_size if options.summary.exists() else 0
        _append(options.summary, summary(text, begun))
    if options.outputs is not None:
        _append(options.outputs, outputs(publication.outputs, options.delimiter).encode("utf-8", "surrogateescape"))
    comment = Comment(options.comment_key, text, publication.run, workflow)
    url = None
    try:
        is_expected = workflow.is_of_pull_request and not publication.is_part
        if options.comment == "always" or (options.comment == "auto" and is_expected):
            url = await _comment(comment, workflow, token, environment)
    except NotCommented as problem:
        message = f"{problem}; the summary of this job and comment.md say the same"
        say(annotation_command(Annotation("notice", "No comment on the pull request", message)))
    return comment.text(None), url


async def _comment(comment: Comment, workflow: Workflow, token: str | None, environment: Environment) -> str:
    """Comment, and return the address; raises NotCommented."""
    if not workflow.is_of_pull_request:
        raise NotCommented("this run is of no pull request")
    if token is None:
        raise NotCommented("GITHUB_TOKEN is not set; hand it to this step by `env:`")
    # httpx loads slowly, and many runs have no comment.
    from agentv_ci.publish.comment_posting import comment_on

    return await comment_on(comment, workflow, token, environment)


def limited(annotations: Iterable[Annotation], mode: AnnotationMode) -> Iterator[Annotation]:
    """Yield the annotations to show, in their order, and one that counts the others."""
    if mode == "none":
        return
    seen: Counter[Level] = Counter()
    for each in annotations:
        if mode == "failures" and each.level != "error" and not each.is_failure:
            continue
        seen[each.level] += 1
        if seen[each.level] <= MAX_ANNOTATIONS[each.level]:
            yield replace(each, message=shortened(each.message, MAX_MESSAGE))
    excess = {level: number - MAX_ANNOTATIONS[level] for level, number in seen.items()}
    if more := ", ".join(counted(number, level) for level, number in excess.items() if number > 0):
        yield Annotation("notice", "More than is shown here", f"{more} more: see the job summary and the reports")


def summary(text: Callable[[int], str], before: int) -> bytes:
    """Return the longest summary that is shown behind `before` bytes; empty when there is no room for one.

    `text` makes one of at most so many characters.
    """
    limit = left = MAX_SUMMARY_BYTES - before
    while limit >= MIN_SUMMARY_CHARACTERS:
        if len(made := text(limit).encode("utf-8", "replace")) <= left:
            return made
        # A character may have up to four bytes.
        limit = limit * 3 // 4
    return b""


def outputs(values: Mapping[str, str], delimiter: str) -> str:
    """Return what is appended to the file of outputs (GitHub Docs, "Setting an output parameter")."""
    return "".join(f"{name}<<{delimiter}\n{value}\n{delimiter}\n" for name, value in values.items())


def _redactor(token: str) -> Redactor:
    """Return what takes the job's token out: agents find it where a checkout keeps it, and GitHub masks no comments."""
    return Redactor([token, f"x-access-token:{token}"] if len(token) >= MIN_LENGTH else [])


def _append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)
