"""The pages of the documentation, and the code blocks in them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.support.files import REPOSITORY

PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "schemas").glob("*.md")])
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> Sequence[tuple[str, str]]:
    """Return the code blocks of a language: (page:line, text)."""
    found = []
    for page in PAGES:
        text = page.read_text("utf-8")
        for match in _FENCE.finditer(text):
            if match[1] == language:
                line = text[: match.start()].count("\n") + 1
                found.append((f"{page.relative_to(REPOSITORY)}:{line}", match[2]))
    return found
