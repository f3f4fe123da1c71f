"""Results that other tools write themselves have the same counts after `adopt`."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.external.tools import node_modules, run
from tests.support.projects import Project

TOOLS = "AGENTV_CI_EVAL_TOOLS"
INSTALL = "python3 -m venv DIR && DIR/bin/pip install inspect_ai pydantic-evals"

PYTEST = """
import pytest
@pytest.mark.parametrize("n", [1, 2, 3])
def test_small(n): assert n < 3
@pytest.mark.skip(reason="later")
def test_later(): ...
@pytest.fixture
def broken(): raise RuntimeError("no key")
def test_broken(broken): ...
"""
SUBTESTS = """
import unittest
def test_all(subtests):
    for number in range(3):
        with subtests.test(number=number): assert number < LIMIT
class Tests(unittest.TestCase):
    def test_all(self):
        for number in range(3):
            with self.subTest(number=number): assert number < LIMIT
"""
INSPECT = """
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
def output(text):
    made = ModelOutput.from_content("mockllm/model", text)
    made.usage = ModelUsage(input_tokens=3, output_tokens=2, total_tokens=5)
    return made
samples = [Sample(input=f"{n} + {n}", target=str(2 * n), id=f"s{n}") for n in (1, 2, 3)]
model = get_model("mockllm/model", custom_outputs=[output("It is 2"), output("It is 4"), output("It is 7")])
log = eval(Task(dataset=samples, scorer=includes()), model=model, log_dir="logs", log_format="json",
           display="none", max_samples=1)[0]
print(log.results.scores[0].metrics["accuracy"].value)
"""
PYDANTIC = """
from pydantic import TypeAdapter
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected
from pydantic_evals.reporting import EvaluationReport
texts = {"a": "hi", "b": "ho", "c": "boom"}
def task(text):
    if text == "boom":
        raise RuntimeError("no")
    return text
cases = [Case(name=name, inputs=text, expected_output="hi") for name, text in texts.items()]
report = Dataset(name="x", cases=cases, evaluators=[EqualsExpected()]).evaluate_sync(task, progress=False)
open("report.json", "wb").write(TypeAdapter(EvaluationReport).dump_json(report))
"""


def verdicts(project: Project, file: str, kind: str) -> Counter[str]:
    done = project.run("adopt", file, "--from", kind, "--out", "rows.jsonl")
    assert done.code in {0, 1, 4}, done
    return Counter(row["verdict"] for row in project.rows("rows.jsonl"))


def eval_tools() -> str:
    folder = os.environ.get(TOOLS)
    if not folder or not Path(folder, "bin", "python").exists():
        pytest.skip(f"{TOOLS} must name a virtual environment: {INSTALL}")
    return str(Path(folder, "bin", "python"))


@pytest.mark.slow
def test_pytest(repository: Path) -> None:
    project = Project(repository)
    project.write({"test_x.py": PYTEST})
    flags = ["-p", "no:cacheprovider", "-q", "--junit-xml", repository / "junit.xml", "--rootdir", repository]
    done = run([sys.executable, "-m", "pytest", *flags, repository / "test_x.py"])
    assert "1 failed, 2 passed, 1 skipped, 1 error" in done.stdout
    assert verdicts(project, "junit.xml", "junit") == {"pass": 2, "fail": 1, "skipped": 1, "error": 1}


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "verdict", "code"), [(3, "pass", 0), (1, "fail", 1)])
def test_subtests_of_pytest(limit: int, verdict: str, code: int, repository: Path) -> None:
    project = Project(repository)
    project.write({"test_x.py": SUBTESTS.replace("LIMIT", str(limit))})
    flags = ["-p", "no:cacheprovider", "-q", "--junit-xml", repository / "junit.xml", "--rootdir", repository]
    run([sys.executable, "-m", "pytest", *flags, repository / "test_x.py"], codes=(code,))
    done = project.run("adopt", "junit.xml", "--from", "junit", "--out", "rows.jsonl")
    assert (done.code, "in the file" in done.out) == (code, False), done
    assert {row["verdict"] for row in project.rows("rows.jsonl")} == {verdict}


@pytest.mark.slow
def test_promptfoo(repository: Path) -> None:
    modules = node_modules("promptfoo@0.121.20")
    project = Project(repository)
    tests = [{"vars": {"a": word}, "assert": [{"type": "contains", "value": "o"}]} for word in ("one", "two", "three")]
    config = {"prompts": ["{{a}}", "{{a}}!"], "providers": ["echo"], "tests": tests}
    project.write({"promptfooconfig.yaml": json.dumps(config)})
    flags = ["-o", repository / "theirs.json", "--no-cache", "--no-table", "--no-progress-bar"]
    env = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_CONFIG_DIR": str(repository)}
    program = modules / ".bin" / "promptfoo"
    run([program, "eval", "-c", repository / "promptfooconfig.yaml", *flags], codes=(0, 100), env=env)
    stats = project.json("theirs.json")["results"]["stats"]
    counted = verdicts(project, "theirs.json", "promptfoo")
    assert (counted["pass"], counted["fail"], counted["error"]) == (
        stats["successes"],
        stats["failures"],
        stats["errors"],
    )
    assert counted == {"pass": 4, "fail": 2}
    assert len({row["eval_id"] for row in project.rows("rows.jsonl")}) == 6


@pytest.mark.slow
def test_inspect(repository: Path) -> None:
    python = eval_tools()
    project = Project(repository)
    project.write({"run.py": INSPECT})
    done = run(["sh", "-c", f"cd {repository} && {python} run.py"], codes=(0,))
    (log,) = repository.glob("logs/*.json")
    counted = verdicts(project, str(log.relative_to(repository)), "inspect")
    assert counted == {"pass": 2, "fail": 1}
    assert float(done.stdout) == pytest.approx(2 / 3)


@pytest.mark.slow
def test_pydantic_evals(repository: Path) -> None:
    python = eval_tools()
    project = Project(repository)
    project.write({"run.py": PYDANTIC})
    run(["sh", "-c", f"cd {repository} && {python} run.py"], codes=(0,))
    assert verdicts(project, "report.json", "pydantic-evals") == {"pass": 1, "fail": 1, "error": 1}
