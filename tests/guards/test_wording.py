"""Messages, help, docs and code use plain words: the terms of docs/glossary.md, and none of these."""

from __future__ import annotations

import re

import pytest

from tests.support import REPOSITORY

BANNED = {
    r"nobody|somebody|anybody|everybody|whoever": "name who: the user, the agent, the server; or use the passive",
    r"the gate's word|(?:last|own) word": "decision, verdict",
    r"unfit|unheard|undone": "say what is wrong",
    r"mends?|mended": "fix",
    r"errs": "fails",
    r"all the same|for good|as good as|by and by|as it were": "leave it out",
    r"(?<!there )is no (?!longer|more|less)\w+": "is not a …",
    r"has not the": "does not have the",
    r"there is no (?:file|folder)": "'x' does not exist",
    r"asks? nobody|left as it was|takes? away": "makes no requests; unchanged; remove",
    r"strangers?": "untrusted",
    r"(?:lies|stands) (?:in|on|at|below|beside|above|before|there)": "is in, is defined in",
    r"tells(?! (?:apart|two))|told": "says, reports",
}
TEXTS = sorted(
    path
    for pattern in ("agentv_ci/**/*.py", "docs/**/*.md", "*.md", "action.yml", ".github/**/*.yml", "schemas/*.md")
    for path in REPOSITORY.glob(pattern)
)


@pytest.mark.parametrize("banned", BANNED)
def test_no_text_uses(banned: str) -> None:
    pattern = re.compile(rf"\b(?:{banned})\b", re.IGNORECASE)
    used = [
        f"{path.relative_to(REPOSITORY)}:{number}: {match[0]}"
        for path in TEXTS
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if (match := pattern.search(line.replace("_", " ")))
    ]
    assert used == [], BANNED[banned]
