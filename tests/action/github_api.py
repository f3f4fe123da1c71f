"""A double of the part of GitHub's API that the action uses: comments, pull requests, check runs, artifacts, files.

Every request and every answer is checked against GitHub's own description. Answers are the examples of the description
with the double's values.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from openapi_core import Config, OpenAPI
from openapi_core.exceptions import OpenAPIError
from openapi_core.testing import MockRequest, MockResponse

from tests.action.render_github_api import DESCRIPTION

BOT = "github-actions[bot]"
WRITES: Mapping[str, str] = {"contents": "read", "pull-requests": "write"}
"""The permissions of a workflow's token."""
LONGEST_COMMENT = 65_536
MOST_PER_PAGE = 100

COMMENTS = "/repos/{owner}/{repo}/issues/{issue_number}/comments"
COMMENT = "/repos/{owner}/{repo}/issues/comments/{comment_id}"
PULLS = "/repos/{owner}/{repo}/pulls"
CHECKS = "/repos/{owner}/{repo}/check-runs"
ACTIONS = "/repos/{owner}/{repo}/actions"
RUNS = f"{ACTIONS}/workflows/{{workflow_id}}/runs"
ARTIFACTS = f"{ACTIONS}/runs/{{run_id}}/artifacts"
ISSUES = "/repos/{owner}/{repo}/issues"
NUMBERED = {"{issue_number}", "{comment_id}"}


