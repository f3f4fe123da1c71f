"""Files in messages: their formats, references to them, and pointers of Git LFS in their place."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal, get_args
from urllib.parse import urlsplit

LFS_POINTER = "a pointer of Git LFS, not the file itself; run: git lfs pull"
MAX_POINTER_BYTES = 1023
_FIRST_WORDS = (
    b"version https://git-lfs.github.com/spec/v",
    b"version https://hawser.github.com/spec/v",
)


def is_lfs_pointer(content: bytes) -> bool:
    """Whether Git checked out a pointer instead of a file of Git LFS.

    See "The Pointer" in the specification of Git LFS.
    """
    return len(content) <= MAX_POINTER_BYTES and content.startswith(_FIRST_WORDS)


AttachmentType = Literal["image", "document"]
ATTACHMENT_TYPES: tuple[str, ...] = get_args(AttachmentType)

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
PDF = "application/pdf"
TEXT = "text/plain"
FORMATS: Mapping[AttachmentType, frozenset[str]] = {
    "image": IMAGE_TYPES,
    "document": frozenset({PDF, TEXT}),
}
"""Media types of files."""
NAMES: Mapping[str, str] = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
    "image/webp": "WebP",
    PDF: "PDF",
    TEXT: "plain text in UTF-8",
}
BY_URL: Mapping[AttachmentType, str] = {"image": "an image by URL", "document": "a document by URL"}
ALL_TAKEN = frozenset({*NAMES, *BY_URL.values()})
"""What a target may take: media types of files, and URLs."""
MAX_BYTES = 20 * 1024 * 1024

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", PDF),
)
_SUFFIXES: Mapping[str, str] = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".pdf": PDF,
}


def media_type_of(content: bytes) -> str | None:
    """Return the media type of a file by its first bytes.

    None for an unknown format that is not text.
    """
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    known = next(
        (media_type for signature, media_type in _SIGNATURES if content.startswith(signature)), None
    )
    if known is not None or b"\0" in content:
        return known
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return TEXT


def media_type_of_name(name: str) -> str | None:
    """Return the media type of a path or of a URL's path by its suffix.

    None for one of no format of ours.
    """
    return _SUFFIXES.get(PurePosixPath(name).suffix.lower())


def is_url(value: str) -> bool:
    """Whether the value of a block is a URL and not a path."""
    return "://" in value or value.lower().startswith("data:")


def url_media_type(url: str) -> str | None:
    """Return the media type that the suffix of a URL suggests; None for an invalid URL, too."""
    return media_type_of_name(urlsplit(url).path) if url_problem(url) is None else None


def url_problem(url: str) -> str | None:
    """Return what is wrong with a URL, which is sent as it is."""
    if url[:5].lower() == "data:":
        return "a data URL is not supported"
    try:
        split = urlsplit(url)
        host = split.hostname
    except ValueError as error:
        return f"'{url}' is not a URL: {error}"
    if split.scheme not in ("http", "https") or not host:
        return f"'{url}' is not an http or https URL"
    return f"'{url}' has spaces or line breaks" if any(map(str.isspace, url)) else None
