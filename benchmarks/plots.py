"""Line charts as SVG, for the documentation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

Points = Sequence[tuple[float, float]]
COLORS = ("#1f618d", "#c0392b", "#7d8a35", "#5dade2", "#e59866", "#6c3483")
LEFT, TOP, WIDTH, HEIGHT, LEGEND = 70, 20, 440, 260, 330


@dataclass(frozen=True, slots=True)
class Axis:
    """A labelled axis with its marks."""

    label: str
    marks: Mapping[float, str]
    """Value → text; the first and the last are the ends of the axis."""
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """Return the place of a value, from 0 to 1."""
        first, *_, last = (self._scaled(each) for each in self.marks)
        return (self._scaled(value) - first) / (last - first)

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.logarithmic else value


def decades(label: str, low: int, high: int, unit: str = "") -> Axis:
    """Return a logarithmic axis from 10**low to 10**high."""
    marks = {10.0**power: f"{10**power:,g}{unit}" for power in range(low, high + 1)}
    return Axis(label, marks, logarithmic=True)


def line_chart(lines: Mapping[str, Points], across: Axis, up: Axis) -> str:
    """Return an SVG document with a line for each name."""
    bottom, right = TOP + HEIGHT, LEFT + WIDTH
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right + LEGEND} {bottom + 50}" '
            'font-family="sans-serif" font-size="13">'
        ),
        f'<rect width="{right + LEGEND}" height="{bottom + 50}" fill="white"/>',
        f'<text x="{LEFT + WIDTH // 2}" y="{bottom + 42}" text-anchor="middle">{escape(across.label)}</text>',
        f'<text x="{right + 20}" y="{TOP - 4}">{escape(up.label)}</text>',
    ]
    for value, text in up.marks.items():
        y = bottom - HEIGHT * up.share(value)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>')
    for value, text in across.marks.items():
        x = LEFT + WIDTH * across.share(value)
        parts.append(f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{escape(text)}</text>')
    for row, (name, points) in enumerate(lines.items()):
        color, y = COLORS[row % len(COLORS)], TOP + 20 + row * 22
        places = [(LEFT + WIDTH * across.share(a), bottom - HEIGHT * up.share(b)) for a, b in points]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{color}"/>' for a, b in places]
        parts.append(f'<rect x="{right + 20}" y="{y - 9}" width="12" height="12" fill="{color}"/>')
        parts.append(f'<text x="{right + 38}" y="{y + 2}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
