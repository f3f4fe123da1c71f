"""The template of a command: text for a shell, with placeholders."""

import re
from collections.abc import Iterator

CLI_PLACEHOLDERS = (
    "PROMPT",
    "PROMPT_FILE",
    "GUIDELINES",
    "EVAL_ID",
    "ATTEMPT",
    "FILES",
    "ATTACHMENTS",
    "OUTPUT_FILE",
)
FORMAT_PLACEHOLDERS = ("path", "basename")
CLI_PLACEHOLDER = re.compile(r"\{\{(?P<literal>[A-Z_]+)\}\}|\{(?P<name>[A-Z_]+)\}")
FORMAT_PLACEHOLDER = re.compile(r"\{(?P<name>[a-z_]+)\}")

QUOTES = ("'", '"')
COMMANDS = ("$(", "(")

_TOKEN = re.compile(
    r"""\\\{(?P<escaped>[A-Z_]+)\}
    | \\.            # a character that means itself
    | \$\(             # a command inside the command
    | [()'"`]
    | (?<!<)<<(?!<)    # a here-document
    | (?<!\S)\#[^\n]*  # a comment
    | \{\{[A-Z_]+\}\} | \{(?P<name>[A-Z_]+)\}
    """,
    re.VERBOSE | re.DOTALL,
)


def placeholders(template: str) -> tuple[str, ...]:
    """Return the names of the placeholders in a command template, each once; `{{NAME}}` is none."""
    names = (match["name"] for match in CLI_PLACEHOLDER.finditer(template))
    return tuple(dict.fromkeys(name for name in names if name))


def quoted_placeholders(template: str) -> tuple[str, ...]:
    """Return the placeholders in quotes, here-documents or behind a backslash, each once; all, if quotes do not end.

    What is put in is quoted already: between quotes of the author's, or where its first quote means itself, a shell
    would read it again as text of its own. A command inside double quotes, `"$(…)"`, begins anew.
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
            # Nothing means anything here but the other quote.
            if mark.endswith("'"):
                marks.pop()
        elif mark == inside or (mark == ")" and inside in COMMANDS):
            marks.pop()
        elif mark in ("$(", '"', "`") or (inside != '"' and mark in ("'", "(", "<<")):
            marks.append(mark)
    if any(mark != "<<" for mark in marks):
        # What a shell makes of quotes that do not end is anybody's guess.
        yield from placeholders(template)
