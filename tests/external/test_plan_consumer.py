"""A reader of plans in another language: the example of docs/plan.md, run by Node."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.compile.builders import EVAL, case, compile_here, evals, text_of
from tests.support import REPOSITORY

CONSUMER = REPOSITORY / "docs" / "examples" / "plan-consumer" / "consumer.mjs"
PLANS = sorted((REPOSITORY / "tests" / "corpus").glob("*/*/expected/plan.json"))

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is missing")


def consume(plan: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["node", CONSUMER, plan], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.parent.parent.name)
def test_it_finds_every_plan_whole(path: Path) -> None:
    done = consume(path)
    assert (done.returncode, done.stderr) == (0, "")
    plan = json.loads(path.read_text("utf-8"))
    requests = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["id"], each["digest"]) for each in requests] == [
        (each["id"], each["digest"]) for each in plan["cases"]
    ]


def test_it_puts_files_and_guidelines_into_the_messages() -> None:
    plan = REPOSITORY / "tests" / "corpus" / "valid" / "guidelines-and-attachments" / "expected" / "plan.json"
    (request,) = map(json.loads, consume(plan).stdout.splitlines())
    texts = {file["text"] for file in json.loads(plan.read_text("utf-8"))["files"].values()}
    said = "\n".join(message["content"] for message in request["messages"])
    assert all(text in said for text in texts)


def test_it_reads_numbers_that_no_double_holds(repository: Path) -> None:
    plan = compile_here(repository, {EVAL: evals(case(metadata={"big": 12345678901234567891, "small": 1e-7}))})
    (repository / "plan.json").write_text(text_of(plan), "utf-8")
    assert "12345678901234567891" in text_of(plan)
    assert consume(repository / "plan.json").returncode == 0


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"digest": "0" * 64}, "was changed after it was compiled"),
        ({"targets": {}}, "was changed after it was compiled"),
        ({"$schema": "https://org.github.io/agentv-action/schemas/plan-v2.schema.json"}, "plan-v2"),
    ],
)
def test_it_refuses_what_is_not_the_plan_that_was_compiled(
    change: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    plan = json.loads((PLANS[0]).read_text("utf-8")) | change
    (tmp_path / "plan.json").write_text(json.dumps(plan), "utf-8")
    done = consume(tmp_path / "plan.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert complaint in done.stderr
