r"""One datum through an estimator: units, forecast, verdict, and the two filters. Everything here is traced.

The champion forecasts and learns; what its forecast calls an outlier it does not get to see, at the rate of
`alarms.acted_on`. From the first surprise on a challenger learns from scratch; if the surprises turn out to be a
change, it takes over. An elder learns what the champion learns and forgets nothing: where its forecasts fall behind,
the champion has followed a change already.

Axes: M features, H heads (labels only: one for each class, and some to spare).
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr
from jaxtyping import Array, PyTree

from filtax._step import filter_step, look_ahead
from filtax.beliefs import collapse
from filtax.bone import Bone
from filtax.distributions import Mixture, Normal, StudentT
from filtax.estimators import alarms
from filtax.estimators.elder import followed, studied
from filtax.estimators.memory import TOLD, Memory
from filtax.estimators.rivalry import Rivalry, outdone
from filtax.estimators.stretch import next_narrow, next_stretch, widened
from filtax.estimators.units import FAR as REACH
from filtax.estimators.units import Units, reexpressed
from filtax.state import State

__all__ = ["chances", "labelled", "measured", "moments", "scaled"]

KNOWN = 5.0  # data after which a forecast is held to what it says
RELEARN = 10.0  # data that the units of y are worth after a change
FAR = 1e100  # scales that a number is taken to be away at most: its square is a number too
WARM = 50.0  # data before which no change is told of: a filter that has not settled yet is surprised by itself


def _features(units: Units, x: Array) -> Array:
    return jnp.concatenate([jnp.ones(1, x.dtype), units.standard(x)])


def _both(
    method: Bone, state: State, carries: tuple, x: Array, ys: tuple, starting: Array, doubt: Array, heads: bool
) -> tuple[PyTree, PyTree, PyTree]:
    """The champion steps, and in doubt the challenger too: one loop of one or two rounds, so one compilation."""
    stack = lambda *leaves: jnp.stack(leaves)  # noqa: E731
    filters, data = jax.tree.map(stack, *carries), jnp.stack(ys)

    def step(carry: PyTree, y: Array, changed: Array) -> tuple:
        after, info, _ = filter_step(method, state.after(*carry), x, y, changed=changed)
        return after.carry, info

    step = jax.vmap(step, (0, 0, None)) if heads else step

    def turn(i: Array, held: tuple) -> tuple:
        filters, told = held
        carry, info = step(jax.tree.map(lambda leaf: leaf[i], filters), data[i], starting & (i == 1))
        seen = (info.trust, info.change_probability, info.runlength)
        told = jax.tree.map(lambda new, old: jnp.where(i == 0, new, old), seen, told)
        return jax.tree.map(lambda leaf, new: leaf.at[i].set(new), filters, carry), told

    shape = jax.eval_shape(step, jax.tree.map(lambda leaf: leaf[0], filters), data[0], starting)[1]
    empty = [jnp.zeros(part.shape, part.dtype) for part in (shape.trust, shape.change_probability, shape.runlength)]
    rounds = jnp.where(doubt, 2, 1)
    filters, told = jax.lax.fori_loop(0, rounds, turn, (filters, tuple(empty)))
    return *(jax.tree.map(lambda leaf, i=i: leaf[i], filters) for i in (0, 1)), told


def _moved(memory: Memory, inputs: Units, target: Units, heads: bool) -> tuple[PyTree, PyTree]:
    """Both filters in new units."""

    def one(belief: PyTree) -> PyTree:
        y = () if heads else (memory.target, target)
        return reexpressed(belief, memory.inputs, inputs, *y)

    def carry(whole: PyTree) -> PyTree:
        hypotheses = whole[0]
        each = jax.vmap(jax.vmap(one)) if heads else jax.vmap(one)
        return (eqx.tree_at(lambda b: b.belief, hypotheses, each(hypotheses.belief)), *whole[1:])

    return carry(memory.champion), carry(memory.challenger)


def moments(method: Bone, state: State, memory: Memory, x: Array) -> Array:
    """Mean and variance of y in its own units."""
    seen = _with_gaps(memory, x, _distribution(method, state, memory, x))
    centre, unit = _level(memory.target)
    return jnp.stack([centre + unit * seen.mean, unit * unit * seen.var])


def _distribution(method: Bone, state: State, memory: Memory, x: Array) -> PyTree:
    return look_ahead(method, memory.champion[0], state.initial, _features(memory.inputs, x), None, False)


def _with_gaps(memory: Memory, x: Array, law: PyTree) -> PyTree:
    """A forecast that knows what is missing: a feature that is absent counts as its mean, and may lie a scale off.

    Weights of features that go together are large and cancel: all gaps are worth what y itself varies by at most.
    """
    hypotheses, parts = memory.champion[0], law.parts if isinstance(law, Mixture) else law
    if not isinstance(parts, StudentT | Normal):
        return law
    weights = collapse(hypotheses.belief, hypotheses.log_weight).mean[1:]
    gaps = jnp.sum(jnp.where(jnp.isnan(x) & (memory.inputs.scale > 0.0), jnp.square(weights), 0.0))
    parts = _changed(parts, lambda location, spread: (location, spread + jnp.minimum(gaps, 1.0)))
    return Mixture(parts, law.log_weight) if isinstance(law, Mixture) else parts


def _changed(parts: PyTree, change: Callable) -> PyTree:
    """A Gaussian or Student-t of other location and squared scale."""
    location, spread, *rest = jax.tree.leaves(parts)
    return jax.tree.unflatten(jax.tree.structure(parts), [*change(location, spread), *rest])


def scaled(method: Bone, state: State, memory: Memory, x: Array) -> PyTree:
    """The forecast distribution in the units of y."""
    centre, unit = _level(memory.target)
    seen = _with_gaps(memory, x, _distribution(method, state, memory, x))
    parts = seen.parts if isinstance(seen, Mixture) else seen
    if not isinstance(parts, StudentT | Normal):
        raise ValueError(f"{method.name} has no forecast distribution of numbers in units of y.")
    parts = _changed(parts, lambda location, spread: (centre + unit * location, unit * unit * spread))
    return Mixture(parts, seen.log_weight) if isinstance(seen, Mixture) else parts


def _level(target: Units) -> tuple[Array, Array]:
    scale = target.scale[0]
    return target.mean[0], jnp.where(scale > 0.0, scale, 1.0)


def chances(method: Bone, state: State, memory: Memory, x: Array) -> Array:
    """Probability of yes under each head."""
    z = _features(memory.inputs, x)
    head = lambda hypotheses: look_ahead(method, hypotheses, state.initial, z, None, False).mean  # noqa: E731
    return jax.vmap(head)(memory.champion[0])


def measured(method: Bone, state: State, memory: Memory, row: Array) -> Memory:
    """Learn from one number."""
    M = memory.inputs.count.size
    x, y, limit, rate = row[:M], row[M], row[M + 1], row[M + 2]
    seen = ~jnp.isnan(y)
    law = _distribution(method, state, memory, x)
    forecast = _with_gaps(memory, x, law)
    old, size = _level(memory.target)
    finite = jnp.isfinite(y)
    shown = jnp.where(finite, jnp.clip((y - old) / size, -FAR, FAR), 0.0)
    below = forecast.cdf(shown)
    known = finite & (memory.target.count[0] >= KNOWN) & (memory.target.scale[0] > 0.0)
    tail = jnp.where(known, 2.0 * jnp.minimum(below, 1.0 - below), 1.0)
    fair, shy = (widened(tail, memory.narrow, count) for count in (jnp.inf, memory.target.count[0]))
    odd, outlier = (shy < rate) | jnp.isinf(y), (fair < jnp.minimum(rate, alarms.ACTED)) | jnp.isinf(y)
    event = tail < alarms.SURPRISE  # by the forecast itself: noise that grows is a change
    score = alarms.next_score(memory.score, event, jnp.asarray(alarms.SURPRISE, y.dtype), known)
    level, deviation = row[M + 4], row[M + 5]
    outside = tail < 2.0 * ndtr(-deviation * jnp.exp(memory.stretch))
    stretch = next_stretch(memory.stretch, outside, level, known)
    narrow = next_narrow(memory.narrow, tail, known & ~outlier)

    inputs, target = memory.inputs.after(x, REACH), memory.target.after(jnp.where(outlier, jnp.nan, y)[None])
    z = _features(inputs, x)
    centre, unit = _level(target)
    level = jnp.where(finite, jnp.clip((y - centre) / unit, -FAR, FAR), jnp.nan)
    data = (jnp.where(outlier, jnp.nan, level), level)
    carries = _moved(memory, inputs, target, heads=False)
    champion, challenger, told = _both(method, state, carries, z, data, memory.score == 0.0, score > 0.0, heads=False)
    told = (old + size * forecast.mean, size * size * forecast.var, shy, jnp.where(outlier, 0.0, told[0]), *told[1:])
    made = law.log_prob(shown) - jnp.log(size)  # the elder knows nothing of gaps

    def race(rival: Rivalry) -> tuple[PyTree, Array]:
        belief = reexpressed(rival.hypotheses, memory.inputs, inputs, memory.target, target)
        belief, law = studied(method, belief, z, data[0])
        return belief, law.log_prob(jnp.where(finite, level, 0.0)) - jnp.log(unit)

    rival, since = _raced(memory, race, made, known & ~outlier, limit)
    evidence = (score, rival, since, limit)
    after = _decided(memory, inputs, target, champion, challenger, evidence, odd, seen, told, heads=False)
    return eqx.tree_at(lambda new: (new.narrow, new.stretch), after, (narrow, stretch))


def labelled(method: Bone, state: State, memory: Memory, row: Array) -> Memory:
    """Learn from one label: every head is asked whether it is its own."""
    M = memory.inputs.count.size
    x, label, limit, rate, classes = row[:M], row[M], row[M + 1], row[M + 2], row[M + 3]
    seen = ~jnp.isnan(label)
    each = chances(method, state, memory, x)
    heads = jnp.arange(each.size).astype(x.dtype)
    inside = jnp.where(heads < classes, each, 0.0)
    shares = inside / jnp.where(classes > 0.0, jnp.maximum(jnp.sum(inside), 1e-300), 1.0)
    own = heads == label
    chance = jnp.sum(jnp.where(own, shares, 0.0))
    known = seen & (label < classes) & (classes > 1.0) & (memory.target.count[0] >= KNOWN)
    odd, outlier = (known & (chance < least) for least in (rate, jnp.minimum(rate, alarms.ACTED)))
    event = chance < jnp.max(shares)
    score = alarms.next_score(memory.score, event, 1.0 - jnp.max(shares), known)

    inputs, target = memory.inputs.after(x, REACH), memory.target.after(label[None])
    z = _features(inputs, x)
    hit = jnp.where(seen, own.astype(x.dtype), jnp.nan)
    data = (jnp.where(outlier, jnp.nan, hit), hit)
    carries = _moved(memory, inputs, target, heads=True)
    champion, challenger, told = _both(method, state, carries, z, data, memory.score == 0.0, score > 0.0, heads=True)
    used = (heads < classes) | own
    trust = jnp.where(jnp.any(own), jnp.sum(jnp.where(own, told[0], 0.0)), 1.0)
    change = jnp.max(jnp.where(used, told[1], 0.0))
    runs = jnp.min(jnp.where(used, told[2], jnp.iinfo(told[2].dtype).max))
    told = (chance, chance * (1.0 - chance), chance, jnp.where(outlier, 0.0, trust), change, runs)

    def race(rival: Rivalry) -> tuple[PyTree, Array]:
        one = lambda belief, y: studied(method, reexpressed(belief, memory.inputs, inputs), z, y)  # noqa: E731
        beliefs, law = jax.vmap(one)(rival.hypotheses, data[0])
        theirs = jnp.where(heads < classes, law.mean, 0.0)
        return beliefs, jnp.log(jnp.sum(jnp.where(own, theirs, 0.0)) / jnp.maximum(jnp.sum(theirs), 1e-300))

    rival, since = _raced(memory, race, jnp.log(chance), known & ~outlier, limit)
    evidence = (score, rival, since, limit)
    return _decided(memory, inputs, target, champion, challenger, evidence, odd, seen, told, heads=True)


def _raced(memory: Memory, race: Callable, made: Array, counts: Array, limit: Array) -> tuple[Rivalry | None, Array]:
    """One datum of the race with the elder: the race, and 0, or the data since a change that it shows."""
    if memory.rival is None:
        return None, jnp.zeros((), jnp.int32)
    belief, theirs = race(memory.rival)
    return outdone(memory.rival._replace(hypotheses=belief), jnp.where(counts, made - theirs, 0.0), 2.0 * limit)


def _decided(
    memory: Memory,
    inputs: Units,
    target: Units,
    champion: PyTree,
    challenger: PyTree,
    evidence: tuple,
    odd: Array,
    seen: Array,
    told: tuple,
    *,
    heads: bool,
) -> Memory:
    """If surprises turn out to be a change the challenger takes over; what is told of the datum."""
    score, rival, since, limit = evidence
    count = memory.target.count[0]
    taken, followed_it = score > limit, since > 0
    changed = taken | followed_it
    told_of = changed & ((count >= WARM) | jnp.isfinite(memory.regime))
    spell = jnp.where(memory.score == 0.0, 1.0, memory.spell + 1.0)
    start = jnp.where(followed_it, since.astype(spell.dtype), spell)
    champion = jax.tree.map(lambda new, old: jnp.where(taken, new, old), challenger, champion)
    quiet = jnp.where(odd, float(alarms.OUTLIER), 0.0)
    alarm = jnp.where(told_of, float(alarms.CHANGE), jnp.where(seen, quiet, float(alarms.MISSING)))
    told = (*told, alarm, jnp.where(told_of, start, 0.0))
    shown = jnp.stack([jnp.asarray(value, score.dtype).reshape(()) for value in told])
    at, sure = TOLD.index("runlength"), TOLD.index("change_probability")
    regime = jnp.where(told_of, start - 1.0, memory.regime + 1.0)
    shown = shown.at[at].set(jnp.where(changed, start - 1.0, jnp.minimum(regime, shown[at])))
    shown = shown.at[sure].set(jnp.where(told_of, jnp.maximum(shown[sure], -jnp.expm1(-limit)), shown[sure]))
    score = jnp.where(changed, 0.0, score)
    rival = None if rival is None else followed(rival, champion[0], changed, count, heads)
    target = target.younger(RELEARN, changed)
    return Memory(
        inputs, target, champion, challenger, score, spell, regime, rival, memory.narrow, memory.stretch, shown
    )
