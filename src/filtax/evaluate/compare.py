"""Several methods in one table."""

from collections.abc import Mapping

import numpy as np

from filtax.evaluate.report import Report

__all__ = ["compare"]


def compare(reports: Mapping[str, Report]) -> Report:
    """Put methods that were run on the same rows into one table; the baselines are shown once.

    Args:
        reports: By the name that each method shall have, what `prequential` returned for it.

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
            raise ValueError(
                f"compare: {other!r} was not run as {name!r} was; use the same y, delay, horizon and metrics."
            )
    runs = {name: report.only for name, report in reports.items()}
    for report in reports.values():
        runs |= {name: run for name, run in report.runs.items() if run.baseline and name not in runs}
    y = np.where(np.any([np.isnan(report.y) for report in reports.values()], axis=0), np.nan, first.y)
    return Report(runs, y, first.metrics, first.delay, max(report.refused for report in reports.values()), first.time)


def _same_rows(one: Report, two: Report) -> bool:
    if one.y.shape != two.y.shape or one.delay != two.delay:
        return False
    both = ~np.isnan(one.y) & ~np.isnan(two.y)
    horizons = {len(run.forecasts) for report in (one, two) for run in report.runs.values()}
    names = [[chosen.name for chosen in report.metrics] for report in (one, two)]
    return bool(np.array_equal(one.y[both], two.y[both])) and len(horizons) == 1 and names[0] == names[1]
