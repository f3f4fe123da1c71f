"""What terminals show: progress while a run goes on, and the summary at its end."""

from __future__ import annotations

import asyncio
import io
import re
import sys
from types import SimpleNamespace

import click
import pytest

from agentv_ci.cli import running
from agentv_ci.cli.running import show_progress
from agentv_ci.execute.run_services import Progress
from agentv_ci.text import ANSI
from tests.cli.builders import Terminal
from tests.support.evals import tool
from tests.support.projects import HELLO, Project

FAR = Progress(10_000, done=1_234, running=64, passed=1_100, failed=100, errored=34, retries=250, cost_usd=12.34)


def watched(progress: Progress, *, live: bool) -> None:
    """Show progress for a moment."""

    async def main() -> None:
        async with show_progress(live=live) as watch:
            watch(progress)
            await asyncio.sleep(0.05)

    asyncio.run(main())


def shown_live(monkeypatch: pytest.MonkeyPatch, term: str, columns: int) -> str:
    """Return what a terminal gets of the progress."""
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLUMNS", str(columns))
    watched(FAR, live=True)
    return terminal.getvalue()


class TestProgress:
    @pytest.fixture(autouse=True)
    def quickly(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(running, "PLAIN_INTERVAL_S", 0.01)
        monkeypatch.setattr(running, "LIVE_INTERVAL_S", 0.01)

    @pytest.mark.parametrize(
        ("progress", "elapsed_s", "line"),
        [
            (Progress(40), 0, "0/40 done in 0:00, 0 running, 0 passed, 0 failed, 0 errors, 0.0/s"),
            (
                Progress(40, done=10, running=4, passed=7, failed=2, errored=1, retries=1, cost_usd=0.125),
                5,
                "10/40 done in 0:05, ETA 0:15, 4 running, 7 passed, 2 failed, 1 error, 1 retry, $0.12, 2.0/s",
            ),
            (
                Progress(9_000, done=10, passed=10, retries=12, cost_usd=3.5),
                10,
                "10/9000 done in 0:10, ETA 2:29:50, 0 running, 10 passed, 0 failed, 0 errors, 12 retries, $3.50, 1.0/s",
            ),
            (Progress(4, done=4, passed=4), 2, "4/4 done in 0:02, 0 running, 4 passed, 0 failed, 0 errors, 2.0/s"),
        ],
    )
    def test_line_has_all_figures(
        self,
        progress: Progress,
        elapsed_s: float,
        line: str,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        clock = iter([0.0, elapsed_s])
        monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: next(clock, elapsed_s)))
        watched(progress, live=False)
        printed = capsys.readouterr()
        assert (printed.out, printed.err.splitlines()[0]) == ("", line)

    @pytest.mark.parametrize(
        ("term", "columns", "texts"),
        [
            ("xterm", 80, ["1234/10000", "ETA 0:", "64 running"]),
            ("dumb", 80, ["64 running"]),
            *(("xterm", columns, []) for columns in (1, 2, 20, 500)),
        ],
    )
    def test_progress_fits_the_terminal(
        self, term: str, columns: int, texts: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown_live(monkeypatch, term, columns))
        assert [text for text in texts if text not in shown] == []
        assert term == "dumb" or max(map(len, shown.splitlines())) <= columns
        assert ("━" in shown) == (term == "xterm" and columns > 75)

    @pytest.mark.parametrize("color", [None, False])
    def test_progress_has_colors_unless_they_are_disabled(
        self, color: bool | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with click.Context(click.Command("eval"), color=color):
            shown = shown_live(monkeypatch, "xterm", 120)
        assert ("\x1b[91m" in shown) == (color is None)


def on_a_terminal(project: Project, stream: str, **env: str) -> tuple[int, str, str]:
    """Run the evals with one stream on a terminal; returns exit code, what that shows, and what the other one has."""
    with Terminal(project.folder, "eval", "evals", "--out", "r.jsonl", stream=stream, **env) as terminal:
        return terminal.end(), terminal.shown, terminal.other


@pytest.mark.slow
def test_progress_bar_is_on_standard_error_alone(project: Project) -> None:
    project.documents(*"abcd", targets=(tool("sleep 0.2; echo Hello"),))
    code, shown, out = on_a_terminal(project, "stderr", COLUMNS="120")
    assert (code, "1 running" in shown) == (0, True)
    assert "4 cases: 4 passed" in out
    assert "running" not in out


@pytest.mark.slow
class TestSummary:
    @pytest.fixture(autouse=True)
    def documents(self, project: Project) -> None:
        target = {"name": "default", "provider": "mock", "response": "No", "responses": {"agrees": "Hello, of course"}}
        polite = {"name": "polite", "type": "contains", "value": "course"}
        project.documents("agrees", "refuses", targets=(target,), evaluators=[HELLO, polite])
        project.write({"evals/x.yaml": project.text("evals/x.yaml").replace('{"id": "refuses"', '\n{"id": "refuses"')})

    def test_terminal_shows_styles_and_solid_bars(self, project: Project) -> None:
        _, shown, _ = on_a_terminal(project, "stdout", COLUMNS="80", PYTHONIOENCODING="utf-8")
        assert shown.replace("\x1b", "^") == (
            """\
^[1mfailures, worst first:^[0m
^[31m  fail 0.000  ^[0m^[1mrefuses^[0m^[2m  (evals/x.yaml:2)^[0m
    fail       0.000  hello: does not contain 'Hello'
    fail       0.000  polite: does not contain 'course'
^[2m    answer: No^[0m
^[2m    again: agentv-ci eval evals/x.yaml --eval-id=refuses^[0m

^[1m2 cases: 1 passed, 1 failed, 0 errors^[0m
mean 0.500  median 0.500  min 0.000  max 1.000  stdev 0.500
[0.0, 0.2)      1  ^[36m██████████████████████████████^[0m
[0.2, 0.4)      0
[0.4, 0.6)      0
[0.6, 0.8)      0
[0.8, 1.0]      1  ^[36m██████████████████████████████^[0m
^[1mby evaluator:^[0m
  hello (contains)   1/2 passed, mean 0.500
  polite (contains)  1/2 passed, mean 0.500
^[31mgate: not passed^[0m
^[31m  pass rate 50.0% is below 100.0%^[0m
results: r.jsonl
report: r.report.json
"""
        )

    def test_terminal_without_colors_or_unicode(self, project: Project) -> None:
        _, plain, _ = on_a_terminal(project, "stdout", COLUMNS="80", NO_COLOR="1", PYTHONIOENCODING="ascii:replace")
        assert not ANSI.search(plain)
        assert all(len(line) <= 80 for line in plain.splitlines())
        assert re.search(r"\[0\.8, 1\.0\] +1  #{30}\n", plain)
