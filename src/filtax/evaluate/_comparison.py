"""Methods beside baselines: the report of a run, its table, and what the table says in words.

A table is fair: each column is taken over the rows that every line has a score for. So a baseline that needs a few rows
to begin costs the methods those rows too, and no method gains by having skipped the hard ones.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from filtax.evaluate._forecast import Forecast
from filtax.evaluate.metrics import Metric, metric

Table = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class Run:
    """One line of the table: the forecasts of a method or a baseline, and their losses.

    Attributes:
        forecast: What it forecast for each row.
        losses: By the name of the metric, the loss of each row, (T,); NaN where nothing was scored.
        baseline: True for a baseline.
        state: State of the method after all rows; None for a baseline.
        microseconds: Time per row, compilation omitted; None for a baseline.

    Example:
        >>> import numpy as np
        >>> from filtax.evaluate import Forecast, Run
        >>> Run(Forecast(np.zeros(2)), {}, baseline=True).state is None
        True
    """

    forecast: Forecast
    losses: dict[str, np.ndarray]
    baseline: bool = False
    state: Any = None
    microseconds: float | None = None


@dataclass(frozen=True, eq=False)
class Report:
    """The result of `prequential`; print it for the table and the comparison in words.

    Attributes:
        runs: Methods first, then baselines, by name.
        y: Values or labels as they were scored, NaN where missing or refused.
        metrics: The columns.
        delay: Steps that labels came late.
        refused: Rows that the method refused: x not finite, or y impossible.

    Example:
        >>> import jax.numpy as jnp, numpy as np, filtax as fx
        >>> from filtax.evaluate import prequential
        >>> kf = fx.method("LG+C-Static", model=fx.models.linear(noise=1.0))
        >>> x, y = np.ones((8, 1)), np.array([2.0, 3.0, 1.0, 2.0, 2.0, 3.0, 1.0, 2.0])
        >>> report = prequential(kf, kf.init(mean=jnp.zeros(1), cov=9.0), x, y, metrics=("mae",))
        >>> report.table()["running-mean"]["mae"] < report.table()["last-value"]["mae"]
        True
        >>> report.comparison()[0]
        'LG+C-Static loses to running-mean on mae (0.6994 against 0.6667).'
    """

    runs: dict[str, Run]
    y: np.ndarray
    metrics: tuple[Metric, ...]
    delay: int = 0
    refused: int = 0

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
        return self.only.forecast

    @property
    def losses(self) -> dict[str, np.ndarray]:
        """Losses of the one method, by metric and row."""
        return self.only.losses

    @property
    def state(self) -> Any:
        """State of the one method after all rows."""
        return self.only.state

    def table(self) -> dict[str, dict[str, float]]:
        """Each metric of each line, over the rows that all of them have a score for."""
        columns = {chosen.name: _summaries(chosen, self._losses(chosen)) for chosen in self.metrics}
        return {name: {title: column[name] for title, column in columns.items()} for name in self.runs}

    def scored(self, chosen: str | Metric) -> np.ndarray:
        """Rows that count in a column: those where every line has a score, lines without any score aside."""
        return _common_rows(self._losses(metric(chosen)))

    def _losses(self, chosen: Metric) -> dict[str, np.ndarray]:
        """Losses of each line; computed now if the metric is no column."""
        known = {name: run.losses.get(chosen.name) for name, run in self.runs.items()}
        return {
            name: chosen.losses(self.runs[name].forecast, self.y) if losses is None else losses
            for name, losses in known.items()
        }

    def comparison(self) -> list[str]:
        """Say in a sentence for each method which baselines it loses to, and on what; or that it beats them all."""
        methods = [name for name, run in self.runs.items() if not run.baseline]
        return compare_in_words(self.table(), methods, self.metrics)

    @property
    def _missing(self) -> int:
        return int(np.all(np.isnan(self.y.reshape(len(self.y), -1)), axis=1).sum()) - self.refused

    def __str__(self) -> str:
        costs = {name: run.microseconds for name, run in self.runs.items()}
        scored = sorted({int(self.scored(chosen).sum()) for chosen in self.metrics})
        rows = f"{len(self.y)} rows, {self._missing} missing, {self.refused} refused; "
        rows += f"scored where every line has a score: {' to '.join(map(str, scored[:1] + scored[1:][-1:]))}."
        late = f" Labels came {self.delay} steps late." if self.delay else ""
        return "\n".join([format_table(self.table(), costs), rows + late, *self.comparison()])


def _common_rows(losses: Mapping[str, np.ndarray]) -> np.ndarray:
    """Rows that have a score in every line, (T,) each; lines without any score aside."""
    scored = [~np.isnan(values) for values in losses.values()]
    return np.all([rows for rows in scored if rows.any()] or [np.zeros_like(scored[0])], axis=0)


def _summaries(chosen: Metric, losses: Mapping[str, np.ndarray]) -> dict[str, float]:
    """The metric of each line over the common rows."""
    common = _common_rows(losses)
    return {name: float(chosen.aggregate(np.where(common, values, np.nan))) for name, values in losses.items()}


def compare(reports: Mapping[str, Report]) -> Report:
    """Put the reports of methods that were run on the same rows into one table; baselines are shown once.

    Args:
        reports: From the name of each method to what `prequential` returned for it.

    Returns:
        One report with a line for each method.

    Example:
        >>> import jax.numpy as jnp, numpy as np, filtax as fx
        >>> from filtax.evaluate import compare, prequential
        >>> x, y = np.ones((50, 1)), np.sin(np.arange(50) / 5)
        >>> reports = {}
        >>> for name in ("LG+C-Static", "LG+C-ACI(q=0.1)"):
        ...     kf = fx.method(name, model=fx.models.linear(noise=0.1))
        ...     reports[name] = prequential(kf, kf.init(mean=jnp.zeros(1), cov=1.0), x, y, metrics=("mae",))
        >>> list(compare(reports).table())
        ['LG+C-Static', 'LG+C-ACI(q=0.1)', 'last-value', 'running-mean']
    """
    if not reports:
        raise ValueError("compare: no reports; give a dictionary of what prequential returned.")
    (name, first), *others = reports.items()
    for other, report in others:
        if not _same_rows(first, report):
            raise ValueError(f"compare: {other!r} was not run as {name!r} was; use the same y, delay and metrics.")
    runs = {name: report.only for name, report in reports.items()}
    for report in reports.values():
        runs |= {name: run for name, run in report.runs.items() if run.baseline and name not in runs}
    y = np.where(np.any([np.isnan(report.y) for report in reports.values()], axis=0), np.nan, first.y)
    return Report(runs, y, first.metrics, first.delay, max(report.refused for report in reports.values()))


def _same_rows(one: Report, two: Report) -> bool:
    if one.y.shape != two.y.shape or one.delay != two.delay:
        return False
    both = ~np.isnan(one.y) & ~np.isnan(two.y)
    names = [[chosen.name for chosen in report.metrics] for report in (one, two)]
    return bool(np.array_equal(one.y[both], two.y[both])) and names[0] == names[1]


def compare_in_words(table: Table, methods: Sequence[str], metrics: Sequence[Metric]) -> list[str]:
    """Compare each method with all other lines, the baselines, in one sentence.

    A metric that has no better side (coverage, PIT) is omitted, and so is a line without a score.
    """
    baselines = [name for name in table if name not in methods]
    contests = [chosen for chosen in metrics if chosen.lower_is_better is not None]
    return [_sentence(table, name, baselines, contests) for name in methods]


def _sentence(table: Table, name: str, baselines: Sequence[str], contests: Sequence[Metric]) -> str:
    if not baselines:
        return f"{name} was held against no baseline."
    losses, ties, wins = [], [], []
    for chosen in contests:
        sign = 1.0 if chosen.lower_is_better else -1.0
        rivals = {b: table[b][chosen.name] for b in baselines if not math.isnan(table[b][chosen.name])}
        own = table[name][chosen.name]
        if math.isnan(own) or not rivals:
            continue
        best = min(rivals, key=lambda b: sign * rivals[b])
        if sign * own > sign * rivals[best]:
            losses.append(f"to {best} on {chosen.name} ({_number(own)} against {_number(rivals[best])})")
        elif own == rivals[best]:
            ties.append(f"{best} on {chosen.name}")
        else:
            wins.append(chosen.name)
    parts = [f"loses {join_words(losses)}"] if losses else []
    parts += [f"equals {join_words(ties)}"] if ties else []
    parts += [f"beats every baseline on {join_words(wins)}"] if wins else []
    return f"{name} {'; it '.join(parts) or 'has no score to compare'}."


def format_table(table: Table, costs: Mapping[str, float | None]) -> str:
    """Format a table in aligned columns; the last is the time per row."""
    titles = ["", *next(iter(table.values())), "us/row"]
    lines = [[name, *map(_number, line.values()), _cost(costs.get(name))] for name, line in table.items()]
    widths = [max(len(line[i]) for line in [titles, *lines]) for i in range(len(titles))]
    aligned = [
        [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        for line in [titles, *lines]
    ]
    return "\n".join("  ".join(line) for line in aligned)


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}"


def _cost(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def join_words(words: Sequence[str]) -> str:
    """Join words by commas, the last with an "and"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
