"""One tick of time and one datum: the path through the five choices, shared by all verbs of a method.

(M.2) proposes hypotheses, (M.3) gives each its prior, (A.1) conditions it through (M.1), (A.2) weighs them. A prior
with a second phase (`revise`) is served between: it sees how what was proposed scores, which a robust model bounds. So
are a prior that learns remembered data again (`replay`), a weighting that looks for the best hypothesis (`search`) or
shares a datum among all (`responsibilities`), and one that learns a gate (`update_gate`).
Everything here is traced; shapes are checked, values are not.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Bool, Float, PyTree

from filtax._xla import no_inline
from filtax.distributions import Mixture
from filtax.models import expected_log_likelihood, temper
from filtax.module import Module
from filtax.protocols import Hypotheses, Proposal, Update, over_hypotheses
from filtax.state import Info

__all__ = [
    "Datum",
    "Outcome",
    "admit",
    "conform",
    "laid_by",
    "look_ahead",
    "new_hypotheses",
    "propose",
    "tick",
    "whole",
]


class Datum(Module):
    """A row made safe: no NaN anywhere, what is missing or refused is masked."""

    x: Array | None
    y: Float[Array, " W"]
    mask: Bool[Array, " W"] | None
    shown: Float[Array, " W"]
    refused: Bool[Array, ""]


class Outcome(Module):
    """What a tick leaves: the bank, the forecast it had made, and what is reported."""

    hypotheses: Hypotheses
    forecast: PyTree
    info: Info
    ok: Bool[Array, ""]
    conditioning_ratio: Float[Array, ""]


def conform(method: Any, state: Any) -> Any:
    """Give the method the dtype of the belief and the layout of the parameters."""
    dtype = state.initial.mean.dtype
    cast = lambda leaf: leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.inexact) else leaf  # noqa: E731
    method = jax.tree.map(lambda leaf: cast(jnp.asarray(leaf)), method)
    return eqx.tree_at(lambda m: m.model, method, method.model.bind(state.layout))


def admit(method: Any, initial: PyTree, x: Array | None, y: Array, mask: Array | None, complete: bool) -> Datum:
    """Check shapes, cast, and turn NaN, infinity and impossible values into a mask and a flag."""
    dtype = initial.mean.dtype
    x = x if x is None or not jnp.issubdtype(x.dtype, jnp.floating) else x.astype(dtype)
    likelihood = method.model.likelihood
    outputs = method.model.outputs(initial.mean, x)
    width = likelihood.width(outputs)
    if y.size != width:
        shape = "()" if width == 1 else f"({width},)"
        give = f"y of shape {shape}" if width == outputs else f"the index of the class, from 0 to {outputs - 1}"
        raise ValueError(
            f"y has shape {y.shape} but the model predicts {width} number{'s' if width > 1 else ''} for this x; "
            f"give {give}."
        )
    if mask is not None and mask.shape != y.shape:
        raise ValueError(
            f"mask has shape {mask.shape} but y has shape {y.shape}; they must agree (True where observed)."
        )
    y = y.reshape(-1).astype(dtype)
    if complete:
        return Datum(x, y, None, y, jnp.zeros((), bool))
    observed = (y == y) if mask is None else (y == y) & mask.reshape(-1)  # NaN is not even itself
    possible = likelihood.admits(y, outputs)
    sound = jnp.ones((), bool)
    if x is not None and jnp.issubdtype(x.dtype, jnp.floating):
        sound = jnp.all(jnp.isfinite(x))
        x = jnp.where(jnp.isfinite(x), x, 0.0)
    sound = sound & jnp.all(possible | ~observed)
    taken = _both(observed, sound)
    return Datum(x, jnp.where(taken, y, 0.0), taken, jnp.where(taken, y, jnp.nan), ~sound)


@no_inline  # every consumer would otherwise recompute the mask
def _both(observed: Array, sound: Array) -> Array:
    return observed & sound


def laid_by(initial: PyTree) -> PyTree:
    """An initial belief as a state keeps it: of what is large and zero, nothing."""
    return initial.compress()


def whole(initial: PyTree) -> PyTree:
    """The initial belief of a state with all that the beliefs of its bank have."""
    return initial.decompress()


def new_hypotheses(
    method: Any, initial: PyTree, slots: int | None = None, like: Hypotheses | None = None
) -> Hypotheses:
    """The bank before any datum, of a given size or of the auxiliary variable's: all slots hold the initial belief.

    With `like`, what a part keeps of the data has room for data like those that this bank has seen.
    """
    initial, dtype = whole(initial), initial.mean.dtype
    grown = slots is not None and slots != method.auxiliary.slots
    aux, log_weight = method.auxiliary.start_of(slots, dtype) if grown else method.auxiliary.start(dtype)
    slots = log_weight.size
    for part in (method.auxiliary, method.weighting):
        if like is not None:
            aux = part.allocate_memory(aux, initial, *part.memory_shape(like.aux))
    return Hypotheses(jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (slots, *leaf.shape)), initial), aux, log_weight)


def propose(method: Any, hypotheses: Hypotheses, initial: PyTree, dt: Array | None) -> tuple[Proposal, PyTree]:
    """Let a tick pass: the hypotheses that may hold now, and their beliefs before the datum."""
    initial = whole(initial)
    proposed = method.auxiliary.expand(hypotheses, initial, dt)
    return proposed, _beliefs(method, proposed, initial, dt)


def _beliefs(method: Any, proposed: Proposal, initial: PyTree, dt: Array | None) -> PyTree:
    """(M.3) The beliefs before the datum."""
    return method.prior.replay(proposed, initial, dt, partial(_relearn, method))


def _relearn(method: Any, belief: PyTree, aux: PyTree, x: Array | None, y: Array, mask: Array, power: Array) -> PyTree:
    """One hypothesis after a remembered datum that counts as `power` of one; 0 leaves it bit for bit as it was."""
    model = temper(method.model, jnp.where(power > 0.0, power, 1.0))
    new = method.posterior.update(belief, model, x, y, mask, aux, None).belief
    return jax.tree.map(lambda now, then: jnp.where(power > 0.0, now, then), new, belief)


def _mixed(parts: PyTree, log_weight: Array) -> PyTree:
    """The forecast of the bank; a single hypothesis needs no mixture."""
    return jax.tree.map(lambda leaf: leaf[0], parts) if log_weight.size == 1 else Mixture(parts, log_weight)


def look_ahead(
    method: Any, hypotheses: Hypotheses, initial: PyTree, x: Array | None, dt: Array | None, plugin: bool
) -> PyTree:
    """Predictive distribution of the next y, with the transition, from every hypothesis."""
    proposed, beliefs = propose(method, hypotheses, initial, dt)
    look = lambda belief, aux: method.posterior.forecast(belief, method.model, x, aux, plugin)  # noqa: E731
    return _mixed(over_hypotheses(look, beliefs, proposed.hypotheses.aux), proposed.hypotheses.log_weight)


def tick(
    method: Any,
    hypotheses: Hypotheses,
    initial: PyTree,
    t: Array,
    datum: Datum,
    dt: Array | None,
    key: Array | None,
    age: Array,
) -> Outcome:
    """Let time pass, then condition on one datum; `age` counts the data since the stream began (anew)."""
    initial = whole(initial)
    proposed, beliefs = propose(method, hypotheses, initial, dt)
    foreseen = proposed.hypotheses.log_weight  # the forecast and its evidence are those of what was proposed
    absorb = lambda proposed, beliefs, power=None: _absorb(method, proposed, beliefs, t, datum, key, power)  # noqa: E731
    first = absorb(proposed, beliefs)
    ask = lambda beliefs: absorb(proposed, beliefs).log_score  # noqa: E731
    before, share = beliefs, None
    proposed, beliefs = method.prior.revise(proposed, beliefs, first.log_score, initial, ask)
    if method.weighting.searches:
        proposed, beliefs = _chosen(method, proposed, initial, datum, dt, absorb)
    if method.weighting.shares:
        share = _shares(method, proposed, beliefs, first, datum, absorb)
    update = first if beliefs is before and share is None else absorb(proposed, beliefs, share)
    made, total = _mixed(first.forecast, foreseen), _total(foreseen, first.log_evidence, datum.mask)
    if (
        hypotheses.log_weight.size == 1 and proposed.hypotheses.log_weight is hypotheses.log_weight
    ):  # the only one, as sure as before
        log_weight = hypotheses.log_weight
    else:
        log_weight = _reweigh(method, proposed, update, t, key) if share is None else jnp.log(share)
    hypotheses = Hypotheses(update.belief, proposed.hypotheses.aux, log_weight)
    ok = jnp.any(update.ok) & ~datum.refused
    info = _report(method, hypotheses, age, datum, made, total, update if share is None else first, ok)
    hypotheses = _noted(method, hypotheses, proposed.hypotheses.log_weight, update, datum)
    return Outcome(hypotheses, made, info, ok, jnp.max(update.conditioning_ratio))


def _chosen(
    method: Any, proposed: Proposal, initial: PyTree, datum: Datum, dt: Array | None, absorb: Callable
) -> tuple[Proposal, PyTree]:
    """(A.2) looks for the hypothesis under which the datum is most probable; a missing one changes nothing."""

    def replaced(aux: PyTree) -> Proposal:
        return Proposal(
            Hypotheses(proposed.hypotheses.belief, aux, proposed.hypotheses.log_weight),
            proposed.is_new,
            proposed.log_reset,
        )

    def score(aux: PyTree) -> Array:
        return absorb(replaced(aux), _beliefs(method, replaced(aux), initial, dt)).log_score

    best = method.weighting.search(method.auxiliary, proposed.hypotheses.aux, score)
    seen = jnp.ones((), bool) if datum.mask is None else jnp.any(datum.mask)
    best = jax.tree.map(lambda new, old: jnp.where(seen, new, old), best, proposed.hypotheses.aux)
    return replaced(best), _beliefs(method, replaced(best), initial, dt)


def _shares(
    method: Any, proposed: Proposal, beliefs: PyTree, trial: Update, datum: Datum, absorb: Callable
) -> Float[Array, " C"]:
    """(A.2) shares the datum among all hypotheses; each learns from its share of it."""

    def expected(share: Array) -> Array:
        after = absorb(proposed, beliefs, share)
        one = lambda belief, aux: expected_log_likelihood(method.model, belief, datum.x, datum.y, datum.mask, aux)  # noqa: E731
        return jnp.where(after.ok, over_hypotheses(one, after.belief, proposed.hypotheses.aux), -jnp.inf)

    return method.weighting.responsibilities(
        proposed.hypotheses.log_weight, jnp.where(trial.ok, trial.log_score, -jnp.inf), expected
    )


def _noted(method: Any, hypotheses: Hypotheses, before: Array, update: Update, datum: Datum) -> Hypotheses:
    """What parts keep of the datum besides the belief: weights of a gate, a memory."""
    aux, log_weight = hypotheses.aux, hypotheses.log_weight
    mask = jnp.ones(datum.y.shape, bool) if datum.mask is None else datum.mask
    if method.weighting.gates:
        score = jnp.where(update.ok, update.log_score, -jnp.inf)
        aux, log_weight = method.weighting.update_gate(aux, before, score, datum.y, mask)
    aux = method.auxiliary.store(aux, datum.x, datum.y, mask, partial(_relearn, method))
    return Hypotheses(hypotheses.belief, aux, log_weight)


def _absorb(
    method: Any,
    proposed: Proposal,
    beliefs: PyTree,
    t: Array,
    datum: Datum,
    key: Array | None,
    power: Float[Array, " C"] | None = None,
) -> Update:
    """(A.1) on every hypothesis. Each slot draws its own noise from the tick, so that chunks agree bit for bit.

    With `power`, the datum counts for each hypothesis as a share of one.
    """

    def one(belief: PyTree, aux: PyTree, key: Array | None, power: Array | None) -> Update:
        model = method.model if power is None else temper(method.model, power)
        return method.posterior.update(belief, model, datum.x, datum.y, datum.mask, aux, key)

    slots = proposed.hypotheses.log_weight.size
    keys = None if key is None else jax.random.split(jax.random.fold_in(key, t), slots)
    return over_hypotheses(one, beliefs, proposed.hypotheses.aux, keys, power)


def _reweigh(method: Any, proposed: Proposal, update: Update, t: Array, key: Any) -> Array:
    """(A.2) A hypothesis that failed scores -inf; if all did, the weights stay. Some draw who survives."""
    weigh, log_weight = method.weighting, proposed.hypotheses.log_weight
    if weigh.needs_key:
        weigh = partial(weigh, key=jax.random.fold_in(jax.random.fold_in(key, t), log_weight.size))
    if log_weight.size == 1:
        return weigh(log_weight)
    score = jnp.where(update.ok, update.log_score, -jnp.inf)
    scored = log_weight + (score if proposed.rounded is None else score + proposed.rounded)
    return weigh(jnp.where(jnp.any(scored > -jnp.inf), scored, log_weight))


def _total(log_weight: Array, log_evidence: Array, mask: Array | None) -> Array:
    """Evidence of the mixture; a missing datum adds exactly 0, which normalised weights alone would miss by an ulp."""
    if log_weight.size == 1:
        return log_evidence[0]
    total = logsumexp(log_weight + log_evidence)
    return total if mask is None else jnp.where(jnp.any(mask), total, 0.0)


def _report(
    method: Any,
    hypotheses: Hypotheses,
    age: Array,
    datum: Datum,
    made: PyTree,
    log_evidence: Array,
    update: Update,
    ok: Array,
) -> Info:
    """Fill `Info`; of several hypotheses, trust is the weighted mean and the run length that of the most probable.

    What is the same at every datum (a trust of 1, no change suspected) is None here.
    """
    change, runlength = method.auxiliary.report(hypotheses, age)
    trust = update.trust
    if trust is not None:
        trust = trust[0] if trust.size == 1 else jnp.sum(jnp.exp(hypotheses.log_weight) * trust)
    return Info(
        mean=made.mean,
        var=made.var,
        log_evidence=log_evidence,
        residual=method.model.likelihood.residual(datum.shown, made.mean),
        trust=trust,
        change_probability=change,
        runlength=runlength,
        ok=ok,
    )
