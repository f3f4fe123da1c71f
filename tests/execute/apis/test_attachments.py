"""Images and documents on the wire of every API, and what the row shows of them."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from pydantic import TypeAdapter

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Attachment, ChatMessage, Request, Response
from agentv_ci.contracts.targets import refused_attachment
from tests.execute.builders import ask, question, target
from tests.external.sdk_requests import sdk
from tests.servers.model_api import model_api

CONTENTS = {
    "red.png": ("image", "image/png", b"\x89PNG\r\n\x1a\nrest"),
    "a/bill.pdf": ("document", "application/pdf", b"%PDF-1.4 \xff"),
    "notes.txt": ("document", "text/plain", "Grüße".encode()),
}
DATA = {name: b64encode(content).decode() for name, (_, _, content) in CONTENTS.items()}
PNG, PDF, TXT = DATA.values()
URLS = {
    "https://x.org/red.webp?size=2": ("image", "image/webp"),
    "https://x.org/bill": ("document", None),
}
IMAGE_URL, BILL_URL = URLS

OPENAI = {"provider": "openai", "model": "gpt-mock"}
KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "openai": (OPENAI, "/v1"),
    "responses": ({**OPENAI, "api_format": "responses"}, "/v1"),
    "azure": ({"provider": "azure-openai", "deployment": "gpt-mock", "version": "v1"}, ""),
    "anthropic": ({"provider": "anthropic", "model": "claude-haiku-4-5"}, ""),
    "gemini": ({"provider": "gemini", "model": "gemini-mock"}, ""),
}


def attachment(name: str) -> Attachment:
    if name in URLS:
        kind, media_type = URLS[name]
        return Attachment(kind, media_type, None, None, name)  # type: ignore[arg-type]
    kind, media_type, content = CONTENTS[name]
    return Attachment(kind, media_type, name, f"sha of {name}", None, len(content))  # type: ignore[arg-type]


def asking(*parts: str) -> Request:
    """Return a question with texts, and names of files and URLs."""
    mixed = tuple(attachment(part) if part in CONTENTS or part in URLS else part for part in parts)
    attached = {f"sha of {name}": data for name, data in DATA.items()}
    return question(chat=(ChatMessage("user", "Read it: …", mixed),), attached=attached)


def sent(kind: str, request: Request) -> tuple[JsonObject, Response]:
    """Return the message of the user as it was sent, and the answer."""
    settings, base = KINDS[kind]
    with model_api() as api:
        address = "endpoint" if "deployment" in settings else "base_url"
        found = ask(target(**settings, system_prompt="none", api_key="k", **{address: api.url + base}), request)
    assert isinstance(found, Response), found.detail
    body = api.questions[0].body
    (message,) = body.get("messages") or body.get("input") or body["contents"]
    return message, found


def chat_file(media_type: str, data: str, name: str) -> JsonObject:
    return {"type": "file", "file": {"filename": name, "file_data": f"data:{media_type};base64,{data}"}}


def response_image(url: str) -> JsonObject:
    return {"type": "input_image", "detail": "auto", "image_url": url}


def response_file(media_type: str, data: str, name: str) -> JsonObject:
    return {"type": "input_file", "filename": name, "file_data": f"data:{media_type};base64,{data}"}


def source(kind: str, **source: str) -> JsonObject:
    return {"type": kind, "source": {**source}}


WIRE: list[tuple[str, str, JsonObject]] = [
    ("openai", "red.png", {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}),
    ("openai", IMAGE_URL, {"type": "image_url", "image_url": {"url": IMAGE_URL}}),
    ("openai", "a/bill.pdf", chat_file("application/pdf", PDF, "bill.pdf")),
    ("azure", "red.png", {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}),
    ("azure", IMAGE_URL, {"type": "image_url", "image_url": {"url": IMAGE_URL}}),
    ("azure", "a/bill.pdf", chat_file("application/pdf", PDF, "bill.pdf")),
    ("responses", "red.png", response_image(f"data:image/png;base64,{PNG}")),
    ("responses", IMAGE_URL, response_image(IMAGE_URL)),
    ("responses", "a/bill.pdf", response_file("application/pdf", PDF, "bill.pdf")),
    ("responses", "notes.txt", response_file("text/plain", TXT, "notes.txt")),
    ("responses", BILL_URL, {"type": "input_file", "file_url": BILL_URL}),
    ("anthropic", "red.png", source("image", type="base64", media_type="image/png", data=PNG)),
    ("anthropic", IMAGE_URL, source("image", type="url", url=IMAGE_URL)),
    ("anthropic", "a/bill.pdf", source("document", type="base64", media_type="application/pdf", data=PDF)),
    ("anthropic", "notes.txt", source("document", type="text", media_type="text/plain", data="Grüße")),
    ("anthropic", BILL_URL, source("document", type="url", url=BILL_URL)),
    ("gemini", "red.png", {"inlineData": {"mimeType": "image/png", "data": PNG}}),
    ("gemini", IMAGE_URL, {"fileData": {"fileUri": IMAGE_URL, "mimeType": "image/webp"}}),
    ("gemini", "a/bill.pdf", {"inlineData": {"mimeType": "application/pdf", "data": PDF}}),
    ("gemini", "notes.txt", {"inlineData": {"mimeType": "text/plain", "data": TXT}}),
    ("gemini", BILL_URL, {"fileData": {"fileUri": BILL_URL}}),
]
CHAT_PART = ("openai.types.chat", "ChatCompletionContentPartParam")
SDK_TYPES = {
    "openai": CHAT_PART,
    "azure": CHAT_PART,
    "responses": ("openai.types.responses", "ResponseInputContentParam"),
    "anthropic": ("anthropic.types", "ContentBlockParam"),
    "gemini": ("google.genai.types", "Part"),
}
TEXTS = {"openai": "text", "azure": "text", "responses": "input_text", "anthropic": "text"}


@pytest.mark.parametrize(("kind", "name", "part"), WIRE)
def test_attachment_is_sent_in_the_form_of_the_api(kind: str, name: str, part: JsonObject) -> None:
    message, response = sent(kind, asking("Read it:", name))
    text: JsonObject = {"text": "Read it:"} if kind == "gemini" else {"type": TEXTS[kind], "text": "Read it:"}
    assert message == {"role": "user", ("parts" if kind == "gemini" else "content"): [text, part]}
    # The row has the size of a file instead of its content.
    (shown,) = (each for key in ("messages", "input", "contents") for each in response.request.get(key, ()))  # type: ignore[union-attr]
    stands_for = part
    if name in CONTENTS:
        type_, media_type, content = CONTENTS[name]
        stands_for = {"type": type_, "path": name, "media_type": media_type, "bytes": len(content)}
    assert shown == {**message, ("parts" if kind == "gemini" else "content"): [text, stands_for]}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_parts_have_the_types_of_the_official_sdk(kind: str) -> None:
    module, name = SDK_TYPES[kind]
    part_type = TypeAdapter[object](getattr(sdk(module), name))
    for _, _, part in (row for row in WIRE if row[0] == kind):
        part_type.validate_python(part)


def test_every_way_that_a_provider_takes_is_in_the_table() -> None:
    for kind, (settings, _) in KINDS.items():
        asked = target(**settings)
        every = {name: attachment(name) for name in (*CONTENTS, *URLS)}
        taken = {
            name
            for name, each in every.items()
            if refused_attachment(asked, each.type, each.media_type, by_url=each.url is not None) is None
        }
        assert taken == {name for of, name, _ in WIRE if of == kind}, kind


@pytest.mark.parametrize("kind", ["anthropic", "gemini"])
def test_turns_in_a_row_keep_their_attachments(kind: str) -> None:
    first = asking("Read it:", "red.png")
    both = question(
        chat=(*first.chat, ChatMessage("user", "And?"), ChatMessage("user", "…", (attachment(IMAGE_URL),))),
        attached=first.attached,
    )
    message, _ = sent(kind, both)
    parts = message["parts" if kind == "gemini" else "content"]
    assert isinstance(parts, list)
    assert ["text" in part for part in parts if isinstance(part, dict)] == [True, False, True, False]
