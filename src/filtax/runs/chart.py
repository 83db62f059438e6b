"""Figures as SVG, written by hand: no library, no network, sharp on paper. What the page's script needs comes along."""

import html
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["COLOURS", "bars", "chart", "short"]

WIDTH, HEIGHT = 900, 250
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 10, 26
COLOURS = ("#1a5fb4", "#222222", "#c64600", "#26a269", "#9141ac", "#986a44", "#5e5c64")


def short(value: float | int) -> str:
    """A number as people write it.

    >>> short(1234567.0), short(0.00012), short(12.5), short(float("nan"))
    ('1.235M', '1.2e-04', '12.5', '-')
    """
    if not math.isfinite(value):
        return "-"
    size = abs(value)
    for limit, word in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if limit <= size < 1e13:
            return f"{value / {'G': 1e9, 'M': 1e6, 'k': 1e3}[word]:.4g}{word}"
    return f"{value:.4g}" if size == 0.0 or size >= 1e-3 else f"{value:.1e}"


def chart(
    x: np.ndarray,
    lines: Mapping[str, np.ndarray],
    *,
    timed: bool = False,
    band: tuple[np.ndarray, np.ndarray] | None = None,
    marks: Sequence[tuple[float, str]] = (),
    level: float | None = None,
    floor: float | None = None,
    ceiling: float | None = None,
) -> str:
    """Draw lines over x, with a band behind them and marks across; the first line is drawn strongest.

    Args:
        x: (P,), microseconds since 1970 if `timed`.
        lines: Name to values, (P,).
        timed: Whether x is a time.
        band: Lower and upper edge, (P,).
        marks: Where, and in which words.
        level: A horizontal line.
        floor: Lowest value shown, if not the lowest there is.
        ceiling: Highest value shown.

    >>> "<svg" in chart(np.arange(3.0), {"y": np.array([1.0, 2.0, np.nan])})
    True
    """
    x = np.asarray(x, np.float64)
    every = [values[np.isfinite(values)] for values in (*lines.values(), *(band or ()))]
    values = np.concatenate(every) if every else np.empty(0)
    if not values.size or not np.isfinite(x).any():
        return "<p><em>Nothing to draw.</em></p>"
    low = float(values.min()) if floor is None else floor
    high = float(values.max()) if ceiling is None else ceiling
    low, high = _apart(low, high)
    start, end = float(np.nanmin(x)), float(np.nanmax(x))
    start, end = _apart(start, end)
    wide, tall = 0.5 * end - 0.5 * start, 0.5 * high - 0.5 * low  # halves: the whole may be beyond the largest number
    across = lambda at: LEFT + (WIDTH - LEFT - RIGHT) * ((0.5 * at - 0.5 * start) / wide)  # noqa: E731
    up = lambda y: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * ((0.5 * np.clip(y, low, high) - 0.5 * low) / tall)  # noqa: E731
    drawn = [_grid(low, high, start, end, across, up, timed)]
    if band is not None:
        drawn.append(_band(across(x), up(band[0]), up(band[1])))
    if level is not None:
        drawn.append(
            f'<line class="level" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(level):.1f}" y2="{up(level):.1f}"/>'
        )
    for i, values in reversed(list(enumerate(lines.values()))):
        drawn.append(f'<path class="line" stroke="{COLOURS[i % 7]}" d="{_path(across(x), up(values))}"/>')
    for at, words in marks:
        drawn.append(
            f'<line class="mark" x1="{across(at):.1f}" x2="{across(at):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}">'
            f"<title>{html.escape(words)}</title></line>"
        )
    return _framed("".join(drawn), x, lines, timed, (start, end))


