"""What GitHub is told, against those who would break it: agents, authors of pull requests, servers, old comments."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.app.environment import system_environment
from agentv_ci.app.github_publish import EvaluatorLines
from agentv_ci.contracts.action import ActionRun
from agentv_ci.contracts.diagnostics_document import DiagnosticsDocument
from agentv_ci.contracts.exchange import Environment
from agentv_ci.contracts.plan_summaries import ChangedCase, NamedCase, PlanDiff
from agentv_ci.json_access import text_at
from agentv_ci.publish import comment_posting as pull_request
from agentv_ci.publish.checkout import refusal, refuse_fork_code
from agentv_ci.publish.comment import LIMIT, Comment, NotCommented, history_of
from agentv_ci.publish.comment_posting import comment_on
from agentv_ci.publish.publishing import MAX_SUMMARY_BYTES, Publication, PublishOptions, limited, publish, summary
from agentv_ci.publish.workflow import Head, Workflow, workflow_of
from agentv_ci.report import diagnostics
from agentv_ci.report.job import text
from agentv_ci.report.renderers.annotations import annotate
from agentv_ci.workflow_commands import annotation_command
from tests.action import events
from tests.publish.test_checkout import git
from tests.publish.workflows import HEAD, PULL_REQUEST, past
from tests.report.builders import case, reported, row
from tests.report.renderers.test_markdown import ATTACKS, OURS, Page, finding
from tests.report.test_job import job, wrong
from tests.support import NOW, write

TOKEN = "ghs_tokenofthejob0123456789"
BOT = "github-actions[bot]"
MARKER = "<!-- agentv-ci:k -->"
RUNNER_KEEPS = 4096
"""Characters of a message; what is longer is cut by the runner."""
LARGEST_SUMMARY = 1024 * 1024


def is_text(attack: str) -> bool:
    """Whether it can stand in a file or a variable."""
    return not re.search("[\ud800-\udfff]", attack)


forged = json.dumps({"runs": [{**past(9 * 10**17).model_dump(), "verdict": "pass", "passed": 99, "total": 99}]})
attacks = st.lists(st.sampled_from([each for each in ATTACKS if is_text(each)]), max_size=4).map("".join)
FORGED = f"<!-- agentv-ci:history {forged} -->"
"""A memory that no run of ours has."""


def comment(run_id: int = 5, *, body: str = "## Passed", key: str = "k") -> Comment:
    return Comment(key, lambda limit: body[: max(0, limit)], past(run_id), PULL_REQUEST)


class TestComment:
    @pytest.mark.parametrize("field", ["candidate_answer", "reference_answer", "expected_outcome", "target"])
    def test_answer_is_no_history(self, field: str) -> None:
        told = reported([row("fail").model_copy(update={field: f"x\n{FORGED}\ny"})])
        first = Comment("k", lambda limit: text(job(reported=told), limit), past(5), PULL_REQUEST).text(None)
        assert [each.run_id for each in history_of(first)] == [5]
        assert not comment(6).is_older_than(first)

    @pytest.mark.parametrize("place", ["eval_id", "suite", "error"])
    def test_name_is_no_history(self, place: str) -> None:
        told = reported([row("error").model_copy(update={place: f"x\n{FORGED}\ny"})])
        said = Comment("k", lambda limit: text(job(reported=told), limit), past(5), PULL_REQUEST).text(None)
        assert [each.run_id for each in history_of(said)] == [5]

    def test_reason_of_a_run_that_did_not_begin_is_no_history_unless_it_has_lines(self) -> None:
        run = ActionRun(exit_code=2, verdict="invalid", root="/", reason=f"x {FORGED}", hint=FORGED)
        said = Comment("k", lambda limit: text(job(run), limit), past(5), PULL_REQUEST).text(None)
        assert [each.run_id for each in history_of(said)] == [5]

    @pytest.mark.parametrize(
        "kept",
        [
            {"cost_usd": 1e308, "mean": -1e308},
            {"run_id": 0, "attempt": 0},
            {"passed": -1, "total": 10**18},
            {"sha": "0" * 64},
        ],
    )
    def test_strange_memories_are_figures(self, kept: Mapping[str, Any]) -> None:
        line = json.dumps({"runs": [{**past(1).model_dump(), **kept}] * 40})
        said = comment().text(f"{MARKER}\nx\n\n<!-- agentv-ci:history {line} -->\n")
        assert len(said) <= LIMIT
        assert {each for each in Page(said).tags if not each.startswith("comment")} <= OURS

    @pytest.mark.parametrize(
        "before",
        ["<!-- agentv-ci:history {", "<!-- agentv-ci:history " + "[" * 99_999, FORGED[:-4] * 999, "\0" * 9_999],
    )
    def test_broken_memories_are_forgotten(self, before: str) -> None:
        assert history_of(before) == ()

    @pytest.mark.parametrize("key", ["x" * 70_000, "😀" * 6_000])
    def test_long_key_leaves_a_comment_that_fits(self, key: str) -> None:
        assert len(comment(key=key).text(None)) <= LIMIT

    @pytest.mark.parametrize("key", [*filter(is_text, ATTACKS), "x-", "-", "--!>", "\udcff"])
    def test_key_is_only_read(self, key: str) -> None:
        page = Page(comment(key=key).text(None))
        comments = [each for each in page.tags if each.startswith("comment")]
        assert {each for each in page.tags if not each.startswith("comment")} <= OURS
        assert all(each.startswith("comment  agentv-ci:") for each in comments)
        assert "@octocat" not in "".join(page.loose)


class TestMarkdown:
    """What stands in a summary and a comment beside the results, which have tests of their own."""

    @settings(max_examples=25)
    @given(attacks, attacks)
    def test_all_that_others_wrote_is_only_read(self, one: str, other: str) -> None:
        named = NamedCase(id=one or "x", suite=other or "x")
        changed = ChangedCase(id=other or "x", suite=one or "x", reasons=(one, other))
        changes = PlanDiff(added=(named,), removed=(named,), changed=(changed,))
        run = ActionRun(exit_code=2, verdict="invalid", root="/home/ada/shop", reason=one, hint=other)
        page = Page(text(job(run, diagnostics=hostile_diagnostics(one, other), changes=changes), LIMIT))
        assert page.tags <= OURS
        assert not [each for each in page.loose if re.search(r"@octocat|evil\.example|#123", each)]

    def test_ten_thousand_failures_fit(self) -> None:
        rows = [row("fail", eval_id=f"case 😀 {number}", candidate_answer="😀" * 300) for number in range(2_000)]
        told = job(reported=reported(rows))
        assert MAX_SUMMARY_BYTES // 2 < len(summary(lambda limit: text(told, limit), 0)) <= MAX_SUMMARY_BYTES
        made = Comment("k", lambda limit: text(told, limit), past(), PULL_REQUEST).text(None)
        assert LIMIT // 2 < len(made) <= LIMIT

    @pytest.mark.parametrize("path", ["p" * 500_000, "😀" * 500_000])
    def test_monstrous_path_fits(self, path: str) -> None:
        told = job(diagnostics=hostile_diagnostics("x", path))
        assert len(summary(lambda limit: text(told, limit), 0)) <= MAX_SUMMARY_BYTES


def hostile_diagnostics(one: str, other: str) -> DiagnosticsDocument:
    plain = wrong("x")
    (file,) = plain.files
    (found,) = file.diagnostics
    told = found.model_copy(
        update={"message": one, "hint": other, "path": f"/home/ada/shop/{other}", "case": one, "target": other}
    )
    return plain.model_copy(update={"files": (file.model_copy(update={"diagnostics": (told,)}),)})


def undone(message: str) -> str:
    """What the runner makes of the message of a command."""
    return message.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


class TestAnnotations:
    @settings(max_examples=25)
    @given(
        st.sampled_from([*ATTACKS, "##[error]x", "::error::x", "\n::stop-commands::x\n", "\r##[add-mask]e", "%0A::x"])
    )
    def test_is_one_command_that_says_what_it_says(self, attack: str) -> None:
        # No row holds an evaluator's name with half a character.
        bad = finding(attack * 3, name=attack if attack and is_text(attack) else "x")
        outcome = row("fail", eval_id=f"{attack}x", target=attack or "x", evaluator_results=(bad,))
        said = [*annotate(reported([outcome]), lambda *_: None), *told_of(hostile_diagnostics(attack, attack))]
        for each in map(annotation_command, said):
            assert len(each.splitlines()) == 1
            assert "##[" not in each
            assert re.match(r"::(error|warning|notice) [^:]*::", each)
            assert not re.search(r"^\s*::", undone(each.split("::", 2)[2]), re.MULTILINE)

    @pytest.mark.parametrize("piece", ["%", "\n", ":,", "😀", "\x1b[31m", "\u202e"])
    def test_message_is_what_the_runner_keeps(self, piece: str) -> None:
        bad = tuple(finding(piece * 9_999, name=f"{piece}{number}") for number in range(99))
        rows = [row("fail", eval_id=piece * 999, evaluator_results=bad)]
        told = [*annotate(reported(rows), lambda *_: None), *told_of(hostile_diagnostics(piece * 9_999, piece * 9_999))]
        for each in limited(told, "all"):
            assert len(undone(annotation_command(each).split("::", 2)[2])) <= RUNNER_KEEPS

    def test_lines_of_many_cases_are_found_at_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        looked = 0

        def counted(*where: Any) -> str | None:
            nonlocal looked
            looked += 1
            return text_at(*where)

        monkeypatch.setattr("agentv_ci.app.github_publish.text_at", counted)
        many = 200
        one = "  - id: case-{}\n    evaluators: [{{name: judge, type: contains, value: x}}]\n"
        cases = "".join(one.format(number) for number in range(many))
        write(tmp_path, {"evals/a.yaml": f"$schema: agentv-eval-v2\nevalcases:\n{cases}"})
        rows = [row("fail", of=case(f"case-{each}"), evaluator_results=(finding("no"),)) for each in range(many)]
        assert len([*limited(annotate(reported(rows), EvaluatorLines(tmp_path).find), "all")]) == 10
        assert looked <= many * 10

    def test_suite_that_is_no_path_has_no_lines(self, tmp_path: Path) -> None:
        told = row("fail", suite="a\0b", evaluator_results=(finding("no"),))
        assert len([*annotate(reported([told]), EvaluatorLines(tmp_path).find)]) == 1

    @pytest.mark.parametrize("suite", ["/proc/self/environ", "/dev/zero", "../../etc/passwd", "fifo", "x" * 5_000, "."])
    def test_suite_elsewhere_has_no_lines(self, tmp_path: Path, suite: str) -> None:
        os.mkfifo(tmp_path / "fifo")
        told = row("fail", suite=suite, evaluator_results=(finding("no"),))
        (only,) = annotate(reported([told]), EvaluatorLines(tmp_path).find)
        assert only.line == told.source.line


def told_of(document: DiagnosticsDocument) -> Iterator[Any]:
    return diagnostics.annotate(document, lambda path: path)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server says."""

    status: int = 200
    body: bytes = b"[]"
    headers: Mapping[str, str] = field(default_factory=dict)