@dataclass(frozen=True, slots=True)
class Call:
    """One request, and the status it was answered with."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""
    text: str
    """The body as it was sent."""
    status: int

    @property
    def body(self) -> Any:
        return json.loads(self.text) if self.text else None

    @property
    def token(self) -> str:
        return self.headers.get("authorization", "").partition(" ")[2]


@dataclass(slots=True)
class Comment:
    """A comment on a pull request."""

    number: int
    author: str
    body: str


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request, as far as a search for it goes."""

    number: int
    owner: str
    branch: str
    sha: str
    state: str = "open"


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a workflow, with the artifacts that it left by their names."""

    number: int
    artifacts: Mapping[str, bytes] = field(default_factory=dict)
    """A zip file each; empty: expired."""
    event: str = "push"
    repository: str = "acme/demo"
    branch: str = "main"
    size: int | None = None
    """The size that GitHub reports for each of the artifacts, None: the true one."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How the next request with this method and path fails."""

    status: int
    message: str = "Server Error"
    method: str | None = None
    """None: any method."""
    headers: Mapping[str, str] = field(default_factory=dict)
    done: bool = False
    """Whether the request is performed, and only the answer is lost."""
    path: str | None = None
    """None: any path."""

    def is_for(self, method: str, path: str) -> bool:
        """Return whether it applies to a request."""
        return self.method in (None, method) and self.path in (None, path)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the API."""

    status: int
    body: object
    headers: Mapping[str, str] = field(default_factory=dict)
    described: bool = True
    """Whether the body must match the description; refusals are not described in full."""


@dataclass(slots=True)
class FakeGitHub:
    """The double's state.

    `permissions={}` is the token of a fork's pull request; `viewer` is the token's owner in GraphQL, None: it fails.
    """

    permissions: Mapping[str, str] = field(default_factory=lambda: WRITES)
    viewer: str | None = "github-actions"
    login: str = BOT
    """The author of new comments."""
    issue: int = 7
    """The number of the one pull request that can be commented on."""
    pulls: list[Pull] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    """Check runs as they were created and updated; annotations add up."""
    runs: list[Run] = field(default_factory=list)
    """The newest first."""
    issues: list[dict[str, Any]] = field(default_factory=list)
    """As they were created and updated."""
    repository: Path | None = None
    """The Git repository whose files can be read; None: it has none."""
    raced: str | None = None
    """The comment of another run that is posted just before the next one."""
    failures: list[Failure] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    """Where requests, or the double's own answers, do not match GitHub's description."""

    def plant(self, body: str, author: str = "stranger") -> Comment:
        """Add a comment."""
        comment = Comment(1 + max((each.number for each in self.comments), default=100), author, body)
        self.comments.append(comment)
        return comment

    def writes(self) -> list[Call]:
        """Return the calls that change comments."""
        return [call for call in self.calls if call.method != "GET" and call.path != "/graphql"]

    @contextmanager
    def running(self) -> Iterator[str]:
        """Serve on a free port of the loopback interface; yields the address."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def answer(self, method: str, target: str, headers: Mapping[str, str], text: str) -> Answer:
        """Answer one request, and record it."""
        url = urlsplit(target)
        query = dict(parse_qsl(url.query))
        failure = next((each for each in self.failures if each.is_for(method, url.path)), None)
        answer = _refused(500, "Server Error")
        if failure is None or failure.done:
            answer = self._allowed(method, url.path, query, headers, text)
        if failure is not None:
            self.failures.remove(failure)
            answer = _refused(failure.status, failure.message, headers=failure.headers)
        self.calls.append(Call(method, url.path, query, headers, text, answer.status))
        return answer

    def _allowed(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], text: str
    ) -> Answer:
        if not headers.get("user-agent"):
            return _refused(403, "Please make sure your request has a User-Agent header")
        if not re.fullmatch(r"(?i)(bearer|token) \S+", headers.get("authorization", "")):
            return _refused(401, "Requires authentication")
        return self._graphql(method, text) if path == "/graphql" else self._checked(method, path, query, text)

    def _graphql(self, method: str, text: str) -> Answer:
        if method != "POST" or "viewer" not in str(_json(text)):
            self.violations.append(f"{method} /graphql: {text[:200]}")
            return _refused(400, "A query attribute must be specified and must be a string.")
        if self.viewer is None:
            return _refused(403, "Resource not accessible by integration")
        return Answer(200, {"data": {"viewer": {"login": self.viewer}}})

    def _checked(self, method: str, path: str, query: Mapping[str, str], text: str) -> Answer:
        request = MockRequest(
            "http://api",
            method.lower(),
            path,
            args=dict(query),
            data=text.encode() or None,
            content_type="application/json",
        )
        try:
            described().validate_request(request)
        except OpenAPIError as error:
            self.violations.append(f"request {method} {path}: {_reason(error)}")
            return _refused(422, "Validation Failed") if _known(path) else _refused(404, "Not Found")
        answer = self._routed(method, path, query, _json(text))
        if answer.described:
            response = MockResponse(json.dumps(answer.body).encode(), status_code=answer.status)
            try:
                described().validate_response(request, response)
            except OpenAPIError as error:
                self.violations.append(f"answer {method} {path}: {_reason(error)}")
        return answer

    def _routed(self, method: str, path: str, query: Mapping[str, str], body: Any) -> Answer:
        is_check, is_issue = "/check-runs" in path, re.search(r"/issues(/\d+)?$", path) is not None
        needed = "checks" if is_check else "issues" if is_issue else "pull-requests"
        if method != "GET" and self.permissions.get(needed) != "write":
            return _refused(403, "Resource not accessible by integration")
        if len((body or {}).get("body", "")) > LONGEST_COMMENT:
            return _too_long()
        if is_check:
            return self._check_run(method, path, body)
        if is_issue:
            return self._issue(method, path, query, body)
        if "/actions/" in path:
            return self._actions(path, query)
        if "/contents/" in path:
            return self._contents(path, query)
        if path == "/user":
            return self._user()
        if path.endswith("/pulls"):
            return _page([_as_pull(each) for each in self._found(query)], path, query)
        return self._comments(method, path, query, body)

    def _comments(self, method: str, path: str, query: Mapping[str, str], body: Any) -> Answer:
        last = path.rstrip("/").split("/")
        if path.endswith("/comments") and last[-2] != str(self.issue):
            return _refused(404, "Not Found")
        if path.endswith("/comments") and method == "GET":
            return _page([_as_comment(each) for each in self.comments], path, query)
        if path.endswith("/comments"):
            if self.raced is not None:
                self.plant(self.raced, self.login)
            return Answer(201, _as_comment(self.plant(body["body"], self.login)))
        comment = next((each for each in self.comments if str(each.number) == last[-1]), None)
        if comment is None:
            return _refused(404, "Not Found")
        if method == "DELETE":
            self.comments.remove(comment)
            return Answer(204, None, described=False)
        if method == "PATCH":
            comment.body = body["body"]
        return Answer(200, _as_comment(comment))

    def _issue(self, method: str, path: str, query: Mapping[str, str], body: dict[str, Any]) -> Answer:
        if method == "GET":
            found = [
                each for each in self.issues if each["state"] == query["state"] and query["labels"] in each["labels"]
            ]
            return _page([_as_issue(each) for each in found], path, query)
        if method == "POST":
            issue = {"number": len(self.issues) + 1, "state": "open", "author": self.login, **body}
            self.issues.append(issue)
            return Answer(201, _as_issue(issue))
        issue = self.issues[int(path.rpartition("/")[2]) - 1]
        issue |= body
        return Answer(200, _as_issue(issue))

    def _check_run(self, method: str, path: str, body: dict[str, Any]) -> Answer:
        if method == "POST":
            check: dict[str, Any] = {"id": len(self.checks) + 1, "annotations": []}
            self.checks.append(check)
        else:
            check = self.checks[int(path.rpartition("/")[2]) - 1]
        output = body.pop("output", {})
        check |= body | {key: output[key] for key in ("title", "summary") if key in output}
        check["annotations"] += output.get("annotations", [])
        shown = example(CHECKS, "post", "201") | {"id": check["id"], "name": check["name"]}
        return Answer(201 if method == "POST" else 200, shown)

    def _actions(self, path: str, query: Mapping[str, str]) -> Answer:
        if "actions" not in self.permissions:
            return _refused(403, "Resource not accessible by integration")
        if path.endswith("/runs"):
            runs = [_as_run(each) for each in self.runs if each.branch == query["branch"]]
            return Answer(200, {"total_count": len(runs), "workflow_runs": runs})
        number = int(path.split("/")[-2])
        if path.endswith("/zip"):
            # Artifact n of a run has its number and n.
            run, place = next(each for each in self.runs if each.number == number // 10), number % 10
            return Answer(200, [*run.artifacts.values()][place], described=False)
        run = next(each for each in self.runs if each.number == number)
        found = [
            _as_artifact(run, place) for place, name in enumerate(run.artifacts) if name == query.get("name", name)
        ]
        return Answer(200, {"total_count": len(found), "artifacts": found})

    def _contents(self, path: str, query: Mapping[str, str]) -> Answer:
        file = unquote(path.partition("/contents/")[2])
        shown = ["git", "-C", str(self.repository), "show", f"{query['ref']}:{file}"]
        done = subprocess.run(shown, capture_output=True, check=False) if self.repository is not None else None
        if done is None or done.returncode != 0:
            return _refused(404, "Not Found")
        return Answer(200, done.stdout, described=False)

    def _user(self) -> Answer:
        if self.login == BOT:
            return _refused(403, "Resource not accessible by integration")
        # The description's own example does not match it.
        return Answer(200, {**example("/user", "get", "200"), "login": self.login}, described=False)

    def _found(self, query: Mapping[str, str]) -> list[Pull]:
        state, head = query.get("state", "open"), query.get("head")
        return [
            pull
            for pull in self.pulls
            if state in ("all", pull.state) and head in (None, f"{pull.owner}:{pull.branch}")
        ]


@cache
def _description() -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(DESCRIPTION.read_text("utf-8"))
    return {**spec, "servers": [{"url": "http://api"}]}


@cache
def described() -> OpenAPI:
    """Return what checks requests and answers."""
    return OpenAPI.from_dict(_description(), config=Config(spec_validator_cls=None))  # type: ignore[arg-type]


def example(path: str, method: str, status: str) -> Any:
    """Return a copy of the description's example for an answer."""
    media = _description()["paths"][path][method]["responses"][status]["content"]["application/json"]
    (shown,) = media["examples"].values()
    return copy.deepcopy(_description()["components"]["examples"][shown["$ref"].rpartition("/")[2]]["value"])


def _as_comment(comment: Comment) -> dict[str, Any]:
    shown: dict[str, Any] = example(COMMENT, "get", "200")
    shown |= {"id": comment.number, "body": comment.body}
    shown["user"] |= {"login": comment.author, "type": "Bot" if comment.author.endswith("[bot]") else "User"}
    return shown


def _as_issue(issue: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = example(ISSUES, "post", "201")
    shown |= {"id": issue["number"], **{name: issue[name] for name in ("number", "state", "title", "body")}}
    shown |= {"html_url": f"https://github.com/acme/demo/issues/{issue['number']}"}
    shown["user"] |= {"login": issue["author"]}
    return shown


def _as_pull(pull: Pull) -> dict[str, Any]:
    shown: dict[str, Any] = example(PULLS, "get", "200")[0]
    shown |= {"number": pull.number, "state": pull.state, "requested_teams": []}  # the example's are incomplete
    shown["head"] |= {"label": f"{pull.owner}:{pull.branch}", "ref": pull.branch, "sha": pull.sha}
    return shown


def _as_run(run: Run) -> dict[str, Any]:
    shown: dict[str, Any] = example(RUNS, "get", "200")["workflow_runs"][0]
    shown |= {"id": run.number, "event": run.event, "head_branch": run.branch, "head_sha": f"{run.number:040x}"}
    shown["head_repository"] |= {"full_name": run.repository}
    return shown


def _as_artifact(run: Run, place: int) -> dict[str, Any]:
    name, archive = [*run.artifacts.items()][place]
    shown: dict[str, Any] = example(ARTIFACTS, "get", "200")["artifacts"][0]
    size = len(archive) if run.size is None else run.size
    return shown | {"id": run.number * 10 + place, "name": name, "expired": not archive, "size_in_bytes": size}


def _page(found: Sequence[object], path: str, query: Mapping[str, str]) -> Answer:
    page, size = int(query.get("page", 1)), min(int(query.get("per_page", 30)), MOST_PER_PAGE)
    shown, rest = found[(page - 1) * size : page * size], found[page * size :]
    following = f'<http://api{path}?{urlencode({**query, "page": page + 1})}>; rel="next"'
    return Answer(200, list(shown), {"Link": following} if rest else {})


def _refused(
    status: int, message: str, errors: Sequence[object] = (), headers: Mapping[str, str] | None = None
) -> Answer:
    body = {"message": message, "documentation_url": "https://docs.github.com/rest", "status": str(status)}
    return Answer(status, {**body, "errors": list(errors)} if errors else body, headers or {}, described=False)


def _too_long() -> Answer:
    message = f"Body is too long (maximum is {LONGEST_COMMENT} characters)"
    refusal = {"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": message}
    return _refused(422, "Validation Failed", [refusal])


def _known(path: str) -> bool:
    return any(re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", known), path) for known in _description()["paths"])


def _json(text: str) -> Any:
    try:
        return json.loads(text or "null")
    except ValueError:
        return None


def _reason(error: OpenAPIError) -> str:
    reasons = getattr(error.__cause__, "schema_errors", None) or [error.__cause__ or error]
    return "; ".join(
        f"{'/'.join(map(str, getattr(each, 'absolute_path', ())))} {str(getattr(each, 'message', each))[:160]}".strip()
        for each in reasons
    )


def _handler(github: FakeGitHub) -> type[BaseHTTPRequestHandler]:
    one_at_a_time = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            with one_at_a_time:
                answer = github.answer(self.command, self.path, headers, text)
            data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            data = data if answer.status != 204 else b""
            self.send_response(answer.status)
            for name, value in {**answer.headers, "Content-Type": "application/json; charset=utf-8"}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = respond  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
