r"""The default model of a segment: a line, and a cycle if there is one, with a noise variance of its own.

Within a segment that begins at s: $y_t = \theta_0 + \theta_1 (t - s)/u + x_t^\top \theta_2 + e_t$ with $e_t \sim
N(0, \sigma^2)$, $\theta \sim N(m, \sigma^2/k)$, $\sigma^2 \sim IG(a, a b)$, and a hazard h: the method
`NIG(shape=a, rate=ab)+RL[K]-PR(hazard=h)` of the model `since_change`. All in units of the series.

The numbers are the same for all series. The hazard is that of the usual detector in the Turing benchmark; the others
come from a study on that benchmark, which `docs/segmentation.md` describes. Two things matter: the line (a constant for
each segment loses 0.10 of F1 and of covering) and a cycle that is distinguished from a change. Half or twice any of the
numbers moves the averages by a few hundredths.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from filtax import _validation as checks
from filtax.bone import Bone
from filtax.methods._parse import method
from filtax.models import since_change
from filtax.segmentation._cycle import ORDERS, cycle_features
from filtax.state import State

FARTHEST = 1e18  # median distances from the median: the square of a larger one overflows in float32


@dataclass(frozen=True)
class Settings:
    """The prior of a segment, before any of its data.

    Attributes:
        hazard: Probability of a change at a step, h.
        shape: Weight of the prior of the noise variance, a, in pairs of data.
        noise: Expected noise variance b, as a share of the variance of the series.
        precision: Prior precision k of level, slope and cycle, in units of the noise.
        unit: Steps over which the slope is counted, u.
        keep: Hypotheses kept at a step.

    >>> Settings(hazard=0.02).keep
    200
    """

    hazard: float = 0.01
    shape: float = 3.0
    noise: float = 0.2
    precision: float = 0.03
    unit: float = 100.0
    keep: int = 200

    def __post_init__(self) -> None:
        checks.share("Settings(hazard=...)", self.hazard, hint="It is the probability of a change at a step.")
        for name in ("shape", "noise", "precision", "unit"):
            checks.positive(f"Settings({name}=...)", vars(self)[name])
        checks.whole("Settings(keep=...)", self.keep, least=1, hint="It is the number of hypotheses kept.")


RETROSPECTIVE = Settings()
ONLINE = Settings(noise=0.5)  # the variance observed so far is often smaller than that of the whole series


def build(settings: Settings, outputs: int = 1, block: int = 1, cyclic: bool = True) -> tuple[Bone, State]:
    """Build the method and its state before any datum, for a series of mean 0 and variance 1.

    Args:
        settings: The prior of a segment.
        outputs: Numbers read at a step; they change together.
        block: Readings in a row of the method: hazard and slope are counted in rows.
        cyclic: Include the weights of a cycle.

    >>> method, state = build(RETROSPECTIVE)
    >>> method.name, state.initial.mean.size
    ('NIG(shape=3.0, rate=0.6...)+RL[200]-PR(hazard=0.01)', 6)
    """
    hazard = 1.0 - (1.0 - settings.hazard) ** block
    name = f"NIG(shape={settings.shape},rate={settings.shape * settings.noise})+RL[{settings.keep}]-PR(hazard={hazard})"
    chosen = method(name, model=since_change(1.0, unit=settings.unit / block))
    features = 2 + (2 * ORDERS if cyclic else 0)
    return chosen, chosen.init(mean=jnp.zeros(features * outputs), cov=1.0 / settings.precision)


def start(state: State, settings: Settings, centre: np.ndarray, variance: np.ndarray) -> tuple[State, Any]:
    """Compute the belief of a new segment at each step, where its mean and variance follow the data.

    Args:
        state: From `build`.
        settings: The prior of a segment.
        centre: (T, O) expected level of a segment that begins at each step.
        variance: (T,) variance of the series as known at each step.

    Returns:
        The state with the first of these beliefs, and all of them, with a leading axis T.

    >>> _, state = build(ONLINE)
    >>> state, rows = start(state, ONLINE, np.ones((3, 1)), np.ones(3))
    >>> rows.unit.mean[:, 0].tolist()
    [1.0, 1.0, 1.0]
    """
    T, outputs = centre.shape
    dtype = state.initial.mean.dtype
    mean = np.zeros((T, state.initial.mean.size))
    mean[:, :outputs] = centre
    rows = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (T, *leaf.shape)), state.initial)
    rate = settings.shape * settings.noise * variance
    new = jnp.asarray(mean, dtype), jnp.asarray(rate, dtype)
    rows = eqx.tree_at(lambda belief: (belief.unit.mean, belief.rate), rows, new)
    first = jax.tree.map(lambda leaf: leaf[0], rows)
    slots = state.hypotheses.log_weight.size
    hypotheses = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (slots, *leaf.shape)), first)
    return eqx.tree_at(lambda s: (s.initial, s.hypotheses.belief), state, (first, hypotheses)), rows


def rows_of(y: Any, block: int, period: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Pair the readings with the features of the cycle, and pad both with NaN so that few lengths are compiled.

    Args:
        y: Means of blocks, (T, O).
        block: Readings in a block.
        period: In steps, or None.

    >>> X, Y = rows_of(np.ones((70, 1)), 1, None)
    >>> X.shape, Y.shape, np.isnan(Y).sum().item()
    ((128, 4), (128, 1), 58)
    """
    length = 64
    while length < len(y):
        length *= 2
    Y = np.full((length, y.shape[1]), np.nan)
    Y[: len(y)] = y
    return cycle_features(length, None if period is None else period / block), Y


def finite_readings(call: str, y: Any, known: int | None = None) -> np.ndarray:
    """Check a series, and return it as (T, O) with NaN where a reading is missing, infinite or absurdly far off.

    Args:
        call: The function named in an error message.
        y: (T,) or (T, O).
        known: How many of the first readings decide what is absurd; all by default.

    >>> finite_readings("segment", [1.0, np.inf, 2.0, 4.0, 1e30])[:, 0].tolist()
    [1.0, nan, 2.0, 4.0, nan]
    """
    (y,) = checks.arrays(y=y)
    y = np.asarray(y, np.float64)
    y = y.reshape(len(y), -1) if y.ndim in (1, 2) and y.size else y
    if y.ndim != 2 or len(y) < 2 or not y.size or not np.isfinite(y).any(axis=0).all():
        raise ValueError(
            f"{call}: y has shape {np.shape(y)}; give at least two readings, (T,) or (T, O), with a finite one in each "
            "column."
        )
    return np.column_stack([_without_absurd(column, known) for column in y.T])


def _without_absurd(y: np.ndarray, known: int | None) -> np.ndarray:
    """One column, NaN where a number is infinite or so far off that its square would overflow."""
    first = y[:known][np.isfinite(y[:known])]
    with np.errstate(over="ignore"):
        middle = np.median(first) if first.size else 0.0
        spread = np.median(np.abs(first - middle)) if first.size else 0.0
        unit = spread if spread > 0.0 else max(1.0, abs(middle))
        return np.where(np.isfinite(y) & (np.abs(y - middle) <= FARTHEST * unit), y, np.nan)
