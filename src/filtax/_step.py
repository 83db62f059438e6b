"""One time step and one datum (algo:bone-step): expand, predict, condition, revise, weigh, report.

Everything here is traced: shapes are static, and a numerical failure is a value (`ok` False), never an exception.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Bool, Float, PyTree

from filtax._xla import no_inline
from filtax.distributions import Mixture
from filtax.models import expected_log_likelihood, temper
from filtax.protocols import Auxiliary, Hypotheses, Module, Prior, Proposal, Update, over_hypotheses, with_fields
from filtax.state import Info, State, certain, start_hypotheses


def filter_step(
    method: Any,
    state: State,
    x: Array | None,
    y: Array,
    mask: Array | None = None,
    dt: Array | None = None,
    changed: Array | None = None,
    *,
    complete: bool = False,
) -> tuple[State, Info, PyTree]:
    """Let one step pass, then condition on one datum.

    Args:
        method: A `Bone` after `cast_and_bind`.
        state: Before the step.
        x: Features, as for `Bone.step`.
        y: The datum; a missing one changes no belief, yet time passes.
        mask: True where y is observed.
        dt: Length of the step.
        changed: True at a known change.
        complete: As for `Bone.scan`.

    Returns:
        The state after the datum, what the datum showed, and the distribution that y was forecast with.
    """
    if changed is not None:
        state = _restart(method, state, changed)
    initial = state.initial.decompress()
    datum = sanitize(method, initial, x, y, mask, complete)
    dt = None if dt is None else dt.astype(initial.mean.dtype)

    # (M.2) expand, (M.3) predict: which hypotheses may hold now, and what each believes before the datum
    proposal, beliefs = propose(method, state.hypotheses, initial, dt)

    # (A.1) condition: each hypothesis forecasts the datum, then absorbs it, through the model (M.1)
    step = _Conditioning(method, initial, datum, dt, state.key, state.t)
    first = step.condition(proposal, beliefs)

    # (M.3), (A.2) revise: a few priors and weightings depend on how well the datum was forecast
    revised, update, share = proposal, first, None
    if type(method.prior).revise is not Prior.revise or method.weighting.searches or method.weighting.shares:
        revised, update, share = step.revise(proposal, beliefs, first)

    # (A.2) weigh: Bayes' rule over hypotheses, unless a weighting has found the shares itself
    log_weight = step.weigh(state.hypotheses, revised, update) if share is None else jnp.log(share)
    hypotheses = Hypotheses(update.belief, revised.hypotheses.aux, log_weight)

    # report: forecast and evidence are those of the proposal, made before y was seen
    forecast = _mixture(first.forecast, proposal.hypotheses.log_weight)
    info = _report(method, state, hypotheses, datum, forecast, proposal, first, update)
    ok = jnp.asarray(info.ok)
    refused = state.refused + (~ok).astype(state.refused.dtype)
    ratio = jnp.nan_to_num(jnp.max(update.conditioning_ratio), nan=0.0)
    ratio = jnp.maximum(state.conditioning_ratio, ratio)
    if type(method.auxiliary).store is not Auxiliary.store or method.weighting.gates:
        hypotheses = step.store(hypotheses, revised, update)
    after = with_fields(state, hypotheses=hypotheses, t=state.t + 1, refused=refused, conditioning_ratio=ratio)
    return after, info, forecast


class Datum(Module):
    """A row without NaN or infinite features; `mask` is True where y was observed and is to be used.

    `reported` is y with NaN where it is not used. `mask` is None where a complete stream was promised.
    """

    x: Array | None
    y: Float[Array, " W"]
    mask: Bool[Array, " W"] | None
    reported: Float[Array, " W"]
    refused: Bool[Array, ""]


def cast_and_bind(method: Any, state: State) -> Any:
    """The method with its numbers in the dtype of the belief, and its model bound to the layout of the parameters."""
    dtype = state.initial.mean.dtype
    method = jax.tree.map(
        lambda leaf: jnp.asarray(leaf, dtype if jnp.issubdtype(jnp.result_type(leaf), jnp.inexact) else None), method
    )
    return method if state.layout is None else with_fields(method, model=method.model.bind(state.layout))


def cast_features(x: Array | None, dtype: Any) -> Array | None:
    """Floating features in the dtype of the belief; whole numbers, such as indices, stay what they are."""
    return x if x is None or not jnp.issubdtype(x.dtype, jnp.floating) else x.astype(dtype)


def sanitize(method: Any, initial: PyTree, x: Array | None, y: Array, mask: Array | None, complete: bool) -> Datum:
    """Check shapes, cast, and turn NaN, infinite features and impossible values into a mask and a flag."""
    dtype = initial.mean.dtype
    x = cast_features(x, dtype)
    likelihood, outputs = method.model.likelihood, method.model.outputs(initial.mean, x)
    if y.size != (width := likelihood.width(outputs)) or (mask is not None and mask.shape != y.shape):
        _refuse_shapes(y, mask, width, outputs)
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
    used = _both(observed, sound)
    return Datum(x, jnp.where(used, y, 0.0), used, jnp.where(used, y, jnp.nan), ~sound)


_both = no_inline(jnp.logical_and)  # otherwise XLA recomputes the mask for every consumer


def _refuse_shapes(y: Array, mask: Array | None, width: int, outputs: int) -> None:
    if y.size != width:
        shape = "()" if width == 1 else f"({width},)"
        give = f"y of shape {shape}" if width == outputs else f"the index of the class, from 0 to {outputs - 1}"
        raise ValueError(
            f"y has shape {y.shape} but the model predicts {width} number{'s' if width > 1 else ''} for this x; "
            f"give {give}."
        )
    assert mask is not None
    raise ValueError(f"mask has shape {mask.shape} but y has shape {y.shape}; they must agree (True where observed).")


def _restart(method: Any, state: State, changed: Array) -> State:
    """The state at a known change: every hypothesis is reset."""
    new = start_hypotheses(method, state.initial, state.hypotheses.log_weight.size, like=state.hypotheses)
    hypotheses = jax.tree.map(lambda new, old: jnp.where(changed, new, old), new, state.hypotheses)
    began = jnp.where(changed, state.t, state.began)
    return state.after(hypotheses, state.t, began, state.refused, state.conditioning_ratio)


def propose(method: Any, hypotheses: Hypotheses, initial: PyTree, dt: Array | None) -> tuple[Proposal, PyTree]:
    """Hypotheses (M.2) and their beliefs (M.3) after a step and before its datum; `initial` is not compressed."""
    proposal = method.auxiliary.expand(hypotheses, initial, dt)
    return proposal, method.prior.replay(proposal, initial, dt, partial(_relearn, method))


def _relearn(method: Any, belief: PyTree, aux: PyTree, x: Array | None, y: Array, mask: Array, power: Array) -> PyTree:
    """One belief after a remembered datum that counts as `power` of one; 0 leaves it bit for bit as it was."""
    model = temper(method.model, jnp.where(power > 0.0, power, 1.0))
    new = method.posterior.update(belief, model, x, y, mask, aux, None).belief
    return jax.tree.map(lambda new, old: jnp.where(power > 0.0, new, old), new, belief)


def look_ahead(
    method: Any, hypotheses: Hypotheses, initial: PyTree, x: Array | None, dt: Array | None, plugin: bool = False
) -> PyTree:
    """Predictive distribution of the next y, transition included; `plugin` uses the means of the beliefs alone."""
    dtype = initial.mean.dtype
    x, dt = cast_features(x, dtype), None if dt is None else dt.astype(dtype)
    proposal, beliefs = propose(method, hypotheses, initial.decompress(), dt)

    def one(belief: PyTree, aux: PyTree) -> PyTree:
        return method.posterior.forecast(belief, method.model, x, aux, plugin)

    return _mixture(over_hypotheses(one, beliefs, proposal.hypotheses.aux), proposal.hypotheses.log_weight)


def _mixture(parts: PyTree, log_weight: Array) -> PyTree:
    """The forecast of all hypotheses; a single one needs no mixture."""
    return jax.tree.map(lambda leaf: leaf[0], parts) if log_weight.size == 1 else Mixture(parts, log_weight)


class _Conditioning(NamedTuple):
    """What every phase after the proposal needs: the method, the datum and the randomness of this step."""

    method: Any
    initial: PyTree
    datum: Datum
    dt: Array | None
    key: Array | None
    t: Array

    def condition(self, proposal: Proposal, beliefs: PyTree, power: Float[Array, " C"] | None = None) -> Update:
        """(A.1) Each hypothesis absorbs the datum, or a share `power` of it.

        Each slot draws its noise from the step, so that a stream in chunks gives the same numbers bit for bit.
        """
        method, datum, slots = self.method, self.datum, proposal.hypotheses.log_weight.size
        keys = None if self.key is None else jax.random.split(jax.random.fold_in(self.key, self.t), slots)

        def one(belief: PyTree, aux: PyTree, key: Array | None, power: Array | None) -> Update:
            model = method.model if power is None else temper(method.model, power)
            return method.posterior.update(belief, model, datum.x, datum.y, datum.mask, aux, key)

        return over_hypotheses(one, beliefs, proposal.hypotheses.aux, keys, power)

    def revise(
        self, proposal: Proposal, beliefs: PyTree, first: Update
    ) -> tuple[Proposal, Update, Float[Array, " C"] | None]:
        """(M.3) and (A.2) once the scores are known; what was given is returned if nothing changes."""
        weighting, before, share = self.method.weighting, beliefs, None

        def ask(beliefs: PyTree) -> Array:
            return self.condition(proposal, beliefs).log_score

        revised, beliefs = self.method.prior.revise(proposal, beliefs, first.log_score, self.initial, ask)
        if weighting.searches:
            revised, beliefs = self._search(revised)
        if weighting.shares:
            expected = partial(self._expected, revised, beliefs)
            score = jnp.where(first.ok, first.log_score, -jnp.inf)
            share = weighting.responsibilities(revised.hypotheses.log_weight, score, expected)
        if revised is proposal and beliefs is before and share is None:
            return revised, first, None
        update = self.condition(revised, beliefs, share)  # of a share of the datum; its trust is that of the whole
        return revised, update if share is None else with_fields(update, trust=first.trust), share

    def _search(self, proposal: Proposal) -> tuple[Proposal, PyTree]:
        """The auxiliary value under which the datum is most probable; a missing datum changes nothing."""
        old = proposal.hypotheses.aux

        def beliefs(aux: PyTree) -> tuple[Proposal, PyTree]:
            replaced = with_fields(proposal, hypotheses=with_fields(proposal.hypotheses, aux=aux), rounded=None)
            relearn = partial(_relearn, self.method)
            return replaced, self.method.prior.replay(replaced, self.initial, self.dt, relearn)

        def score(aux: PyTree) -> Array:
            return self.condition(*beliefs(aux)).log_score

        best = self.method.weighting.search(self.method.auxiliary, old, score)
        observed = jnp.ones((), bool) if self.datum.mask is None else jnp.any(self.datum.mask)
        return beliefs(jax.tree.map(lambda new, old: jnp.where(observed, new, old), best, old))

    def _expected(self, proposal: Proposal, beliefs: PyTree, share: Array) -> Array:
        """Expected log-likelihood under each hypothesis that has learned from its share of the datum."""
        after, datum = self.condition(proposal, beliefs, share), self.datum

        def one(belief: PyTree, aux: PyTree) -> Array:
            return expected_log_likelihood(self.method.model, belief, datum.x, datum.y, datum.mask, aux)

        return jnp.where(after.ok, over_hypotheses(one, after.belief, proposal.hypotheses.aux), -jnp.inf)

    def weigh(self, before: Hypotheses, proposal: Proposal, update: Update) -> Float[Array, " C"]:
        """(A.2) Posterior log weights; a hypothesis that failed scores -inf, and if all did the weights stay."""
        weighting, log_weight = self.method.weighting, proposal.hypotheses.log_weight
        if log_weight.size == 1 and log_weight is before.log_weight:  # the only hypothesis, as certain as before
            return log_weight
        if weighting.needs_key and self.key is not None:
            key = jax.random.fold_in(jax.random.fold_in(self.key, self.t), log_weight.size)
            weighting = partial(weighting, key=key)
        if log_weight.size == 1:
            return weighting(log_weight)
        score = jnp.where(update.ok, update.log_score, -jnp.inf)
        scored = log_weight + (score if proposal.rounded is None else score + proposal.rounded)
        return weighting(jnp.where(jnp.any(scored > -jnp.inf), scored, log_weight))

    def store(self, hypotheses: Hypotheses, proposal: Proposal, update: Update) -> Hypotheses:
        """Hypotheses with what parts store of the datum besides the belief: a gate's weights, a memory."""
        method, datum = self.method, self.datum
        aux, log_weight = hypotheses.aux, hypotheses.log_weight
        mask = jnp.ones(datum.y.shape, bool) if datum.mask is None else datum.mask
        if method.weighting.gates:
            score = jnp.where(update.ok, update.log_score, -jnp.inf)
            before = proposal.hypotheses.log_weight
            aux, log_weight = method.weighting.update_gate(aux, before, score, datum.y, mask)
        aux = method.auxiliary.store(aux, datum.x, datum.y, mask, partial(_relearn, method))
        return Hypotheses(hypotheses.belief, aux, log_weight)


