"""Commands that the runner of GitHub Actions reads back as they were meant."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.base.workflow_commands import workflow_command


def read_back(line: str) -> tuple[str, dict[str, str], str]:
    """Undo what the runner undoes: actions/runner, src/Runner.Common/ActionCommand.cs."""
    match = re.fullmatch(r"::(\w+)(?: (.*?))?::(.*)", line)
    assert match is not None
    properties = dict(part.split("=", 1) for part in (match[2] or "").split(",") if part)
    return match[1], {key: plain(value) for key, value in properties.items()}, plain(match[3])


def plain(text: str) -> str:
    for escape, character in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(escape, character)
    return text


TEXTS = st.text(st.sampled_from("a%:,\r\n=2530ADC# é"), min_size=1, max_size=12)


@given(message=TEXTS, title=TEXTS)
def test_every_text_comes_back(message: str, title: str) -> None:
    line = workflow_command("error", message, {"title": title, "line": 3, "col": None})
    assert "\n" not in line
    assert read_back(line) == ("error", {"title": title, "line": "3"}, message)


def test_a_command_without_properties() -> None:
    assert workflow_command("notice", "done", {"file": ""}) == "::notice::done"
