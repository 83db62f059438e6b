r"""The posterior of when standardised errors stopped being those of a calibrated forecast.

As long as forecasts are calibrated, the n-th error e has density $p_0$, a Student t with n degrees of freedom. With
probability h a row begins a disturbance. Until it ends, with probability g a row, $e \sim N(\mu, \sigma^2)$, where
$\mu \mid \sigma^2 \sim N(0, \sigma^2/k)$ and $\sigma^2 \sim IG(a, b)$. The estimate b/a is kept at least 1, so
quieter noise is no disturbance. That is the run-length posterior of NIG + RL[K]-PR with one more hypothesis, of no
disturbance. Its weights $w_0$, and $w_s$ of a disturbance since s, are

    w_0 <- [(1 - h) w_0 + g sum_s w_s] p_0(e),    w_s <- (1 - g) w_s p(e | e_s .. e_(t-1)),    w_t = h w_0 p(e),

divided by their sum. An outlier is a disturbance that ends at once; a change is one that lasts.

Errors are standardised by their running mean and root mean square, which begin with the interval that was issued. The
interval of a row itself would not do: it adapts within a few rows, and hides the change. Neighbours with correlation r
carry less evidence than independent errors: densities are taken to the power (1 - r)/(1 + r), where r is that of
undisturbed errors.

Axes: S streams of errors, K disturbances, of which the least probable gives way to the newest. Memory and cost: O(S K)
a row. Thesis: eq:transition-rl-markov, algo:rl-pr-step.
"""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from filtax.protocols import pytree

BLOCK = 64  # rows of one call of the compiled loop
SLOTS = 32  # K
HAZARD, RECOVERY = 1e-3, 1e-3  # h, g
PRECISION, SHAPE, RATE = 0.1, 1.0, 1.0  # k, a, b
LEAST = 4  # errors of a disturbance before it is a change
MEMORY, PRIOR = 300.0, 10.0  # errors in the running moments, and how many of them an interval counts for at most
BOUND, EARLY = 3.0, 15.0  # errors enter the moments clipped at 3 + 15/n scales
FARTHEST = 1e4  # standardised errors: the posterior takes no larger one


@pytree
class State:
    """The hypotheses, and the moments of the errors.

    Attributes:
        calm: Probability that nothing is disturbed.
        weight: (K,) of the disturbances; 0 where a slot is unused.
        age: (K,) rows since they began, missing ones included.
        rows: (K,) errors since they began.
        number, total, squares: (K,) effective number, sum and sum of squares of these errors.
        count: Errors so far.
        seen: Those since the last declared change.
        centre, square, product: Running mean, and centred mean square and product of neighbours.
        last: The last error, centred.
    """

    calm: Float[Array, ""]
    weight: Float[Array, " K"]
    age: Float[Array, " K"]
    rows: Float[Array, " K"]
    number: Float[Array, " K"]
    total: Float[Array, " K"]
    squares: Float[Array, " K"]
    count: Float[Array, ""]
    seen: Float[Array, ""]
    centre: Float[Array, ""]
    square: Float[Array, ""]
    product: Float[Array, ""]
    last: Float[Array, ""]

    @classmethod
    def start(cls) -> "State":
        """No errors so far."""
        zero, none = jnp.zeros(()), jnp.zeros(SLOTS)
        return cls(zero + 1.0, none, none, none, none, none, none, zero, zero, zero, zero + 1.0, zero, zero)


def learn(state: State, error: Array, scale: Array, centre: Array, least: Array, window: Array) -> State:
    """The posterior after one row.

    Args:
        state: The posterior before it.
        error: y minus its forecast; NaN where either is missing.
        scale: Of such errors, by the interval that was issued.
        centre: Expected error: middle of the issued interval minus the forecast.
        least: The smallest scale they may have.
        window: Errors after which a disturbance that was no change is dropped.
    """
    first = state.seen == 0.0
    centre, square = jnp.where(first, centre, state.centre), jnp.where(first, scale**2, state.square)
    square = jnp.maximum(square, least**2)
    scale = jnp.sqrt(square)
    z = jnp.clip((error - centre) / scale, -FARTHEST, FARTHEST)
    correlation = jnp.clip(state.product / square, 0.0, 0.99)
    share = (1.0 - correlation) / (1.0 + correlation)

    new = jnp.arange(SLOTS) == jnp.argmin(state.weight)
    sums = jnp.stack([state.rows, state.number, state.total, state.squares])
    rows, number, total, squares = jnp.where(new, 0.0, sums)
    log_calm = share * _log_student(z, state.count + 1.0, 1.0)
    log_weight = share * _log_predictive(number, total, squares, z)
    weight = jnp.where(new, HAZARD * state.calm, (1.0 - RECOVERY) * state.weight)
    over = jnp.where(rows >= window, weight, 0.0)
    calm, weight = (1.0 - HAZARD) * state.calm + RECOVERY * jnp.sum(state.weight) + jnp.sum(over), weight - over
    top = jnp.maximum(jnp.max(log_weight), log_calm)
    calm, weight = calm * jnp.exp(log_calm - top), weight * jnp.exp(log_weight - top)
    mass = calm + jnp.sum(weight)

    bound = BOUND + EARLY / (state.count + 1.0)
    bounded = scale * jnp.clip(z, -bound, bound)
    seen = jnp.where(first, jnp.minimum(state.count, PRIOR) + 1.0, state.seen) + 1.0
    rate = jnp.maximum(1.0 / seen, 1.0 / MEMORY)
    after = State(
        calm / mass,
        weight / mass,
        jnp.where(new, 0.0, state.age + 1.0),
        rows + 1.0,
        number + share,
        total + share * z,
        squares + share * z**2,
        state.count + 1.0,
        seen,
        centre + rate * bounded,
        square + rate * (bounded**2 - square),
        state.product + rate * state.calm * (bounded * state.last - state.product),
        bounded,
    )
    return jax.tree.map(lambda a, b: jnp.where(jnp.isnan(error), b, a), after, replace(state, age=state.age + 1.0))


