"""One YAML sequence that is well-formed after every row. A door to ruamel.yaml.

Strings of several lines are blocks, for readability. A string is plain only when every version of
YAML reads it as a string: `yes`, `1e3`, `12:30` and `2030-01-01` are quoted, as values and as keys.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import SafeRepresenter

from agentv_ci.base.json_access import MAX_DEPTH, well_formed
from agentv_ci.base.left_files import open_named
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.results import ResultRow

FREE_DATA_IS_TEXT = False
"""People read this format."""
NOT_A_ROW = "{path}: item {number} is not a result row: {error}"

LAST = re.compile(rb"\n  dry_run: (true|false)\r?\n\Z")
"""The last field of a row, which is always written."""
WITHIN = (b" ", b"\n", b"\r", b"#")
"""First bytes of lines inside an item."""
MAX_INDICATORS = 5_000
"""Most characters that may open a level, for an item that is certainly not nested too deeply."""

_CALM = re.compile(
    r"[\t\x20-\x7e\xa0-\u2027\u202f-\u2065\u206a-\ud7ff"
    r"\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]*"
)
"""Text without characters to escape: control, direction, and line breaks of other readers."""
_PLAIN = re.compile(r"(?![Ee][-+]?[0-9]+\Z)[A-Za-z](?:[^\t:#]*[^\s:#])?")
"""Text that begins with a letter is not a number, except for `e3` in one reader."""
_WORDS = frozenset(("y", "yes", "n", "no", "on", "off", "true", "false", "null"))


def encode(row: ResultRow) -> str:
    """Return a row as one item of the sequence."""
    # YAML cannot hold lone surrogates, not even escaped.
    data = well_formed(row.model_dump(mode="json"), 2 * MAX_DEPTH)
    writer = YAML(typ="safe", pure=True)
    writer.Representer = _Representer
    writer.width = 1_000_000
    writer.allow_unicode = True
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # any value works as a boolean
    out = io.StringIO()
    writer.dump([data], out)
    return out.getvalue()


class _Representer(SafeRepresenter):
    """Chooses the style of scalars."""

    def text(self, value: str) -> ScalarNode:
        """Write a string so that every reader reads it as a string."""
        return self._scalar("str", value, _style(value))

    def number(self, value: float) -> ScalarNode:
        """Write a number with a point: YAML 1.1 requires one before an exponent."""
        written = repr(value)
        return self._scalar("float", written if "." in written else written.replace("e", ".0e"))

    def nothing(self, _: None) -> ScalarNode:
        """Write null in the form that all readers know."""
        return self._scalar("null", "null")

    def _scalar(self, kind: str, value: str, style: str | None = None) -> ScalarNode:
        node: ScalarNode = self.represent_scalar(f"tag:yaml.org,2002:{kind}", value, style=style)
        return node


_Representer.add_representer(str, _Representer.text)
_Representer.add_representer(float, _Representer.number)
_Representer.add_representer(type(None), _Representer.nothing)


def _style(text: str) -> str | None:
    """Return the style of a string: block, double or single quotes, or plain."""
    if "\n" in text:
        # ruamel.yaml cannot write a block that begins with a tab.
        is_block = not text.isspace() and not text.lstrip("\n ").startswith("\t")
        if is_block and _CALM.fullmatch(text.replace("\n", "")):
            return "|"
        return '"'
    if not _CALM.fullmatch(text):
        return '"'
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return None
    return "'"


def items(path: Path) -> Iterator[bytes]:
    """Split the sequence at its dashes, without loading the whole file. Raises OSError."""
    lines: list[bytes] = []
    with open_named(path) as file:
        for line in file:
            # A dash, or zeros at the end after a power failure.
            if lines and line[:1] not in WITHIN:
                yield b"".join(lines)
                lines = []
            lines.append(line)
    if lines:
        yield b"".join(lines)


def is_torn(item: bytes) -> bool:
    """Whether an item is an incomplete row."""
    head = b"- schema_version: 1"
    return (item.startswith(head) or head.startswith(item)) and not LAST.search(item)


def current(_: bytes) -> None:
    """Return None: every item is loaded."""


stored = current


def load(item: bytes) -> JsonValue:
    """Return the value of an item; raises ValueError and RecursionError when it is not YAML."""
    text = item.decode("utf-8")
    # The C parser recurses until the stack overflows; the Python parser has Python's limit.
    is_deep = sum(map(text.count, "[{-?:")) > MAX_INDICATORS
    try:
        sequence: JsonValue = YAML(typ="safe", pure=is_deep).load(text)
    except YAMLError as error:
        raise ValueError(str(error)) from error
    if not isinstance(sequence, list) or len(sequence) != 1:
        raise ValueError("not an item of a sequence")
    return sequence[0]
