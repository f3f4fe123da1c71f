"""The last lines of a terminal, which change while lines are printed above; the door to rich."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from agentv_ci.cli.console import STYLES
from agentv_ci.report.lines import Line


@contextmanager
def live_area(*, no_color: bool) -> Iterator[LiveArea]:
    """Open an area at the end of standard error, and remove it at last."""
    console = Console(stderr=True, no_color=no_color, highlight=False)
    with Live(console=console, transient=True, auto_refresh=False) as live:
        yield LiveArea(console, live)


class LiveArea:
    """Lines on standard error that are replaced."""

    def __init__(self, console: Console, live: Live) -> None:
        self._console = console
        self._live = live

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
