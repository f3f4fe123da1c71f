"""What every page has in common.

That is a policy, templates that escape, and scripts that make text and never markup.

A policy in a page allows its own scripts and styles, by their hashes, and nothing else. What agents
or other writers wrote is data for these scripts, or escaped by the templates.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from agentv_ci.base.text import counted, on_one_line, shortened
from agentv_ci.report.renderers.html.numbers import duration, large, money, score, share, signed

TEMPLATES = Path(__file__).parent / "templates"
EARLY = "early.js"
DATA = "<!-- data -->"
"""Where a template leaves room for blocks of data."""
MAX_LINE = 600
"""Characters of a text at the top of a page."""


def environment(*folders: Path) -> Environment:
    """Return the environment of templates in these folders.

    It has the filters that all pages share.
    """
    made = Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "breakable": breakable,
        "counted": counted,
        "duration": duration,
        "large": large,
        "line": line,
        "money": money,
        "score": score,
        "share": share,
        "signed": signed,
    }
    return made


def in_one_block(scripts: Sequence[str]) -> str:
    """Return scripts in one block, so that they add no global names."""
    strict = '"use strict";\n'
    parts = [script.removeprefix(strict) for script in scripts]
    return f"{strict}{{\n{''.join(parts)}}}\n"


def line(text: str) -> str:
    """Return a text on one line of limited length, without control and direction characters."""
    return shortened(on_one_line(text), MAX_LINE)


def breakable(text: str) -> Markup:
    """Return a path or a name that a line may break after a separator.

    Without these breaks, a browser would break it inside a word.
    """
    return Markup("<wbr>").join(re.split(r"(?<=[/._:-])(?=\w)", text))


def policy(style: str, scripts: Iterable[str]) -> str:
    """Return the content security policy that allows this style and these scripts only."""
    allowed = " ".join(map(_hash, scripts))
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; base-uri 'none'; "
        "form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def template_text(name: str, folder: Path = TEMPLATES) -> str:
    """Return the text of a template, a script or a style."""
    return (folder / name).read_text(encoding="utf-8")
