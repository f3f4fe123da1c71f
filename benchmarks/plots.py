"""Line charts as SVG, for the documentation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

COLORS = ("#1f618d", "#5dade2", "#b03a2e", "#e59866", "#7d8a35", "#7d3c98")
LEFT, TOP, WIDTH, HEIGHT = 60, 20, 480, 280


def drawing(
    lines: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str, *, is_log: bool = False
) -> str:
    """Return lines as SVG."""
    scale = math.log10 if is_log else float
    points = [point for line in lines.values() for point in line]
    low = [min(scale(each[axis]) for each in points) if is_log else 0.0 for axis in (0, 1)]
    high = [max(scale(each[axis]) for each in points) for axis in (0, 1)]
    bottom, right = TOP + HEIGHT, LEFT + WIDTH

    def place(point: tuple[float, float]) -> tuple[float, float]:
        share = [(scale(point[axis]) - low[axis]) / (high[axis] - low[axis]) for axis in (0, 1)]
        return LEFT + WIDTH * share[0], bottom - HEIGHT * share[1]

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right + 350} {bottom + 50}" '
            'font-family="sans-serif" font-size="13">'
        ),
        f'<rect width="{right + 350}" height="{bottom + 50}" fill="white"/>',
        f'<text x="{LEFT + WIDTH // 2}" y="{bottom + 42}" text-anchor="middle">{x}</text>',
        f'<text x="{LEFT}" y="{TOP - 6}">{y}</text>',
    ]
    for axis in (0, 1):
        for value in ticks(low[axis], high[axis], is_log=is_log):
            at = place((value, value))[axis]
            if axis:
                parts.append(
                    f'<line x1="{LEFT}" y1="{at:.1f}" x2="{right}" y2="{at:.1f}" stroke="#ddd"/>'
                )
                parts.append(
                    f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{value:,g}</text>'
                )
            else:
                parts.append(
                    f'<text x="{at:.1f}" y="{bottom + 20}" text-anchor="middle">{value:,g}</text>'
                )
    for number, (name, line) in enumerate(lines.items()):
        color, at = COLORS[number], TOP + 10 + number * 22
        path = " ".join(f"{left:.1f},{top:.1f}" for left, top in map(place, line))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<rect x="{right + 20}" y="{at - 9}" width="12" height="12" fill="{color}"/>')
        parts.append(f'<text x="{right + 38}" y="{at + 2}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def ticks(low: float, high: float, *, is_log: bool) -> list[float]:
    """Return round numbers between two ends."""
    if is_log:
        numbers = (1, 2, 5) if high - low < 2 else (1,)
        found = (
            number * 10.0**power
            for power in range(math.floor(low), math.ceil(high) + 1)
            for number in numbers
        )
        return [each for each in found if low <= math.log10(each) <= high]
    step = 10 ** math.floor(math.log10(high))
    step = step if high / step >= 3 else step / 5
    return [number * step for number in range(int(high / step) + 1)]
