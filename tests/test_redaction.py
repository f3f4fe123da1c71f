"""Secrets are found in every form they take, and nothing else is touched."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.contracts.api_targets import OpenAITarget
from agentv_ci.contracts.exchange import ProviderError, Response
from agentv_ci.contracts.results import OutputMessage, ToolCall
from agentv_ci.contracts.targets import CliTarget, Target
from agentv_ci.execute.resolution import resolve_targets
from agentv_ci.redaction import MASK, Redactor, secrets_of

SECRET = 'sk-"canary"/äöü+0123'


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        quote(SECRET, safe=""),
        base64.b64encode(SECRET.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
    ],
)
def test_a_secret_is_masked_in_every_form(form: str) -> None:
    assert Redactor([SECRET]).text(f"before {form} after") == f"before {MASK} after"


def test_a_secret_that_contains_another_is_masked_as_a_whole() -> None:
    assert Redactor(["secret-1", "secret-1-and-more"]).text("secret-1-and-more, secret-1") == f"{MASK}, {MASK}"


LETTERS = st.text("abcxyz")


@given(LETTERS, LETTERS, st.text("0123456789+/", min_size=8))
def test_nothing_else_is_touched(before: str, after: str, secret: str) -> None:
    assert Redactor([secret]).text(f"{before}{secret}{after}") == f"{before}{MASK}{after}"
    assert Redactor([secret]).text(before + after) == before + after


def test_without_secrets_a_response_is_the_same_object() -> None:
    response = Response("answer", (OutputMessage(role="assistant", content="answer"),), has_trace=False)
    assert Redactor([]).response(response) is response
    assert Redactor(["not-in-there"]).response(response) is response


def test_a_response_is_cleaned_everywhere_and_says_so() -> None:
    calls = (ToolCall(tool="search", input={"q": SECRET, SECRET: [SECRET]}, output=SECRET),)
    response = Response(
        f"it is {SECRET}",
        (OutputMessage(role="assistant", content=SECRET, tool_calls=calls),),
        has_trace=True,
        model=SECRET,
        request={"a": SECRET},
    )
    clean = Redactor([SECRET]).response(response)
    assert SECRET not in repr(clean)
    assert clean.masked


def test_an_error_is_shortened_only_after_it_is_clean() -> None:
    error = ProviderError("process", "x" * 395 + SECRET + "y" * 2000)
    Redactor([SECRET]).clean(error)
    assert len(error.detail) == 1000
    assert "sk-" not in error.detail
    assert str(error) == error.detail


def test_secret_are_marked_fields_and_variables_named_so() -> None:
    environ = {
        "OPENAI_API_KEY": "from-the-environment",
        "GITHUB_TOKEN": "ghs_0123456789",
        "DB_PASSWORD": "correct horse",
        "SHORT_KEY": "1234567",
        "NUMBER_KEY": "123456789",
        "KEY_NAME": "not-a-secret",
        "GREETING": "good morning",
        "HEADER": "Bearer header-token",
    }
    targets: dict[str, Target] = {
        "gpt": OpenAITarget(
            name="gpt", provider="openai", model="m", api_key="${{ OPENAI_API_KEY }}", headers={"x": "${{ HEADER }}"}
        ),
        "agent": CliTarget(
            name="agent", provider="cli", command_template="x", env={"A": "${{ GREETING }}", "B": "a literal value"}
        ),
    }
    assert secrets_of(targets, resolve_targets(targets, environ), environ) == {
        "from-the-environment",
        "ghs_0123456789",
        "correct horse",
        "good morning",
        "Bearer header-token",
        "header-token",
    }
