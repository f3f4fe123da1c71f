"""Publish a run on GitHub: annotations, the job summary, outputs, one check run, one comment.

GitHub keeps ten annotations per level for a whole action (actions/runner, `ExecutionContext`).
It does not show a summary larger than 1 MiB (GitHub Docs, "Workflow commands").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.base.redaction import Redactor
from agentv_ci.base.secret_values import MIN_LENGTH
from agentv_ci.base.text import counted, shortened, without_commands
from agentv_ci.base.workflow_commands import annotation_command
from agentv_ci.contracts.action import Annotation, Level, PastRun
from agentv_ci.contracts.exchange import Environment
from agentv_ci.github.check import MAX_SHOWN, MAX_SUMMARY, Check, Conclusion
from agentv_ci.github.check_posting import create_check
from agentv_ci.github.comment import Comment
from agentv_ci.github.comment_posting import comment_on
from agentv_ci.github.refusals import NotPermitted, NotPublished
from agentv_ci.github.workflow import Workflow

AnnotationMode = Literal["all", "failures", "none"]
CommentMode = Literal["auto", "always", "never"]
HistoryMode = Literal["off", "read", "write"]

MAX_ANNOTATIONS: Mapping[Level, int] = {"error": 9, "warning": 9, "notice": 7}
"""The tenth error is the runner's own, for the failed step. Three notices are reserved: one counts
what is not shown, the others explain a missing check run and a missing comment.
"""
MAX_MESSAGE = 4_000
"""Characters; the runner cuts messages after 4,096."""
MAX_SUMMARY_BYTES = 1_000_000
MIN_SUMMARY_CHARACTERS = 20_000


class Publication(Struct, frozen=True):
    """What to publish of a run."""

    annotations: Iterable[Annotation]
    """The most important first."""
    text: Callable[[int, PastRun | None], str]
    """Returns Markdown of at most so many characters, and compares with the last run, if there was
    one.
    """
    outputs: Mapping[str, str]
    run: PastRun
    is_part: bool
    """Whether the run is incomplete: a shard, or cancelled, such as by the next push."""
    conclusion: Conclusion
    """What a check run concludes."""


class PublishOptions(Struct, frozen=True):
    """The settings of the workflow, and the runner's files."""

    annotations: AnnotationMode
    comment: CommentMode
    check: bool
    """Whether to create a check run."""
    key: str
    """Distinguishes the comments and check runs of several jobs."""
    history: HistoryMode
    """Whether the ledger is read, or also written by runs of the default branch."""
    base_artifact: str
    """The artifact of the base branch to compare a pull request with; empty: none."""
    summary: Path | None
    outputs: Path | None
    delimiter: str
    """Separates outputs; a random text that their values cannot contain."""


async def publish(
    publication: Publication,
    workflow: Workflow,
    options: PublishOptions,
    *,
    token: str | None,
    environment: Environment,
    say: Callable[[str], None],
) -> tuple[str, str | None]:
    """Write the summary and the outputs, create the check run, and comment.

    Returns the text of a first comment, and the address of the comment if one was written. `say`
    prints commands to the runner, including a notice if GitHub refuses something. Raises OSError if
    the runner's files cannot be written.
    """
    redactor = _redactor(token or "")

    def text(limit: int, last: PastRun | None = None) -> str:
        return redactor.text(publication.text(limit, last))

    shown = [*selected(publication.annotations, options.annotations)]
    if options.check and not publication.is_part:
        check = Check(
            options.key,
            publication.conclusion,
            text(MAX_SUMMARY),
            _redacted(shown, redactor),
            workflow.run_url,
        )
        try:
            await _create_check(check, workflow, token, environment)
            shown = [each for each in shown if each.path is None]
        except NotPublished as problem:
            say(
                annotation_command(
                    Annotation(
                        "notice", "No check run", f"{problem}; annotations are limited to ten"
                    )
                )
            )
    for each in limited(shown):
        say(redactor.text(annotation_command(each)))
    if options.summary is not None:
        begun = options.summary.stat().st_size if options.summary.exists() else 0
        _append(options.summary, summary(text, begun))
    if options.outputs is not None:
        _append(
            options.outputs,
            outputs(publication.outputs, options.delimiter).encode("utf-8", "surrogateescape"),
        )
    comment = Comment(options.key, text, publication.run, workflow)
    url = None
    try:
        is_expected = workflow.is_of_pull_request and not publication.is_part
        if options.comment == "always" or (options.comment == "auto" and is_expected):
            url = await _comment(comment, workflow, token, environment)
    except NotPublished as problem:
        if isinstance(problem, NotPermitted) and options.comment == "auto":
            # Such as in a workflow that wants no comment.
            say(without_commands(f"no comment: {problem}"))
            return comment.text(None), None
        message = f"{problem}; see the job summary or comment.md instead"
        say(annotation_command(Annotation("notice", "No comment on the pull request", message)))
    return comment.text(None), url


