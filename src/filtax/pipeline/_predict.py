"""Forecasts of rows that a run has not met. The folder of the run stays as it is.

With times, rows follow the end of the run: a row k steps behind the last known target is forecast by the step k of the
run, and a target in the table serves the rows after it. Without times each row is forecast as if it came next.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from filtax.io import Rejected
from filtax.pipeline._config import Config
from filtax.pipeline._learner import ENDS, Classes, Learned, Numbers, Rows, Track, by_series
from filtax.pipeline._rows import blocks, missing_steps, open_source
from filtax.pipeline._run import Run, head_columns, name_columns, texts_of
from filtax.pipeline._runner import BLOCK


def next_steps(run: Run, only: str | None = None) -> dict[str, np.ndarray]:
    """Forecasts of the steps after the end of a run, of all series or of one: key, time, step, forecast, lower, upper.

    Args:
        run: The run.
        only: Name of the one series.
    """
    learner, count = run.learner, run.config.horizon
    if isinstance(learner, Classes) or run.plan.width:
        raise ValueError(
            f"{run.root}: it learned from columns that are not known of the next rows; give a table of them."
        )
    names = list(learner.keys) if only is None else [only]
    parts = []
    for name in names:
        track = Track(run.config, run.plan, learner.tracks[learner.keys[name]].state())  # the run stays as it is
        learned = track.learn(track.after(count), None)
        parts.append((learned.rows, _chosen(run.config, learned, np.arange(1, count + 1))))
    rows, ends = Rows.joined([rows for rows, _ in parts]), np.concatenate([ends for _, ends in parts])
    found = {"key": np.repeat(np.array(names, object), count)} if run.config.key else {}
    found |= {"time": rows.time} if run.config.time else {}
    found |= {"step": np.tile(np.arange(1, count + 1), len(names)), **dict(zip(ENDS, ends.T, strict=True))}
    return name_columns(run.config, found)


class Prediction:
    """Forecasts of the rows of a table, as columns, a block at a time.

    Args:
        run: The run; what it learned goes on with the rows, in memory alone.
        source: The table, as for a run.
        on_error: "reject" or "stop".

    Attributes:
        rows, blank: Rows forecast, and those without a forecast.
        early: Rows not after the end of the run.
        rejected: Rows that could not be read; `first` is the first of them.
    """

    def __init__(self, run: Run, source: str, on_error: str) -> None:
        self.run, self.source = run, source
        self.follows = isinstance(run.learner, Numbers) and (run.config.time is not None or run.config.horizon > 1)
        names = [*run.plan.numbers, *run.plan.texts]
        config = Config(
            source, run.config.target, run.config.time, run.config.key, task=run.config.task, on_error=on_error
        )
        perhaps = {"target": None, "features": names, "perhaps": [run.config.target]}
        kinds = dict.fromkeys(run.plan.numbers, "number") | dict.fromkeys(run.plan.texts, "text")
        self.table = open_source(config, None, **perhaps, types=kinds)
        self.files: list[str] = []
        self.rows, self.blank, self.early, self.rejected = 0, 0, 0, 0
        self.first: Rejected | None = None
        self.at: dict[int, tuple[Any, int]] = {}  # time of the last row, and its steps from the last known target
        self.given = False

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        learner, read = self.run.learner, 0
        for block in blocks(self.table, BLOCK, self.files, eager=self.source == "-"):
            self.rejected += len(block.rejected)
            self.first = self.first or next(iter(block.rejected), None)
            if not len(block):
                continue
            target = self.run.config.target
            self.given = target in block.numbers or (target in block.texts and isinstance(learner, Classes))
            if self.run.config.time and block.dated != self.run.plan.dated:
                raise ValueError(f"{self.source}: its times are of another kind than those of the run.")
            rows = learner.read(block, read)
            read += len(block)
            if isinstance(learner, Classes):
                yield self._labels(learner, rows)
            elif self.follows:
                yield from self._follow(learner, rows, end=False)
            else:
                yield from self._each(learner, rows)
        if isinstance(learner, Numbers) and self.follows:
            yield from self._follow(learner, Rows.blank(0, self.run.plan), end=True)

    def _follow(self, learner: Numbers, rows: Rows, end: bool) -> Iterator[dict[str, np.ndarray]]:
        """Rows behind the end of the run."""
        learner.make_room()
        parts, said = [], []
        every = dict(by_series(rows.head["series"]))
        for series in range(len(learner.tracks)) if end else every:
            track = learner.tracks[series]
            last, away = self.at.get(series, (track.last, 0))
            learned = track.learn(self._behind(track, rows.take(every.get(series, slice(0)))), None, end)
            if not len(learned.rows):
                continue
            steps = np.ones(len(learned.rows), np.int64)
            if track.plan.dated:
                steps += missing_steps(track.clock, last, learned.rows.time)
            cells, seen = away + np.cumsum(steps), np.isfinite(learned.rows.y)
            ahead = cells - np.maximum.accumulate(np.concatenate([[0], np.where(seen, cells, 0)]))[:-1]
            self.at[series] = (learned.rows.time[-1:], 0 if seen[-1] else int(ahead[-1]))
            parts.append(learned.rows)
            said.append(_chosen(self.run.config, learned, ahead))
        if parts:
            rows, ends = Rows.joined(parts), np.concatenate(said)
            order = np.argsort(rows.head["row"], kind="stable")
            yield self._columns(rows.take(order), dict(zip(ENDS, ends[order].T, strict=True)))

    def _behind(self, track: Any, rows: Rows) -> Rows:
        if self.run.config.time is None or track.last is None:
            return rows
        later = rows.time > track.last
        self.early += int((~later).sum())
        return rows.take(later)

    def _each(self, learner: Numbers, rows: Rows) -> Iterator[dict[str, np.ndarray]]:
        """Each row as if it came next."""
        ends = np.full((len(rows), 3), np.nan)
        for series, own in by_series(rows.head["series"]):
            if series < len(learner.tracks):
                out = learner.tracks[series].series.predict(rows.known[own])
                ends[own] = np.concatenate([out.forecast, out.lower, out.upper], axis=1)
        yield self._columns(rows, dict(zip(ENDS, ends.T, strict=True)))

    def _labels(self, learner: Classes, rows: Rows) -> dict[str, np.ndarray]:
        chances, labels = np.asarray(learner.labels.predict(rows.known)), list(learner.codes)
        best = texts_of(labels, np.argmax(chances, axis=1).astype(float))
        found = {"forecast": best} | {f"p({labels[i]})": each for i, each in enumerate(chances.T)}
        return self._columns(rows, found, texts_of(labels, rows.y))

    def _columns(self, rows: Rows, said: dict[str, np.ndarray], y: np.ndarray | None = None) -> dict[str, np.ndarray]:
        learner, config = self.run.learner, self.run.config
        self.rows += len(rows)
        self.blank += int(np.isnan(said["forecast"]).sum()) if isinstance(learner, Numbers) else 0
        found = head_columns(config, learner, rows.head)
        if self.given:
            found["y"] = rows.y if y is None else y
        return name_columns(config, {**found, **said})


def _chosen(config: Config, learned: Learned, ahead: np.ndarray) -> np.ndarray:
    """Forecast and interval (T, 3) of each row by the step so many rows ahead, or the next longer one; NaN beyond."""
    steps = np.asarray(config.steps)
    which = np.searchsorted(steps, ahead)
    column = 3 * ((np.minimum(which, len(steps) - 1) + 1) % len(steps))  # those of the horizon come first
    ends = learned.columns[np.arange(len(ahead))[:, None], column[:, None] + np.arange(3)]
    return np.where((which < len(steps))[:, None], ends, np.nan)
