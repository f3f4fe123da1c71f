"""The corpus: what people write, and what they get. A folder that is dropped in is a test.

    valid/<case>/             eval and target files → expected/: the plan, the rows, the reports, the summary
    checked/<case>/           documents that this version compiles and does not run → expected/: the plan
    formatted/<case>/         documents in any style → expected/: those that change, in one style
    compared/<case>/          base/ and head/: documents of two runs → expected/: the baseline, what has changed
    proven/<case>/            eval files → expected/: the findings, the proof
    imported/<case>/          files of other tools, and the command that imports them → expected/: what it writes
    nights/<case>/            what cases did, night after night → expected/: what is wrong with them
    experiments/<case>/       an experiment and its documents → expected/: the plan's order, the summary, the report
    judged/<case>/            a judge set and its judge → expected/: the summary, the agreement
    invalid/<rule>-<slug>/    documents → diagnostics.txt

`make golden` rewrites what is expected; the diff is the review.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from msgspec import convert

from agentv_ci import __version__
from agentv_ci.contracts import packed_cases
from agentv_ci.contracts.diagnostics import RULES
from agentv_ci.ledger.folder import add_to_folder
from agentv_ci.load.parse import parse_yaml
from tests.support.nights import Stretch, files_of
from tests.support.projects import Project

CORPUS = Path(__file__).parent / "corpus"


@dataclass(slots=True)
class Case(Project):
    """A copy of a folder of the corpus, in a repository of its own."""

    original: Path = CORPUS
    update: bool = False

    def does(self, *arguments: str, code: int = 0) -> str:
        """Run a command that must end with a code, and return what it prints."""
        done = self.run(*arguments)
        assert done.code == code, done
        return done.out

    def expect(self, name: str, text: str) -> None:
        """Compare with the expected text, or write it."""
        path = self.original / name
        if self.update:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        assert path.exists(), f"{path} is missing; run: make golden"
        assert text == path.read_text(encoding="utf-8"), "if this is meant, run: make golden"

    def compiles(self) -> None:
        """Compile, and compile the plan again."""
        self.does("compile", ".", "--out", "plan.json")
        self.expect("expected/plan.json", self.text("plan.json"))
        self.does("compile", "plan.json", "--out", "again.json")
        assert self.text("again.json") == self.text("plan.json")

    def steady(self, name: str) -> str:
        """A file without places and times of this run, such as the repository, scratch folders and measured time."""
        return self.steadied(self.text(name))

    def steadied(self, text: str) -> str:
        """A text without them."""
        text = re.sub(r"\b[\d,]+ ms, at most", "0 ms, at most", text.replace(str(self.folder), "…"))
        text = re.sub(r"(?<= passed)(.*), [\d.]+ s$", r"\1", text, flags=re.MULTILINE)
        text = re.sub(r"/[^\s\"()]*/agentv-([a-z-]+)-\w{8}/", r"<scratch of \1>/", text)
        times = r'(?<="duration_s": )[\d.]+|(?<= · )[\d.]+(?= s$)|(?<= \| )[\d.]+(?= s \|$)'
        text = re.sub(times, "0.0", text, flags=re.MULTILINE)
        text = text.replace(f'"version": "{__version__}"', '"version": "<version>"')
        return re.sub(r"\b20\d{12}(?=_)", "<second>", text)

    def steady_rows(self, name: str) -> list[dict[str, Any]]:
        """Rows without what differs from run to run: times, places, and the order in which parallel cases end."""
        rows = [json.loads(line) for line in self.steady(name).splitlines()]
        for row in rows:
            row |= {"timestamp": "2030-01-02T03:04:05.000Z", "duration_ms": 0}
        return sorted(rows, key=lambda row: (row["suite"], row["source"]["line"], row["target"], row["trial"]))


def folders(kind: str) -> list[Path]:
    return sorted(path for path in (CORPUS / kind).iterdir() if path.is_dir())


def each(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("folder", folders(kind), ids=lambda folder: folder.name)


@pytest.fixture
def case(folder: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Case:
    copy = tmp_path / "repository"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("expected", "diagnostics.txt"))
    (copy / ".git").mkdir()
    return Case(copy, original=folder, update=bool(request.config.getoption("--update-golden")))


@each("invalid")
def test_invalid_document_is_diagnosed(case: Case) -> None:
    named = sorted(path.name for path in case.folder.iterdir() if path.suffix in (".yaml", ".yml"))
    done = case.run("validate", *(name for name in named if name != "wrong.yaml"))
    assert done.err == ""
    assert f"[{case.original.name.split('-')[0]}]" in done.out
    assert done.code == (1 if ": error: " in done.out else 0)
    case.expect("diagnostics.txt", done.out.replace(str(case.folder), "<repository>"))


def test_every_rule_has_a_case_in_the_corpus() -> None:
    missing = RULES.keys() - {folder.name.split("-")[0] for folder in folders("invalid")}
    assert not missing, f"add tests/corpus/invalid/<rule>-<slug>/ for {sorted(missing)}"


@each("checked")
def test_document_that_does_not_run_yet_is_compiled(case: Case) -> None:
    assert case.does("validate", "--strict", ".").count("\n") == 1
    case.compiles()


@each("valid")
def test_valid_document_runs_as_expected(case: Case) -> None:
    case.does("validate", ".")
    case.compiles()
    wanted = ["--junit", "out/junit.xml", "--markdown", "out/summary.md", "--sarif", "out/results.sarif"]
    done = case.run("eval", ".", "--out", "out/results.jsonl", *wanted)
    # A loaded machine makes cases slow enough to be named there.
    summary = re.sub(r"^time: .*(\n  .*)*", "time: 0.0 s", case.steadied(done.out), flags=re.MULTILINE)
    case.expect("expected/summary.txt", f"{summary}exit code: {done.code}\n")
    rows = case.steady_rows("out/results.jsonl")
    case.expect("expected/results.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    case.expect("expected/report.json", case.steady("out/results.report.json"))
    junit = re.sub(r' time="[\d.]+"', ' time="0.001"', case.text("out/junit.xml"))
    case.expect("expected/junit.xml", re.sub(r' timestamp="[\dT:-]{19}"', ' timestamp="2030-01-02T03:04:05"', junit))
    case.expect("expected/summary.md", case.steady("out/summary.md"))
    case.expect("expected/results.sarif", case.steady("out/results.sarif").replace(__version__, "<version>"))
    # A ledger refuses runs of the future.
    case.store("out/steady.jsonl", *({**row, "timestamp": "2020-01-02T03:04:05.000Z"} for row in rows))
    if any(row["status"] != "skipped" for row in rows):
        case.does("history", "add", "out/steady.jsonl", "--dir", "ledger")
        (night,) = case.path("ledger").rglob("*.jsonl")
        case.expect("expected/ledger.jsonl", night.read_text("utf-8"))
    # A plan runs like the documents it was compiled from, and one of many cases like one of few.
    with mock.patch.multiple(packed_cases, MANY=0, BLOCK=2):
        case.does("eval", "plan.json", "--out", "again.jsonl", code=done.code)
    assert case.steady_rows("again.jsonl") == rows


@each("nights")
def test_health_of_many_nights_is_as_expected(case: Case) -> None:
    cases = convert(parse_yaml(case.text("nights.yaml")).data, dict[str, tuple[Stretch, ...]])
    add_to_folder(case.path("ledger"), files_of(cases))
    health = ("history", "health", "--dir", "ledger", "--days", "36500")
    for name, *form in (("txt",), ("json", "--format", "json"), ("github.txt", "--format", "github")):
        case.expect(f"expected/health.{name}", case.steadied(case.does(*health, *form)))


@each("proven")
def test_cases_are_proven_as_expected(case: Case) -> None:
    done = case.run("prove", ".", "--out", "proof.json")
    case.expect("expected/findings.txt", f"{case.steadied(done.out)}exit code: {done.code}\n")
    case.expect("expected/proof.json", case.text("proof.json"))
    case.does("prove", ".", "--out", "again.json", "--workers", "3", code=done.code)
    assert case.text("again.json") == case.text("proof.json")


@each("formatted")
def test_document_is_formatted(case: Case) -> None:
    before = case.files()
    done = case.run("fmt", ".", "--check")
    assert case.files() == before
    written = case.run("fmt", ".")
    text = f"{done.out}{done.err}{written.out}exit codes: {done.code}, {written.code}\n"
    case.expect("expected/summary.txt", text.replace(str(case.folder), "<repository>"))
    for name, content in before.items():
        if case.path(name).read_bytes() != content:
            case.expect(f"expected/{name}", case.path(name).read_bytes().decode())
    again = case.run("fmt", ".")
    assert again.out.startswith("0 files formatted")


@each("imported")
def test_files_of_other_tools_are_imported(case: Case) -> None:
    before = case.files()
    done = case.run("import", *shlex.split(case.text("arguments.txt")), "--out", "converted")
    case.expect("expected/output.txt", f"{done.out}{done.err}exit code: {done.code}\n")
    written = {name for name in case.files() if name.startswith("converted/")}
    for name in sorted(written):
        if "/scripts/" not in name:
            case.expect(f"expected/{Path(name).name}", case.text(name))
    assert {name: content for name, content in case.files().items() if name not in written} == before
    assert case.does("validate", "--strict", "converted").count("\n") == 1
    case.does("compile", "converted", "--out", "plan.json")


@each("compared")
def test_two_runs_are_compared_as_expected(case: Case) -> None:
    # The path of the file identifies a case on both sides.
    for side in ("base", "head"):
        shutil.copytree(case.path(side), case.folder, dirs_exist_ok=True)
        case.does("eval", "desk.test.yaml", "--out", f"{side}.jsonl")
        for rolls in case.folder.glob("rolls-*"):
            rolls.unlink()
    case.does("baseline", "accept", "base.jsonl", "--out", "baseline.json")
    baseline = re.sub(r'"20[^"]*Z"', '"<then>"', case.text("baseline.json"))
    case.expect("expected/baseline.json", re.sub(r'(?<="durations_ms": )\[[^]]*\]', '["<times>"]', baseline))

    done = case.run("compare", "base.jsonl", "head.jsonl")
    case.expect("expected/comparison.txt", f"{done.out}exit code: {done.code}\n")
    found = case.does("compare", "base.jsonl", "head.jsonl", "--format", "json", code=done.code)
    case.expect("expected/comparison.json", found)
    again = case.does("compare", "baseline.json", "head.jsonl", code=done.code)
    without_answers = re.sub(r"^    (before|now): .*\n", "", done.out, flags=re.MULTILINE)
    assert again == without_answers.replace("base.jsonl", "baseline.json")
    case.does("eval", "desk.test.yaml", "--out", "again.jsonl", "--baseline", "baseline.json", code=done.code)
    assert case.json("again.report.json")["comparison"]["reasons"] == json.loads(found)["reasons"]


@each("experiments")
def test_experiment_is_judged_as_expected(case: Case) -> None:
    case.does("validate", "--strict", ".")
    case.does("compile", "experiment.yaml", "--out", "plan.json")
    order = ((each["suite"], each["id"], each["arm"]) for each in case.json("plan.json")["cases"])
    case.expect("expected/order.txt", "".join(f"{' '.join(each)}\n" for each in order))
    case.does("eval", "plan.json", "--list")  # it is like the published schema
    run = ["experiment", "experiment.yaml", "--out", "r.jsonl", "--markdown", "summary.md", "--html", "r.html"]
    done = case.run(*run)
    summary = re.sub(r"^time: .*(\n  .*)*", "time: 0.0 s", case.steadied(done.out), flags=re.MULTILINE)
    case.expect("expected/summary.txt", f"{summary}exit code: {done.code}\n")
    case.expect("expected/summary.md", case.steady("summary.md"))
    report = case.json("r.report.json")["experiment"]
    case.expect("expected/experiment.json", json.dumps(report, indent=2) + "\n")
    assert '<span class="verdict ' in case.text("r.html")
    # The verdict depends neither on the order of rows, nor on workers, nor on shards.
    rows = case.text("r.jsonl").splitlines(keepends=True)
    case.path("reversed.jsonl").write_text("".join(reversed(rows)), "utf-8")
    shutil.copy(case.path("r.report.json"), case.path("reversed.report.json"))
    case.does("experiment", "experiment.yaml", "--workers", "7", "--out", "wide.jsonl", code=done.code)
    for shard in ("1/2", "2/2"):
        case.does("experiment", "experiment.yaml", "--shard", shard, "--out", f"part-{shard[0]}.jsonl")
    for names in (["reversed.jsonl"], ["wide.jsonl"], ["part-2.jsonl", "part-1.jsonl"]):
        results = [word for name in names for word in ("--results", name)]
        case.does("experiment", "experiment.yaml", *results, "--out", "again.jsonl", code=done.code)
        again = case.json("again.report.json")["experiment"]
        assert again | {"saved_trials": 0} == report | {"saved_trials": 0}, names


@each("judged")
def test_judge_set_is_checked(case: Case) -> None:
    case.does("validate", "--strict", ".")
    check = ["judge-check", "judge-set.yaml", "--repeat", "2", "--out", "rows.jsonl"]
    done = case.run(*check)
    case.expect("expected/summary.txt", f"{done.out}exit code: {done.code}\n")
    case.expect("expected/agreement.json", case.does(*check, "--format", "json", code=done.code))
    rows = case.rows("rows.jsonl")
    assert {row["target"] for row in rows} == {"labelled answers"}
    assert [row["trial"] for row in rows].count(2) == len(rows) / 2
