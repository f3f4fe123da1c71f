"""What terminals show: progress while a run goes on, and the summary at its end."""

from __future__ import annotations

import asyncio
import io
import re
import sys
from typing import Any

import click
import pytest
from msgspec.structs import replace

from agentv_ci.base.text import ANSI
from agentv_ci.cli import progress
from agentv_ci.cli.progress import failure_line, live_lines, plain_line, show_progress
from agentv_ci.contracts.results import ResultRow
from agentv_ci.execute.run_services import Progress
from tests.cli.builders import Terminal, screen
from tests.support.evals import tool
from tests.support.projects import HELLO, Project
from tests.support.runs import case, finding, row

NOW = {(("evals/x.yaml", f"refund-{number}", "default"), 1): f"refund-{number}" for number in range(64)}
FAR = Progress(10_000, done=1_234, now=NOW, passed=1_100, failed=100, errored=34, retries=250, cost_usd=12.34)
FINE = Progress(40, done=10, now=dict([*NOW.items()][:2]), passed=10)


def watched(progress: Progress) -> None:
    """Show progress for a moment."""

    async def main() -> None:
        async with show_progress() as screen:
            screen.watch(progress)
            await asyncio.sleep(0.05)
            screen.row(row("fail", of=case("greets"), evaluator_results=(finding("is rude"),)))
            screen.line("a \x1b[31mline", "warn")

    asyncio.run(main())


def shown_live(monkeypatch: pytest.MonkeyPatch, term: str, columns: int) -> str:
    """Return what a terminal gets of the progress."""
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLUMNS", str(columns))
    watched(FAR)
    return terminal.getvalue()


