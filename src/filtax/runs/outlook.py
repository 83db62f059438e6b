"""What comes next: the forecasts of a run for the steps behind its end, as far ahead as it looks.

Axes: S series, H steps.
"""

from typing import Any

import jax
import numpy as np

from filtax.runs.blocks import Block
from filtax.runs.foretell import foresee, reach, settle
from filtax.runs.numbers import NumberStream
from filtax.runs.results import Run
from filtax.runs.streams import make_stream

__all__ = ["next_steps", "why_not"]


def why_not(run: Run) -> str | None:
    """Why a run cannot look ahead without a table of rows; None if it can."""
    plan = run.stream.plan
    if not isinstance(run.stream, NumberStream) or run.stream.maker is None:
        return "it has no --time to go on by"
    if plan.numbers or plan.texts:
        names = ", ".join((*plan.numbers, *plan.texts)[:3])
        return f"it learned from other columns too ({names}), and those of the next steps are not known"
    return None


def next_steps(run: Run) -> dict[str, np.ndarray]:
    r"""Forecast the next H steps of each series; nothing is learned, and the run stays as it is.

    Returns:
        Columns of S H rows: the series by its name if there is a key, the time, `step`, and forecast, lower and upper.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from filtax.runs import Config, carry_on, open_run
        >>> from filtax.runs.outlook import next_steps
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "t.csv"
        ...     _ = path.write_text("day,y\n" + "".join(f"{t},{t % 7}\n" for t in range(100)))
        ...     asked = Config(str(path), "y", time="day", method="LG+C-Static", horizon=2, block=64)
        ...     _ = carry_on(asked, Path(folder) / "run")
        ...     next_steps(open_run(Path(folder) / "run"))["day"].tolist()
        [100.0, 101.0]
    """
    why = why_not(run)
    if why is not None:
        raise ValueError(f"{run.root}: {why}; give a table with the rows to forecast.")
    stream = _copy(run)
    settle(stream)
    asked = np.arange(1, run.config.late + 2)
    which = np.searchsorted(reach(stream), asked)
    told: list[dict[str, np.ndarray]] = []
    for key, series in stream.keys.items():
        time = _moments(run, series, asked)
        for start in range(0, len(asked), run.config.block):
            part = slice(start, start + run.config.block)
            told.append(_foresee(stream, key, time[part], asked[part], which[part]))
    joined = {name: np.concatenate([each[name] for each in told]) for name in told[0]}
    names = {"key": run.config.key, "time": run.config.time}
    return {str(names.get(name, name)): each for name, each in joined.items() if names.get(name, name) is not None}


def _foresee(
    stream: NumberStream, key: str, time: np.ndarray, step: np.ndarray, which: np.ndarray
) -> dict[str, np.ndarray]:
    n = len(time)
    keys = np.full(n, key, object) if stream.plan.config.key else None
    block = Block({}, {}, time, keys, np.zeros(n, np.int64), np.zeros(n, np.int32), [], None)
    return {"key": np.full(n, key, object), "time": time, "step": step, **foresee(stream, block, which)}


def _moments(run: Run, series: int, steps: np.ndarray) -> np.ndarray:
    stream: Any = run.stream
    grid = stream.grids[series]
    calendar = run.note["clock"] != "number"
    return stream.maker.season.moments(int(grid["cell"]) + steps, float(grid["phase"]), calendar=calendar)


def _copy(run: Run) -> NumberStream:
    """The stream of a run, to be gone on with."""
    stream = make_stream(run.stream.plan, run.note)
    assert isinstance(stream, NumberStream)
    stream.restore(jax.tree.map(lambda leaf: leaf.copy(), run.stream.state()))
    return stream
