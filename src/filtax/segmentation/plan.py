r"""The default of segmentation: a line, and a cycle if there is one, in each segment, with a noise of its own.

Within a segment that begins at s: $y_t = \theta_0 + \theta_1 (t - s)/u + x_t^\top \theta_2 + e_t$ with $e_t \sim
N(0, \sigma^2)$, $\theta \sim N(m, \sigma^2/k)$, $\sigma^2 \sim IG(a, a b)$, and a hazard h: the method
`NIG(shape=a, rate=ab)+RL[K]-PR(hazard=h)` of the model `since_change`. All in units of the series.

The numbers are the same for all series. The hazard is that of the customary detector in the Turing benchmark; the
others come from a study on that benchmark, which `docs/segmentation.md` tells of. What matters is the line (a constant
for each segment loses 0.10 of F1 and of covering) and that a cycle is told from a change; halving or doubling each
number moves the averages by a few hundredths.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from filtax import checks
from filtax.bone import Bone
from filtax.methods._parse import method
from filtax.models import since_change
from filtax.segmentation.period import ORDERS, cycle_features
from filtax.state import State

__all__ = ["ONLINE", "RETROSPECTIVE", "Settings", "build", "readings", "start"]


@dataclass(frozen=True)
class Settings:
    """What a segment looks like before any of it was seen.

    Attributes:
        hazard: Probability of a change at a step, h.
        shape: What the prior of the noise variance is worth, a, in pairs of data.
        noise: Expected noise variance b, as a share of the variance of the series.
        precision: k, in units of the noise: how little is known of level, slope and cycle.
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
            checks.positive(f"Settings({name}=...)", getattr(self, name))
        checks.whole("Settings(keep=...)", self.keep, least=1, hint="It is the number of hypotheses kept.")


RETROSPECTIVE = Settings()
ONLINE = Settings(noise=0.5)  # the variance seen so far is often smaller than that of the whole series


def build(settings: Settings, outputs: int = 1, block: int = 1, cyclic: bool = True) -> tuple[Bone, State]:
    """The method and its state before any datum, for a series of mean 0 and variance 1.

    Args:
        settings: What a segment looks like.
        outputs: Numbers read at a step; their changes are common.
        block: Readings that were taken together: hazard and slope are counted in them.
        cyclic: Leave room for the weights of a cycle.

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
    """Beliefs that segments born at each step start from, where centre and variance follow the data.

    Args:
        state: From `build`.
        settings: What a segment looks like.
        centre: (T, O) level expected of a segment born at each step.
        variance: (T,) variance of the series as known at each step.

    Returns:
        The state with the first of them, and all of them, with a leading axis T.

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


def readings(y: Any, block: int, period: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Rows of x and y for the method, with NaN behind the end so that few lengths are ever compiled.

    Args:
        y: Readings, (T, O), already taken in blocks.
        block: How many.
        period: In steps, or None.

    >>> X, Y = readings(np.ones((70, 1)), 1, None)
    >>> X.shape, Y.shape, np.isnan(Y).sum().item()
    ((128, 4), (128, 1), 58)
    """
    length = 64
    while length < len(y):
        length *= 2
    Y = np.full((length, y.shape[1]), np.nan)
    Y[: len(y)] = y
    return cycle_features(length, None if period is None else period / block), Y
