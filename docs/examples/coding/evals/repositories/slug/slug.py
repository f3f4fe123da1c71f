"""Names of pages."""

import re


def slug(title: str) -> str:
    """Return a title in lower case, with one hyphen between words."""
    return re.sub(r"[^a-z0-9]", "-", title.lower()).strip("-")
