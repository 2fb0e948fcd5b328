"""The HTML page of an audition: the table, a picture of each frontier with the models, and calibrations."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from hunch.audition.answer import BY_CHANCE, CALIBRATION_ERROR, Audition, Heard, Line, stating, table
from hunch.audition.frontier import Frontier


def page(audition: Audition) -> str:
    """Return the page as HTML: the table, a picture of each frontier with the models, and calibrations."""
    drawn: dict[tuple[str, str, str], list[Line]] = {}
    for line in audition.lines:
        if line.frontier:
            f = line.frontier
            drawn.setdefault((f.method, f.env, f.errors), []).append(line)
    pictures = "".join(_figure(lines, audition.worth) for lines in drawn.values())
    pictures += "".join(_calibration_figure(heard) for heard in stating(audition))
    return _PAGE.format(table=table(audition), pictures=pictures)


def _figure(lines: Sequence[Line], worth: float) -> str:
    frontier = lines[0].frontier
    assert frontier is not None
    title = (
        f"{frontier.method} in {frontier.env}: {frontier.measure} over the uninformed control, by ability as "
        f"{frontier.role}; {frontier.errors} errors, {frontier.seeds} seeds, {frontier.steps:,} steps"
    )
    return f"<figure><figcaption>{escape(title)}</figcaption>{picture(frontier, lines, worth)}</figure>"


WIDTH, HEIGHT, MARGIN = 640, 320, 48


def picture(frontier: Frontier, lines: Sequence[Line], worth: float) -> str:
    """Return an SVG picture of a frontier with its interval, the models as marks, and a line at ``worth``."""
    low = min(0.0, *(p.low for p in frontier.points)) - 0.05
    high = max(worth, *(p.high for p in frontier.points)) + 0.05

    def at(ability: float, gain: float) -> tuple[float, float]:
        across = MARGIN + min(max(ability, 0.0), 1.0) * (WIDTH - 2 * MARGIN)
        return across, HEIGHT - MARGIN - (gain - low) / (high - low) * (HEIGHT - 2 * MARGIN)

    band = [at(p.ability, p.high) for p in frontier.points]
    band += [at(p.ability, p.low) for p in reversed(frontier.points)]
    middle = [at(p.ability, p.gain) for p in frontier.points]
    parts = [
        f'<polygon points="{_points(band)}" fill="#4477aa" opacity="0.2"/>',
        f'<polyline points="{_points(middle)}" fill="none" stroke="#4477aa" stroke-width="2"/>',
        *(_rule(at(0, y), at(1, y), dash) for y, dash in ((0.0, ""), (worth, "4 4"))),
        *(_label(at(x, low), f"{x:g}", 16) for x in (0, 0.25, 0.5, 0.75, 1)),
        *(_label((MARGIN / 2, at(0, y)[1]), f"{y:.2f}", 4) for y in (0.0, high - 0.05)),
    ]
    for i, line in enumerate(lines):
        parts += _mark(line, at, i, low, high)
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="sans-serif" font-size="12">'
        f"{''.join(parts)}</svg>"
    )


SIDE = 280
"""Width and height of a calibration curve in pixels."""


def _calibration_figure(heard: Heard) -> str:
    title = (
        f"{heard.model} as {heard.role} in {heard.env}: stated probability (across), and how often it came "
        f"true (up); error {heard.columns[CALIBRATION_ERROR]:.3f}, of which up to "
        f"{heard.columns[BY_CHANCE]:.3f} is chance"
    )
    return f"<figure><figcaption>{escape(title)}</figcaption>{curve(heard)}</figure>"


def curve(heard: Heard) -> str:
    """Return an SVG picture of a calibration curve; on the diagonal a model is right as often as it says."""
    span = SIDE - 2 * MARGIN

    def at(predicted: float, observed: float) -> tuple[float, float]:
        return MARGIN + predicted * span, SIDE - MARGIN - observed * span

    most = max(tenth.n for tenth in heard.calibration)
    points = [at(tenth.predicted, tenth.observed) for tenth in heard.calibration]
    parts = [
        _rule(at(0, 0), at(1, 1), "4 4"),
        *(_label(at(x, 0), f"{x:g}", 16) for x in (0, 0.5, 1)),
        *(_label((MARGIN / 2, at(0, y)[1]), f"{y:g}", 4) for y in (0, 0.5, 1)),
        f'<polyline points="{_points(points)}" fill="none" stroke="#4477aa" stroke-width="2"/>',
    ]
    for (x, y), tenth in zip(points, heard.calibration, strict=True):
        radius = 2 + 6 * (tenth.n / most) ** 0.5  # its area grows with the number of answers
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="#4477aa"/>')
    return (
        f'<svg viewBox="0 0 {SIDE} {SIDE}" width="{SIDE}" role="img" font-family="sans-serif" font-size="12">'
        f"{''.join(parts)}</svg>"
    )


_COLOURS = ("#aa3377", "#228833", "#ccbb44", "#ee6677", "#66ccee", "#222222")


def _mark(line: Line, at: Any, i: int, low: float, high: float) -> list[str]:
    """Return a model's ability as a vertical line with its interval and its name."""
    colour = _COLOURS[i % len(_COLOURS)]
    (x, top), (_, bottom) = at(line.heard.ability, high), at(line.heard.ability, low)
    left, right = (at(end, low)[0] for end in line.heard.interval)
    anchor, aside = ("end", -4) if x > WIDTH / 2 else ("start", 4)
    return [
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{max(right - left, 1):.1f}" height="{bottom - top:.1f}" '
        f'fill="{colour}" opacity="0.12"/>',
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}" stroke="{colour}"/>',
        f'<text x="{x + aside:.1f}" y="{top + 14 * (i + 1):.1f}" fill="{colour}" text-anchor="{anchor}">'
        f"{escape(line.heard.model)}</text>",
    ]


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _rule(start: tuple[float, float], end: tuple[float, float], dash: str) -> str:
    return (
        f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" stroke="#888" '
        f'stroke-dasharray="{dash}"/>'
    )


def _label(place: tuple[float, float], words: str, below: float) -> str:
    return f'<text x="{place[0]:.1f}" y="{place[1] + below:.1f}" text-anchor="middle">{escape(words)}</text>'


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Audition</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem; }}
table {{ border-collapse: collapse; display: block; overflow-x: auto; font-variant-numeric: tabular-nums; }}
th, td {{ text-align: left; padding: .25rem .75rem; border-bottom: 1px solid #ddd; white-space: nowrap; }}
figure {{ margin: 2rem 0; max-width: 44rem; }}
</style></head><body><h1>Audition</h1>{table}{pictures}</body></html>
"""
