"""Runs whose questions have images and documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.contracts.attachments import MAX_BYTES
from agentv_ci.errors import InvalidInput
from tests.servers.model_api import model_api, says
from tests.support import run_command
from tests.support.evals import JUDGE, PRAISE, Run, gpt, mock, tool

PNG = b"\x89PNG\r\n\x1a\n" + b"\xff" * 100_000
DATA = "/////////////////"
"""What is in its Base64, and in no text."""
IMAGE = {"type": "image", "value": "red.png"}
BILL = {"type": "document", "value": "https://x.org/bill.pdf"}


def looks(*blocks: Any, **given: Any) -> dict[str, Any]:
    """Return a case that asks with blocks."""
    messages = [{"role": "user", "content": ["Look:", *blocks]}]
    return {"id": "looks", "input_messages": messages, **given}


@pytest.fixture
def run(repository: Path) -> Run:
    (repository / "evals").mkdir()
    (repository / "evals" / "red.png").write_bytes(PNG)
    return Run(repository)


def test_content_of_a_file_is_sent_and_in_nothing_that_is_written(run: Run) -> None:
    with model_api(says("42")) as api:
        run.documents([looks(IMAGE)], gpt(f"{api.url}/v1"))
        folder = run.repository / "out"
        run(prompts=folder / "p", traces=folder / "t", cache=folder / "c", record=folder / "r")
        assert DATA in json.dumps(api.questions[0].body)
    (row,) = run.written()
    stands_for = {"type": "image", "path": "evals/red.png", "media_type": "image/png", "bytes": len(PNG)}
    shown = json.loads(row.model_dump_json())
    assert shown["request"]["messages"][-1]["content"] == [{"type": "text", "text": "Look:"}, stands_for]
    assert shown["input_messages"][0]["content"] == "Look:\n\n<image: evals/red.png>"
    files = [path for path in (run.results, *folder.rglob("*")) if path.is_file()]
    assert len(files) == 6
    assert [path for path in files if DATA in path.read_text("utf-8")] == []
    # The same image is the same question.
    again = run.rows(replay=folder / "r")
    assert [(row.verdict, row.cached) for row in again] == [("pass", True)]
    (run.repository / "evals" / "red.png").write_bytes(PNG + b"another")
    assert [row.verdict for row in run.rows(replay=folder / "r")] == ["error"]


def test_judge_reads_the_name_of_an_image(run: Run) -> None:
    with model_api(says(PRAISE)) as api:
        judge = {**JUDGE, "prompt": "{{ question }} {{ input_messages }} {{ candidate_answer }}"}
        run.documents(
            [looks(IMAGE, evaluators=[{**judge, "judge_target": "judge"}])],
            mock(),
            gpt(f"{api.url}/v1", name="judge"),
        )
        assert [row.verdict for row in run.rows()] == ["pass"]
        asked = json.dumps(api.questions[0].body)
    assert asked.count("<image: evals/red.png>") == 2
    assert DATA not in asked


def test_command_gets_a_copy_of_a_file_that_has_changed(run: Run) -> None:
    has_changed = (run.repository / "evals" / "red.png").write_bytes
    run.documents([looks(IMAGE)], tool("wc -c < {FILES} | sed s/100008/42/", prompt="none"))
    run(between=lambda: has_changed(b"changed"))
    assert [row.verdict for row in run.written()] == ["pass"]


@pytest.mark.parametrize(("api_format", "verdict"), [("responses", "pass"), ("chat", "error")])
def test_target_from_the_environment_refuses_when_it_is_known(run: Run, api_format: str, verdict: str) -> None:
    with model_api(says("42")) as api:
        run.documents([looks(BILL)], gpt(f"{api.url}/v1", api_format="${{ FORMAT }}"))
        run.variables = {**run.variables, "FORMAT": api_format}
        (row,) = run.rows()
    assert row.verdict == verdict
    reason = "target 'default' (provider openai) does not take a document by URL"
    assert (row.error, row.requests) == ((reason, 0) if verdict == "error" else (None, 1))
    assert len(api.questions) == row.requests


@pytest.mark.parametrize(("more", "code"), [(0, 0), (1, 2)])
def test_file_has_at_most_20_mib(run: Run, more: int, code: int) -> None:
    run.documents([looks(IMAGE)], mock())
    with (run.repository / "evals" / "red.png").open("wb") as file:
        file.write(PNG)
        file.truncate(MAX_BYTES + more)
    done = run_command("eval", cwd=run.repository)
    assert (done.code, "file 'red.png' is larger than 20 MiB" in done.err) == (code, bool(more)), done


def test_target_of_the_command_line_must_take_images_of_the_selected_cases(run: Run) -> None:
    run.documents([looks(IMAGE), "plain"], mock(), {"name": "agent", "provider": "codex"})
    refused = run_command("eval", "--target", "agent", cwd=run.repository)
    assert refused.code == 2
    assert "target 'agent' (provider codex) does not take images [AV357] (looks)" in refused.err
    selected = run_command("eval", "--target", "agent", "--eval-id", "plain", "--dry-run", cwd=run.repository)
    assert "AV357" not in selected.err


def test_every_target_of_a_case_must_take_its_images(run: Run) -> None:
    agent = {"name": "agent", "provider": "codex"}
    run.documents([looks(IMAGE, execution={"targets": ["default", "agent"]})], mock(), agent)
    with pytest.raises(InvalidInput) as raised:
        run()
    (found,) = raised.value.diagnostics
    assert found.message == "target 'agent' (provider codex) does not take images"
