"""The cases that are asked: the same question, answer and assertion in each tool's own words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from eval_server import Message
from workload import PRODUCTS

CASES_PER_FILE = 1_000
ANSWERER, JUDGE = "answerer", "judge"
RIGHT = "I am sorry to hear that. You can return it within 30 days; we pay for the parcel."
WRONG = "I am sorry, I do not know."
QUESTION = (
    "Hello, I bought a <product> from you (order <order>) and it arrived on Monday. It works, but its color "
    "looks different on your site. Can I still send it back, and who pays for the parcel?"
)
EXPECTED = "You can return order <order> within 30 days of its arrival; we pay for the parcel."


def said(content: str) -> Message:
    """Return a message of an assistant."""
    return {"role": "assistant", "content": content}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How some tool wants the cases written, and what it wants a judge to say."""

    document: str
    """The name of a file of cases; `<file>` is its number."""
    head: str
    case: str
    verdict: Message
    judge: str = ""
    """What a case has in addition when it is judged."""
    between: str = ""
    tail: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    """Other files; `<url>` is where the server is."""


OURS = Dialect(
    document="evals/shop-<file>.yaml",
    head="""\
$schema: agentv-eval-v2
description: How the assistant of a shop answers questions about returns
execution:
  target: default
evalcases:
""",
    case=f"""\
  - id: return-<order>
    expected_outcome: Names the days in which a <product> can be returned
    input_messages:
      - role: user
        content: '{QUESTION}'
    expected_messages:
      - role: assistant
        content: '{EXPECTED}'
    evaluators:
      - {{name: names-the-days, type: contains, value: 30 days}}
""",
    judge="      - {name: is-polite, type: llm_judge, judge_target: judge}\n",
    verdict=said(json.dumps({"score": 1.0, "hits": [], "misses": [], "reasoning": "ok"})),
    files={
        "targets.yaml": """\
$schema: agentv-targets-v2.2
targets:
  - {name: default, provider: openai, base_url: '<url>', api_key: '${{ OPENAI_API_KEY }}', model: answerer}
  - {name: judge, provider: openai, base_url: '<url>', api_key: '${{ OPENAI_API_KEY }}', model: judge}
"""
    },
)
MOCK = replace(
    OURS,
    files={
        "targets.yaml": f"""\
$schema: agentv-targets-v2.2
targets:
  - {{name: default, provider: mock, response: '{RIGHT}'}}
"""
    },
)
AGENTV = Dialect(
    document="shop.eval.yaml",
    head="""\
description: How the assistant of a shop answers questions about returns
execution:
  target: default
tests:
""",
    case=f"""\
  - id: return-<order>
    criteria: Names the days in which a <product> can be returned
    input:
      - role: user
        content: '{QUESTION}'
    expected_output:
      - role: assistant
        content: '{EXPECTED}'
    assertions:
      - {{name: names-the-days, type: contains, value: 30 days}}
""",
    judge="      - {name: is-polite, type: llm-grader, target: judge}\n",
    verdict=said(
        json.dumps(
            {"score": 1.0, "assertions": [{"text": "ok", "passed": True}], "reasoning": "ok"}
        )
    ),
    files={
        # It takes models only from the environment.
        ".agentv/targets.yaml": """\
targets:
  - {name: default, provider: openai, base_url: '<url>', api_key: '${{ OPENAI_API_KEY }}', model: '${{ ANSWERER }}'}
  - {name: judge, provider: openai, base_url: '<url>', api_key: '${{ OPENAI_API_KEY }}', model: '${{ JUDGE }}'}
"""
    },
)
PROMPTFOO = Dialect(
    document="shop.yaml",
    head="""\
description: How the assistant of a shop answers questions about returns
providers:
  - {id: 'openai:chat:answerer', config: {apiBaseUrl: '<url>'}}
prompts:
  - '{{question}}'
defaultTest:
  options:
    provider: {id: 'openai:chat:judge', config: {apiBaseUrl: '<url>'}}
tests:
""",
    case=f"""\
  - description: return-<order>
    vars:
      question: '{QUESTION}'
      expected: '{EXPECTED}'
    assert:
      - {{metric: names-the-days, type: contains, value: 30 days}}
""",
    judge="      - {metric: is-polite, type: llm-rubric, value: Names the days in which a <product> can be returned}\n",
    verdict=said(json.dumps({"pass": True, "score": 1.0, "reason": "ok"})),
)
INSPECT = Dialect(
    document="cases.jsonl",
    head="",
    case=json.dumps({"id": "return-<order>", "input": QUESTION, "target": "30 days"}) + "\n",
    verdict=said("GRADE: C"),
    files={
        "ask.py": """\
import sys

from inspect_ai import Task, eval as run
from inspect_ai.dataset import json_dataset
from inspect_ai.model import get_model
from inspect_ai.scorer import includes, model_graded_qa
from inspect_ai.solver import generate

width, judged = int(sys.argv[1]), sys.argv[2] == "judged"
models = {"base_url": "<url>", "responses_api": False}
judge = [model_graded_qa(model=get_model("openai/judge", **models))] if judged else []
task = Task(dataset=json_dataset("cases.jsonl"), solver=generate(), scorer=[includes(), *judge])
answerer = get_model("openai/answerer", **models)
(log,) = run(task, model=answerer, max_connections=width, max_samples=width, display="none", log_dir="out")
passed = sum(all(score.value == "C" for score in sample.scores.values()) for sample in log.samples)
print(f"{passed} of {log.results.completed_samples} passed")
"""
    },
)
SLOTS = """\
idle = []
trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
key = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}


def client():
    if idle:
        return idle.pop()
    one = httpx.Limits(max_connections=1, max_keepalive_connections=1)
    return httpx.AsyncClient(limits=one, verify=trust, trust_env=False, headers=key)


async def ask(question, model="answerer"):
    body = {"model": model, "messages": [{"role": "user", "content": question}]}
    slot = client()
    reply = await slot.post("<url>/chat/completions", json=body)
    idle.append(slot)
    return reply.json()["choices"][0]["message"]["content"]
"""
"""One client with one connection for each question that waits, which is the fastest that httpx can
do.
"""
SESSION = """\
key = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
sessions = []


async def ask(question, model="answerer"):
    if not sessions:
        sessions.append(aiohttp.ClientSession(headers=key, connector=aiohttp.TCPConnector(limit=0)))
    body = {"model": model, "messages": [{"role": "user", "content": question}]}
    async with sessions[0].post("<url>/chat/completions", json=body) as reply:
        return (await reply.json())["choices"][0]["message"]["content"]
"""
"""One session without a limit; its program ends without closing it."""


