"""Secrets reach neither agents that do not need them nor anything that leaves the job."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.action.conftest import Once
from tests.action.evals import agent, suite
from tests.action.rig import DIRECT, TOKEN, Outcome, play, uses

pytestmark = [pytest.mark.act, pytest.mark.slow]

SECRET = 'sk-live-Zq7/+"x\\y é-2wF'
PASSWORD = "correct horse+battery/staple"
FORMS = {
    f"{name}, {form}": text
    for name, secret in (("key", SECRET), ("password", PASSWORD))
    for form, text in (
        ("plain", secret),
        ("JSON", json.dumps(secret)[1:-1]),
        ("JSON with characters", json.dumps(secret, ensure_ascii=False)[1:-1]),
        ("base64", base64.b64encode(secret.encode()).decode()),
        ("URL", quote(secret, safe="")),
    )
}
PRINTS = """\
import base64, json, os, sys, urllib.parse
for secret in (os.environ["KEY"], os.environ["DATABASE_PASSWORD"]):
    forms = secret, json.dumps({"key": secret}), json.dumps({"key": secret}, ensure_ascii=False)
    for text in (*forms, base64.b64encode(secret.encode()).decode(), urllib.parse.quote(secret, safe="")):
        print(text)
        print(text, file=sys.stderr)
sys.exit(sys.argv[1] == "crashes")
"""
KEPT_BACK = {
    "GITHUB_TOKEN": TOKEN,
    "GH_TOKEN": TOKEN,
    "ACTIONS_RUNTIME_TOKEN": "runtime-token-0815",
    "ACTIONS_RUNTIME_URL": "http://127.0.0.1:1/runtime",
    "ACTIONS_RESULTS_URL": "http://127.0.0.1:1/results",
    "ACTIONS_CACHE_URL": "http://127.0.0.1:1/cache",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "identity-token-0815",
    "ACTIONS_ID_TOKEN_REQUEST_URL": "http://127.0.0.1:1/identity",
}
"""Variables of the job that agents must not see."""
RUNNER_FILES = {"GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"}
LOOKS_AROUND = """\
import json, os, pathlib

def environ(process):
    try:
        return pathlib.Path(f"/proc/{process}/environ").read_bytes().decode("utf-8", "replace").split("\\0")
    except PermissionError:
        return []

seen, process = {"agent": [f"{name}={value}" for name, value in os.environ.items()]}, os.getppid()
while (name := pathlib.Path(f"/proc/{process}/comm").read_text().strip()) != "act":
    seen[f"{process} {name}"] = environ(process)
    process = int(pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
pathlib.Path("seen.json").write_text(json.dumps(seen))
print("yes")
"""


@pytest.fixture(scope="module")
def outcome(once: Once) -> Outcome:
    def scenario(folder: Path) -> Outcome:
        files = {
            "prints/evals/a.test.yaml": suite("answers", "crashes"),
            "prints/targets.yaml": agent("python3 prints.py {EVAL_ID}", {"KEY": "${{ MODEL_KEY }}"}),
            "prints/prints.py": PRINTS,
            "looks/evals/a.test.yaml": suite("looks"),
            "looks/targets.yaml": agent("python3 looks_around.py"),
            "looks/looks_around.py": LOOKS_AROUND,
        }
        secrets = {"MODEL_KEY": SECRET, "DATABASE_PASSWORD": PASSWORD}
        env = {name: f"${{{{ secrets.{name} }}}}" for name in secrets}
        prints = uses("prints", working_directory="prints", env=env, args="--dump-traces --dump-prompts")
        looks = uses("looks", working_directory="looks", comment="never")
        return play(folder, files, prints, looks, secrets=secrets, tool=DIRECT, job={"env": KEPT_BACK})

    return once("secrets", scenario)


def test_agent_that_prints_secrets_is_scored(outcome: Outcome) -> None:
    step = outcome.steps["prints"]
    assert (step.outputs["failed"], step.outputs["errored"]) == ("1", "1")
    assert "***" in outcome.file("prints/agentv-results/results.jsonl")


@pytest.mark.parametrize("form", [*FORMS, "token"])
def test_secret_leaves_the_job_in_no_form(outcome: Outcome, form: str) -> None:
    texts = [("summary", outcome.steps["prints"].summary), *outcome.everything().items()]
    assert [where for where, text in texts if {**FORMS, "token": TOKEN}[form] in text] == []


def test_agents_and_their_parents_see_nothing_of_the_runner(outcome: Outcome) -> None:
    assert outcome.steps["looks"].outputs["verdict"] == "pass"
    seen: dict[str, list[str]] = json.loads(outcome.file("looks/seen.json"))
    assert len(seen) >= 3
    assert "CI=true" in seen["agent"]
    assert [] in seen.values()
    names = {process: {each.partition("=")[0] for each in environ} for process, environ in seen.items()}
    hidden = KEPT_BACK.keys() | RUNNER_FILES
    assert {process: found for process, each in names.items() if (found := each & hidden)} == {}
    said = "\n".join(each for environ in seen.values() for each in environ)
    assert [value for value in KEPT_BACK.values() if value in said] == []
    assert "INPUT_" not in said
