"""Secrets are found in every form they take, and nothing else is changed."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.contracts.exchange import ProviderError, Response
from agentv_ci.contracts.results import OutputMessage, PrintedOutput, ToolCall
from agentv_ci.execute.resolution import resolve_targets
from agentv_ci.redaction import MASK, Redactor, secrets_of
from tests.execute.builders import target
from tests.support.runs import row

SECRET = 'sk-"canary"/äöü+0123'
KEY = "-----BEGIN KEY-----\nc2VjcmV0IHNlY3JldA\n-----END KEY-----"


@pytest.mark.parametrize(
    ("secret", "form"),
    [
        (SECRET, SECRET),
        (SECRET, json.dumps(SECRET)[1:-1]),
        (SECRET, json.dumps(SECRET, ensure_ascii=False)[1:-1]),
        (SECRET, SECRET.replace('"', '\\"').replace("/", "\\/")),
        (SECRET, quote(SECRET)),
        (SECRET, quote(SECRET, safe="")),
        (SECRET, quote(SECRET, safe="").replace("%2F", "%2f")),
        ("two words", "two+words"),
        (SECRET, base64.b64encode(SECRET.encode()).decode().rstrip("=")),
        (SECRET, base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("=")),
        (KEY, "c2VjcmV0IHNlY3JldA"),
        ("sk-abcdefgh", "sk-\x1b[0mabcdefgh"),
    ],
)
def test_a_secret_is_masked_in_every_form(secret: str, form: str) -> None:
    assert Redactor([secret]).text(f"before {form} after") == f"before {MASK} after"


def test_a_secret_that_contains_another_is_masked_as_a_whole() -> None:
    assert Redactor(["secret-1", "secret-1-and-more"]).text("secret-1-and-more, secret-1") == f"{MASK}, {MASK}"


LETTERS = st.text("abcxyz")


@given(LETTERS, LETTERS, st.text("0123456789+/", min_size=8))
def test_nothing_else_is_changed(before: str, after: str, secret: str) -> None:
    assert Redactor([secret]).text(f"{before}{secret}{after}") == f"{before}{MASK}{after}"
    assert Redactor([secret]).text(before + after) == before + after


def test_a_response_is_masked_everywhere_and_marked() -> None:
    calls = (ToolCall(tool=SECRET, input={"q": SECRET, SECRET: [SECRET]}, output=SECRET),)
    response = Response(
        f"it is {SECRET}",
        (OutputMessage(role=SECRET, content=SECRET, tool_calls=calls),),
        has_trace=True,
        model=SECRET,
        finish_reason=SECRET,
        request={"a": SECRET},
    )
    clean = Redactor([SECRET]).response(response)
    assert (SECRET in repr(clean), clean.masked) == (False, True)
    assert (Redactor([]).response(response), Redactor(["not-in-there"]).response(response)) == (response, response)


def test_a_row_is_masked_where_it_has_text_from_outside() -> None:
    found = row("error", candidate_answer=SECRET, error=f"no {SECRET}", printed=PrintedOutput(stdout=SECRET, stderr=""))
    clean = Redactor([SECRET]).row(found)
    assert (clean.candidate_answer, clean.error, clean.masked) == (MASK, f"no {MASK}", True)
    assert clean.printed == PrintedOutput(stdout=MASK, stderr="")
    assert Redactor(["not-in-there"]).row(found) is found


def test_an_error_is_masked_before_it_is_shortened() -> None:
    printed = PrintedOutput(stdout=f"{SECRET}{'x' * 20_000}", stderr="\x1b[31mred")
    error = ProviderError("process", "x" * 395 + SECRET + "y" * 2000, printed=printed)
    Redactor([SECRET]).clean(error)
    assert (len(error.detail), "sk-" in error.detail, str(error), error.masked) == (1000, False, error.detail, True)
    assert error.printed is not None
    assert (error.printed.stdout[:4], len(error.printed.stdout), error.printed.stderr) == (f"{MASK}x", 10_000, "red")


def test_secrets_are_marked_fields_and_variables_with_secret_names() -> None:
    environ = {
        "OPENAI_API_KEY": "from-the-environment",
        "GITHUB_TOKEN": "ghs_0123456789",
        "DB_PASSWORD": "correct horse",
        "LEAST_KEY": "abcdefgh",
        "SHORT_KEY": "abcdefg",
        "NUMBER_KEY": "123456789",
        "KEY_NAME": "not-a-secret",
        "GREETING": "good morning",
        "HEADER": "Bearer header-token",
    }
    gpt = target(provider="openai", model="m", api_key="${{ OPENAI_API_KEY }}", headers={"x": "${{ HEADER }}"})
    agent = target(
        provider="cli", command_template="x", prompt="none", env={"A": "${{ GREETING }}", "B": "a literal value"}
    )
    targets = {"gpt": gpt, "agent": agent}
    expected = {
        *("from-the-environment", "ghs_0123456789", "correct horse", "good morning", "abcdefgh"),
        *("Bearer header-token", "header-token"),
    }
    assert secrets_of(targets, resolve_targets(targets, environ), environ) == expected
    # Targets that are not asked are not resolved.
    assert secrets_of(targets, {}, environ) >= {"from-the-environment", "good morning"}
