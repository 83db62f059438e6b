"""Which parts go together: impossible combinations are refused when a method is built, before anything runs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from filtax.checks import concrete
from filtax.methods._format import spell_auxiliary
from filtax.models import Model
from filtax.protocols import Auxiliary, Dynamics, Posterior, Prior, Weighting

__all__ = ["check_gap", "check_numbers", "check_parts", "check_support"]

ROLES = {"model": Model, "auxiliary": Auxiliary, "prior": Prior, "posterior": Posterior, "weighting": Weighting}
RANKS = {"q": 1, "rate": 1, "shrink": 1, "b": 1, "F": 2, "root": 2}  # of the arrays that a drift may hold, at most
RESETS = {"PR": (), "MMPR": ("moment_match",), "OUPR": ("mix",), "MCI": ("inflate",)}  # and what they ask of a belief
DRIFTS = {"Static": (), "OU": ("mix",)}


def check_parts(method: Any) -> None:
    """Refuse parts that cannot work together."""
    for name, role in ROLES.items():
        part = getattr(method, name)
        if not isinstance(part, role):
            raise ValueError(
                f"Bone({name}=...) got {part!r:.40}, which is no {role.__name__} of filtax; a method needs all five "
                "parts, see filtax.method for ready ones."
            )
    model, posterior = method.model, method.posterior
    if not isinstance(method.prior.dynamics, Dynamics):
        raise ValueError(
            f"method(prior=...) must come from filtax.priors, such as static(), got {method.prior.dynamics!r:.40}."
        )
    if posterior.needs_covariance and not hasattr(model.likelihood, "covariance"):
        raise ValueError(
            f"{posterior.name}: the noise variance can only be learned under Gaussian noise, not "
            f"{type(model.likelihood).__name__}; give the model noise=1.0."
        )
    if posterior.weighs_data and hasattr(model.likelihood, "trust"):
        raise ValueError(
            f"{posterior.name}: it weighs each datum itself, and so does {model.likelihood.trust.name}; give the plain "
            "model, or use LG."
        )
    if posterior.likelihood_needs and not model.likelihood.plain.normalised:
        raise ValueError(
            f"{posterior.name}: a loss has no distribution of y, by which members are weighed; give the model a "
            "likelihood such as gaussian(noise), or use LG."
        )
    for part in (method.prior.dynamics, method.prior):
        for operation in part.needs:
            for family in _moved(posterior, operation):
                if not hasattr(family, operation):
                    raise ValueError(
                        f"{posterior.name}+...-{part.name}: a {family.__name__} belief cannot move that way "
                        f"(no `{operation}`); use {_advice(method, part)}."
                    )
    _check_transition(method)


def _moved(posterior: Any, operation: str) -> tuple[type, ...]:
    """Families that an operation is asked of: those it works on, and those inside that blocks hand it on to."""
    return (*posterior.families, *(() if operation == "blockwise" else posterior.inner_families))


def _check_transition(method: Any) -> None:
    """Refuse a prior that does not suit the auxiliary variable."""
    auxiliary, prior = method.auxiliary, method.prior
    newborns = auxiliary.regimes_end
    if prior.greedy and newborns and auxiliary.keep != 1:
        raise ValueError(
            f"{spell_auxiliary(auxiliary)}-{prior.name}: {prior.name} decides between going on and starting anew, so "
            f"there is one hypothesis; use {auxiliary.name}[1]-{prior.name}."
        )
    if prior.name == "OUPR" and not newborns:
        raise ValueError(f"{auxiliary.name}-OUPR: OUPR needs a hazard; use RL[1]-OUPR(hazard=0.01).")
    _check_use(method)
    if prior.of_parent and not auxiliary.knows_parent:
        raise ValueError(
            f"{auxiliary.name}-{prior.name}: a change must know whom it happened to; use CPL[K] or CPT[K]."
        )
    _check_members(method)
    if auxiliary.subsets:
        return
    if newborns and method.weighting.revives:
        raise ValueError(
            f"{type(method.weighting).__name__} with {spell_auxiliary(auxiliary)}: it gives weight to every slot, also "
            "to those that hold no hypothesis; use it with ME."
        )
    wanted = prior.dynamics.experts
    inside = auxiliary.inner or auxiliary
    given = inside.slots if inside.name == "ME" else 0
    if wanted is not None and wanted != given:
        raise ValueError(
            f"by_expert holds {wanted} dynamics but {spell_auxiliary(auxiliary)} has {given or 'no'} experts; give "
            f"auxiliary=filtax.auxiliary.experts({wanted})."
        )
    if newborns and not prior.name:
        raise ValueError(
            f"{auxiliary.name}-{prior.dynamics.name}: a new regime needs a prior of its own; use {_advice(method)}, "
            f"and give the drift between changes as prior=."
        )


def _advice(method: Any, part: Any = None) -> str:
    """Priors that suit both the auxiliary variable and the belief, where `part` did not."""
    auxiliary, prior = method.auxiliary, method.prior
    if part is prior.dynamics and prior.name:  # the reset is well, what happens between changes is not
        fits = dict(DRIFTS)
    elif auxiliary.subsets:
        return "Sub"
    elif auxiliary.regimes_end:
        no = {"OUPR": auxiliary.keep != 1, "MCI": not auxiliary.knows_parent}
        fits = {name: needs for name, needs in RESETS.items() if not no.get(name, False)}
    else:
        fits = {"OU": DRIFTS["OU"]} if auxiliary.name == "CPP" else dict(DRIFTS)
    moves = lambda needs: all(hasattr(family, need) for need in needs for family in _moved(method.posterior, need))  # noqa: E731
    names = [name for name, needs in fits.items() if moves(needs)]
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else "another posterior"


def _check_use(method: Any) -> None:
    """Refuse a reset that never happens, and a share that nobody uses."""
    auxiliary, prior = method.auxiliary, method.prior
    if prior.name in ("PR", "MMPR") and not auxiliary.regimes_end:
        raise ValueError(
            f"{spell_auxiliary(auxiliary)}-{prior.name}: no regime ever ends under {auxiliary.name}, so nothing would "
            f"be reset; use RL[K]-{prior.name}(hazard=0.01), or tell of changes by step(..., changed=True)."
        )
    if auxiliary.name == "CPP" and not prior.greedy:
        other = prior.name or prior.dynamics.name
        raise ValueError(f"CPP-{other}: the share that CPP asks each datum for is used by OU alone; use CPP-OU.")


def _check_members(method: Any) -> None:
    """Refuse memberships without Sub, Sub without them, and a weighting that asks for what is not there."""
    auxiliary, prior, weighting, posterior = method.auxiliary, method.prior, method.weighting, method.posterior
    subsets, recalls = auxiliary.subsets, prior.of_members
    if subsets != recalls:
        other = prior.name or prior.dynamics.name
        hint = "use Sub" if subsets else "use CPL[1]-Sub, CPL[inf]-Sub or CPV-Sub"
        raise ValueError(f"{auxiliary.name}-{other}: memberships of data and the prior Sub need each other; {hint}.")
    shares = recalls or weighting.shares
    by = "Sub" if recalls else "Responsibilities"
    if shares and (posterior.draws or posterior.needs_key):
        raise ValueError(f"{posterior.name} with {by}: a datum that is learned twice must not be drawn anew; use LG.")
    if shares and (posterior.weighs_data or posterior.stores_data):
        raise ValueError(f"{posterior.name} with {by}: it cannot learn from a share of a datum; use LG, NIG or RVGA.")
    if weighting.searches and not (subsets and auxiliary.keep == 1):
        raise ValueError(
            f"Retrospective with {spell_auxiliary(auxiliary)}: it looks for a membership; use CPL[1] or CPV."
        )
    if weighting.pairs and auxiliary.futures != 2:
        raise ValueError(
            f"Diverse with {spell_auxiliary(auxiliary)}: its hypotheses have no twins; use CPL[K] or CPT[K]."
        )
    for asked, name in ((weighting.gates, "Gated"), (weighting.shares, "Responsibilities")):
        if asked and auxiliary.name != "ME":
            raise ValueError(f"{name} with {spell_auxiliary(auxiliary)}: it weighs experts; use it with ME.")
    if weighting.shares and not all(hasattr(family, "project_cov") for family in posterior.families):
        raise ValueError(f"{posterior.name} with Responsibilities: it has no spread; use LG or RVGA.")


def check_support(method: Any, belief: PyTree) -> None:
    """Refuse a prior whose numbers do not fit the number of parameters."""
    dynamics = method.prior.dynamics
    if hasattr(dynamics, "stacked"):
        return _check_size(dynamics.stacked, belief.mean.size, experts=1)
    if not hasattr(dynamics, "parts"):
        return _check_size(dynamics, belief.mean.size)
    if len(dynamics.parts) != len(belief.parts):
        raise ValueError(
            f"by_block holds {len(dynamics.parts)} dynamics but the belief has {len(belief.parts)} blocks; give one "
            "drift for each."
        )
    for each, part in zip(dynamics.parts, belief.parts, strict=True):
        if part is not None:
            _check_size(each, part.mean.size)


def check_numbers(method: Any, dtype: Any) -> None:
    """Refuse settings of a method that the dtype of its beliefs does not hold."""
    for path, value in jax.tree_util.tree_leaves_with_path(method):
        wider = getattr(value, "dtype", dtype) != dtype and jnp.issubdtype(value.dtype, jnp.floating)
        if wider or isinstance(value, int | float):
            _check_fit(f"init: {method.name}: {jax.tree_util.keystr(path).lstrip('.')}", value, dtype)


def check_gap(verb: str, dt: Any, belief: PyTree) -> None:
    """Refuse the length of a tick that the dtype of a belief does not hold."""
    if dt is not None:
        _check_fit(f"{verb}(dt=...)", dt, belief.mean.dtype)


def _check_fit(call: str, value: Any, dtype: Any) -> None:
    """Refuse finite numbers that would be infinite in this dtype."""
    numbers, most = concrete(value), float(jnp.finfo(dtype).max)
    size = 0.0 if numbers is None else np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0)
    if size > most:
        raise ValueError(
            f"{call} is too large for {dtype}, got {size:.3g}; give at most {most:.2g}, or init(mean=...) of a wider "
            "dtype."
        )


def _check_size(dynamics: Any, D: int, experts: int = 0) -> None:
    """Refuse a drift whose numbers do not fit D parameters, behind an axis of experts if there is one."""
    for name, rank in RANKS.items():
        value = getattr(dynamics, name, None)
        shape = () if value is None else np.shape(value)[experts:]
        if len(shape) > rank or shape not in ((), (1,), (D,), (D, D)):
            shown, fits = "Q" if name == "root" else name, f"({D},)" if rank == 1 else f"({D},) or ({D}, {D})"
            raise ValueError(
                f"{dynamics.name}({shown}=...) has shape {shape} but the belief has D = {D} parameters; "
                f"give a number or {fits}."
            )
