"""Which annotations are shown, and what is written into the runner's own files."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.app.environment import system_environment
from agentv_ci.contracts.action import Annotation, Level
from agentv_ci.publish.publishing import (
    MAX_SUMMARY_BYTES,
    AnnotationMode,
    Publication,
    PublishOptions,
    limited,
    outputs,
    publish,
    summary,
)
from tests.publish.workflows import PULL_REQUEST, past


def remarks(level: Level, number: int) -> list[Annotation]:
    return [Annotation(level, str(each), "m", "a.yaml", each + 1) for each in range(number)]


class TestAnnotations:
    @pytest.mark.parametrize("number", [0, 1, 9])
    def test_nine_are_shown_as_they_are(self, number: int) -> None:
        assert [*limited(remarks("error", number), "all")] == remarks("error", number)

    @pytest.mark.parametrize("number", [10, 60, 120])
    def test_more_are_counted(self, number: int) -> None:
        *told, last = limited(remarks("error", number), "all")
        assert told == remarks("error", 9)
        assert last.level == "notice"
        assert f"{number - 9} more error" in last.message

    @given(st.lists(st.sampled_from(["error", "warning", "notice"])))
    def test_github_keeps_all_that_are_limited(self, levels: list[Level]) -> None:
        told = [*limited([Annotation(level, "t", "m") for level in levels], "all")]
        assert all(sum(each.level == level for each in told) <= 10 for level in levels)
        assert sum(each.level == "error" for each in told) <= 9

    def test_only_failures(self) -> None:
        both = [*remarks("warning", 2), *remarks("error", 1)]
        assert [*limited(both, "failures")] == remarks("error", 1)

    def test_none(self) -> None:
        assert [*limited(remarks("error", 20), "none")] == []


class TestSummary:
    def test_short_one_is_whole(self) -> None:
        assert summary(lambda _: "ä", 0) == "ä".encode()

    def test_is_measured_in_bytes(self) -> None:
        made = summary(lambda limit: "€" * limit, 500_000)
        assert 0 < len(made) <= MAX_SUMMARY_BYTES - 500_000
        assert summary(lambda limit: "€" * limit, MAX_SUMMARY_BYTES) == b""

    def test_lone_surrogates_are_no_crash(self) -> None:
        assert summary(lambda _: "\ud800", 0) == b"?"


def test_outputs_cannot_add_others() -> None:
    text = outputs({"plan": "a\nEOF\nverdict=pass", "verdict": "fail"}, "random")
    assert text == "plan<<random\na\nEOF\nverdict=pass\nrandom\nverdict<<random\nfail\nrandom\n"


def publication(**given: Any) -> Publication:
    plain: dict[str, Any] = {
        "annotations": remarks("error", 1),
        "text": lambda limit: "the text"[:limit],
        "outputs": {"verdict": "fail"},
        "run": past(),
        "is_part": False,
    }
    return Publication(**{**plain, **given})


@dataclass(frozen=True, slots=True)
class Heard:
    """What was said, and the comment."""

    lines: tuple[str, ...]
    comment: str


def published(
    of: Publication,
    folder: Path | None,
    *,
    comment: Any = "auto",
    annotations: AnnotationMode = "all",
    flow: Any = PULL_REQUEST,
) -> Heard:
    summary_file, outputs_file = (folder / "summary", folder / "outputs") if folder is not None else (None, None)
    options = PublishOptions(annotations, comment, "key", summary_file, outputs_file, "random")
    lines: list[str] = []
    environment = system_environment({})
    text, _ = asyncio.run(publish(of, flow, options, token=None, environment=environment, say=lines.append))
    return Heard(tuple(lines), text)


class TestPublish:
    def test_says_it_everywhere(self, tmp_path: Path) -> None:
        (tmp_path / "summary").write_text("before\n")
        (tmp_path / "outputs").write_text("before=1\n")
        found = published(publication(), tmp_path, comment="never")
        assert found.lines == ("::error file=a.yaml,line=1,title=0::m",)
        assert (tmp_path / "summary").read_text() == "before\nthe text"
        assert (tmp_path / "outputs").read_text() == "before=1\nverdict<<random\nfail\nrandom\n"
        assert found.comment.startswith("<!-- agentv-ci:key -->\nthe text\n")

    def test_missing_token_is_a_notice(self, tmp_path: Path) -> None:
        assert "GITHUB_TOKEN is not set" in published(publication(), tmp_path).lines[-1]

    def test_shards_do_not_comment_by_themselves(self, tmp_path: Path) -> None:
        assert len(published(publication(is_part=True), tmp_path).lines) == 1
        assert len(published(publication(is_part=True), tmp_path, comment="always").lines) == 2

    def test_pushes_have_nothing_to_comment_on(self, tmp_path: Path) -> None:
        from dataclasses import replace

        push = replace(PULL_REQUEST, event="push", pull_request=None, head=None, is_of_pull_request=False)
        assert len(published(publication(), tmp_path, flow=push).lines) == 1
        assert "belong to a pull request" in published(publication(), tmp_path, flow=push, comment="always").lines[-1]

    def test_runner_without_such_files(self) -> None:
        assert published(publication(), None, comment="never", annotations="none").lines == ()
