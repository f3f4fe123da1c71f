"""The reader of plans in docs/plan.md, in JavaScript, run by Node."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.compile.builders import EVAL, case, compile_here, evals, text_of
from tests.external.tools import run
from tests.support import REPOSITORY

CONSUMER = REPOSITORY / "docs" / "examples" / "plan-consumer" / "consumer.mjs"
PLANS = sorted((REPOSITORY / "tests" / "corpus").glob("*/*/expected/plan.json"))

pytestmark = [
    pytest.mark.skipif(shutil.which("node") is None, reason="node is missing: apt-get install nodejs"),
    pytest.mark.slow,
]


def consume(plan: Path) -> CompletedProcess[str]:
    return run(["node", CONSUMER, plan])


def test_every_plan_of_the_corpus() -> None:
    for path in PLANS:
        done = consume(path)
        assert (done.returncode, done.stderr) == (0, ""), path
        requests = [json.loads(line) for line in done.stdout.splitlines()]
        plan = json.loads(path.read_text("utf-8"))
        read, given = ([(each["id"], each["digest"]) for each in listed] for listed in (requests, plan["cases"]))
        assert read == given
        if path.parent.parent.name == "guidelines-and-attachments":
            said = "\n".join(message["content"] for message in requests[0]["messages"])
            assert all(file["text"] in said for file in plan["files"].values())


def test_numbers_beyond_doubles(repository: Path) -> None:
    plan = compile_here(repository, {EVAL: evals(case(metadata={"big": 12345678901234567891, "small": 1e-7}))})
    (repository / "plan.json").write_text(text_of(plan), "utf-8")
    assert "12345678901234567891" in text_of(plan)
    assert consume(repository / "plan.json").returncode == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"digest": "0" * 64}, "was changed after it was compiled"),
        ({"targets": {}}, "was changed after it was compiled"),
        ({"$schema": "https://org.github.io/agentv-action/schemas/plan-v2.schema.json"}, "plan-v2"),
    ],
)
def test_changed_plan_is_refused(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    plan = json.loads(PLANS[0].read_text("utf-8")) | change
    (tmp_path / "plan.json").write_text(json.dumps(plan), "utf-8")
    done = consume(tmp_path / "plan.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
