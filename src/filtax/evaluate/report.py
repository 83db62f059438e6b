"""The outcome of a run: forecasts, losses of each step, cost, and a table that puts methods beside baselines.

A table is fair: each column is taken over the rows that every line has a score for. So a baseline that needs a few rows
to begin costs the methods those rows too, and nobody wins by having skipped the hard ones.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from filtax.evaluate.buckets import by_calendar
from filtax.evaluate.forecast import Forecast
from filtax.evaluate.metrics import Metric, metric
from filtax.evaluate.verdict import judge, layout

__all__ = ["Report", "Run"]


@dataclass(frozen=True, eq=False)
class Run:
    """One line of the table.

    Attributes:
        forecasts: One `Forecast` for each horizon; the first is the plain prequential one.
        losses: By the name of the metric, the loss of each row, (T,); NaN where nothing was scored.
        baseline: True for a baseline.
        state: What the method knows after all rows; None for a baseline.
        microseconds: Time per row, compilation left out; None for a baseline.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import Forecast, Run
        >>> Run((Forecast(np.zeros(2)),), {}, baseline=True).state is None
        True
    """

    forecasts: tuple[Forecast, ...]
    losses: dict[str, np.ndarray]
    baseline: bool = False
    state: Any = None
    microseconds: float | None = None


@dataclass(frozen=True, eq=False)
class Report:
    """What `prequential` found; print it for the table, and for what it means.

    Attributes:
        runs: Methods first, then baselines, by name.
        y: Values or labels as they were scored, NaN where missing or refused.
        metrics: The columns.
        delay: Steps that labels came late.
        refused: Rows that were not taken: x not finite, or y impossible.
        time: When each row was, if it was told.

    Example:
        >>> import jax.numpy as jnp, numpy as np, filtax as fx
        >>> from filtax.evaluate import prequential
        >>> kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
        >>> x, y = np.ones((8, 1)), np.array([2.0, 3.0, 1.0, 2.0, 2.0, 3.0, 1.0, 2.0])
        >>> report = prequential(kf, kf.init(mean=jnp.zeros(1), cov=9.0), x, y, metrics=("mae",))
        >>> report.table()["running-mean"]["mae"] < report.table()["last-value"]["mae"]
        True
        >>> report.verdicts()[0]
        'LG+C-Static loses to running-mean on mae (0.6994 against 0.6667).'
    """

    runs: dict[str, Run]
    y: np.ndarray
    metrics: tuple[Metric, ...]
    delay: int = 0
    refused: int = 0
    time: np.ndarray | None = field(default=None, repr=False)

    @property
    def only(self) -> Run:
        """The run of the one method."""
        methods = [run for run in self.runs.values() if not run.baseline]
        if len(methods) != 1:
            raise ValueError(f"this report holds {len(methods)} methods; choose one with report.runs[name].")
        return methods[0]

    @property
    def forecast(self) -> Forecast:
        """Forecasts of the one method, row by row."""
        return self.only.forecasts[0]

    @property
    def losses(self) -> dict[str, np.ndarray]:
        """Losses of the one method, by metric and row."""
        return self.only.losses

    @property
    def state(self) -> Any:
        """State of the one method after all rows."""
        return self.only.state

    @property
    def microseconds(self) -> float | None:
        """Time per row of the one method, compilation left out."""
        return self.only.microseconds

    def table(self) -> dict[str, dict[str, float]]:
        """Each metric of each line, over the rows that all of them have a score for."""
        columns = {chosen.name: self._column(chosen) for chosen in self.metrics}
        return {name: {title: column[name] for title, column in columns.items()} for name in self.runs}

    def _column(self, chosen: Metric) -> dict[str, float]:
        losses, common = self._losses(chosen), self.scored(chosen)
        return {name: float(chosen.aggregate(np.where(common, values, np.nan))) for name, values in losses.items()}

    def scored(self, chosen: str | Metric) -> np.ndarray:
        """Rows that count in a column: those where every line has a score, lines without any score aside."""
        scored = [~np.isnan(losses) for losses in self._losses(metric(chosen)).values()]
        return np.all([rows for rows in scored if rows.any()] or [np.zeros(len(self.y), bool)], axis=0)

    def by_horizon(self, chosen: str | Metric) -> dict[str, np.ndarray]:
        """A metric of each line by steps ahead, shape (H,); over rows that have a score in all lines and horizons."""
        chosen = metric(chosen)
        losses = {
            name: np.stack([chosen.losses(forecast, self.y) for forecast in run.forecasts])
            for name, run in self.runs.items()
        }
        scored = [~np.isnan(values) for values in losses.values() if not np.isnan(values).all()]
        common = np.all(scored or [np.zeros((1, len(self.y)), bool)], axis=(0, 1))
        return {
            name: np.array([float(chosen.aggregate(np.where(common, row, np.nan))) for row in values])
            for name, values in losses.items()
        }

    def view(self, chosen: str | Metric, how: Callable[..., np.ndarray], *settings: Any) -> dict[str, np.ndarray]:
        """A view of a metric for each line: `report.view("mae", rolling, 24)`."""
        chosen = metric(chosen)
        return {name: how(losses, *settings, metric=chosen) for name, losses in self._losses(chosen).items()}

    def by_calendar(self, chosen: str | Metric, bucket: Any) -> dict[str, dict[Hashable, float]]:
        """A metric for each line and each bucket of time; needs `prequential(..., time=...)`."""
        if self.time is None:
            raise ValueError(
                "by_calendar: the report does not know when the rows were; run prequential(..., time=...)."
            )
        chosen = metric(chosen)
        return {name: by_calendar(losses, self.time, bucket, chosen) for name, losses in self._losses(chosen).items()}

    def _losses(self, chosen: Metric) -> dict[str, np.ndarray]:
        """Losses of each line; worked out now if the metric was not a column."""
        known = {name: run.losses.get(chosen.name) for name, run in self.runs.items()}
        return {
            name: np.asarray(chosen.losses(self.runs[name].forecasts[0], self.y)) if losses is None else losses
            for name, losses in known.items()
        }

    def verdicts(self) -> list[str]:
        """Say for each method which baselines it loses to, and on what; or that it beats them all."""
        methods = [name for name, run in self.runs.items() if not run.baseline]
        return judge(self.table(), methods, self.metrics)

    def to_dict(self) -> dict[str, Any]:
        """Numbers only, ready for JSON; what is not finite becomes None."""
        table = {
            name: {title: value if np.isfinite(value) else None for title, value in line.items()}
            for name, line in self.table().items()
        }
        return {
            "table": table,
            "microseconds": {name: run.microseconds for name, run in self.runs.items() if not run.baseline},
            "rows": {"all": len(self.y), "missing": self._missing, "refused": self.refused},
            "scored": {chosen.name: int(self.scored(chosen).sum()) for chosen in self.metrics},
            "delay": self.delay,
            "verdicts": self.verdicts(),
        }

    @property
    def _missing(self) -> int:
        return int(np.all(np.isnan(self.y.reshape(len(self.y), -1)), axis=1).sum()) - self.refused

    def __str__(self) -> str:
        costs = {name: run.microseconds for name, run in self.runs.items()}
        scored = sorted({int(self.scored(chosen).sum()) for chosen in self.metrics})
        rows = f"{len(self.y)} rows, {self._missing} missing, {self.refused} refused; "
        rows += f"scored where every line has a score: {' to '.join(map(str, scored[:1] + scored[1:][-1:]))}."
        late = f" Labels came {self.delay} steps late." if self.delay else ""
        return "\n".join([layout(self.table(), costs), rows + late, *self.verdicts()])
