"""Synthetic regressions: parameters that stay, walk or jump, and observations with gross errors.

Thesis: prop:recursive-and-static-ridge, prop:rvga-matches-linreg (parameters that stay), experiment:segmentation
(linked parabolas), experiment:heavy-tail-regression, eq:noisy-sinusoidal and subsec:uci-corrupted (errors).
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from filtax import _validation as checks
from filtax.synthetic._stream import Stream, generator, jumps, steps_of

RATE = "It is a probability a step."


def fixed_regression(
    steps: int, *, key: int | jax.Array, theta: Sequence[float] = (-0.5, 2.0, -1.0), noise: float = 0.5
) -> Stream:
    """Regress on standard normal inputs with parameters that stay: y_t = theta . x_t + N(0, noise).

    `theta` holds the parameters, (D,), and `noise` is the variance of y around its mean, as the models take it.

    Returns:
        A stream whose X is (T, D); `truth` is theta . x, `theta` the parameters, (T, D).

    Example:
        >>> from filtax.synthetic import fixed_regression
        >>> stream = fixed_regression(50, key=1, theta=(1.0, -1.0), noise=0.0)
        >>> stream.X.shape, bool((stream.y == stream.X[:, 0] - stream.X[:, 1]).all())
        ((50, 2), True)
    """
    rng, coefficients = generator(key), np.asarray(theta, float)
    X = rng.standard_normal((steps, coefficients.size))
    return _observed("fixed_regression", rng, X, np.tile(coefficients, (steps, 1)), noise, truth=X @ coefficients)


def parabola_regression(
    steps: int, *, key: int | jax.Array, theta: Sequence[float] = (2.0, -1.0), noise: float = 1.0
) -> Stream:
    """Observe a parabola through the origin: y_t = theta_1 x_t + theta_2 x_t² + N(0, noise), x_t ~ U[-2, 3].

    `theta` holds the parameters of x and x², and `noise` is the variance of y around its mean.

    Returns:
        A stream whose X is (T, 2), the features (x, x²); `truth` is the parabola, `theta` the parameters, (T, 2).

    Example:
        >>> from filtax.synthetic import parabola_regression
        >>> stream = parabola_regression(50, key=0)
        >>> stream.X.shape, bool((stream.X[:, 1] == stream.X[:, 0] ** 2).all())
        ((50, 2), True)
    """
    rng, coefficients = generator(key), np.asarray(theta, float)
    if coefficients.shape != (2,):
        raise ValueError(f"parabola_regression(theta=...) has shape {coefficients.shape}; give 2 numbers, of x and x².")
    x = rng.uniform(-2.0, 3.0, steps)
    X = np.stack([x, x**2], axis=1)
    return _observed("parabola_regression", rng, X, np.tile(coefficients, (steps, 1)), noise, truth=X @ coefficients)


def piecewise_polynomial(steps: int = 300, *, key: int | jax.Array, hazard: float = 0.01, noise: float = 1.0) -> Stream:
    """Regress on (1, x, x²), x_t ~ U[-2, 2], with coefficients from U[-3, 3]³ that jump.

    They jump with probability `hazard` at each step; the thesis prints 0.001, which its figure cannot have had (errata
    E9). `noise` is the variance of y around its mean.

    Returns:
        A stream whose X is (T, 3).

    Example:
        >>> from filtax.synthetic import piecewise_polynomial
        >>> stream = piecewise_polynomial(300, key=5)
        >>> stream.X.shape, len(stream.changes)
        ((300, 3), 5)
    """
    checks.share("piecewise_polynomial(hazard=...)", hazard, hint=RATE)
    rng = generator(key)
    x = rng.uniform(-2.0, 2.0, steps)
    jumped = jumps(rng, steps, hazard)
    theta = rng.uniform(-3.0, 3.0, (1 + jumped.sum(), 3))[np.cumsum(jumped)]
    return _observed("piecewise_polynomial", rng, x[:, None] ** np.arange(3), theta, noise, steps_of(jumped))


def linked_parabolas(segments: int = 5, *, key: int | jax.Array, hazard: float = 0.01, noise: float = 0.04) -> Stream:
    """Join parabolas end to end: y = a + b d + c d² + N(0, noise), d the distance from the start of the segment.

    Inputs are sorted and uniform on [-5, 5]. The lengths of the segments are geometric of mean 1 / `hazard`, so T
    differs from key to key. The first has coefficients N(0, I); in the others a is the value where the segment before
    ended, b and c are redrawn (after Fearnhead and Liu 2011).

    Returns:
        A stream with X = x of shape (T, 1), `theta` the coefficients (T, 3) in the frame of their segment, `truth` the
        curve, `changes` where segments begin, without the first.

    Example:
        >>> from filtax.synthetic import linked_parabolas
        >>> stream = linked_parabolas(key=0)
        >>> len(stream.changes), stream.X.shape[1], bool((np.diff(stream.X[:, 0]) >= 0).all())
        (4, 1, True)
    """
    if not 0.0 < hazard <= 1.0:
        raise ValueError(f"linked_parabolas(hazard=...) must lie in (0, 1], got {hazard}; one over a mean length.")
    rng = generator(key)
    lengths = rng.geometric(hazard, size=segments)
    x = np.sort(rng.uniform(-5.0, 5.0, size=lengths.sum()))
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    coefficients = rng.normal(size=(segments, 3))
    for i in range(1, segments):
        d = x[starts[i]] - x[starts[i - 1]]
        coefficients[i, 0] = coefficients[i - 1] @ np.array([1.0, d, d * d])
    segment = np.repeat(np.arange(segments), lengths)
    theta, d = coefficients[segment], x - x[starts[segment]]
    truth = np.sum(theta * np.stack([np.ones_like(d), d, d * d], axis=1), axis=1)
    changes = tuple(int(t) for t in starts[1:])
    return _observed("linked_parabolas", rng, x[:, None], theta, noise, changes, truth)


def heavy_tailed_regression(
    steps: int = 300, *, key: int | jax.Array, hazard: float = 0.01, degrees: float = 2.01, initial: Any = None
) -> Stream:
    r"""Regress with Student's t errors on (1, x, x²), with parameters that jump (experiment:heavy-tail-regression).

    $x_t \sim U[-2, 2]$, $y_t = \theta_t^\top\phi(x_t) + \mathrm{St}(0, 1, \nu)$; with probability `hazard`
    $\theta_t \sim U[-3, 3]^3$, else $\theta_t = \theta_{t-1}$.

    $\nu$ is `degrees`, and the variance is infinite for 2 and less. `initial` holds the first parameters, (3,), where
    they are not drawn.

    Returns:
        A stream whose X holds the three features.

    Example:
        >>> from filtax.synthetic import heavy_tailed_regression
        >>> stream = heavy_tailed_regression(300, key=0)
        >>> stream.X.shape, stream.theta.shape, len(stream.changes) > 0
        ((300, 3), (300, 3), True)
    """
    checks.share("heavy_tailed_regression(hazard=...)", hazard, hint=RATE)
    checks.positive("heavy_tailed_regression(degrees=...)", degrees, hint="Those of the thesis are 2.01.")
    rng = generator(key)
    jumped = jumps(rng, steps, hazard)
    drawn = rng.uniform(-3.0, 3.0, size=(1 + jumped.sum(), 3))
    if initial is not None:
        drawn[0] = initial
    theta = drawn[np.cumsum(jumped)]
    x = rng.uniform(-2.0, 2.0, steps)
    X = np.stack([np.ones(steps), x, x**2], axis=1)
    truth = np.sum(X * theta, axis=1)
    y = truth + rng.standard_t(degrees, steps)
    return Stream(np.arange(steps), X, y, truth, theta, np.zeros(steps, bool), steps_of(jumped))


def noisy_curve(
    steps: int = 1500,
    *,
    key: int | jax.Array,
    ordered: bool = False,
    share: float = 0.05,
    reach: float = 40.0,
    noise: float = 3.0,
) -> Stream:
    r"""Observe $0.2x - 10\cos(\pi x) + x^3$ in Gaussian noise with gross errors (eq:noisy-sinusoidal).

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
        >>> from filtax.synthetic import noisy_curve
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
        warmup: Share of rows for the warm-up; minima and maxima are theirs. A column without range becomes 0.
        share: Probability that a target is replaced.
        law: What replaces it: "uniform", U[-50, 50], as in the thesis; or "sign", -50 or 50, as in its runs.

    Returns:
        The warm-up rows and the rest, both corrupted; minima and maxima are of the values before corruption.

    Example:
        >>> import numpy as np
        >>> from filtax.synthetic import corrupted_table
        >>> X, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)
        >>> before, after = corrupted_table(X, y, key=0)
        >>> len(before), len(after)
        (2, 18)
    """
    checks.share("corrupted_table(share=...)", share, hint="It is the probability of a gross error.")
    if law not in ("uniform", "sign"):
        raise ValueError(f"corrupted_table(law={law!r}) must be one of uniform, sign.")
    rng = generator(key)
    table = np.column_stack([np.asarray(X, float), np.asarray(y, float)])
    table = table[rng.permutation(len(table))]
    first = max(2, round(warmup * len(table)))
    low, high = table[:first].min(axis=0), table[:first].max(axis=0)
    table = (table - low) / np.where(high > low, high - low, 1.0) * (high > low)
    truth = table[:, -1]
    outliers = rng.random(len(table)) < share
    u = rng.random(len(table))
    y = np.where(outliers, 100.0 * u - 50.0 if law == "uniform" else np.where(u < 0.5, -50.0, 50.0), truth)
    rows, time = (slice(None, first), slice(first, None)), np.arange(len(table))
    before, after = (Stream(time[r], table[r, :-1], y[r], truth[r], None, outliers[r]) for r in rows)
    return before, after


def _observed(
    call: str,
    rng: np.random.Generator,
    X: np.ndarray,
    theta: np.ndarray,
    noise: float,
    changes: tuple[int, ...] = (),
    truth: np.ndarray | None = None,
) -> Stream:
    """Add Gaussian noise to the truth, which is theta_t . x_t if not given."""
    checks.positive(f"{call}(noise=...)", noise, zero=True, hint="It is a variance, such as 1.0.")
    mean: np.ndarray = np.sum(X * theta, axis=1) if truth is None else truth
    y = mean + np.sqrt(noise) * rng.standard_normal(len(mean))
    return Stream(np.arange(len(y)), X, y, mean, theta, np.zeros(len(y), bool), changes)
