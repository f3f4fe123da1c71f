"""Command templates: shell commands with placeholders."""

import re
from collections.abc import Iterator

CLI_PLACEHOLDERS = ("PROMPT", "PROMPT_FILE", "GUIDELINES", "EVAL_ID", "ATTEMPT", "FILES", "ATTACHMENTS", "OUTPUT_FILE")
FORMAT_PLACEHOLDERS = ("path", "basename")
CLI_PLACEHOLDER = re.compile(r"\{\{(?P<literal>[A-Z_]+)\}\}|\{(?P<name>[A-Z_]+)\}")
FORMAT_PLACEHOLDER = re.compile(r"\{(?P<name>[a-z_]+)\}")

QUOTES = ("'", '"')
COMMANDS = ("$(", "(")

_TOKEN = re.compile(
    r"""\\\{(?P<escaped>[A-Z_]+)\}
    | \\.            # an escaped character
    | \$\(             # command substitution
    | [()'"`]
    | (?<!<)<<(?!<)    # a here-document
    | (?<!\S)\#[^\n]*  # a comment
    | \{\{[A-Z_]+\}\} | \{(?P<name>[A-Z_]+)\}
    """,
    re.VERBOSE | re.DOTALL,
)


def placeholders(template: str) -> tuple[str, ...]:
    """Return the names of the placeholders in a command template, each once; `{{NAME}}` is literal."""
    names = (match["name"] for match in CLI_PLACEHOLDER.finditer(template))
    return tuple(dict.fromkeys(name for name in names if name))


def quoted_placeholders(template: str) -> tuple[str, ...]:
    """Return the placeholders in quotes, here-documents or after a backslash, each once; all, if a quote is unclosed.

    Values are quoted automatically: inside other quotes or after a backslash, the shell would run part of them. A
    command substitution inside double quotes, `"$(…)"`, starts unquoted.
    """
    return tuple(dict.fromkeys(_quoted(template)))


def _quoted(template: str) -> Iterator[str]:
    marks: list[str] = []
    position = 0
    while match := _TOKEN.search(template, position):
        inside = marks[-1] if marks else ""
        mark = match[0]
        is_text = inside in QUOTES and mark.startswith("#")
        position = match.start() + 1 if is_text else match.end()
        if match["escaped"] is not None:
            yield match["escaped"]
        elif match["name"] is not None:
            if inside in (*QUOTES, "<<"):
                yield match["name"]
        elif inside == "'":
            # Only the closing quote is special here.
            if mark.endswith("'"):
                marks.pop()
        elif mark == inside or (mark == ")" and inside in COMMANDS):
            marks.pop()
        elif mark in ("$(", '"', "`") or (inside != '"' and mark in ("'", "(", "<<")):
            marks.append(mark)
    if any(mark != "<<" for mark in marks):
        # A shell may read unclosed quotes in any way.
        yield from placeholders(template)