async def _create_check(
    check: Check, workflow: Workflow, token: str | None, environment: Environment
) -> None:
    if not workflow.shown_commit:
        raise NotPublished("the commit is unknown")
    await create_check(check, workflow, _required(token, workflow), environment)


async def _comment(
    comment: Comment, workflow: Workflow, token: str | None, environment: Environment
) -> str:
    if not workflow.is_of_pull_request:
        raise NotPublished("this run does not belong to a pull request")
    return await comment_on(comment, workflow, _required(token, workflow), environment)


def _required(token: str | None, workflow: Workflow) -> str:
    """Return the token; raises NotPublished without one, or if it must not be used."""
    if workflow.is_contradictory:
        raise NotPublished("the event and GITHUB_REF name different pull requests")
    if token is None:
        raise NotPublished("GITHUB_TOKEN is not set; pass it to this step in `env:`")
    return token


def selected(annotations: Iterable[Annotation], mode: AnnotationMode) -> Iterator[Annotation]:
    """Yield the annotations that the workflow wants."""
    for each in annotations:
        is_failure = each.level == "error" or each.is_failure
        if mode == "all" or (mode == "failures" and is_failure):
            yield each


def limited(annotations: Iterable[Annotation]) -> Iterator[Annotation]:
    """Yield the annotations that GitHub keeps, in their order.

    A last one counts the others.
    """
    seen: Counter[Level] = Counter()
    for each in annotations:
        seen[each.level] += 1
        if seen[each.level] <= MAX_ANNOTATIONS[each.level]:
            yield replace(each, message=shortened(each.message, MAX_MESSAGE))
    excess: list[str] = []
    for level, number in seen.items():
        if number > MAX_ANNOTATIONS[level]:
            excess.append(counted(number - MAX_ANNOTATIONS[level], f"more {level}"))
    if excess:
        more = ", ".join(excess)
        yield Annotation(
            "notice",
            "Some annotations are not shown",
            f"{more}: see the job summary and the reports",
        )


def summary(text: Callable[[int], str], before: int) -> bytes:
    """Return the longest summary that fits after `before` bytes; empty if there is no room.

    `text` returns a summary of at most so many characters.
    """
    limit = left = MAX_SUMMARY_BYTES - before
    while limit >= MIN_SUMMARY_CHARACTERS:
        if len(made := text(limit).encode("utf-8", "replace")) <= left:
            return made
        # A character may have up to four bytes.
        limit = limit * 3 // 4
    return b""


def outputs(values: Mapping[str, str], delimiter: str) -> str:
    """Return the outputs as the runner reads them (GitHub Docs, "Setting an output parameter")."""
    return "".join(f"{name}<<{delimiter}\n{value}\n{delimiter}\n" for name, value in values.items())


def _redactor(token: str) -> Redactor:
    """Return a redactor for the job's token.

    Agents may find the token in a checkout, and GitHub does not mask comments.
    """
    return Redactor([token, f"x-access-token:{token}"] if len(token) >= MIN_LENGTH else [])


def _redacted(annotations: Iterable[Annotation], redactor: Redactor) -> list[Annotation]:
    """Return the annotations that a check run can show, which need a path."""
    shown = islice((each for each in annotations if each.path is not None), MAX_SHOWN)
    return [
        replace(each, title=redactor.text(each.title), message=redactor.text(each.message))
        for each in shown
    ]


def _append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)
