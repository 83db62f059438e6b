"""One tick of time and one datum: the path through the five choices, shared by all verbs of a method.

(M.2) proposes hypotheses, (M.3) gives each its prior, (A.1) conditions it through (M.1), (A.2) weighs them. A prior
with a second phase (`settle`) is served between: it sees how what was proposed scores, which a robust model bounds.
Everything here is traced; shapes are checked, values are not.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Bool, Float, PyTree

from filtax.distributions import Mixture
from filtax.module import Module
from filtax.protocols import Bank, Proposed, Update, each
from filtax.state import Info

__all__ = ["Datum", "Outcome", "admit", "conform", "fresh_bank", "look_ahead", "tick"]


class Datum(Module):
    """A row made safe: no NaN anywhere, what is missing or refused is masked."""

    x: Array | None
    y: Float[Array, " W"]
    mask: Bool[Array, " W"] | None
    shown: Float[Array, " W"]
    refused: Bool[Array, ""]


class Outcome(Module):
    """What a tick leaves: the bank, the forecast it had made, and what is reported."""

    bank: Bank
    forecast: PyTree
    info: Info
    ok: Bool[Array, ""]
    strain: Float[Array, ""]


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
        raise ValueError(
            f"y has shape {y.shape} but the model predicts {width} number{'s' if width > 1 else ''} for this x; "
            f"give y of shape {'()' if width == 1 else (width,)}."
        )
    if mask is not None and mask.shape != y.shape:
        raise ValueError(
            f"mask has shape {mask.shape} but y has shape {y.shape}; they must agree (True where observed)."
        )
    y = y.reshape(-1).astype(dtype)
    if complete:
        return Datum(x, y, None, y, jnp.zeros((), bool))
    observed = ~jnp.isnan(y) if mask is None else ~jnp.isnan(y) & mask.reshape(-1)
    possible = likelihood.admits(y, outputs)
    sound = jnp.ones((), bool)
    if x is not None and jnp.issubdtype(x.dtype, jnp.floating):
        sound = jnp.all(jnp.isfinite(x))
        x = jnp.where(jnp.isfinite(x), x, 0.0)
    refused = ~sound | jnp.any(observed & ~possible)
    taken = observed & ~refused
    return Datum(x, jnp.where(taken, y, 0.0), taken, jnp.where(taken, y, jnp.nan), refused)


def fresh_bank(method: Any, initial: PyTree, slots: int | None = None) -> Bank:
    """The bank before any datum, of a given size or of the auxiliary variable's: all slots hold the initial belief."""
    dtype = initial.mean.dtype
    grown = slots is not None and slots != method.auxiliary.slots
    aux, log_weight = method.auxiliary.start_of(slots, dtype) if grown else method.auxiliary.start(dtype)
    slots = log_weight.size
    return Bank(jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (slots, *leaf.shape)), initial), aux, log_weight)


def _propose(method: Any, bank: Bank, initial: PyTree, dt: Array | None) -> tuple[Proposed, PyTree]:
    proposed = method.auxiliary.expand(bank, initial, dt)
    return proposed, method.prior(proposed, initial, dt)


def _mixed(parts: PyTree, log_weight: Array) -> PyTree:
    """The forecast of the bank; a single hypothesis needs no mixture."""
    return jax.tree.map(lambda leaf: leaf[0], parts) if log_weight.size == 1 else Mixture(parts, log_weight)


def look_ahead(method: Any, bank: Bank, initial: PyTree, x: Array | None, dt: Array | None, plugin: bool) -> PyTree:
    """Predictive distribution of the next y, with the transition, from every hypothesis."""
    proposed, beliefs = _propose(method, bank, initial, dt)
    look = lambda belief, aux: method.posterior.forecast(belief, method.model, x, aux, plugin)  # noqa: E731
    return _mixed(each(look, beliefs, proposed.bank.aux), proposed.bank.log_weight)


def tick(
    method: Any, bank: Bank, initial: PyTree, t: Array, datum: Datum, dt: Array | None, key: Array | None, age: Array
) -> Outcome:
    """Let time pass, then condition on one datum; `age` counts the data since the stream began (anew)."""
    proposed, beliefs = _propose(method, bank, initial, dt)
    foreseen = proposed.bank.log_weight  # the forecast and its evidence are those of what was proposed
    if hasattr(method.prior, "settle"):
        trial = _absorb(method, proposed, beliefs, t, datum, key)
        parts, evidence = trial.forecast, trial.log_evidence
        ask = lambda beliefs: _absorb(method, proposed, beliefs, t, datum, key).log_score  # noqa: E731
        proposed, beliefs = method.prior.settle(proposed, beliefs, trial.log_score, initial, ask)
        update = _absorb(method, proposed, beliefs, t, datum, key)
    else:
        update = _absorb(method, proposed, beliefs, t, datum, key)
        parts, evidence = update.forecast, update.log_evidence
    made, total = _mixed(parts, foreseen), _total(foreseen, evidence, datum.mask)
    bank = Bank(update.belief, proposed.bank.aux, _reweigh(method, proposed.bank.log_weight, update))
    ok = jnp.any(update.ok) & ~datum.refused
    info = _report(method, bank, age, datum, made, total, update, ok)
    return Outcome(bank, made, info, ok, jnp.max(update.strain))


def _absorb(method: Any, proposed: Proposed, beliefs: PyTree, t: Array, datum: Datum, key: Array | None) -> Update:
    """(A.1) on every hypothesis. Each slot draws its own noise from the tick, so that chunks agree bit for bit."""

    def one(belief: PyTree, aux: PyTree, key: Array | None) -> Update:
        return method.posterior.update(belief, method.model, datum.x, datum.y, datum.mask, aux, key)

    slots = proposed.bank.log_weight.size
    keys = None if key is None else jax.random.split(jax.random.fold_in(key, t), slots)
    return each(one, beliefs, proposed.bank.aux, keys)


def _reweigh(method: Any, log_weight: Array, update: Update) -> Array:
    """(A.2) A hypothesis that failed scores -inf; if all did, the weights stay."""
    if log_weight.size == 1:
        return method.weighting(log_weight)
    scored = log_weight + jnp.where(update.ok, update.log_score, -jnp.inf)
    return method.weighting(jnp.where(jnp.any(scored > -jnp.inf), scored, log_weight))


def _total(log_weight: Array, log_evidence: Array, mask: Array | None) -> Array:
    """Evidence of the mixture; a missing datum adds exactly 0, which normalised weights alone would miss by an ulp."""
    if log_weight.size == 1:
        return log_evidence[0]
    total = logsumexp(log_weight + log_evidence)
    return total if mask is None else jnp.where(jnp.any(mask), total, 0.0)


def _report(
    method: Any, bank: Bank, age: Array, datum: Datum, made: PyTree, log_evidence: Array, update: Update, ok: Array
) -> Info:
    """Fill `Info`; of several hypotheses, trust is the weighted mean and the run length that of the most probable."""
    change, runlength = method.auxiliary.report(bank, age)
    trust = update.trust[0] if update.trust.size == 1 else jnp.sum(jnp.exp(bank.log_weight) * update.trust)
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