def _log_predictive(number: Array, total: Array, squares: Array, error: Array) -> Array:
    """Log density of the next error of a disturbance, a Student t with 2 a_n degrees of freedom."""
    precision, shape = PRECISION + number, SHAPE + 0.5 * number
    mean = total / precision
    rate = jnp.maximum(RATE + 0.5 * (squares - total * mean), shape)
    return _log_student(error - mean, 2.0 * shape, jnp.sqrt(rate / shape * (1.0 + 1.0 / precision)))


def _log_student(error: Array, freedom: Array, scale: Array | float) -> Array:
    """Log density of a Student t; its constant by Stirling's series for the ratio of gamma functions, to 1e-9."""
    half = 0.5 * freedom
    far = half + 4.0
    product = jnp.ones_like(half)
    for i in range(4):
        product = product * (half + i) / (half + i + 0.5)
    power = 1.0 / far**2
    series = (-1.0 / 8.0 + power * (1.0 / 192.0 + power * (-1.0 / 640.0 + power * (17.0 / 14336.0)))) / far
    constant = jnp.log(product * jnp.sqrt(far / (np.pi * freedom)) / scale) + series
    return constant - (half + 0.5) * jnp.log1p((error / scale) ** 2 / freedom)


@pytree
class Watch:
    """What is known of one series.

    Attributes:
        states: S posteriors: of the errors of the forecasts, and of those of a slow mean if there is one.
        changed: 1 while a disturbance goes on that was declared a change, else 0.
        since: Rows since the last change began, or since the first row.
    """

    states: State
    changed: Float[Array, ""]
    since: Float[Array, ""]

    @classmethod
    def start(cls, S: int) -> "Watch":
        """Nothing so far."""
        states = jax.tree.map(lambda leaf: jnp.stack([leaf] * S), State.start())
        return cls(states, jnp.zeros(()), jnp.zeros(()) - 1.0)


def step(watch: Watch, row: Float[Array, "5 S"], threshold: Array) -> tuple[Watch, Float[Array, " 5"]]:
    """Learn a row, and declare a change, once, when a disturbance of enough rows is probable.

    Returns:
        The next state; probability of a disturbance, run length, change, rows back to its start, whether it goes on.
    """
    states = jax.vmap(learn)(watch.states, *row)
    probability = jnp.max(jnp.sum(states.weight, axis=1))
    lasting = jnp.where(states.rows >= LEAST, states.weight, 0.0)
    change = (jnp.max(jnp.sum(lasting, axis=1)) > threshold) & (watch.changed == 0.0)
    since = jnp.where(change, jnp.ravel(states.age)[jnp.argmax(lasting)], watch.since + 1.0)
    changed = jnp.where(change | ((watch.changed > 0.0) & (probability > 0.5)), 1.0, 0.0)
    runlength = jnp.where(probability > 0.5, jnp.ravel(states.age)[jnp.argmax(states.weight)], since)
    states = replace(states, seen=jnp.where(change, 0.0, states.seen))
    return Watch(states, changed, since), jnp.stack([probability, runlength, change.astype(float), since, changed])


@jax.jit
def block(packed: Array, rows: Array, count: Array, threshold: Array) -> tuple[Array, Array]:
    """The first `count` rows of a block from a packed state to a packed state; one row or 64 are one program."""
    leaves, tree = jax.tree.flatten(jax.eval_shape(partial(Watch.start, rows.shape[-1])))
    ends = np.cumsum([leaf.size for leaf in leaves])
    parts = [packed[end - leaf.size : end].reshape(leaf.shape) for end, leaf in zip(ends, leaves, strict=True)]

    def turn(i: Array, carry: tuple[Watch, Array]) -> tuple[Watch, Array]:
        watch, seen = step(carry[0], rows[i], threshold)
        return watch, carry[1].at[i].set(seen)

    watch, seen = jax.lax.fori_loop(0, count, turn, (jax.tree.unflatten(tree, parts), jnp.zeros((BLOCK, 5))))
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(watch)]), seen


@cache
def packed_start(S: int) -> np.ndarray:
    """The packed state before the first row."""
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(Watch.start(S))]).astype(np.float64)