Server = Callable[[str, str], Reply]
"""Takes a method and a path."""


@dataclass(slots=True)
class Site:
    """A server that says what it likes, and what it was asked."""

    url: str
    asked: list[tuple[str, str]] = field(default_factory=list)
    tokens: list[str | None] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)

    def comment(self, token: str = TOKEN) -> str:
        flow = replace(PULL_REQUEST, api_url=self.url, graphql_url=f"{self.url}/graphql")
        return asyncio.run(comment_on(comment(), flow, token, self.environment()))

    def environment(self) -> Environment:
        return replace(system_environment({}), now=lambda: NOW, sleep=self._sleep, uniform=lambda _low, _high: 1.0)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    @property
    def written(self) -> list[str]:
        return [method for method, path in self.asked if method != "GET" and path != "/graphql"]


@contextmanager
def serving(server: Server) -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            site.bodies.append(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            site.asked.append((self.command, self.path))
            site.tokens.append(self.headers.get("Authorization"))
            reply = server(self.command, self.path)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            try:
                self.wfile.write(reply.body)
            except OSError:
                self.close_connection = True

        def do_POST(self) -> None:
            self.do_GET()

        def do_PATCH(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    site = Site(f"http://127.0.0.1:{served.server_port}")
    try:
        yield site
    finally:
        served.shutdown()
        served.server_close()
        thread.join()


def saying(**given: Any) -> Server:
    """A server that says the same to everybody."""
    return lambda _method, _path: Reply(**given)


def with_comment(server: Server, **given: Any) -> Server:
    """A server with one comment of ours."""
    ours = {"id": 66, "body": f"{MARKER}\nbefore", "user": {"login": BOT, "type": "Bot"}, **given}

    def reply(method: str, path: str) -> Reply:
        if path == "/graphql":
            return Reply(body=b'{"data": {"viewer": {"login": "github-actions[bot]"}}}')
        return Reply(body=json.dumps([ours]).encode()) if method == "GET" else server(method, path)

    return reply


POSTED = Reply(201, b'{"id": 1, "html_url": "https://github.com/acme/demo/pull/7#issuecomment-1"}')
NONE = Reply(body=b"[]")
"""A page of no comments."""


def hub(method: str, _path: str) -> Reply:
    """A server that has no comment yet, and takes one."""
    return NONE if method == "GET" else POSTED


class TestServer:
    @pytest.mark.parametrize(
        "server",
        [
            saying(status=401, body=b'{"message": "Bad credentials"}'),
            saying(status=404, body=b'{"message": ["not", "text"]}'),
            saying(status=422, body=b"<html>"),
            saying(status=429, headers={"Retry-After": "9" * 400}),
            saying(status=429, headers={"Retry-After": "soon"}),
            saying(status=429, headers={"Retry-After": "86400"}),
            saying(status=307, headers={"Location": "ftp://x/"}),
            saying(headers={"Content-Encoding": "gzip"}, body=b"no gzip"),
            saying(headers={"Set-Cookie": "a=\xff"}),
        ],
        ids=[*"abcdefghi"],
    )
    def test_failure_is_a_sentence(self, server: Server) -> None:
        with serving(server) as site, pytest.raises(NotCommented) as said:
            site.comment()
        assert 0 < len(str(said.value)) < 500
        assert TOKEN not in str(said.value)

    @pytest.mark.parametrize(
        "server",
        [
            saying(headers={"Content-Type": "application/json; charset=base64"}),
            saying(status=307, headers={"Location": "http://127.0.0.1:99999999/"}),
        ],
        ids=["charset", "port"],
    )
    def test_answer_that_cannot_be_read_is_a_sentence(self, server: Server) -> None:
        with serving(server) as site, pytest.raises(NotCommented):
            site.comment()

    @pytest.mark.parametrize(("name", "value"), [("NO_PROXY", "http://[::1"), ("HTTP_PROXY", "http://x:y")])
    def test_proxy_that_is_none_is_a_sentence(self, name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
        for each in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(each, raising=False)
        monkeypatch.setenv(name, value)
        with pytest.raises(NotCommented):
            Site("http://github.invalid").comment()

    @pytest.mark.parametrize(
        "server",
        [
            saying(body=b"<html>Please log in</html>", headers={"Content-Type": "text/html"}),
            saying(status=204, body=b""),
            lambda _, path: Reply(body=b"<html>") if path == "/login" else Reply(302, b"", {"Location": "/login"}),
        ],
        ids=["page", "nothing", "redirect"],
    )
    def test_page_of_somebody_else_is_no_comment(self, server: Server) -> None:
        with serving(server) as site, pytest.raises(NotCommented):
            site.comment()

    def test_giant_answer_is_not_read(self) -> None:
        giant = b" " * (32 * 1024 * 1024)
        with (
            serving(lambda _, path: Reply(body=giant) if path == "/graphql" else POSTED) as site,
            pytest.raises(NotCommented),
        ):
            site.comment()

    def test_answer_that_never_ends_is_not_waited_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pull_request, "TIMEOUT_S", 0.2)
        with (
            serving(saying(body=b"", headers={"Content-Length": "9"})) as site,
            pytest.raises(NotCommented, match=r"no answer within 0.2 s|cannot reach GitHub"),
        ):
            site.comment()

    def test_token_is_not_sent_elsewhere(self) -> None:
        with serving(hub) as other:
            there = other.url.replace("127.0.0.1", "localhost")
            with serving(saying(status=307, headers={"Location": there})) as site:
                site.comment()
        assert site.tokens
        assert {each for each in other.tokens if each} == set()

    def test_minute_is_waited_for(self) -> None:
        waits = [Reply(403, b'{"message": "secondary rate limit"}', {"Retry-After": "60"})]
        with serving(lambda method, path: waits.pop() if waits and method == "GET" else hub(method, path)) as site:
            site.comment()
        assert site.slept == [60.0]

    def test_comment_deleted_in_between_is_written_anew(self) -> None:
        with serving(with_comment(lambda method, _: Reply(404) if method == "PATCH" else POSTED)) as site:
            site.comment()
        assert site.written == ["PATCH", "POST"]

    def test_person_with_the_name_of_the_app_is_somebody_else(self) -> None:
        person = {"login": "github-actions", "type": "User"}
        with serving(with_comment(lambda *_: POSTED, user=person)) as site:
            site.comment()
        assert site.written == ["POST"]

    @pytest.mark.parametrize(
        "given", [{"body": None}, {"user": None}, {"user": [BOT]}, {"body": f"> {MARKER}"}, {"id": []}]
    )
    def test_comments_of_other_types_are_no_crash(self, given: Mapping[str, Any]) -> None:
        with serving(with_comment(lambda *_: POSTED, **given)) as site:
            site.comment()
        assert len(site.written) == 1


def published(publication: Publication, folder: Path, site: Site) -> None:
    flow = replace(PULL_REQUEST, api_url=site.url, graphql_url=f"{site.url}/graphql")
    options = PublishOptions("all", "always", "k", folder / "summary", folder / "outputs", "random")
    environment = site.environment()
    asyncio.run(publish(publication, flow, options, token=TOKEN, environment=environment, say=lambda _: None))


class TestPublish:
    def test_token_of_the_job_is_not_published(self, tmp_path: Path) -> None:
        kept = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
        publication = Publication((), lambda _: f"`AUTHORIZATION: basic {kept}` `{TOKEN}`", {}, past(), is_part=False)
        with serving(lambda *_: POSTED) as site:
            published(publication, tmp_path, site)
        posted = b"".join(site.bodies).decode()
        assert TOKEN not in posted
        assert kept not in posted

    def test_summary_that_was_begun_stays_small_enough(self, tmp_path: Path) -> None:
        (tmp_path / "summary").write_bytes(b"x" * 900_000)
        publication = Publication((), lambda limit: "y" * limit, {}, past(), is_part=False)
        with serving(lambda *_: POSTED) as site:
            published(publication, tmp_path, site)
        assert (tmp_path / "summary").stat().st_size <= LARGEST_SUMMARY


def flow_of(event: str, payload: Any, commit: str) -> Workflow:
    environ = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": event,
        "GITHUB_REPOSITORY": "acme/demo",
        "GITHUB_SHA": commit,
    }
    return workflow_of(environ, payload)


@dataclass(frozen=True, slots=True)
class Checkouts:
    """A checkout of the base, and one of a fork."""

    base: Path
    fork: Path

    def refused(self, flow: Workflow, folder: Path, **environ: str) -> str | None:
        return asyncio.run(refusal(flow, [folder], {**os.environ, **environ}))


@pytest.fixture(scope="module")
def checkouts(tmp_path_factory: pytest.TempPathFactory) -> Checkouts:
    folder = tmp_path_factory.mktemp("checkouts")
    found = Checkouts(folder / "base", folder / "fork")
    for path, repository in ((found.base, "acme/demo"), (found.fork, "stranger/demo")):
        path.mkdir()
        git(path, "init", "-q", "-b", "main")
        git(path, "remote", "add", "origin", f"https://github.com/{repository}")
        git(path, "commit", "-q", "--allow-empty", "-m", repository)
    return found


def commit_of(folder: Path) -> str:
    return git(folder, "rev-parse", "HEAD")


class TestGuard:
    @pytest.mark.parametrize("event", ["pull_request", "pull_request_target"])
    def test_run_after_a_run_of_a_fork(self, checkouts: Checkouts, event: str) -> None:
        payload = events.workflow_run(commit_of(checkouts.fork))
        payload["workflow_run"]["event"] = event
        flow = flow_of("workflow_run", payload, commit_of(checkouts.base))
        assert checkouts.refused(flow, checkouts.fork)
        assert checkouts.refused(flow, checkouts.base) is None

    @pytest.mark.parametrize("event", ["pull_request_review", "pull_request_review_comment", "workflow_run", "push"])
    def test_run_after_another_event_of_a_fork(self, checkouts: Checkouts, event: str) -> None:
        payload = events.workflow_run(commit_of(checkouts.fork))
        payload["workflow_run"]["event"] = event
        flow = flow_of("workflow_run", payload, commit_of(checkouts.base))
        assert checkouts.refused(flow, checkouts.fork)

    @pytest.mark.parametrize("payload", [None, [], {}, {"pull_request": {"head": {"sha": "main"}}}])
    def test_event_that_cannot_be_read(self, checkouts: Checkouts, payload: Any) -> None:
        flow = flow_of("pull_request_target", payload, commit_of(checkouts.base))
        assert checkouts.refused(flow, checkouts.fork)

    @pytest.mark.parametrize("moved", [False, True])
    def test_fork(self, checkouts: Checkouts, moved: bool) -> None:
        head = HEAD if moved else commit_of(checkouts.fork)
        flow = flow_of("pull_request_target", events.pull_request(head, fork=True), commit_of(checkouts.base))
        assert checkouts.refused(flow, checkouts.fork)

    @pytest.mark.parametrize("gone", [True, False])
    def test_fork_that_is_gone_or_renamed(self, checkouts: Checkouts, gone: bool) -> None:
        payload = events.pull_request(HEAD, fork=True)
        repository = None if gone else {"full_name": "stranger/renamed", "owner": {"login": "stranger"}}
        payload["pull_request"]["head"]["repo"] = repository
        flow = flow_of("pull_request_target", payload, commit_of(checkouts.base))
        assert checkouts.refused(flow, checkouts.fork)

    def test_variables_of_git_name_no_other_checkout(self, checkouts: Checkouts) -> None:
        payload = events.pull_request(commit_of(checkouts.fork), fork=True)
        flow = flow_of("pull_request_target", payload, commit_of(checkouts.base))
        assert checkouts.refused(flow, checkouts.fork, GIT_DIR=str(checkouts.base / ".git"))

    def test_files_that_look_like_a_repository(self, checkouts: Checkouts, tmp_path: Path) -> None:
        base = commit_of(checkouts.base)
        config = '[core]\nbare = true\n[remote "origin"]\nurl = https://github.com/acme/demo\n'
        write(tmp_path, {"HEAD": f"{base}\n", "config": config, "objects/x": "", "refs/x": "", "evals/a.yaml": ""})
        flow = flow_of("pull_request_target", events.pull_request(HEAD, fork=True), base)
        assert checkouts.refused(flow, tmp_path)

    def test_worktree_of_a_fork(self, checkouts: Checkouts, tmp_path: Path) -> None:
        git(checkouts.fork, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"))
        payload = events.pull_request(commit_of(checkouts.fork), fork=True)
        flow = flow_of("pull_request_target", payload, commit_of(checkouts.base))
        assert checkouts.refused(flow, tmp_path / "tree")

    def test_base_that_has_moved_on(self, checkouts: Checkouts, tmp_path: Path) -> None:
        subprocess.run(["git", "clone", "-q", checkouts.base, tmp_path / "own"], check=True)
        own = tmp_path / "own"
        git(own, "remote", "set-url", "origin", "https://github.com/acme/demo")
        git(own, "commit", "-q", "--allow-empty", "-m", "later")
        git(own, "update-ref", "refs/remotes/origin/main", "HEAD")
        flow = flow_of("pull_request_target", events.pull_request(HEAD, fork=True), commit_of(checkouts.base))
        assert checkouts.refused(flow, own) is None

    @pytest.mark.parametrize("event", ["push", "schedule", "workflow_dispatch", "merge_group", "pull_request"])
    def test_other_events_run_what_is_there(self, checkouts: Checkouts, event: str) -> None:
        payload = events.pull_request(HEAD, fork=True) if event == "pull_request" else events.push(HEAD)
        flow = flow_of(event, payload, HEAD)
        asyncio.run(refuse_fork_code(flow, [checkouts.fork], os.environ))


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        "x",
        {"pull_request": []},
        {"pull_request": {"number": True, "head": {"sha": HEAD, "repo": []}, "user": "x"}},
        {"pull_request": {"number": 10**30, "head": {"sha": HEAD, "ref": 5}}},
        {"pull_request": {"number": -1, "head": {"sha": f"{HEAD}\n::add-mask::e"}}},
        {"workflow_run": {"event": "pull_request", "head_sha": HEAD, "head_repository": {"full_name": []}}},
    ],
)
@pytest.mark.parametrize("event", ["pull_request", "workflow_run", "issue_comment", "merge_group", "schedule", ""])
def test_event_of_another_form_is_no_crash(event: str, payload: Any) -> None:
    flow = flow_of(event, payload, "not a commit")
    assert flow.pull_request is None or flow.pull_request >= 0
    assert flow.head is None or isinstance(flow.head, Head)
    assert re.fullmatch(r"[0-9a-f]*", flow.shown_commit)
