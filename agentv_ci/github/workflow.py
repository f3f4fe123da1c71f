"""The workflow that this process runs in: who started it, for which commit and pull request.

Variables: GitHub Docs, "Variables reference"; events: GitHub Docs, "Webhook events and payloads".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from agentv_ci.base.json_access import count_at, read_json, text_at, value_at
from agentv_ci.contracts.base import JsonValue
from agentv_ci.errors import UsageError

GUARDED_EVENTS = frozenset({"pull_request_target", "workflow_run"})
"""Events whose workflows have secrets and a token with write access even if an outsider caused
them.
"""
_PULL_REQUEST = re.compile(r"refs/pull/(\d{1,18})/", re.ASCII)
_WORKFLOW = re.compile(r"\.github/workflows/([\w.-]+\.ya?ml)(?:@|\Z)", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
OF_PULL_REQUESTS = frozenset({"pull_request", "pull_request_review", "pull_request_review_comment"})
"""Events of pull requests; those from forks have no secrets."""
OF_BRANCHES = frozenset({"push", "create", "deployment", "deployment_status"})
"""More events without secrets if Dependabot causes them (GitHub Docs, "Dependabot on GitHub
Actions").
"""
OF_CHANGES = OF_PULL_REQUESTS | {"pull_request_target", "merge_group"}
"""Events of what is to be merged, and may have changed any file."""
OF_BRANCH_ITSELF = frozenset({"push", "schedule", "workflow_dispatch"})
"""Events whose runs are about a branch as it is."""
DEPENDABOT = "dependabot[bot]"


class Head(Struct, frozen=True):
    """The commit to be merged."""

    sha: str
    repository: str | None
    """`owner/name`; None: it was deleted."""
    owner: str | None
    branch: str | None


class Workflow(Struct, frozen=True):
    """A run of a workflow."""

    event: str
    repository: str
    """`owner/name`."""
    server_url: str
    api_url: str
    graphql_url: str
    commit: str
    """The commit that is checked out by default; empty: unknown."""
    name: str
    file: str
    """The name of the file that produced the results; empty: unknown."""
    job: str
    run_id: int
    run_attempt: int
    actor: str
    """Who caused the event."""
    pull_request: int | None
    """Its number, if the event has it."""
    head: Head | None
    """The head of the pull request or, in a `workflow_run`, of the run that caused it."""
    base_commit: str | None
    base_branches: tuple[str, ...]
    """Branches that need write access to change."""
    is_of_pull_request: bool
    """Whether there is a pull request to comment on."""
    is_contradictory: bool = False
    """Whether the event's payload, a file that agents can write, names another pull request than
    the runner.
    """
    base_branch: str | None = None
    """The branch that a change is to be merged into, if this is a run of a change."""
    branch: str | None = None
    """The branch that it runs on; None for a tag, and for changes."""

    @property
    def shown_commit(self) -> str:
        """The commit to show.

        Of a pull request it is the head, since its merge commit is not on a branch.
        """
        return self.head.sha if self.head is not None else self.commit

    @property
    def is_of_change(self) -> bool:
        """Whether it runs what is to be merged.

        Its own quarantine, baseline and history do not count.
        """
        return self.event in OF_CHANGES

    @property
    def is_of_default_branch(self) -> bool:
        """Whether it runs what is on the default branch."""
        if self.event == "schedule":
            # It runs on no other branch, and its payload does not name the repository.
            return self.branch is not None
        return self.event in OF_BRANCH_ITSELF and self.branch in self.base_branches[-1:]

    @property
    def is_from_fork(self) -> bool:
        """Whether the head is in another repository."""
        return self.head is not None and self.head.repository != self.repository

    @property
    def is_guarded(self) -> bool:
        """Whether the job has secrets although an outsider may have caused the event.

        An unknown author counts as an outsider.
        """
        return self.event in GUARDED_EVENTS and (self.head is None or self.is_from_fork)

    @property
    def lacks_secrets(self) -> bool:
        """Whether GitHub withholds secrets and write access from this run."""
        if self.actor == DEPENDABOT:
            return self.event in OF_PULL_REQUESTS | OF_BRANCHES
        return self.event in OF_PULL_REQUESTS and self.is_from_fork

    @property
    def run_url(self) -> str:
        """The address of this run."""
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}"


def read_workflow(environ: Mapping[str, str]) -> Workflow | None:
    """Return the workflow that the environment and the event's payload describe.

    None outside GitHub Actions.
    """
    if environ.get("GITHUB_ACTIONS") != "true":
        return None
    path = environ.get("GITHUB_EVENT_PATH")
    try:
        event = read_json(Path(path).read_text("utf-8")) if path else None
    except (OSError, ValueError):
        event = None
    return workflow_of(environ, event)


def require_workflow(environ: Mapping[str, str]) -> Workflow:
    """Return the workflow that this process runs in; raises UsageError outside GitHub Actions."""
    workflow = read_workflow(environ)
    if workflow is None:
        raise UsageError("not running in GitHub Actions", hint="use `agentv-ci report` elsewhere")
    return workflow


def workflow_of(environ: Mapping[str, str], event: JsonValue) -> Workflow:
    """Return the workflow that variables and the event's payload describe."""
    server = environ.get("GITHUB_SERVER_URL") or "https://github.com"
    api = environ.get("GITHUB_API_URL") or "https://api.github.com"
    name, commit = environ.get("GITHUB_EVENT_NAME", ""), environ.get("GITHUB_SHA", "")
    ref = _PULL_REQUEST.match(environ.get("GITHUB_REF", ""))
    number = count_at(event, "pull_request", "number")
    branches = (
        text_at(event, "pull_request", "base", "ref"),
        text_at(event, "repository", "default_branch"),
    )
    return Workflow(
        event=name,
        repository=environ.get("GITHUB_REPOSITORY", ""),
        server_url=server,
        api_url=api,
        graphql_url=environ.get("GITHUB_GRAPHQL_URL") or f"{api}/graphql",
        commit=commit if _COMMIT.fullmatch(commit) else "",
        name=environ.get("GITHUB_WORKFLOW", ""),
        file=_file(
            text_at(event, "workflow_run", "path") or environ.get("GITHUB_WORKFLOW_REF", "")
        ),
        job=environ.get("GITHUB_JOB", ""),
        run_id=_number(environ.get("GITHUB_RUN_ID")),
        run_attempt=_number(environ.get("GITHUB_RUN_ATTEMPT")),
        actor=text_at(event, "sender", "login") or environ.get("GITHUB_ACTOR", ""),
        pull_request=number,
        head=_head(name, event),
        base_commit=text_at(event, "pull_request", "base", "sha"),
        base_branches=tuple(filter(None, branches)),
        is_of_pull_request=number is not None
        or text_at(event, "workflow_run", "event") in ("pull_request", "pull_request_target"),
        is_contradictory=ref is not None and int(ref[1]) != number,
        base_branch=_base_branch(name, environ, event),
        branch=_branch(environ.get("GITHUB_REF", "")),
    )


def _branch(ref: str) -> str | None:
    if not ref.startswith("refs/heads/"):
        return None
    return ref.removeprefix("refs/heads/")


def _base_branch(name: str, environ: Mapping[str, str], event: JsonValue) -> str | None:
    if name == "merge_group":
        return (text_at(event, "merge_group", "base_ref") or "").removeprefix("refs/heads/") or None
    return environ.get("GITHUB_BASE_REF") or text_at(event, "pull_request", "base", "ref")


def _head(name: str, event: JsonValue) -> Head | None:
    if name == "workflow_run":
        head = value_at(event, "workflow_run")
        sha, branch = text_at(head, "head_sha"), text_at(head, "head_branch")
        repository = value_at(head, "head_repository")
    else:
        head = value_at(event, "pull_request", "head")
        sha, branch = text_at(head, "sha"), text_at(head, "ref")
        repository = value_at(head, "repo")
    if sha is None or not _COMMIT.fullmatch(sha):
        return None
    return Head(
        sha, text_at(repository, "full_name"), text_at(repository, "owner", "login"), branch
    )


def _file(path: str) -> str:
    """Return the file name in a path.

    A path is such as `acme/demo/.github/workflows/evals.yml@refs/heads/main`.
    """
    found = _WORKFLOW.search(path)
    return found[1] if found else ""


def _number(text: str | None) -> int:
    if text is None or not (text.isascii() and text.isdigit() and len(text) < 19):
        return 0
    return int(text)
