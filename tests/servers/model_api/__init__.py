"""A loopback server that speaks the protocols of the model vendors, plain and as server-sent events.

Served: OpenAI's chat completions and Responses, both as Azure serves them too, Anthropic's Messages and Gemini's
generateContent. What it answers is a list of steps, one per question; the last one repeats. A request that the vendor
would refuse is refused with the vendor's message, and takes no step.
"""

from __future__ import annotations

from tests.servers.model_api.dialect import ANSWER, USAGE, Answer, Dialect
from tests.servers.model_api.server import ModelApi, model_api
from tests.servers.model_api.steps import (
    Step,
    answers_with,
    calls_tool,
    cuts,
    failed_inside,
    fails,
    filters,
    filters_prompt,
    garbage,
    lacks_quota,
    reasons,
    refuses,
    rejects,
    says,
    truncates,
)
from tests.servers.model_api.wire import Asked, Reply

__all__ = [
    "ANSWER",
    "USAGE",
    "Answer",
    "Asked",
    "Dialect",
    "ModelApi",
    "Reply",
    "Step",
    "answers_with",
    "calls_tool",
    "cuts",
    "failed_inside",
    "fails",
    "filters",
    "filters_prompt",
    "garbage",
    "lacks_quota",
    "model_api",
    "reasons",
    "refuses",
    "rejects",
    "says",
    "truncates",
]
