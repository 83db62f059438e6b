"""The five parts of a method together: the name that they make, and which of them do not go together."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from filtax._validation import is_concrete
from filtax.models import Model
from filtax.protocols import Auxiliary, Dynamics, Posterior, Prior, Weighting

ROLES = {"model": Model, "auxiliary": Auxiliary, "prior": Prior, "posterior": Posterior, "weighting": Weighting}
DRIFTS = {"Static": (), "OU": ("mix",)}  # and what they ask of a belief
RESETS = {"PR": (), "MMPR": ("moment_match",), "OUPR": ("mix",), "MCI": ("inflate",)}


def spell(method: Any) -> str:
    """Name of a method, `[TRUST+]POSTERIOR+AUX[K]-PRIOR`; the hazard stands with the prior, a trust for LG too."""
    prior = method.prior if method.prior.name else method.prior.dynamics
    law = _law(method.auxiliary)
    hazard = [] if law is None or isinstance(law, tuple) else [f"hazard={_rate(law)}"]
    parts = [_spell(method.posterior), f"{_spell_auxiliary(method.auxiliary)}-{_spell(prior, hazard)}"]
    likelihood = method.model.likelihood
    if likelihood.plain is not likelihood:
        parts = [_spell(likelihood.trust), *(parts[1:] if parts[0] == "LG" else parts)]
    return "+".join(parts)


def _spell_auxiliary(auxiliary: Any) -> str:
    """Name of an auxiliary variable, with the number of hypotheses that it keeps."""
    name, inner, law = auxiliary.name, auxiliary.inner, _law(auxiliary)
    settings = _spell(auxiliary, [f"a={law[0]}", f"b={law[1]}"] if isinstance(law, tuple) else []).removeprefix(name)
    if name == "CPV":
        name += settings
    elif auxiliary.regimes_end:
        name += f"[{'inf' if auxiliary.keep is None else auxiliary.keep}]{settings}"
    elif name == "ME":
        name += f"[{auxiliary.slots}]"
    return name if inner is None else f"{name}/{inner.name}[{inner.slots}]"


def _law(auxiliary: Any) -> Any:
    """The law of changes: a hazard, or the counts (a, b) of RLCC; None where there is none."""
    return auxiliary.hazard if auxiliary.regimes_end and not auxiliary.subsets else None


def _rate(law: Any) -> Any:
    """The hazard as a number; `given` stands for a law, a function or a traced number, and cannot be read back."""
    if isinstance(law.rate, int | float):
        return law.rate
    return float(law.rate) if law.rate is not None and is_concrete(law.rate) and np.ndim(law.rate) == 0 else "given"


def _spell(part: Any, first: list[str] | None = None) -> str:
    """Name of a part, with the settings that differ from its defaults and fit into a name."""
    settings = list(first or [])
    for name, default in part.shown.items():
        value = getattr(part, name)
        if isinstance(value, str | int | float) and value != default:
            settings.append(f"{name}={value}")
    return part.name + (f"({', '.join(settings)})" if settings else "")


def check_parts(method: Any) -> None:
    """Refuse parts of a method that cannot work together."""
    for name, role in ROLES.items():
        if not isinstance(part := vars(method)[name], role):
            raise ValueError(
                f"Bone({name}=...) got {part!r:.40}, which is no {role.__name__} of filtax; a method needs all five "
                "parts, see filtax.method for ready ones."
            )
    if not isinstance(method.prior.dynamics, Dynamics):
        raise ValueError(
            f"method(prior=...) must come from filtax.priors, such as static(), got {method.prior.dynamics!r:.40}."
        )
    for faults in (_of_posterior, _of_prior, _of_members, _of_experts):
        for fault in faults(method):
            raise ValueError(fault)


def _of_posterior(method: Any) -> Iterator[str]:
    """What a posterior needs of the likelihood, and a prior of the beliefs."""
    likelihood, posterior = method.model.likelihood, method.posterior
    if posterior.needs_covariance and not likelihood.has_covariance:
        yield (
            f"{posterior.name}: the noise variance can only be learned under Gaussian noise, not "
            f"{type(likelihood).__name__}; give the model noise=1.0."
        )
    if posterior.weighs_data and likelihood.plain is not likelihood:
        yield (
            f"{posterior.name}: it weighs each datum itself, and so does {likelihood.trust.name}; give the plain "
            "model, or use LG."
        )
    if posterior.likelihood_needs and not likelihood.plain.normalised:
        yield (
            f"{posterior.name}: a loss has no distribution of y, by which members are weighed; give the model a "
            "likelihood such as gaussian(noise), or use LG."
        )
    for part in (method.prior.dynamics, method.prior):
        for operation in part.needs:
            for family in _without(posterior, operation):
                yield (
                    f"{posterior.name}+...-{part.name}: a {family.__name__} belief cannot move that way (no "
                    f"`{operation}`); use {_advice(method, part)}."
                )


def _without(posterior: Any, operation: str) -> list[type]:
    """Families that lack an operation: those a posterior works on, and those inside, to which blocks hand it on."""
    inner = () if operation == "blockwise" else posterior.inner_families
    return [family for family in (*posterior.families, *inner) if operation not in dir(family)]


def _of_prior(method: Any) -> Iterator[str]:
    """Priors that do not suit the auxiliary variable."""
    auxiliary, prior = method.auxiliary, method.prior
    other = prior.name or prior.dynamics.name
    called = f"{_spell_auxiliary(auxiliary)}-{other}"
    if prior.greedy and auxiliary.regimes_end and auxiliary.keep != 1:
        yield (
            f"{called}: {prior.name} decides between going on and resetting, so there is one hypothesis; use "
            f"{auxiliary.name}[1]-{prior.name}."
        )
    if prior.name == "OUPR" and not auxiliary.regimes_end:
        yield f"{called}: OUPR needs a hazard; use RL[1]-OUPR(hazard=0.01)."
    if prior.name in ("PR", "MMPR") and not auxiliary.regimes_end:
        yield (
            f"{called}: no regime ever ends under {auxiliary.name}, so nothing would be reset; use "
            f"RL[K]-{prior.name}(hazard=0.01), or report changes by step(..., changed=True)."
        )
    if auxiliary.name == "CPP" and not prior.greedy:
        yield f"{called}: the share that CPP asks each datum for is used by OU alone; use CPP-OU."
    if prior.of_parent and not auxiliary.knows_parent:
        yield f"{called}: a change must know whom it happened to; use CPL[K] or CPT[K]."
    if auxiliary.subsets != prior.of_members:
        hint = "use Sub" if auxiliary.subsets else "use CPL[1]-Sub, CPL[inf]-Sub or CPV-Sub"
        yield f"{called}: memberships of data and the prior Sub need each other; {hint}."
    if auxiliary.regimes_end and not auxiliary.subsets and not prior.name:
        yield (
            f"{called}: a new regime needs a prior of its own; use {_advice(method)}, and give the dynamics between "
            "changes as prior=."
        )


def _of_members(method: Any) -> Iterator[str]:
    """Data that are learned twice, or in shares."""
    prior, weighting, posterior = method.prior, method.weighting, method.posterior
    called = f"{posterior.name} with {'Sub' if prior.of_members else 'Responsibilities'}"
    if not (prior.of_members or weighting.shares):
        return
    if posterior.draws or posterior.needs_key:
        yield f"{called}: a datum that is learned twice must not be drawn again; use LG."
    if posterior.weighs_data or posterior.stores_data:
        yield f"{called}: it cannot learn from a share of a datum; use LG, NIG or RVGA."
    if weighting.shares and _without(posterior, "project_cov"):
        yield f"{called}: it has no spread; use LG or RVGA."


def _of_experts(method: Any) -> Iterator[str]:
    """Weightings that do not suit the auxiliary variable, and numbers of experts that differ."""
    auxiliary, weighting = method.auxiliary, method.weighting
    called, kind = _spell_auxiliary(auxiliary), type(weighting).__name__
    if weighting.searches and not (auxiliary.subsets and auxiliary.keep == 1):
        yield f"{kind} with {called}: it looks for a membership; use CPL[1] or CPV."
    if weighting.pairs and auxiliary.futures != 2:
        yield f"{kind} with {called}: its hypotheses have no twins; use CPL[K] or CPT[K]."
    if (weighting.gates or weighting.shares) and auxiliary.name != "ME":
        yield f"{kind} with {called}: it weighs experts; use it with ME."
    if auxiliary.subsets:
        return
    if auxiliary.regimes_end and weighting.revives:
        yield (
            f"{kind} with {called}: it gives weight to every slot, also to those that hold no hypothesis; use it with "
            "ME."
        )
    wanted, inside = method.prior.dynamics.experts, auxiliary.inner or auxiliary
    experts = inside.slots if inside.name == "ME" else 0
    if wanted is not None and wanted != experts:
        yield (
            f"by_expert holds {wanted} dynamics but {called} has {experts or 'no'} experts; give "
            f"auxiliary=filtax.auxiliary.experts({wanted})."
        )


def _advice(method: Any, part: Any = None) -> str:
    """Priors that suit both the auxiliary variable and the belief, where `part` did not."""
    auxiliary, prior = method.auxiliary, method.prior
    resets = auxiliary.regimes_end and not (part is prior.dynamics and prior.name)
    if resets and auxiliary.subsets:
        return "Sub"
    unfit = {"OUPR": auxiliary.keep != 1, "MCI": not auxiliary.knows_parent}
    unfit["Static"] = auxiliary.name == "CPP" and not prior.name
    names = [
        name
        for name, needs in (RESETS if resets else DRIFTS).items()
        if not (unfit.get(name) or any(_without(method.posterior, need) for need in needs))
    ]
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else "another posterior"
