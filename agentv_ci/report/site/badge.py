"""A badge with the newest figures, for a README."""

from __future__ import annotations

from xml.sax.saxutils import escape

from agentv_ci.report.site.series import Point

LABEL = "evals"
CHARACTER = 6.6
"""Width of a character, in pixels; the font scales texts to their place."""
PADDING = 12
MOSTLY = 0.9
"""The share of passed cases from which a badge is yellow, not red."""


def badge(newest: Point | None) -> str:
    """Return an SVG image."""
    text, color = message_of(newest), _color_of(newest)
    left, right = _width(LABEL), _width(text)
    title = escape(f"{LABEL}: {text}")
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{title}">
  <title>{title}</title>
  <rect width="{left + right}" height="20" rx="3" fill="{color}"/>
  <path d="M3 0H{left}V20H3A3 3 0 0 1 0 17V3A3 3 0 0 1 3 0" fill="#3a424c"/>
  <g fill="#fff" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11" text-anchor="middle">
    <text x="{left / 2:g}" y="14" textLength="{left - PADDING}">{LABEL}</text>
    <text x="{left + right / 2:g}" y="14" textLength="{right - PADDING}">{escape(text)}</text>
  </g>
</svg>
"""


def _width(text: str) -> int:
    return round(len(text) * CHARACTER) + PADDING


def message_of(newest: Point | None) -> str:
    """Return what a badge says."""
    if newest is None:
        return "no runs"
    if not newest.graded:
        return "no verdict"
    errors = f", {newest.errored} without verdict" if newest.errored else ""
    return f"{newest.passed}/{newest.graded} passed{errors}"


def _color_of(newest: Point | None) -> str:
    """Return a color that white text is readable on."""
    if newest is None or newest.rate is None:
        return "#5c6670"
    if newest.rate == 1 and not newest.errored:
        return "#17753f"
    return "#8a5a00" if newest.rate >= MOSTLY else "#bd2530"
