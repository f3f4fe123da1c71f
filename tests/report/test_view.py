"""The command that reruns a case, and addresses of lines."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given

from agentv_ci.analysis.run_report import report
from agentv_ci.base.text import dollars
from agentv_ci.compile.selection import matches_id
from agentv_ci.contracts.report import Ending
from agentv_ci.report.renderers import markdown, terminal
from agentv_ci.report.renderers.html import document
from agentv_ci.report.view import Links, RunView, cut_text, rerun_command
from tests.support.runs import case, plan, row, well_formed_text


@pytest.mark.parametrize(("target", "ending"), [("default", ""), ("gpt", " --target=gpt"), ("-a", " --target=-a")])
def test_rerun_command_names_a_target_that_is_not_the_default(target: str, ending: str) -> None:
    assert rerun_command("evals/a.yaml", "one", target) == f"agentv-ci eval evals/a.yaml --eval-id=one{ending}"


def test_rerun_command_quotes_the_values_of_options() -> None:
    command = rerun_command("a.yaml", "one", "default", ["--targets=a b=c.yaml", "--dry-run"])
    assert command == "agentv-ci eval a.yaml --eval-id=one --targets='a b=c.yaml' --dry-run"


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0.0, "$0"),
        (4e-7, "$0.00000040"),
        (0.00001234, "$0.000012"),
        (0.00032, "$0.00032"),
        (0.0012, "$0.0012"),
        (12.5, "$12.5000"),
    ],
)
def test_small_amounts_are_not_shown_as_nothing(amount: float, text: str) -> None:
    assert dollars(amount) == text


def test_answers_that_may_not_be_whole_are_in_every_report() -> None:
    reasons = ["stop", None, "length", "length", "pause_turn", "<b>odd</b>"]
    cases = [case(str(number)) for number in range(len(reasons))]
    rows = [row("pass", of=each, finish_reason=reason) for each, reason in zip(cases, reasons, strict=True)]
    run = RunView(*report(plan(*cases), rows, Ending()), rows=lambda: rows)
    assert run.report.cut_answers == {"<b>odd</b>": 1, "length": 2, "pause_turn": 1}
    said = "4 answers may not be whole: 1 × <b>odd</b>, 2 × length, 1 × pause_turn"
    assert said in [line.text for line in terminal.render(run)]
    assert f"⚠️ `{said}`" in b"".join(markdown.render(run)).decode()
    assert said.replace("<", "&lt;").replace(">", "&gt;") in b"".join(document.render(run)).decode()
    whole = report(plan(cases[0]), rows[:1], Ending())[0]
    assert "cut_answers" not in whole.model_dump()


def test_reasons_that_a_server_makes_up_take_little_space() -> None:
    cases = [case(str(number)) for number in range(20)]
    rows = [row("pass", of=each, finish_reason=each.id * 1_000) for each in cases]
    run = RunView(*report(plan(*cases), rows, Ending()))
    (said,) = filter(None, [cut_text(run.report)])
    assert len(said) < 500


@given(well_formed_text)
def test_rerun_command_selects_the_case_alone(case_id: str) -> None:
    words = shlex.split(rerun_command("a.yaml", case_id, "default"))
    pattern = words[3].removeprefix("--eval-id=")
    assert matches_id(case_id, [pattern])
    assert not matches_id(f"{case_id}x", [pattern])


@pytest.mark.parametrize(
    ("ending", "errors", "failures"), [(Ending(), ["left"], ["done", "open"]), (Ending(stopped="budget"), [], ["done"])]
)
def test_stopped_run_lists_only_decided_cases(ending: Ending, errors: list[str], failures: list[str]) -> None:
    done, undecided, left = case("done"), case("open", trials=3), case("left")
    rows = [row("fail", of=done), row("fail", of=undecided)]
    run = RunView(*report(plan(done, undecided, left), rows, ending))
    assert [each.case.id for each in run.errors] == errors
    assert [each.case.id for each in run.failures] == failures


@pytest.mark.parametrize(
    ("server", "repository", "commit", "address"),
    [
        ("https://github.com", "o/r", "abc", "https://github.com/o/r/blob/abc/a%20b.yaml#L7"),
        ("https://ghe:8443/x", "o/\udcff", "a b", "https://ghe:8443/x/o/%FF/blob/a%20b/a%20b.yaml#L7"),
        *((server, "o/r", "abc", None) for server in ("http://", 'https://x" y', "https://x) <b>", "ftp://x")),
        ("https://github.com", "", "abc", None),
        ("https://github.com", "o/r", "", None),
    ],
)
def test_links(server: str, repository: str, commit: str, address: str | None) -> None:
    links = Links.of_commit(server, repository, commit)
    assert links.to("a b.yaml", 7) == address
    assert links.to("/a b.yaml", 7) is None
