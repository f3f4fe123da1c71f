"""The last lines of a terminal, which change while lines are printed above; the door to rich."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from agentv_ci.cli.console import STYLES
from agentv_ci.report.lines import Line


class LiveArea:
    """Lines on standard error that are replaced, until the area is left."""

    def __init__(self, *, no_color: bool) -> None:
        self._console = Console(stderr=True, no_color=no_color, highlight=False)
        self._live = Live(console=self._console, transient=True, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.__exit__(kind, error, traceback)

    @property
    def width(self) -> int:
        """The columns of the terminal."""
        return self._console.width

    @property
    def is_unicode(self) -> bool:
        """Whether the terminal can show more than ASCII."""
        return self._console.encoding.startswith("utf")

    def show(self, lines: Iterable[Line]) -> None:
        """Replace the lines of the area."""
        self._live.update(Group(*(_text(line.parts) for line in lines)), refresh=True)

    def print(self, parts: Iterable[tuple[str, str]]) -> None:
        """Print a line, of texts and their styles, above the area."""
        self._console.print(_text(parts), soft_wrap=True)


def _text(parts: Iterable[tuple[str, str]]) -> Text:
    text = Text(no_wrap=True)
    for part, name in parts:
        style = STYLES.get(name, {})
        words = [str(value) if key == "fg" else key for key, value in style.items()]
        text.append(part, " ".join(words))
    return text
