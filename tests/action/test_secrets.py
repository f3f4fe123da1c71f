"""What is secret reaches neither agents that need not know it nor anything that leaves the job."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.action.conftest import Once
from tests.action.evals import agent, suite
from tests.action.rig import DIRECT, TOKEN, Outcome, play, uses

pytestmark = pytest.mark.act

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
TELLS = """\
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
"""What a job has, and who runs in it need not know."""
RUNNER_FILES = {"GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"}
LOOKS_AROUND = """\
import json, os, pathlib

def environ(process):
    return pathlib.Path(f"/proc/{process}/environ").read_bytes().decode("utf-8", "replace").split("\\0")

seen, process = {"agent": [f"{name}={value}" for name, value in os.environ.items()]}, os.getppid()
while (name := pathlib.Path(f"/proc/{process}/comm").read_text().strip()) != "act":
    seen[f"{process} {name}"] = environ(process)
    process = int(pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
pathlib.Path("seen.json").write_text(json.dumps(seen))
print("yes")
"""
STAYS = """\
import os, pathlib, time
print("yes", flush=True)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    for output in (1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), output)
    end = time.monotonic() + 8
    while time.monotonic() < end:
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                environ = (process / "environ").read_bytes()
            except OSError:
                continue
            if b"GITHUB_TOKEN=ghs_" in environ and os.environ["GITHUB_WORKSPACE"].encode() in environ:
                pathlib.Path("token.txt").write_text("found")
                os._exit(0)
        time.sleep(0.02)
    os._exit(0)
"""
"""What leaves its session is no child of anybody's any more, and looks at the steps that follow."""


@pytest.fixture(scope="module")
def outcome(once: Once) -> Outcome:
    def scenario(folder: Path) -> Outcome:
        files = {
            "tells/evals/a.test.yaml": suite("answers", "crashes"),
            "tells/targets.yaml": agent("python3 tells.py {EVAL_ID}", {"KEY": "${{ MODEL_KEY }}"}),
            "tells/tells.py": TELLS,
            "looks/evals/a.test.yaml": suite("looks"),
            "looks/targets.yaml": agent("python3 looks_around.py"),
            "looks/looks_around.py": LOOKS_AROUND,
            "stays/evals/a.test.yaml": suite("stays"),
            "stays/targets.yaml": agent("python3 stays.py"),
            "stays/stays.py": STAYS,
        }
        secrets = {"MODEL_KEY": SECRET, "DATABASE_PASSWORD": PASSWORD}
        env = {name: f"${{{{ secrets.{name} }}}}" for name in secrets}
        tells = uses("tells", working_directory="tells", env=env, args="--include-trace --dump-traces --dump-prompts")
        looks = uses("looks", working_directory="looks", comment="never")
        stays = uses("stays", working_directory="stays", comment="never")
        return play(folder, files, tells, looks, stays, secrets=secrets, tool=DIRECT, job={"env": KEPT_BACK})

    return once("secrets", scenario)


def test_agent_that_tells_secrets_is_heard_all_the_same(outcome: Outcome) -> None:
    step = outcome.steps["tells"]
    assert (step.outputs["failed"], step.outputs["errored"]) == ("1", "1")
    assert "***" in outcome.file("tells/agentv-results/results.jsonl")


@pytest.mark.parametrize("form", FORMS)
def test_secret_leaves_the_job_in_no_form(outcome: Outcome, form: str) -> None:
    said = [("summary", outcome.steps["tells"].summary), *outcome.everything().items()]
    assert [where for where, text in said if FORMS[form] in text] == []


def test_agent_looked_around(outcome: Outcome) -> None:
    assert outcome.steps["looks"].outputs["verdict"] == "pass"
    seen = json.loads(outcome.file("looks/seen.json"))
    assert any("CI=true" in environ for environ in seen.values())
    assert len(seen) >= 3


def test_agent_and_what_runs_it_have_no_token_and_no_orders_to_give(outcome: Outcome) -> None:
    seen: dict[str, list[str]] = json.loads(outcome.file("looks/seen.json"))
    names = {who: {each.partition("=")[0] for each in environ} for who, environ in seen.items()}
    forbidden = KEPT_BACK.keys() | RUNNER_FILES
    assert {who: found for who, each in names.items() if (found := each & forbidden)} == {}
    told = "\n".join(each for environ in seen.values() for each in environ)
    assert [value for value in KEPT_BACK.values() if value in told] == []
    assert "INPUT_" not in told


def test_token_is_nowhere(outcome: Outcome) -> None:
    assert [where for where, text in outcome.everything().items() if TOKEN in text] == []


def test_agent_does_not_stay_until_the_token_comes(outcome: Outcome) -> None:
    assert outcome.steps["stays"].outputs["verdict"] == "pass"
    assert not (outcome.workspace / "stays/token.txt").exists()