def bars(counts: Sequence[float | int], expected: float, words: str) -> str:
    """Draw a histogram over [0, 1] and what is expected of each cell.

    >>> bars([1, 2], 1.5, "cells").count("<rect")
    2
    """
    top = max(*counts, expected, 1e-12) * 1.1
    width, base = (WIDTH - LEFT - RIGHT) / len(counts), HEIGHT - BOTTOM
    tall = lambda count: (base - TOP) * count / top  # noqa: E731
    cells = "".join(
        f'<rect x="{LEFT + i * width + 1:.1f}" y="{base - tall(c):.1f}" width="{width - 2:.1f}" height="{tall(c):.1f}">'
        f"<title>{i / len(counts):.2f} to {(i + 1) / len(counts):.2f}: {c:g}</title></rect>"
        for i, c in enumerate(counts)
    )
    at = base - tall(expected)
    ticks = "".join(
        f'<text x="{LEFT + (WIDTH - LEFT - RIGHT) * t:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{t:g}</text>'
        for t in (0, 0.25, 0.5, 0.75, 1)
    )
    level = f'<line class="level" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
    label = html.escape(words)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{cells}{level}{ticks}</svg>'


def _framed(inside: str, x: np.ndarray, lines: Mapping[str, np.ndarray], timed: bool, span: tuple[float, float]) -> str:
    names = [html.escape(name) for name in lines]
    keys = "".join(f'<span><i style="background:{COLOURS[i % 7]}"></i>{name}</span>' for i, name in enumerate(names))
    data = {
        "x": [None if value != value else value for value in x.tolist()],
        "timed": timed,
        "span": span,
        "plot": [LEFT, WIDTH - RIGHT, WIDTH, HEIGHT],
        "lines": {
            name: [_rounded(v) if math.isfinite(v) else None for v in values.tolist()] for name, values in lines.items()
        },
    }
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")
    title = html.escape(", ".join(lines))
    return (
        f'<figure class="chart"><div class="keys">{keys}<output></output></div>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">{inside}</svg>'
        f'<script type="application/json">{text}</script></figure>'
    )


def _rounded(value: float) -> float:
    """Five digits are enough; the largest numbers would be rounded to infinity."""
    near = float(f"{value:.5g}")
    return near if math.isfinite(near) else value


def _apart(low: float, high: float) -> tuple[float, float]:
    """Ends of an axis, which must differ.

    >>> _apart(3.0, 3.0), _apart(1e300, 1e300)
    ((3.0, 4.0), (9.99e+299, 1e+300))
    """
    if high > low:
        return low, high
    if low + 1.0 > low:
        return low, low + 1.0
    return (0.999 * low, low) if low > 0.0 else (low, 0.999 * low)


def _path(x: np.ndarray, y: np.ndarray) -> str:
    """A path that is broken where nothing is known."""
    words, pen = [], False
    for at, value in zip(x.tolist(), np.asarray(y).tolist(), strict=True):
        if not (math.isfinite(at) and math.isfinite(value)):
            pen = False
            continue
        words.append(f"{'L' if pen else 'M'}{at:.1f} {value:.1f}")
        pen = True
    return "".join(words)


def _band(x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> str:
    known = np.isfinite(x) & np.isfinite(lower) & np.isfinite(upper)
    there = _path(x[known], upper[known])
    back = _path(x[known][::-1], lower[known][::-1]).replace("M", "L", 1)
    return f'<path class="band" d="{there}{back}Z"/>'


def _grid(low: float, high: float, start: float, end: float, across: Any, up: Any, timed: bool) -> str:
    drawn = []
    for y in _ticks(low, high, 5):
        drawn.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(y):.1f}" y2="{up(y):.1f}"/>')
        drawn.append(f'<text x="{LEFT - 6}" y="{up(y) + 4:.1f}" text-anchor="end">{short(y)}</text>')
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        at = (1.0 - share) * start + share * end
        anchor = {0.0: "start", 1.0: "end"}.get(share, "middle")
        near = ' class="near"' if share in (0.25, 0.75) else ""  # left out where there is little room
        words = _when(at, timed, end - start)
        drawn.append(f'<text{near} x="{across(at):.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{words}</text>')
    return "".join(drawn)


def _ticks(low: float, high: float, wanted: int) -> list[float]:
    step = 10.0 ** math.floor(math.log10(high / wanted - low / wanted))
    step *= next(k for k in (1, 2, 5, 10) if (high / step - low / step) / k <= wanted)
    first = math.ceil(low / step)
    return [0.0 if i == 0 else i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _when(at: float, timed: bool, span: float) -> str:
    if not timed:
        return short(round(at))
    text = str(np.datetime64(round(at), "us"))
    return text[:10] if span > 10 * 86400e6 else text[:16].replace("T", " ")
