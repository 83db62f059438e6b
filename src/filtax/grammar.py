"""The grammar of names: `[TRUST+][POSTERIOR+]AUXILIARY[K]-PRIOR`, each with optional `(setting=value, ...)`.

LG+C-Static                         recursive Bayesian regression, or the extended filter of a fixed network
LG+C-ACI(q=0.01)                    the same for parameters that walk at random
LG(form=covariance)+C-LSSM          the Kalman filter of a state-space model given as prior=
NIG+C-OU(rate=0.99)                 unknown noise variance, slow forgetting
LoFi(rank=10)+C-ACI(q=0.0001)       the extended filter of a large network: precision diagonal plus low rank
RVGA(iterations=4)+C-Static         variational Gaussian filter, for labels and counts
RVGA(rank=10)+C-Static              the same for many parameters; BONG and BLR take other steps, BBB plain gradients
OB(a=0.9, b=0.1)+C-ACI(q=0.01)      rejects outliers: the KF-B and EKF-B of the thesis
IW(degrees=4)+C-ACI(q=0.01)         each datum has its own noise: KF-IW, EKF-IW; ST is the Student-t filter
EnKF(size=100)+C-ACI(q=0.01)        ensemble Kalman filter, perturbed observations; ETKF transforms instead
PF(size=1000)+C-ACI(q=0.01)         bootstrap particle filter; APF looks ahead, for parameters that do not move
RBPF(size=500, drawn=2)+C-LSSM      particles for the first two parameters, the others integrated out
OGD(rate=0.01, memory=10)+C-Static  online gradient descent with a replay buffer, the baseline that people use
PULSE+C-ACI(q=0.0001)               a subspace of the hidden layers and a full last layer; subspace(..., last=True)
PULSE(rank=10)+C-ACI(q=0.0001)      hidden layers of low rank, as LoFi's; subspace(model, None, params, last=True)
LG+RL[inf]-PR(hazard=0.01)          Bayesian online changepoint detection
RL[1]-OUPR(hazard=0.01)             gradual and abrupt changes, one hypothesis
CPL[8]-MCI(hazard=0.01, beta=0.5)   a change widens the belief; the eight most probable histories are kept
CPL[1](memory=16)-Sub               learn again from those of the last data that belong with this one; CPV by shares
WoLF-IMQ(c=4)+C-ACI(q=0.1)          LG on the model made robust; WoLF-IMQ(c=4)+NIG+C-Static names another posterior
"""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from filtax import auxiliary as aux
from filtax import checks, models, priors
from filtax import posteriors as post
from filtax import weighting as weigh
from filtax.bone import Bone
from filtax.gathering import Parts
from filtax.spelling import check_settings, read_number, read_settings, written

__all__ = ["AUXILIARIES", "POSTERIORS", "PRIORS", "TRUSTS", "method"]

