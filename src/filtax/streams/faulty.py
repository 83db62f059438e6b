"""Streams of chapter 4 whose observations are at fault: heavy tails, gross errors, and both with changes.

As in `synthetic`: pure functions of their arguments, numpy, float64; axes T time, D parameters.
"""

from typing import Any

import jax
import numpy as np

from filtax import _validation as checks
from filtax.streams.synthetic import Stream, generator

__all__ = ["corrupted_table", "heavy_tailed_regression", "noisy_curve"]


def heavy_tailed_regression(
    steps: int = 300, *, key: int | jax.Array, hazard: float = 0.01, degrees: float = 2.01, initial: Any = None
) -> Stream:
    r"""Regress with Student's t errors on (1, x, x²), with parameters that jump (experiment:heavy-tail-regression).

    $x_t \sim U[-2, 2]$, $y_t = \theta_t^\top\phi(x_t) + \mathrm{St}(0, 1, \nu)$; with probability `hazard`
    $\theta_t \sim U[-3, 3]^3$, else $\theta_t = \theta_{t-1}$.

    Args:
        steps: Length T.
        key: Whole number or JAX key.
        hazard: Probability of a change at each step.
        degrees: Degrees of freedom of the noise, whose scale is 1; the variance is infinite for 2 and less.
        initial: First parameters, (3,); drawn from U[-3, 3]^3 if not given.

    Returns:
        A stream whose X holds the three features.

    Example:
        >>> from filtax.streams import heavy_tailed_regression
        >>> stream = heavy_tailed_regression(300, key=0)
        >>> stream.X.shape, stream.theta.shape, len(stream.changes) > 0
        ((300, 3), (300, 3), True)
    """
    checks.share("heavy_tailed_regression(hazard=...)", hazard, hint="It is a probability a step.")
    checks.positive("heavy_tailed_regression(degrees=...)", degrees, hint="Those of the thesis are 2.01.")
    rng = generator(key)
    changed = rng.random(steps) < hazard
    changed[0] = False  # the first parameters are new anyway
    drawn = rng.uniform(-3.0, 3.0, size=(1 + changed.sum(), 3))
    if initial is not None:
        drawn[0] = initial
    theta = drawn[np.cumsum(changed)]
    x = rng.uniform(-2.0, 2.0, steps)
    X = np.stack([np.ones(steps), x, x**2], axis=1)
    truth = np.sum(X * theta, axis=1)
    y = truth + rng.standard_t(degrees, steps)
    found = tuple(int(t) for t in np.flatnonzero(changed))
    return Stream(np.arange(steps), X, y, truth, theta, np.zeros(steps, bool), found)


def noisy_curve(
    steps: int = 1500,
    *,
    key: int | jax.Array,
    ordered: bool = False,
    share: float = 0.05,
    reach: float = 40.0,
    noise: float = 3.0,
) -> Stream:
    r"""Observe $0.2x - 10\cos(\pi x) + x^3$ in noise, and sometimes nothing but chance (eq:noisy-sinusoidal).

    The thesis writes the second coefficient as -10 behind a minus; its runs and its figures have -10 cos.

    Args:
        steps: Length T.
        key: Whole number or JAX key.
        ordered: Present the data by growing x instead of at random.
        share: Probability that y is drawn from U[-reach, reach] instead.
        reach: Size of the gross errors.
        noise: Variance of y around its mean.

    Returns:
        A stream whose X is x, (T, 1), with x ~ U[-3, 3], and whose `outliers` are known.

    Example:
        >>> from filtax.streams import noisy_curve
        >>> stream = noisy_curve(100, key=0, ordered=True)
        >>> bool((stream.X[1:] > stream.X[:-1]).all()), stream.outliers.shape
        (True, (100,))
    """
    checks.share("noisy_curve(share=...)", share, hint="It is the probability of a gross error.")
    rng = generator(key)
    x = rng.uniform(-3.0, 3.0, steps)
    x = np.sort(x) if ordered else x
    truth = 0.2 * x - 10.0 * np.cos(np.pi * x) + x**3
    y = truth + np.sqrt(noise) * rng.standard_normal(steps)
    outliers = rng.random(steps) < share
    y = np.where(outliers, rng.uniform(-reach, reach, steps), y)
    return Stream(np.arange(steps), x[:, None], y, truth, None, outliers)


def corrupted_table(
    X: Any, y: Any, *, key: int | jax.Array, warmup: float = 0.1, share: float = 0.1, law: str = "uniform"
) -> tuple[Stream, Stream]:
    """Shuffle a table, scale it to [0, 1] by its first rows, and corrupt targets (subsec:uci-corrupted).

    Args:
        X: Features, (N, D).
        y: Targets, (N,).
        key: Whole number or JAX key.
        warmup: Share of rows that go before; minima and maxima are theirs. A column without range is left at 0.
        share: Probability that a target is replaced.
        law: By what: "uniform", U[-50, 50], as the thesis writes; or "sign", -50 or 50, as its runs have it.

    Returns:
        The warm-up rows and the rest, both corrupted, since nobody would be told which of the first targets are good;
        minima and maxima are of the values before.

    Example:
        >>> import numpy as np
        >>> from filtax.streams import corrupted_table
        >>> X, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)
        >>> before, after = corrupted_table(X, y, key=0)
        >>> len(before), len(after)
        (2, 18)
    """
    checks.share("corrupted_table(share=...)", share, hint="It is the probability of a gross error.")
    laws = {"uniform": lambda u: 100.0 * u - 50.0, "sign": lambda u: np.where(u < 0.5, -50.0, 50.0)}
    if law not in laws:
        raise ValueError(f"corrupted_table(law={law!r}) must be one of {', '.join(laws)}.")
    rng = generator(key)
    table = np.column_stack([np.asarray(X, float), np.asarray(y, float)])
    table = table[rng.permutation(len(table))]
    first = max(2, round(warmup * len(table)))
    low, high = table[:first].min(axis=0), table[:first].max(axis=0)
    table = (table - low) / np.where(high > low, high - low, 1.0) * (high > low)
    truth = table[:, -1]
    outliers = rng.random(len(table)) < share
    seen = np.where(outliers, laws[law](rng.random(len(table))), truth)
    whole = Stream(np.arange(len(table)), table[:, :-1], seen, truth, None, outliers)
    return _rows(whole, slice(None, first)), _rows(whole, slice(first, None))


def _rows(stream: Stream, rows: slice) -> Stream:
    outliers = None if stream.outliers is None else stream.outliers[rows]
    return Stream(stream.time[rows], stream.X[rows], stream.y[rows], stream.truth[rows], None, outliers)
