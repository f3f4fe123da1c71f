"""Which annotations are shown, and what is written to the runner's files."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv_ci.base.json_access import objects_at, text_at
from agentv_ci.contracts.action import Annotation, Level
from agentv_ci.github.check import Check
from agentv_ci.github.publishing import (
    MAX_SUMMARY_BYTES,
    Publication,
    PublishOptions,
    limited,
    outputs,
    publish,
    selected,
    summary,
)
from tests.action.github_api import Failure, FakeGitHub
from tests.github.workflows import HEAD, PULL_REQUEST, PUSH, past
from tests.support import FakeClock

TOKEN = "ghs_tokenofthejob0123456789"


def remarks(level: Level, number: int) -> list[Annotation]:
    return [Annotation(level, str(each), "m", "a.yaml", each + 1) for each in range(number)]


@pytest.mark.parametrize(
    ("level", "number", "shown", "more"),
    [
        *(("error", each, each, None) for each in (0, 1, 9)),
        ("error", 10, 9, "1 more error: see the job summary and the reports"),
        ("error", 120, 9, "111 more errors: see the job summary and the reports"),
        ("warning", 10, 9, "1 more warning: see the job summary and the reports"),
        ("notice", 8, 7, "1 more notice: see the job summary and the reports"),
    ],
)
def test_annotations_beyond_the_limit_are_counted(level: Level, number: int, shown: int, more: str | None) -> None:
    found = [*limited(remarks(level, number))]
    assert found[:shown] == remarks(level, shown)
    assert found[shown:] == ([Annotation("notice", "Some annotations are not shown", more)] if more else [])


@given(st.lists(st.sampled_from(["error", "warning", "notice"])))
def test_github_shows_all_that_are_written(levels: list[Level]) -> None:
    shown = [*limited([Annotation(level, "t", "m") for level in levels])]
    assert all(sum(each.level == level for each in shown) <= 10 for level in levels)
    assert sum(each.level == "error" for each in shown) <= 9


def test_annotation_modes() -> None:
    warning, error = remarks("warning", 1), remarks("error", 1)
    failure = [replace(warning[0], is_failure=True)]
    assert [*selected([*warning, *error, *failure], "failures")] == [*error, *failure]
    assert [*selected([*warning, *error, *failure], "all")] == [*warning, *error, *failure]
    assert [*selected(error, "none")] == []


@pytest.mark.parametrize(
    ("character", "before", "written"),
    [("ä", 0, 800_000), ("€", 500_000, 400_000), ("€", MAX_SUMMARY_BYTES, 0), ("\ud800", 0, 500_000)],
)
def test_summary_is_measured_in_bytes(character: str, before: int, written: int) -> None:
    made = summary(lambda limit: character * limit, before)
    assert written <= len(made) <= MAX_SUMMARY_BYTES - before


def test_output_values_cannot_add_outputs() -> None:
    text = outputs({"plan": "a\nEOF\nverdict=pass", "verdict": "fail"}, "random")
    assert text == "plan<<random\na\nEOF\nverdict=pass\nrandom\nverdict<<random\nfail\nrandom\n"


def published(folder: Path | None = None, *, workflow: Any = PULL_REQUEST, **given: Any) -> tuple[list[str], str]:
    """Publish without a token; returns the lines for the runner, and the comment."""
    options = PublishOptions(
        given.pop("annotations", "all"),
        given.pop("comment", "auto"),
        given.pop("check", False),
        "key",
        "off",
        "",
        folder and folder / "summary",
        folder and folder / "outputs",
        "random",
    )
    token = given.pop("token", None)
    plain = {
        "text": lambda limit, _: "the text"[:limit],
        "outputs": {"verdict": "fail"},
        "run": past(),
        "is_part": False,
        "conclusion": "failure",
    }
    publication = Publication(given.pop("shown", remarks("error", 1)), **{**plain, **given})
    lines: list[str] = []
    environment = FakeClock().environment()
    done = publish(publication, workflow, options, token=token, environment=environment, say=lines.append)
    text, _ = asyncio.run(done)
    return lines, text


def test_annotations_summary_outputs_and_comment(tmp_path: Path) -> None:
    (tmp_path / "summary").write_text("before\n")
    (tmp_path / "outputs").write_text("before=1\n")
    lines, comment = published(tmp_path, comment="never")
    assert lines == ["::error file=a.yaml,line=1,title=0::m"]
    assert (tmp_path / "summary").read_text() == "before\nthe text"
    assert (tmp_path / "outputs").read_text() == "before=1\nverdict<<random\nfail\nrandom\n"
    assert comment.startswith("<!-- agentv-ci:key -->\nthe text\n")


def test_summary_that_was_begun_stays_small_enough(tmp_path: Path) -> None:
    (tmp_path / "summary").write_bytes(b"x" * 900_000)
    published(tmp_path, text=lambda limit, _: "y" * limit, comment="never")
    assert (tmp_path / "summary").stat().st_size == MAX_SUMMARY_BYTES


def test_without_the_runners_files() -> None:
    assert published(comment="never", annotations="none")[0] == []


@pytest.mark.parametrize(
    ("given", "notice"),
    [
        ({}, "GITHUB_TOKEN is not set; pass it to this step in `env:`; see the job summary or comment.md instead"),
        ({"is_part": True}, None),
        ({"is_part": True, "comment": "always"}, "GITHUB_TOKEN is not set"),
        ({"workflow": PUSH}, None),
        ({"workflow": PUSH, "comment": "always"}, "this run does not belong to a pull request; see"),
    ],
)
def test_missing_comment_is_explained_if_it_was_expected(given: dict[str, Any], notice: str | None) -> None:
    lines, _ = published(annotations="none", **given)
    assert len(lines) == (notice is not None)
    assert all(line.startswith(f"::notice title=No comment on the pull request::{notice}") for line in lines)


@pytest.mark.parametrize(("mode", "notices"), [("auto", 0), ("always", 1)])
def test_missing_permission_is_a_notice_if_a_comment_was_asked_for(mode: str, notices: int) -> None:
    with FakeGitHub(permissions={}).running() as url:
        workflow = replace(PULL_REQUEST, api_url=url, graphql_url=f"{url}/graphql")
        lines, _ = published(annotations="none", workflow=workflow, token=TOKEN, comment=mode)
    assert len(lines) == 1
    assert "GitHub returned 403" in lines[0]
    assert lines[0].startswith("::notice ") == bool(notices)


def test_token_of_the_job_is_redacted(tmp_path: Path) -> None:
    header = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
    github = FakeGitHub()
    with github.running() as url:
        workflow = replace(PULL_REQUEST, api_url=url, graphql_url=f"{url}/graphql")
        text = f"`basic {header}` `{TOKEN}`"
        lines, _ = published(
            tmp_path, workflow=workflow, token=TOKEN, text=lambda *_: text, shown=[Annotation("error", "t", text)]
        )
    for said in (*lines, (tmp_path / "summary").read_text(), github.comments[0].body):
        assert TOKEN not in said
        assert header not in said


@pytest.mark.parametrize(
    ("number", "batches"), [(0, [0]), (50, [50]), (51, [50, 1]), pytest.param(1_001, [50] * 20, marks=pytest.mark.slow)]
)
def test_check_run_has_all_annotations_in_batches(number: int, batches: list[int]) -> None:
    github = FakeGitHub(permissions={"checks": "write"})
    with github.running() as url:
        workflow = replace(PULL_REQUEST, api_url=url)
        text = "## Not passed\n\nthe table"
        lines, _ = published(
            workflow=workflow,
            token=TOKEN,
            check=True,
            comment="never",
            shown=[*remarks("warning", number), Annotation("error", "gate", "no line")],
            text=lambda *_: text,
        )
    assert github.violations == []
    assert [len(call.body["output"]["annotations"]) for call in github.calls] == batches
    assert [call.body["status"] for call in github.calls] == ["in_progress"] * (len(batches) - 1) + ["completed"]
    (check,) = github.checks
    assert {"name": "agentv-ci: key", "head_sha": HEAD, "conclusion": "failure", "title": "Not passed"}.items() <= (
        check.items()
    )
    assert check["summary"] == text
    assert [each["start_line"] for each in check["annotations"]] == [each + 1 for each in range(min(number, 1_000))]
    # The runner gets what has no line.
    assert lines == ["::error title=gate::no line"]


@pytest.mark.parametrize(
    ("given", "notice"),
    [
        ({"workflow": PULL_REQUEST}, "GITHUB_TOKEN is not set; pass it to this step in `env:`"),
        ({"workflow": replace(PUSH, commit="")}, "the commit is unknown"),
        ({"workflow": replace(PULL_REQUEST, is_contradictory=True)}, "the event and GITHUB_REF name different"),
        ({"is_part": True}, None),
    ],
)
def test_missing_check_run_is_explained_and_annotations_are_shown(given: dict[str, Any], notice: str | None) -> None:
    lines, _ = published(check=True, comment="never", **given)
    assert lines.pop() == "::error file=a.yaml,line=1,title=0::m"
    assert len(lines) == (notice is not None)
    assert all(line.startswith(f"::notice title=No check run::{notice}") for line in lines)


def test_token_without_checks_write_changes_nothing_else() -> None:
    with FakeGitHub().running() as url:
        workflow = replace(PULL_REQUEST, api_url=url, graphql_url=f"{url}/graphql")
        lines, comment = published(workflow=workflow, token=TOKEN, check=True)
        assert (lines[1:], comment) == published(workflow=workflow, token=TOKEN)
    refusal = "GitHub returned 403: Resource not accessible by integration (the job needs `checks: write`"
    assert lines[0].startswith(f"::notice title=No check run::{refusal}")


def test_check_run_whose_annotations_are_refused_is_completed() -> None:
    github = FakeGitHub(permissions={"checks": "write"}, failures=[Failure(422, "Validation Failed", "PATCH")])
    with github.running() as url:
        workflow = replace(PULL_REQUEST, api_url=url)
        lines, _ = published(workflow=workflow, token=TOKEN, check=True, comment="never", shown=remarks("warning", 60))
    (check,) = github.checks
    assert (check["status"], check["conclusion"]) == ("completed", "failure")
    assert lines[0].startswith("::notice title=No check run::GitHub returned 422: Validation Failed")


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"end_line": 3}, {"start_line": 1, "end_line": 3}),
        ({"column": 4}, {"start_line": 1, "end_line": 1, "start_column": 4, "end_column": 4}),
        ({"column": 4, "end_column": 6}, {"start_line": 1, "end_line": 1, "start_column": 4, "end_column": 6}),
        ({"end_line": 3, "column": 4, "end_column": 6}, {"start_line": 1, "end_line": 3}),
        ({"line": None}, {"start_line": 1, "end_line": 1}),
    ],
)
def test_place_of_an_annotation_of_a_check_run(given: dict[str, Any], place: dict[str, int]) -> None:
    annotation = replace(Annotation("error", "t" * 300, "", "a.yaml", 1), **given)
    check = Check("key", "failure", "", [annotation], "https://example.com/run")
    (shown,) = objects_at(check.creation(HEAD), "output", "annotations")
    assert len(text_at(shown, "title") or "") == 255
    assert {**shown, "title": None} == {
        "title": None,
        "path": "a.yaml",
        "annotation_level": "failure",
        "message": "t" * 300,
        **place,
    }