TRUSTS = Parts(
    models,
    {
        "WoLF-IMQ": "imq",
        "WoLF-MD": "mahalanobis",
        "WoLF-TMD": "threshold",
        "WoLF-Huber": "huber",
        "WoLF-Power": "density_power",
        "WoLF-Tempered": "tempered",
    },
)
_POSTERIORS: dict[str, str | Callable[..., Any]] = {
    "LG": lambda form="auto", iterations=1: post.Extended(form, iterations),
    "IEKF": lambda iterations=5, form="auto": post.Extended(form, iterations),
    "LoFi": lambda rank, form="diagonal", spare=None, iterations=1: post.Extended(form, iterations, rank, spare),
    "NIG": lambda shape=1.0, rate=1.0, form="auto": post.UnknownNoise(shape, rate, form),
    "RVGA": lambda iterations=4, samples=None, expectation="quadrature", form="auto", rank=None, spare=None: (
        post.Variational("implicit", iterations, 1.0, samples, expectation, form, rank, spare)
    ),
    "BONG": lambda samples=None, expectation="quadrature", form="auto", rank=None, spare=None: post.Variational(
        "explicit", 1, 1.0, samples, expectation, form, rank, spare
    ),
    "BLR": lambda iterations=10, step=0.5, samples=None, expectation="quadrature", form="auto", rank=None, spare=None: (
        post.Variational("natural", iterations, step, samples, expectation, form, rank, spare)
    ),
    "BBB": lambda iterations=10, step=0.1, samples=None, expectation="quadrature", form="auto": post.Variational(
        "gradient", iterations, step, samples, expectation, form
    ),
    "OGD": "Gradient",
    "OB": "BernoulliOutliers",
    "IW": "InverseWishartNoise",
    "ST": "StudentNoise",
    "EnKF": lambda size=100, inflation=1.0: post.EnsembleKalman(size, inflation),
    "ETKF": lambda size=100, inflation=1.0: post.EnsembleKalman(size, inflation, deterministic=True),
    "PF": lambda size=1000, threshold=0.5, shrink=None: post.Particle(size, threshold, shrink),
    "APF": lambda size=1000, shrink=0.98: post.Particle(size, shrink=shrink, auxiliary=True),
    "RBPF": lambda drawn, size=1000, threshold=0.5: post.Particle(size, threshold, drawn=drawn),
    "PULSE": "pulse",
    "Cj": lambda: None,  # chosen by the likelihood
}
POSTERIORS = Parts(post, _POSTERIORS | {"VB": _POSTERIORS["RVGA"]})
HAZARD = 0.01  # where a name does not say it: a change in a hundred data, as in `filtax.methods`
AUXILIARIES = Parts(
    aux,
    {
        "C": lambda: aux.Constant(),
        "RL": lambda hazard=HAZARD, keep=None, capacity=64, experts=None: aux.run_length(
            hazard, keep=keep, capacity=capacity, experts=experts
        ),
        "RLCC": "run_length_count",
        "CPT": lambda hazard=HAZARD, keep=None, memory=16, capacity=64, experts=None: aux.change_times(
            hazard, keep=keep, memory=memory, capacity=capacity, experts=experts
        ),
        "CPL": lambda hazard=HAZARD, keep=None, memory=16, capacity=64: aux.change_locations(
            hazard, keep=keep, memory=memory, capacity=capacity
        ),
        "CPV": "membership_vector",
        "CPP": "change_probability",
        "ME": lambda keep: aux.experts(keep),
    },
)
PRIORS = Parts(
    priors,
    {
        "Static": "static",
        "ACI": "additive_inflation",
        "OU": "ornstein_uhlenbeck",
        "SP": "shrink_perturb",
        "LSSM": lambda: None,  # F, b and Q are matrices: given as prior=
        "PR": "reset",
        "MMPR": "moment_matched_reset",
        "OUPR": "ou_reset",
        "MCI": "covariance_inflation",
        "Sub": "subset",
    },
)
ALIASES = {"SPR": "OUPR"}
ADAPTIVE = {"OU": "empirical_ou"}  # what these names mean under CPP
MEMBERS = {"CPL": "membership"}  # before Sub, s = 1 says that a datum belongs

_SETTINGS = r"(?:\((?P<{0}_settings>[^()]*)\))?"
_PART = rf"(?P<{{0}}>[A-Za-z]+){_SETTINGS}"
_TRUST = _PART.format("trust").replace("[A-Za-z]+", "WoLF-[A-Za-z]+", 1)
_AUXILIARY = (
    rf"(?P<auxiliary>[A-Za-z]+)(?:\[(?P<keep>[^\]]*)\])?{_SETTINGS.format('auxiliary')}(?:/ME\[(?P<experts>[0-9]+)\])?"
)
_NAME = re.compile(rf"(?:{_TRUST}\+)?(?:{_PART.format('posterior')}\+)?{_AUXILIARY}-{_PART.format('prior')}\*?")