def loop_over(client: str, ask: str) -> Dialect:
    """Return a bare loop: a program that asks with a client, searches the answers, and does nothing else."""
    program = f"""\
import asyncio, json, os, ssl, sys

import {client}

width, judged = int(sys.argv[1]), sys.argv[2] == "judged"
{ask}

async def work(cases):
    passed = 0
    for case in cases:
        answer = await ask(case["input"])
        judged and await ask(answer, "judge")
        passed += case["target"] in answer
    return passed


async def main():
    cases = [json.loads(line) for line in open("cases.jsonl")]
    coming = iter(cases)
    passed = await asyncio.gather(*(work(coming) for _ in range(width)))
    print(f"{{sum(passed)}} of {{len(cases)}} passed", flush=True)
    os._exit(0)


asyncio.run(main())
"""
    return replace(INSPECT, files={"ask.py": program})


PYDANTIC = Dialect(
    document="cases.json",
    head='{"name": "shop", "cases": [\n',
    case=json.dumps(
        {
            "name": "return-<order>",
            "inputs": QUESTION,
            "expected_output": EXPECTED,
            "evaluators": [{"Contains": "30 days"}],
        }
    ),
    between=",\n",
    tail="]}\n",
    # The tool that it offers a judge, so that it must answer in a certain form.
    verdict={
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call-1",
                "type": "function",
                "function": {
                    "name": "final_result",
                    "arguments": json.dumps({"reason": "ok", "pass": True, "score": 1.0}),
                },
            }
        ],
    },
    files={
        "ask.py": f"""\
import os, ssl, sys

import httpx
from pydantic_evals import Dataset

width, judged = int(sys.argv[1]), sys.argv[2] == "judged"
{SLOTS}

async def answer(question: str) -> str:
    return await ask(question)


dataset = Dataset[str, str, dict].from_file("cases.json")
if judged:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_evals.evaluators import LLMJudge

    judge = OpenAIChatModel("judge", provider=OpenAIProvider(base_url="<url>"))
    dataset.add_evaluator(LLMJudge(rubric="Names the days in which it can be returned", model=judge))
report = dataset.evaluate_sync(answer, max_concurrency=width, progress=False)
passed = sum(
    len(case.assertions) == 1 + judged and all(found.value for found in case.assertions.values())
    for case in report.cases
)
print(f"{{passed}} of {{len(report.cases)}} passed")
"""
    },
)
DIALECTS = {
    "agentv-ci": OURS,
    "agentv-ci mock": MOCK,
    "agentv": AGENTV,
    "promptfoo": PROMPTFOO,
    "inspect_ai": INSPECT,
    "pydantic-evals": PYDANTIC,
    "httpx": loop_over("httpx", SLOTS),
    "aiohttp": loop_over("aiohttp", SESSION),
}


def folder_of(root: Path, name: str, cases: int, *, judged: bool = False, url: str = "") -> Path:
    """Return a folder of cases in a dialect; it is written when it is first asked for."""
    folder = root / f"{name}-{cases}{'-judged' if judged else ''}"
    if folder.exists():
        return folder
    dialect = DIALECTS[name]
    for file, text in dialect.files.items():
        _write(folder / file, text.replace("<url>", url))
    for first in range(0, cases, CASES_PER_FILE):
        orders = range(first, min(first + CASES_PER_FILE, cases))
        text = document_of(dialect, orders, judged=judged).replace("<url>", url)
        _write(folder / dialect.document.replace("<file>", f"{first:06}"), text)
    return folder


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def document_of(dialect: Dialect, orders: range, *, judged: bool) -> str:
    """Return one document; there is a case for every order."""
    template = dialect.case + (dialect.judge if judged else "")
    cases = (
        template.replace("<order>", str(order)).replace(
            "<product>", PRODUCTS[order % len(PRODUCTS)]
        )
        for order in orders
    )
    return dialect.head + dialect.between.join(cases) + dialect.tail
