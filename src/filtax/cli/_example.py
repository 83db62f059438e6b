"""The main job: learn an hourly load as it comes, three ways, beside baselines that anybody could have.

One model for all: the load is linear in the calendar and in the load of the same hour yesterday and last week. What
differs is what a method believes about the coefficients: that they never change, that they wander, or that they wander
and the noise level is unknown too. The stream is `filtax.synthetic.hourly_load`, the scores are those of
`filtax.evaluate`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from filtax.bone import Bone
from filtax.evaluate import Report, compare, last_value, naive_plus_change, prequential, rolling, seasonal_naive
from filtax.methods._parse import method
from filtax.models import linear
from filtax.report import Track, draw_stream
from filtax.synthetic import Stream

__all__ = ["METHODS", "build", "describe", "draw", "learn", "winners", "write_readings"]

METHODS = ("LG+C-Static", "LG+C-ACI(q=1e-05)", "NIG+C-ACI(q=1e-06)")
NOISE = 5e-4  # variance around the forecast in GW²: readings are thought to be 22 MW off
SPREAD = 1.0  # prior variance of each coefficient: loads and harmonics are all of order one
LATEST = 168  # hours in the rolling error


def build(names: Sequence[str] = METHODS) -> dict[str, Bone]:
    """Make the methods, by name; a name that means nothing is refused in a sentence.

    Example:
        >>> from filtax.cli._example import build
        >>> list(build(["LG+C-Static"]))
        ['LG+C-Static']
    """
    built = [method(name, model=linear(noise=NOISE)) for name in names]
    return {each.name: each for each in built}


def describe(stream: Stream) -> str:
    """Say in a sentence what will go wrong.

    Example:
        >>> from filtax.cli._example import describe
        >>> from filtax.synthetic import hourly_load
        >>> describe(hourly_load(400, key=0, shift=0.0))
        'An hourly load in GW. Of 400 hours the meter misses 35 and gets 1 grossly wrong.'
    """
    wrong = 0 if stream.outliers is None else stream.outliers.sum()
    faults = f"Of {len(stream)} hours the meter misses {stream.missing.sum()} and gets {wrong} grossly wrong"
    days = [f"on {stream.time[t].astype('datetime64[D]')} the level shifts" for t in stream.changes]
    return f"An hourly load in GW. {'; '.join([faults, *days])}."


def learn(
    stream: Stream, methods: Mapping[str, Bone], advance: Callable[[str, int], object] = lambda name, hours: None
) -> Report:
    """Take each method through the stream: forecast every hour before its reading, then learn from it.

    Args:
        stream: From `filtax.synthetic.hourly_load`.
        methods: From `build`.
        advance: Told, after each stretch, the method's name and the hours it has just learned.

    Returns:
        Scores of all methods and baselines, over the hours that the meter wrote down, gross errors included.

    Example:
        >>> from filtax.cli._example import build, learn
        >>> from filtax.synthetic import hourly_load
        >>> report = learn(hourly_load(400, key=0), build(["LG+C-Static"]))
        >>> list(report.table())
        ['LG+C-Static', 'last-value', 'seasonal-naive(24)', 'naive-plus-change(24)']
    """
    reports = {}
    for name, each in methods.items():
        reports[name] = prequential(
            each,
            each.init(mean=jnp.zeros(stream.X.shape[1]), cov=SPREAD),
            stream.X,
            stream.y,
            metrics=("mae", "log_score", "coverage(0.9)"),
            baselines=(last_value(), seasonal_naive(24), naive_plus_change(24)),
            time=stream.time,
            chunk=_stretch(len(stream)),
            progress=lambda hours, name=name: advance(name, hours),
        )
    return compare(reports)


def winners(report: Report) -> str:
    """Say in a sentence which line has the smallest error, and which the best log score.

    Example:
        >>> from filtax.cli._example import build, learn, winners
        >>> from filtax.synthetic import hourly_load
        >>> winners(learn(hourly_load(400, key=0), build(["LG+C-Static"])))  # two weeks are too few to learn from
        'Smallest error: naive-plus-change(24). Best log score: last-value.'
    """
    table = report.table()
    sharpest = min(table, key=lambda name: table[name]["mae"])
    surest = max(table, key=lambda name: table[name]["log_score"])
    return f"Smallest error: {sharpest}. Best log score: {surest}."


def draw(stream: Stream, report: Report, path: Path) -> Path:
    """Draw forecasts and rolling errors: the methods from best to worst, the last value, and the best baseline.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from filtax.cli._example import build, draw, learn
        >>> from filtax.synthetic import hourly_load
        >>> stream = hourly_load(400, key=0)
        >>> report = learn(stream, build(["LG+C-Static"]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     draw(stream, report, Path(folder) / "demo.png").name
        'demo.png'
    """
    table, errors = report.table(), report.view("mae", rolling, LATEST)
    order = sorted(report.runs, key=lambda name: table[name]["mae"])
    plain = [name for name in order if report.runs[name].baseline]
    tracks = []
    for name in [*(n for n in order if n not in plain), *dict.fromkeys(["last-value", plain[0]])]:
        run = report.runs[name]
        forecast = run.forecasts[0]
        error = np.where(np.arange(len(stream)) < LATEST, np.nan, errors[name])
        band = None if run.baseline else (np.asarray(forecast.lower), np.asarray(forecast.upper))
        tracks.append(Track(name, np.asarray(forecast.mean), error, band, run.baseline))
    return draw_stream(stream, tracks, path)


def write_readings(stream: Stream, path: Path) -> Path:
    """Write what the meter wrote down as a table that anybody could have: a time and a load, empty where it missed.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from filtax.cli._example import write_readings
        >>> from filtax.synthetic import hourly_load
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_readings(hourly_load(336, key=0), Path(folder) / "demo.csv").read_text().splitlines()[0]
        'time,load'
    """
    rows = zip(stream.time.astype("datetime64[m]"), np.asarray(stream.y).tolist(), strict=True)
    path.write_text("time,load\n" + "".join(f"{time},{'' if y != y else repr(y)}\n" for time, y in rows))
    return path


def _stretch(hours: int, most: int = 336) -> int:
    """Hours compiled into one loop: a divisor, so that no shorter stretch at the end is compiled anew."""
    return max((size for size in range(24, most + 1) if hours % size == 0), default=most)