class TestProgress:
    @pytest.fixture(autouse=True)
    def quickly(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(progress, "PLAIN_INTERVAL_S", 0.01)
        monkeypatch.setattr(progress, "LIVE_INTERVAL_S", 0.01)

    @pytest.mark.parametrize(
        ("progress", "elapsed_s", "line"),
        [
            (Progress(40), 0, "0/40 done in 0:00, 0 running, 0 passed, 0 failed, 0 errors, 0.0/s"),
            (
                replace(FAR, total=40, done=10, retries=1, cost_usd=0.125),
                5,
                "10/40 done in 0:05, ETA 0:15, 64 running, 1100 passed, 100 failed, 34 errors, 1 retry, $0.12, 2.0/s",
            ),
            (
                Progress(9_000, done=10, passed=10, errored=1, retries=12, cost_usd=3.5),
                10,
                "10/9000 done in 0:10, ETA 2:29:50, 0 running, 10 passed, 0 failed, 1 error, 12 retries, $3.50, 1.0/s",
            ),
            (Progress(4, done=4, passed=4), 2, "4/4 done in 0:02, 0 running, 4 passed, 0 failed, 0 errors, 2.0/s"),
        ],
    )
    def test_line_of_a_log_has_all_figures(self, progress: Progress, elapsed_s: float, line: str) -> None:
        assert plain_line(progress, elapsed_s) == line

    @pytest.mark.parametrize(
        ("progress", "width", "lines"),
        [
            (FINE, 20, ["10/40  0:05", "now: refund-0 and …"]),
            (FINE, 40, ["10/40  10 passed  0:05  ETA 0:15  2.0/s", "now: refund-0, refund-1"]),
            (
                FINE,
                80,
                [
                    "━━━━━━━━━─────────────────────────────  10/40  10 passed  0:05  ETA 0:15  2.0/s",
                    "now: refund-0, refund-1",
                ],
            ),
            (
                FAR,
                80,
                [
                    "1234/10000  1100 passed  100 failed  34 errors  $12.34  0:05  ETA 0:36",
                    "now: refund-0, refund-1, refund-2, refund-3, refund-4, refund-5 and 58 more",
                ],
            ),
            (
                FAR,
                100,
                [
                    "1234/10000  1100 passed  100 failed  34 errors  250 retries  $12.34  0:05  ETA 0:36  246.8/s",
                    "now: refund-0, refund-1, refund-2, refund-3, refund-4, refund-5, refund-6, refund-7 and 56 more",
                ],
            ),
            (Progress(0), 40, ["━━━━━━━━━━━━━━━━━━  0/0  0 passed  0:05"]),
        ],
    )
    def test_live_lines_show_what_fits(self, progress: Progress, width: int, lines: list[str]) -> None:
        assert [line.text for line in live_lines(progress, 5, width, solid=True)] == lines
        assert all(len(line) < width for line in lines)

    @pytest.mark.parametrize(
        ("failed", "judges", "style"),
        [
            ({}, False, "bar"),
            ({"failed": 1}, False, "bad"),
            ({"errored": 1}, False, "bad"),
            ({"failed": 1}, True, "bar"),
            ({"errored": 1}, True, "bad"),
        ],
    )
    def test_bar_is_neutral_until_something_fails(self, failed: dict[str, Any], judges: bool, style: str) -> None:
        line, _ = live_lines(replace(FINE, **failed), 5, 100, solid=False, judges=judges)
        assert line.parts[0] == ("##########", style)

    @pytest.mark.parametrize(
        ("failed", "width", "line"),
        [
            (
                row("fail", score=0.384, of=case("refund"), evaluator_results=(finding("is rude", name="tone"),)),
                80,
                "✗ refund 0.38 tone: is rude",
            ),
            (
                row("borderline", score=0.7, of=case("a", trials=3), trial=2, misses=("x\ny",)),
                80,
                "✗ a (trial 2) 0.70 x y",
            ),
            (row("error", of=case("a"), error="no answer", error_kind="timeout"), 80, "✗ a error timeout: no answer"),
            (row("error", of=case("a"), error="no answer", error_kind="timeout"), 20, "✗ a error timeout: …"),
            (
                row(
                    "fail",
                    evaluator_results=(finding("is kind", verdict="pass"), finding("is long", verdict="borderline")),
                ),
                80,
                "✗ one 0.20 c: is long",
            ),
            (
                row("error", error="judged: no reply", error_kind="evaluator", evaluator_results=(finding("is rude"),)),
                80,
                "✗ one error judged: no reply",
            ),
        ],
    )
    def test_failure_is_one_line(self, failed: ResultRow, width: int, line: str) -> None:
        name = Progress(1).name(failed.case_key, failed.trial, trials=failed.trials)
        assert failure_line(failed, name, width, mark="✗").text == line

    @pytest.mark.parametrize(
        ("columns", "above"),
        [(1, ""), (2, ""), (20, ""), (80, "✗ greets 0.20 c: is rude|a line"), (500, "✗ greets 0.20 c: is rude|a line")],
    )
    def test_live_progress_leaves_the_lines_above_it(
        self, columns: int, above: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = shown_live(monkeypatch, "xterm", columns)
        assert "1234" in shown or columns < 20
        left = screen(shown, max(columns, 16))  # the score of a case is never cut
        assert "|".join(filter(None, left)) == above or not above

    def test_terminal_without_commands_gets_plain_lines(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert shown_live(monkeypatch, "dumb", 80).startswith("1234/10000 done in 0:00, ETA ")

    @pytest.mark.parametrize("color", [None, False])
    def test_progress_has_colors_unless_they_are_disabled(
        self, color: bool | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with click.Context(click.Command("eval"), color=color):
            shown = shown_live(monkeypatch, "xterm", 120)
        assert ("\x1b[31m" in shown) == (color is None)


def on_a_terminal(project: Project, stream: str, *flags: str, columns: int = 80, **env: str) -> tuple[int, str, str]:
    """Run the evals with one stream on a terminal; returns exit code, what that shows, and what the other one has."""
    arguments = ("eval", "evals", "--out", "r.jsonl", *flags)
    with Terminal(project.folder, *arguments, stream=stream, columns=columns, **env) as terminal:
        return terminal.end(), terminal.shown, terminal.other


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["-v"]])
def test_progress_is_on_standard_error_alone(flags: list[str], project: Project) -> None:
    project.documents(*"abcd", targets=(tool("sleep 0.2; echo Hello"),))
    code, shown, out = on_a_terminal(project, "stderr", *flags, columns=120)
    assert (code, "now: b" in shown, "b: asking default" in shown) == (0, True, bool(flags))
    assert "4 cases: 4 passed" in out
    assert "now: " not in out


LONG = (
    "a refund within 30 days of the purchase, to the card it was paid with, and not to any other card of the customer"
)
SUMMARY = """
failures, worst first:
  fail 0.500  refuses  (evals/x.yaml:1)
    pass       1.000  hello: contains 'Hello'
    fail       0.000  window: does not contain 'a refund within 30 days of the
      purchase, to the card it was paid with, and not to any other card of the
      customer'
    answer: Hello
    again: agentv-ci eval evals/x.yaml --eval-id=refuses

2 cases: 1 passed, 1 failed, 0 errors
mean 0.750  median 0.750  min 0.500  max 1.000  stdev 0.250
[0.0, 0.2)      0
[0.2, 0.4)      0
[0.4, 0.6)      1  ██████████████████████████████
[0.6, 0.8)      0
[0.8, 1.0]      1  ██████████████████████████████
by evaluator:
  window (contains)  0/1 passed, mean 0.000
  always passed: hello
time: 1 s
gate: not passed
  pass rate 50.0% is below 100.0%
results: r.jsonl
report: r.report.json
"""


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 100, 120])
def test_run_on_a_terminal(columns: int, project: Project) -> None:
    window = {"name": "window", "type": "contains", "value": LONG}
    project.documents(
        {"id": "refuses", "evaluators": [HELLO, window]}, "agrees", targets=(tool("sleep 0.3; echo Hello"),)
    )
    arguments = ("eval", "--out", "r.jsonl")
    with Terminal(project.folder, *arguments, columns=columns, NO_COLOR="1", PYTHONIOENCODING="utf-8") as terminal:
        assert terminal.end() == 1
    left = re.sub(r"time: [\d.]+ s", "time: 1 s", "\n".join(screen(terminal.shown, columns)))
    failure = f"✗ refuses 0.50 window: does not contain '{LONG}"[: columns - 1]
    assert left == f"{failure}…{SUMMARY}"
    assert "now: agrees" in terminal.shown


