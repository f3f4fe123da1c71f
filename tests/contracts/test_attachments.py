"""Formats of images and documents, and which URLs are sent."""

from __future__ import annotations

import pytest

from agentv_ci.contracts.attachments import is_url, media_type_of, media_type_of_name, url_media_type, url_problem


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\n\0", "image/png"),
        (b"\x89PNG\n\x1a\n\0", None),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"GIF88a", "text/plain"),
        (b"RIFF\x1a\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\x1a\0\0\0WAVEfmt ", None),
        (b"%PDF-1.7\n%\xe2\xe3", "application/pdf"),
        ("Grüße".encode(), "text/plain"),
        ("Grüße".encode("latin-1"), None),
        (b"\xef\xbb\xbftext", "text/plain"),
        (b"a\0b", None),
        (b"", "text/plain"),
    ],
)
def test_first_bytes_give_the_media_type(content: bytes, media_type: str | None) -> None:
    assert media_type_of(content) == media_type


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("a.png", "image/png"),
        ("A.JPEG", "image/jpeg"),
        ("a.pdf.txt", None),
        ("png", None),
        (".png", None),
        ("a.", None),
    ],
)
def test_suffix_suggests_a_media_type(name: str, media_type: str | None) -> None:
    assert media_type_of_name(name) == media_type


@pytest.mark.parametrize(
    ("value", "media_type"),
    [
        ("https://x.org/a.png?size=2#top", "image/png"),
        ("http://x.org:8080/a.PDF", "application/pdf"),
        ("https://x.org/a?name=b.png", None),
        ("https://x.org", None),
    ],
)
def test_url_is_sent_as_it_is(value: str, media_type: str | None) -> None:
    assert (is_url(value), url_problem(value), url_media_type(value)) == (True, None, media_type)


@pytest.mark.parametrize(
    "value",
    [
        "data:image/png;base64,AA==",
        "DATA:,x",
        "file:///a.png",
        "gs://b/a.png",
        "https://",
        "http://[/a",
        "https://a b/c.png",
    ],
)
def test_other_urls_are_refused(value: str) -> None:
    assert is_url(value)
    assert url_problem(value) is not None
    assert url_media_type(value) is None


@pytest.mark.parametrize("value", ["a.png", "/a.png", "../data:a.png", "c:/a.png", "//x.org/a.png"])
def test_paths_are_no_urls(value: str) -> None:
    assert not is_url(value)
