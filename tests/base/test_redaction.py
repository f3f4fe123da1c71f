"""Secrets are found in every form they take, and nothing else is changed."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.base.redaction import MASK, Redactor, secrets_of
from agentv_ci.contracts.exchange import ProviderError, Response
from agentv_ci.contracts.results import Change, OutputMessage, PrintedOutput, ToolCall
from agentv_ci.execute.resolution import resolve_targets
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


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("width", [0, 1, 20, 76])
@pytest.mark.parametrize("after", ["", "!", "??", ">>>", " and more text that follows it"])
@pytest.mark.parametrize("before", ["", "a:", "user:", "Bearer ", "x-access-token:", "token "])
def test_a_secret_within_base64_is_masked(
    before: str, after: str, width: int, encode: Callable[[bytes], bytes]
) -> None:
    form = encode(f"{before}{SECRET}{after}".encode()).decode()
    wrapped = "\n".join(form[at : at + width] for at in range(0, len(form), width)) if width else form
    masked = Redactor([SECRET]).text(wrapped)
    rest = "".join(masked.replace(MASK, "").split())
    # At most the characters that it shares with what is beside it are left, and padding.
    assert MASK in masked
    assert len(rest) <= len(encode(before.encode())) + len(encode(after.encode())) + 2, masked


def test_what_an_agent_changed_is_stored_without_secrets() -> None:
    content = b"\xff\x00" + SECRET.encode() + b"\xfe\n" + base64.b64encode(f"user:{SECRET}".encode())
    files = (
        Change(path="a", kind="added", mode=0o644, base64=base64.b64encode(content).decode()),
        Change(path="b", kind="added", link=SECRET),
        Change(path=f"c-{SECRET}", kind="deleted"),
        Change(path="d", kind="added", base64=base64.b64encode(b"\xff\x00other").decode()),
    )
    response = Response("done", (), has_trace=False, changes=files)
    stored = Redactor([SECRET]).stored(response)
    assert (stored.masked, Redactor(["not-in-there"]).stored(response)) == (True, response)
    first, link, deleted, other = stored.changes or ()
    kept = base64.b64decode(first.base64 or "")
    assert kept.startswith(b"\xff\x00***\xfe\n")
    assert SECRET.encode() not in base64.b64decode(kept.rpartition(b"\n")[2] + b"==", validate=False)
    assert (link.link, deleted.path, other) == (MASK, f"c-{MASK}", files[3])


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
        "LEAST_KEY": "abcdefg1",
        "SHORT_KEY": "abcdefg",
        "NUMBER_KEY": "123456789",
        "KEY_NAME": "not-a-secret",
        "GREETING": "good morning",
        "REGION": "eu-central-1",
        "LOGIN": "correct-horse-9",
        "ADDRESS": "postgres://user:pass@host/db",
        "SORT_KEY": "created_at",
        "HEADER": "Bearer header-token",
    }
    headers = {"x": "${{ HEADER }}", "x-team": "platform engineering", "x-auth": "literal-token"}
    gpt = target(provider="openai", model="m", api_key="${{ OPENAI_API_KEY }}", headers=headers)
    env = {
        "A": "${{ GREETING }}",
        "AWS_REGION": "${{ REGION }}",
        "LOGIN_TOKEN": "${{ LOGIN }}",
        "URL": "${{ ADDRESS }}",
        "B": "a literal value",
    }
    agent = target(provider="cli", command_template="x", prompt="none", env=env)
    targets = {"gpt": gpt, "agent": agent}
    expected = {
        *("from-the-environment", "ghs_0123456789", "correct horse", "abcdefg1"),
        *("Bearer header-token", "header-token", "literal-token"),
        *("correct-horse-9", "postgres://user:pass@host/db"),
    }
    assert secrets_of(targets, resolve_targets(targets, environ), environ) == expected
    # Targets that are not asked are not resolved.
    assert secrets_of(targets, {}, environ) == expected


@pytest.mark.parametrize(
    ("text", "hides"), [(SECRET, True), (f"a {SECRET.upper()}", True), ("sk-", False), ("", False)]
)
def test_text_with_a_secret_in_any_case_cannot_be_compared(text: str, hides: bool) -> None:
    assert Redactor([SECRET]).hides(text) is hides
    assert Redactor([]).hides(text) is False


def test_condition_may_be_met_by_a_secret() -> None:
    assert Redactor([SECRET, KEY]).hides_match(lambda secret: "canary" in secret)
    assert not Redactor([KEY]).hides_match(lambda secret: "canary" in secret)
    assert not Redactor([]).hides_match(lambda _: True)