def method(
    name: str,
    *,
    model: Any = None,
    auxiliary: Any = None,
    prior: Any = None,
    posterior: Any = None,
    weighting: Any = None,
) -> Bone:
    """Build a method from its name; parts given explicitly take the place of what the name says, and rename it.

    Args:
        name: `[TRUST+][POSTERIOR+]AUXILIARY[K]-PRIOR`, such as "LG+RL[10]-PR(hazard=0.01)", where K hypotheses
            are kept, `inf` for all; or "WoLF-IMQ(c=4)+C-ACI(q=0.01)", which makes the model robust. LG is the default
            posterior, 0.01 the default hazard.
        model: (M.1) from `filtax.models`; a bare likelihood is a model of theta itself.
        auxiliary: (M.2) from `filtax.auxiliary`, instead of the named one.
        prior: (M.3) from `filtax.priors`, instead of the named one. A drift given under a name that resets, such as
            `prior=additive_inflation(0.1)` under PR, is how the parameters move between changes.
        posterior: (A.1) instead of the named one.
        weighting: (A.2) from `filtax.weighting`; the K best if the name says [K], else exact weights.

    Returns:
        The method: a value with `init`, `step`, `scan`, `predict`, `forecast` and `belief`; its `name` says what it is,
        with the parts that were given.

    >>> import jax.numpy as jnp, filtax as fx
    >>> linear = fx.models.linear(noise=1.0)
    >>> method("LG+C-Static", model=linear, prior=fx.priors.additive_inflation(0.1)).name
    'LG+C-ACI(q=0.1)'
    >>> coin = method("Cj+C-Static", model=fx.models.bernoulli())
    >>> state = coin.init(mean=0.5, cov=1 / 12)
    >>> state, info = coin.step(state, None, 1.0)
    >>> round(coin.belief(state).mean.item(), 4)
    0.6667
    """
    parts = _NAME.fullmatch(name.strip()) if isinstance(name, str) else None
    if parts is None:
        raise ValueError(
            f'method({name!r}): a name reads POSTERIOR+AUXILIARY[K]-PRIOR, such as "LG+C-ACI(q=0.01)" or '
            '"LG+RL[10]-PR(hazard=0.01)".'
        )
    model = model if hasattr(model, "predictor") else models.Model(models.Direct(), _likelihood(model))
    if parts["trust"]:
        model = models.robust(
            model, trust=_build("trust", TRUSTS, parts["trust"], read_settings(parts["trust_settings"]))
        )
    _known("posterior", POSTERIORS, parts["posterior"] or "LG")
    if posterior is None:
        posterior = _build(
            "posterior", POSTERIORS, parts["posterior"] or "LG", read_settings(parts["posterior_settings"])
        )
        posterior = _conjugate(model) if posterior is None else posterior
    posterior = posterior.fitted(model) if hasattr(posterior, "fitted") else posterior
    auxiliary, prior = _transition(name, parts, auxiliary, prior)
    weighting = _usual_weighting(auxiliary) if weighting is None else weighting
    return Bone(model, auxiliary, prior, posterior, weighting)


def _usual_weighting(auxiliary: Any) -> Any:
    """(A.2) All hypotheses, the K best, or the one that is looked for."""
    keep = getattr(auxiliary, "keep", None)
    if getattr(auxiliary, "subsets", False):
        sure = isinstance(auxiliary.belong, int | float) and auxiliary.belong == 1.0  # then nothing is looked for
        told = keep is None or auxiliary.rate is not None or sure
        return weigh.Exact() if told else weigh.retrospective()
    return weigh.Exact() if keep is None else weigh.bounded(keep)


