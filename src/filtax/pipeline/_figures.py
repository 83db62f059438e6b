"""Figures as SVG: lines over a band, and stacked shares; drawn with numpy alone, so that a page fetches nothing."""

import html
import json
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

WIDTH, HEIGHT = 900, 250
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 10, 26
COLOURS = ("#1a5fb4", "#222222", "#c64600", "#26a269", "#9141ac", "#986a44", "#5e5c64", "#e5a50a", "#2190a4", "#c061cb")
SHADES = COLOURS[:1] + COLOURS[2:]  # of areas
Scale = Callable[[np.ndarray], np.ndarray]


def short(value: float | int) -> str:
    """A number as people write it.

    >>> short(1234567.0), short(0.00012), short(12.5), short(float("nan"))
    ('1.235M', '1.2e-04', '12.5', '-')
    """
    if not math.isfinite(value):
        return "-"
    size = abs(value)
    for limit, unit, word in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if limit <= size < 1e13:
            return f"{value / unit:.4g}{word}"
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
    """Draw lines over x, with a band behind them and marks across.

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
    x = np.asarray(x, float)
    values = np.concatenate([np.asarray(each, float) for each in (*lines.values(), *(band or ()))])
    values = values[np.isfinite(values)]
    if not values.size or not np.isfinite(x).any():
        return "<p><em>Nothing to draw.</em></p>"
    low, high = _apart(
        float(values.min()) if floor is None else floor, float(values.max()) if ceiling is None else ceiling
    )
    start, end = _apart(float(np.nanmin(x)), float(np.nanmax(x)))
    across, up = _scale(start, end, LEFT, WIDTH - RIGHT), _scale(low, high, HEIGHT - BOTTOM, TOP)
    drawn = [_grid(low, high, start, end, across, up, timed)]
    if band is not None:
        drawn.append(_area(across(x), up(band[0]), up(band[1]), 'class="band"'))
    if level is not None:
        y = float(up(np.array(level)))
        drawn.append(f'<line class="level" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
    for i, each in reversed(list(enumerate(lines.values()))):
        drawn.append(f'<path class="line" stroke="{COLOURS[i % 10]}" d="{_path(across(x), up(each))}"/>')
    for at, words in marks:
        place = f'x1="{float(across(np.array(at))):.1f}" x2="{float(across(np.array(at))):.1f}"'
        drawn.append(
            f'<line class="mark" {place} y1="{TOP}" y2="{HEIGHT - BOTTOM}"><title>{html.escape(words)}</title></line>'
        )
    return _framed("".join(drawn), x, lines, timed, (start, end))


def stack(x: np.ndarray, layers: Mapping[str, np.ndarray], *, timed: bool = False) -> str:
    """Draw shares, (P,) each, on top of one another; together they are at most 1.

    >>> stack(np.arange(3.0), {"a": np.full(3, 0.4), "b": np.full(3, 0.6)}).count('<path fill')
    2
    """
    start, end = _apart(float(np.nanmin(x)), float(np.nanmax(x)))
    across, up = _scale(start, end, LEFT, WIDTH - RIGHT), _scale(0.0, 1.0, HEIGHT - BOTTOM, TOP)
    drawn, below = [_grid(0.0, 1.0, start, end, across, up, timed)], np.zeros(len(x))
    for i, share in enumerate(layers.values()):
        above = below + share
        drawn.append(_area(across(x), up(below), up(above), f'fill="{SHADES[i % 9]}" opacity=".75"'))
        below = above
    return _framed("".join(drawn), x, layers, timed, (start, end), SHADES)


def _framed(
    inside: str,
    x: np.ndarray,
    lines: Mapping[str, np.ndarray],
    timed: bool,
    span: tuple[float, float],
    colours: tuple[str, ...] = COLOURS,
) -> str:
    keys = "".join(
        f'<span><i style="background:{colours[i % len(colours)]}"></i>{html.escape(name)}</span>'
        for i, name in enumerate(lines)
    )
    rows = {name: [_digits(value) for value in np.asarray(each).tolist()] for name, each in lines.items()}
    data = {
        "x": [_digits(value, 17) for value in x.tolist()],
        "timed": timed,
        "span": span,
        "plot": [LEFT, WIDTH - RIGHT],
    }
    text = json.dumps({**data, "lines": rows}, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")
    return (
        f'<figure class="chart"><div class="keys">{keys}<output></output></div>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(", ".join(lines))}">{inside}</svg>'
        f'<script type="application/json">{text}</script></figure>'
    )


def _digits(value: float, digits: int = 5) -> float | None:
    near = float(f"{value:.{digits}g}") if math.isfinite(value) else math.inf  # the largest numbers round to infinity
    return near if math.isfinite(near) else None


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


def _scale(low: float, high: float, at_low: int, at_high: int) -> Scale:
    """From values to places. Halved first, as high - low may overflow."""
    span = 0.5 * high - 0.5 * low
    return lambda at: at_low + (at_high - at_low) * ((0.5 * np.clip(at, low, high) - 0.5 * low) / span)


def _path(x: np.ndarray, y: np.ndarray) -> str:
    """A path that is broken where nothing is known."""
    words, pen = [], False
    for at, value in zip(x.tolist(), np.asarray(y).tolist(), strict=True):
        if math.isfinite(at) and math.isfinite(value):
            words.append(f"{'L' if pen else 'M'}{at:.1f} {value:.1f}")
        pen = math.isfinite(at) and math.isfinite(value)
    return "".join(words)


def _area(x: np.ndarray, lower: np.ndarray, upper: np.ndarray, how: str) -> str:
    known = np.isfinite(x) & np.isfinite(lower) & np.isfinite(upper)
    back = _path(x[known][::-1], lower[known][::-1]).replace("M", "L", 1)
    return f'<path {how} d="{_path(x[known], upper[known])}{back}Z"/>'


def _grid(low: float, high: float, start: float, end: float, across: Scale, up: Scale, timed: bool) -> str:
    drawn = []
    for value in _ticks(low, high, 5):
        y = float(up(np.array(value)))
        drawn.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>')
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        at = (1.0 - share) * start + share * end
        anchor = {0.0: "start", 1.0: "end"}.get(share, "middle")
        near = ' class="near"' if share in (0.25, 0.75) else ""  # hidden where there is little room
        place = f'x="{float(across(np.array(at))):.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}"'
        drawn.append(f"<text{near} {place}>{_when(at, timed, end - start)}</text>")
    return "".join(drawn)


def _ticks(low: float, high: float, wanted: int) -> list[float]:
    step = 10.0 ** math.floor(math.log10(max(high / wanted - low / wanted, 1e-300)))
    step *= next(k for k in (1, 2, 5, 10) if (high / step - low / step) / k <= wanted)
    first = math.ceil(low / step)
    return [0.0 if i == 0 else i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _when(at: float, timed: bool, span: float) -> str:
    if not timed:
        return short(round(at))
    text = str(np.datetime64(round(at), "us"))
    return text[:10] if span > 10 * 86400e6 else text[:16].replace("T", " ")