@pytest.mark.slow
def test_unknown_cases_of_a_dry_run_are_not_failures(project: Project) -> None:
    project.documents(*"abcd")
    with Terminal(project.folder, "eval", "--dry-run", "--out", "r.jsonl", stream="stderr") as terminal:
        assert terminal.end() == 0
    assert not {"✗", "error"} & {*terminal.shown.split()}


@pytest.mark.slow
class TestSummary:
    @pytest.fixture(autouse=True)
    def documents(self, project: Project) -> None:
        cases = [f"agrees-{number}" for number in range(19)]
        target = {"name": "default", "provider": "mock", "response": "Hello", "responses": {"refuses": "No"}}
        project.documents(*cases, "refuses", targets=(target,))

    def test_terminal_shows_styles_and_solid_bars(self, project: Project) -> None:
        _, shown, _ = on_a_terminal(project, "stdout", PYTHONIOENCODING="utf-8")
        assert re.sub("time: .*", "time: 1 s", shown.replace("\x1b", "^")) == (
            """\
^[1mfailures, worst first:^[0m
^[31m  fail 0.000  ^[0m^[1mrefuses^[0m^[2m  (evals/x.yaml:1)^[0m
    does not contain 'Hello'
^[2m    answer: No^[0m
^[2m    again: agentv-ci eval evals/x.yaml --eval-id=refuses^[0m

^[1m20 cases: 19 passed, 1 failed, 0 errors^[0m
mean 0.950  median 1.000  min 0.000  max 1.000  stdev 0.218
[0.0, 0.2)      1  ^[36m██^[0m
[0.2, 0.4)      0
[0.4, 0.6)      0
[0.6, 0.8)      0
[0.8, 1.0]     19  ^[36m██████████████████████████████^[0m
time: 1 s
^[31mgate: not passed^[0m
^[31m  pass rate 95.0% is below 100.0%^[0m
results: r.jsonl
report: r.report.json
"""
        )

    def test_terminal_without_colors_or_unicode(self, project: Project) -> None:
        _, plain, _ = on_a_terminal(project, "stdout", NO_COLOR="1", PYTHONIOENCODING="ascii:replace")
        assert not ANSI.search(plain)
        assert all(len(line) <= 80 for line in plain.splitlines())
        assert re.search(r"\[0\.8, 1\.0\] +19  #{30}\n", plain)
