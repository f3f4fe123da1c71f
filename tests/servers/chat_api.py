"""A loopback server that speaks OpenAI's chat completions.

What it answers is a list of steps, one per request; the last one repeats. A step is made by the functions below.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.servers import http
from tests.servers.http import Asked, Reply, serve

Step = Reply | Callable[[dict[str, Any]], Reply]
"""A reply, or what makes one from the request's body."""


def says(text: str | None, **choice: Any) -> Reply:
    """A completion with `text`; `choice` replaces keys of the choice, such as finish_reason or message."""
    message = {"role": "assistant", "content": text, "refusal": None}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_900_000_000,
        "model": "mock-model-2030",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop", **choice}],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "total_tokens": 110,
            "prompt_tokens_details": {"cached_tokens": 20},
            "completion_tokens_details": {"reasoning_tokens": 4},
        },
    }
    return answers(200, body)


def fails(status: int, message: str = "mock failure", **headers: str) -> Reply:
    """An error with OpenAI's body; header names are written with `_` for `-`."""
    body = {"error": {"message": message, "type": "server_error", "param": None, "code": None}}
    return answers(status, body, **headers)


def answers(status: int, body: object, **headers: str) -> Reply:
    """Any JSON."""
    return http.answers(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


@dataclass(slots=True)
class ChatApi:
    """A running server and what it was asked."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    """{"path", "headers", "body"} in order."""
    most_at_once: int = 0

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"


@contextmanager
def chat_api(*steps: Step, port: int = 0) -> Iterator[ChatApi]:
    """Serve `steps` until the block ends, at any free port by default."""
    api, lock, at_once = ChatApi(), threading.Lock(), 0
    given = steps or (says("MOCK-ANSWER 42"),)

    def reply(asked: Asked) -> Reply:
        nonlocal at_once
        with lock:
            step = given[min(len(api.requests), len(given) - 1)]
            api.requests.append({"path": asked.path, "headers": asked.headers, "body": asked.body})
            at_once += 1
            api.most_at_once = max(api.most_at_once, at_once)
        try:
            made = step(asked.body) if callable(step) else step
            time.sleep(made.delay_s)
        finally:
            with lock:
                at_once -= 1
        return made

    with serve(reply, port=port) as api.url:
        yield api