def _transition(name: str, parts: re.Match, auxiliary: Any, prior: Any) -> tuple[Any, Any]:
    """(M.2) and (M.3) share their settings: the hazard is written where it reads best."""
    prior_name = ALIASES.get(str(parts["prior"]), str(parts["prior"]))
    known = PRIORS | (ADAPTIVE if parts["auxiliary"] == "CPP" else {})
    auxiliaries = AUXILIARIES | (MEMBERS if prior_name == "Sub" else {})
    of_prior, of_auxiliary = read_settings(parts["prior_settings"]), read_settings(parts["auxiliary_settings"])
    takes = inspect.signature(_known("auxiliary", auxiliaries, str(parts["auxiliary"]))).parameters
    wants = inspect.signature(_known("prior", known, prior_name)).parameters
    check_settings((str(parts["auxiliary"]), of_auxiliary, takes), (prior_name, of_prior, wants))
    of_auxiliary |= {key: of_prior.pop(key) for key in list(of_prior) if key in takes}
    if auxiliary is None:
        of_auxiliary |= _kept(name, parts, takes)
        if parts["experts"] is not None:
            if "experts" not in takes:
                raise ValueError(f"method({name!r}): ME goes inside RL and CPT; write RL[K]/ME[E] or CPT[K]/ME[E].")
            of_auxiliary["experts"] = aux.experts(read_number(parts["experts"]))
        auxiliary = _build("auxiliary", auxiliaries, parts["auxiliary"], of_auxiliary)
    if prior is not None and hasattr(prior, "dynamics"):
        return auxiliary, prior
    if prior is not None and "dynamics" not in wants:
        return auxiliary, priors.Continue(prior)
    if prior is not None:
        of_prior["dynamics"] = prior
    prior = _build("prior", known, prior_name, of_prior)
    if prior is None:
        raise ValueError(
            f"method({name!r}): LSSM needs its matrices; give prior=filtax.priors.linear_dynamics(F, b, Q)."
        )
    return auxiliary, prior if hasattr(prior, "dynamics") else priors.Continue(prior)


def _kept(name: str, parts: re.Match, takes: Any) -> dict[str, Any]:
    """The number in brackets."""
    text = parts["keep"]
    if text is None:
        if "keep" in takes and parts["auxiliary"] != "ME":
            raise ValueError(
                f"method({name!r}): say how many hypotheses {parts['auxiliary']} keeps, {parts['auxiliary']}[10] for "
                f"ten of them or {parts['auxiliary']}[inf] for all."
            )
        if parts["auxiliary"] == "ME":
            raise ValueError(f"method({name!r}): give auxiliary=filtax.auxiliary.experts(...), or write ME[K].")
        return {}
    if "keep" not in takes:
        if text == "1":
            return {}
        raise ValueError(f"method({name!r}): {parts['auxiliary']} has one hypothesis; leave [{text}] out.")
    return {} if text == "inf" else {"keep": read_number(text)}


def _conjugate(model: Any) -> Any:
    if not isinstance(model.predictor, models.Direct):
        raise ValueError(
            "Cj counts one rate and takes no x; give the bare likelihood, model=bernoulli() or model=poisson()."
        )
    from filtax.posteriors.conjugate import conjugate_to

    return conjugate_to(model.likelihood)


def _likelihood(model: Any) -> Any:
    if model is None:
        raise ValueError("method: there is no model; give model=filtax.models.linear(noise=0.1), or another of these.")
    if not hasattr(model, "whiten"):
        raise ValueError(
            f"method(model=...) must come from filtax.models, such as linear(noise=0.1); got {type(model).__name__}."
        )
    return model


def _known(role: str, known: Mapping[str, Callable[..., Any]], name: str) -> Callable[..., Any]:
    if name not in known:
        raise ValueError(f"method: no {role} {name!r}. {checks.nearest(name, known)}")
    return known[name]


def _build(role: str, known: Mapping[str, Callable[..., Any]], name: str, given: dict[str, Any]) -> Any:
    """Look a part up and call it with its settings."""
    wanted = inspect.signature(_known(role, known, name)).parameters
    for key, value in given.items():
        if key not in wanted:
            hint = checks.nearest(key, written(wanted)) if written(wanted) else "It has none."
            raise ValueError(f"method: {name}({key}={value}) is not a setting of {name}. {hint}")
    missing = [key for key, parameter in wanted.items() if parameter.default is parameter.empty and key not in given]
    if missing:
        or_give = "" if role == "trust" else f" or give {role}="
        raise ValueError(f"method: {name} needs {', '.join(missing)}; write {name}({missing[0]}=...){or_give}.")
    return known[name](**given)
