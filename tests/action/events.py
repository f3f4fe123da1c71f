"""The payloads of GitHub's events, as far as the action reads them."""

from __future__ import annotations

from typing import Any

ACME = {"full_name": "acme/demo", "name": "demo", "fork": False, "owner": {"login": "acme"}}
STRANGER = {"full_name": "stranger/demo", "name": "demo", "fork": True, "owner": {"login": "stranger"}}


def pull_request(sha: str, *, base: str = "2" * 40, fork: bool = False, author: str = "ada") -> dict[str, Any]:
    """A pull request whose head is `sha`."""
    head = STRANGER if fork else ACME
    owner = "stranger" if fork else "acme"
    return {
        "action": "synchronize",
        "number": 7,
        "repository": {**ACME, "default_branch": "main"},
        "sender": {"login": author},
        "pull_request": {
            "number": 7,
            "state": "open",
            "user": {"login": author},
            "head": {"ref": "feat", "label": f"{owner}:feat", "sha": sha, "repo": head, "user": {"login": owner}},
            "base": {"ref": "main", "label": "acme:main", "sha": base, "repo": ACME, "user": {"login": "acme"}},
        },
    }


def push(sha: str) -> dict[str, Any]:
    """A push to the main branch."""
    return {
        "ref": "refs/heads/main",
        "before": "2" * 40,
        "after": sha,
        "repository": {**ACME, "default_branch": "main"},
        "sender": {"login": "ada"},
        "head_commit": {"id": sha, "message": "start"},
    }


def workflow_run(sha: str, *, fork: bool = True) -> dict[str, Any]:
    """The end of a workflow that ran for a pull request whose head is `sha`."""
    head = STRANGER if fork else ACME
    return {
        "action": "completed",
        "repository": {**ACME, "default_branch": "main"},
        "sender": {"login": "ada"},
        "workflow_run": {
            "id": 30433642,
            "name": "Evals",
            "event": "pull_request",
            "status": "completed",
            "conclusion": "failure",
            "head_branch": "feat",
            "head_sha": sha,
            "head_repository": head,
            "repository": ACME,
            "pull_requests": [],
        },
    }
