"""Whether a command runs in a workflow, and what it then knows of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentv_ci.app.workflow import read_workflow


@pytest.mark.parametrize("environ", [{}, {"GITHUB_ACTIONS": "false", "GITHUB_REPOSITORY": "acme/demo"}])
def test_outside_of_a_workflow_there_is_none(environ: dict[str, str]) -> None:
    assert read_workflow(environ) is None


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff"])
def test_a_workflow_is_known_without_its_event(content: bytes | None, tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    if content is not None:
        event.write_bytes(content)
    environ = {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "acme/demo", "GITHUB_EVENT_PATH": str(event)}
    found = read_workflow(environ)
    assert found is not None
    assert (found.repository, found.pull_request) == ("acme/demo", None)