def _report(
    method: Any,
    state: State,
    hypotheses: Hypotheses,
    datum: Datum,
    forecast: PyTree,
    proposal: Proposal,
    first: Update,
    update: Update,
) -> Info:
    """Fill `Info`: trust is averaged over hypotheses, the run length is that of the most probable one."""
    default, log_weight = certain(state.initial.mean.dtype), proposal.hypotheses.log_weight
    change, runlength = method.auxiliary.report(hypotheses, state.t + 1 - state.began)
    trust = update.trust
    if trust is None:
        trust = default.trust
    else:
        trust = trust[0] if trust.size == 1 else jnp.sum(jnp.exp(hypotheses.log_weight) * trust)
    if log_weight.size == 1:
        log_evidence = first.log_evidence[0]
    else:  # of a missing datum exactly 0, which the log of summed weights need not be
        log_evidence = logsumexp(log_weight + first.log_evidence)
        log_evidence = log_evidence if datum.mask is None else jnp.where(jnp.any(datum.mask), log_evidence, 0.0)
    return Info(
        mean=forecast.mean,
        var=forecast.var,
        log_evidence=log_evidence,
        residual=method.model.likelihood.residual(datum.reported, forecast.mean),
        trust=trust,
        change_probability=default.change_probability if change is None else change,
        runlength=runlength,
        ok=jnp.any(update.ok) & ~datum.refused,
    )


def scan_over(body: Callable, carry: PyTree, rows: PyTree) -> tuple[PyTree, PyTree]:
    """As `jax.lax.scan`; in a `jax.shard_map`, what is carried may come to differ between devices."""
    axes = frozenset().union(*map(_varying, jax.tree.leaves((carry, rows))))

    def differing(value: Array) -> Array:
        alike = tuple(sorted(axes - _varying(value)))
        return jax.lax.pcast(value, alike, to="varying") if alike else value

    return jax.lax.scan(body, jax.tree.map(differing, carry) if axes else carry, rows)


def _varying(value: Any) -> frozenset[str]:
    """Axes of a `jax.shard_map` along which a value may differ: `.vma` in some versions, `.mat.varying` in others."""
    aval = jax.typeof(value)
    return frozenset(getattr(getattr(aval, "mat", aval), "varying", getattr(aval, "vma", ())))
