"""The grammar of names: `[TRUST+][POSTERIOR+]AUXILIARY[K]-PRIOR`, each with optional `(setting=value, ...)`.

LG+C-Static                         recursive Bayesian regression, or the extended filter of a fixed network
LG+C-ACI(q=0.01)                    the same for parameters that walk at random
LG(form=covariance)+C-LSSM          the Kalman filter of a state-space model given as prior=
NIG+C-OU(rate=0.99)                 unknown noise variance, slow forgetting
LoFi(rank=10)+C-ACI(q=0.0001)       the extended filter of a large network: precision diagonal plus low rank
RVGA(iterations=4)+C-Static         variational Gaussian filter, for labels and counts
RVGA(rank=10)+C-Static              the same for many parameters; BONG and BLR take other steps, BBB plain gradients
OB(a=0.9, b=0.1)+C-ACI(q=0.01)      rejects outliers: KF-B and EKF-B of the thesis
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

Other names of the thesis and of the field are read too, and printed as above: KF and EKF are LG, KF-B and EKF-B are OB,
KF-IW and EKF-IW are IW, R-VGA and VB are RVGA, SPR is OUPR, and BOCPD is RL[inf]-PR.
"""

import inspect
import re
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from filtax import _validation as checks
from filtax import auxiliary as aux
from filtax import models, priors
from filtax import posteriors as post
from filtax import weighting as weigh
from filtax.bone import Bone
from filtax.protocols import Prior

HAZARD = 0.01  # where a name does not give it: one change in a hundred data, as in `filtax.methods`


class Words(UserDict[str, Any]):
    """Words of the grammar and what builds each part; a builder given by name is loaded from its package when used."""

    def __init__(self, package: ModuleType, builders: Mapping[str, str | Callable[..., Any]]):
        super().__init__(builders)
        self._package = package

    def __getitem__(self, word: str) -> Callable[..., Any]:
        builder = self.data[word]
        return getattr(self._package, builder) if isinstance(builder, str) else builder


def _lg(form: Any = "auto", iterations: Any = 1) -> Any:
    """The Kalman filter; extended where the model is not linear, iterated with `iterations` above 1."""
    return post.Extended(form, iterations)


def _iekf(iterations: Any = 5, form: Any = "auto") -> Any:
    """The iterated extended filter: it linearises again at its new mean."""
    return post.Extended(form, iterations)


def _lofi(rank: Any, form: Any = "diagonal", spare: Any = None, iterations: Any = 1) -> Any:
    """The extended filter for large networks: its precision is diagonal plus low rank."""
    return post.Extended(form, iterations, rank, spare)


def _nig(shape: Any = 1.0, rate: Any = 1.0, form: Any = "auto") -> Any:
    """Learn theta and the noise variance; the prior of the variance is inverse-gamma with `shape` and `rate`."""
    return post.UnknownNoise(shape, rate, form)


def _rvga(
    iterations: Any = 4,
    samples: Any = None,
    expectation: Any = "quadrature",
    form: Any = "auto",
    rank: Any = None,
    spare: Any = None,
) -> Any:
    """The Gaussian nearest to the posterior, by an implicit scheme (recursive variational)."""
    return post.Variational("implicit", iterations, 1.0, samples, expectation, form, rank, spare)


def _bong(
    samples: Any = None, expectation: Any = "quadrature", form: Any = "auto", rank: Any = None, spare: Any = None
) -> Any:
    """One natural-gradient step from the prior for each datum."""
    return post.Variational("explicit", 1, 1.0, samples, expectation, form, rank, spare)


def _blr(
    iterations: Any = 10,
    step: Any = 0.5,
    samples: Any = None,
    expectation: Any = "quadrature",
    form: Any = "auto",
    rank: Any = None,
    spare: Any = None,
) -> Any:
    """Natural-gradient steps of a given size, the Bayesian learning rule."""
    return post.Variational("natural", iterations, step, samples, expectation, form, rank, spare)


def _bbb(
    iterations: Any = 10,
    step: Any = 0.1,
    samples: Any = None,
    expectation: Any = "quadrature",
    form: Any = "auto",
) -> Any:
    """Plain gradient steps on the variational objective, Bayes by backprop."""
    return post.Variational("gradient", iterations, step, samples, expectation, form)


def _enkf(size: Any = 100, inflation: Any = 1.0) -> Any:
    """Ensemble Kalman filter: the datum is perturbed for each member."""
    return post.EnsembleKalman(size, inflation)


def _etkf(size: Any = 100, inflation: Any = 1.0) -> Any:
    """Ensemble Kalman filter that transforms its members, without perturbed data."""
    return post.EnsembleKalman(size, inflation, deterministic=True)


def _pf(size: Any = 1000, threshold: Any = 0.5, shrink: Any = None) -> Any:
    """Bootstrap particle filter."""
    return post.Particle(size, threshold, shrink)


def _apf(size: Any = 1000, shrink: Any = 0.98) -> Any:
    """Auxiliary particle filter of Liu and West, for parameters that do not move."""
    return post.Particle(size, shrink=shrink, auxiliary=True)


def _rbpf(drawn: Any, size: Any = 1000, threshold: Any = 0.5) -> Any:
    """Particles for the first `drawn` parameters; the others are integrated out."""
    return post.Particle(size, threshold, drawn=drawn)


def _cj() -> None:
    """Conjugate to the likelihood, which chooses it."""


def _c() -> Any:
    """No auxiliary variable: nothing but theta is unknown."""
    return aux.Constant()


def _rl(hazard: Any = HAZARD, keep: Any = None, capacity: Any = 64, experts: Any = None) -> Any:
    """Run length: when the regime began; K hypotheses are kept, inf for all."""
    return aux.run_length(hazard, keep=keep, capacity=capacity, experts=experts)


def _cpt(hazard: Any = HAZARD, keep: Any = None, memory: Any = 16, capacity: Any = 64, experts: Any = None) -> Any:
    """Change times: paths of changes under a law of segment lengths."""
    return aux.change_times(hazard, keep=keep, memory=memory, capacity=capacity, experts=experts)


def _cpl(hazard: Any = HAZARD, keep: Any = None, memory: Any = 16, capacity: Any = 64) -> Any:
    """Change locations: at each datum, whether it was a change; before Sub, which data belong: (belong, memory)."""
    return aux.change_locations(hazard, keep=keep, memory=memory, capacity=capacity)


def _me(keep: Any) -> Any:
    """Experts: one of K models, or settings of one, holds; more with `auxiliary=`."""
    return aux.experts(keep)


def _lssm() -> None:
    """A linear or nonlinear system, given as `prior=`."""


TRUSTS = Words(
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
POSTERIORS = Words(
    post,
    {
        "LG": _lg,
        "IEKF": _iekf,
        "LoFi": _lofi,
        "NIG": _nig,
        "RVGA": _rvga,
        "BONG": _bong,
        "BLR": _blr,
        "BBB": _bbb,
        "OGD": "Gradient",
        "OB": "BernoulliOutliers",
        "IW": "InverseWishartNoise",
        "ST": "StudentNoise",
        "EnKF": _enkf,
        "ETKF": _etkf,
        "PF": _pf,
        "APF": _apf,
        "RBPF": _rbpf,
        "PULSE": "pulse",
        "Cj": _cj,
    },
)
_AUXILIARIES: dict[str, str | Callable[..., Any]] = {
    "C": _c,
    "RL": _rl,
    "RLCC": "run_length_count",
    "CPT": _cpt,
    "CPL": _cpl,
    "CPV": "membership_vector",
    "CPP": "change_probability",
    "ME": _me,
}
AUXILIARIES = Words(aux, _AUXILIARIES)
_PRIORS: dict[str, str | Callable[..., Any]] = {
    "Static": "static",
    "ACI": "additive_inflation",
    "OU": "ornstein_uhlenbeck",
    "SP": "shrink_perturb",
    "LSSM": _lssm,
    "PR": "reset",
    "MMPR": "moment_matched_reset",
    "OUPR": "ou_reset",
    "MCI": "covariance_inflation",
    "Sub": "subset",
}
PRIORS = Words(priors, _PRIORS)
ADAPTIVE = Words(priors, _PRIORS | {"OU": "empirical_ou"})  # the priors under CPP
MEMBERS = Words(aux, _AUXILIARIES | {"CPL": "membership"})  # the auxiliary variables before Sub
OTHER_NAMES = {
    "KF": "LG",
    "EKF": "LG",
    "KF-B": "OB",
    "EKF-B": "OB",
    "KF-IW": "IW",
    "EKF-IW": "IW",
    "R-VGA": "RVGA",
    "VB": "RVGA",
    "SPR": "OUPR",
    "BOCPD": "RL[inf]-PR",
}

_OTHER = re.compile(rf"(?:^|(?<=[+-]))({'|'.join(OTHER_NAMES)})(?=[(+*]|$)")
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
            posterior, 0.01 the default hazard. "KF", "EKF", "BOCPD" and other names of the field are read too.
        model: (M.1) from `filtax.models`; a bare likelihood is a model of theta itself.
        auxiliary: (M.2) from `filtax.auxiliary`, instead of the named one.
        prior: (M.3) from `filtax.priors`, instead of the named one. Dynamics given under a name that resets, such
            as `prior=additive_inflation(0.1)` under PR, say how the parameters move between changes.
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
    parts = None
    if isinstance(name, str):
        parts = _NAME.fullmatch(_OTHER.sub(lambda found: OTHER_NAMES[found[1]], name.strip()))
    if parts is None:
        raise ValueError(
            f'method({name!r}): a name reads POSTERIOR+AUXILIARY[K]-PRIOR, such as "LG+C-ACI(q=0.01)" or '
            '"LG+RL[10]-PR(hazard=0.01)".'
        )
    model = model if isinstance(model, models.Model) else models.Model(models.Direct(), _likelihood(model))
    if parts["trust"]:
        trust = _build("trust", TRUSTS, parts["trust"], _read_settings(parts["trust_settings"]))
        model = models.robust(model, trust=trust)
    word = parts["posterior"] or "LG"
    _known("posterior", POSTERIORS, word)
    if posterior is None:
        posterior = _build("posterior", POSTERIORS, word, _read_settings(parts["posterior_settings"]))
        posterior = _conjugate(model) if posterior is None else posterior
    posterior = posterior.fitted(model)
    auxiliary, prior = _transition(name, parts, auxiliary, prior)
    weighting = _default_weighting(auxiliary) if weighting is None else weighting
    return Bone(model, auxiliary, prior, posterior, weighting)


def _default_weighting(auxiliary: Any) -> Any:
    """(A.2) Weights of all hypotheses, of the K best, or the search for the best membership."""
    keep = auxiliary.keep
    if auxiliary.subsets:
        all_belong = isinstance(auxiliary.belong, int | float) and auxiliary.belong == 1.0
        known = keep is None or auxiliary.rate is not None or all_belong  # then there is nothing to search
        return weigh.Exact() if known else weigh.retrospective()
    return weigh.Exact() if keep is None else weigh.bounded(keep)


def _transition(name: str, parts: re.Match, auxiliary: Any, prior: Any) -> tuple[Any, Any]:
    """(M.2) and (M.3) share their settings: the hazard is written where it reads best."""
    prior_name, auxiliary_name = str(parts["prior"]), str(parts["auxiliary"])
    known = ADAPTIVE if auxiliary_name == "CPP" else PRIORS
    auxiliaries = MEMBERS if prior_name == "Sub" else AUXILIARIES
    of_prior, of_auxiliary = _read_settings(parts["prior_settings"]), _read_settings(parts["auxiliary_settings"])
    takes = inspect.signature(_known("auxiliary", auxiliaries, auxiliary_name)).parameters
    wants = inspect.signature(_known("prior", known, prior_name)).parameters
    _check_settings(prior_name, of_prior, {prior_name: wants, auxiliary_name: takes})
    for key in [key for key in of_prior if key in takes]:
        value = of_prior.pop(key)
        if key in of_auxiliary:
            raise ValueError(
                f"method: {key} is given twice, {auxiliary_name}({key}={of_auxiliary[key]}) and {prior_name}({key}="
                f"{value}); leave one of them out."
            )
        of_auxiliary[key] = value
    if auxiliary is None:
        of_auxiliary |= _kept(name, parts, takes)
        if parts["experts"] is not None:
            if "experts" not in takes:
                raise ValueError(f"method({name!r}): ME goes inside RL and CPT; write RL[K]/ME[E] or CPT[K]/ME[E].")
            of_auxiliary["experts"] = aux.experts(_read_number(parts["experts"]))
        auxiliary = _build("auxiliary", auxiliaries, auxiliary_name, of_auxiliary)
    if isinstance(prior, Prior):
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
    return auxiliary, prior if isinstance(prior, Prior) else priors.Continue(prior)


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
    return {} if text == "inf" else {"keep": _read_number(text)}


def _conjugate(model: Any) -> Any:
    if not isinstance(model.predictor, models.Direct):
        raise ValueError(
            "Cj counts one rate and takes no x; give the bare likelihood, model=bernoulli() or model=poisson()."
        )
    from filtax.posteriors._conjugate import conjugate_to

    return conjugate_to(model.likelihood)


def _likelihood(model: Any) -> Any:
    if model is None:
        raise ValueError("method: there is no model; give model=filtax.models.linear(noise=0.1), or another of these.")
    if not isinstance(model, models.Likelihood):
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
    _check_settings(name, given, {name: wanted})
    missing = [key for key, parameter in wanted.items() if parameter.default is parameter.empty and key not in given]
    if missing:
        or_give = "" if role == "trust" else f" or give {role}="
        raise ValueError(f"method: {name} needs {', '.join(missing)}; write {name}({missing[0]}=...){or_give}.")
    return known[name](**given)


def _check_settings(where: str, given: Mapping[str, Any], parts: Mapping[str, Iterable[str]]) -> None:
    """Refuse a setting written after the part `where` that none of these parts has; each has its parameters."""
    for key, value in given.items():
        if not any(key in parameters for parameters in parts.values()):
            known = {part: written(parameters) for part, parameters in parts.items()}
            names = [part for part in known if part == where or known[part]]
            both = [setting for part in names for setting in known[part]]
            hint = checks.nearest(key, both) if both else "It has none."
            listed = "" if len(names) == 1 or hint.startswith("Known") else f" Known: {', '.join(both)}."
            raise ValueError(f"method: {where}({key}={value}) is not a setting of {' or '.join(names)}. {hint}{listed}")


def written(parameters: Iterable[str]) -> list[str]:
    """Settings that a name can hold in parentheses; the number kept and the experts have brackets of their own."""
    return [key for key in parameters if key not in ("dynamics", "experts", "frame", "keep")]


def _read_settings(text: str | None) -> dict[str, Any]:
    """Read `name=value, ...`; nothing is ever evaluated."""
    given: dict[str, Any] = {}
    for setting in filter(None, (part.strip() for part in (text or "").split(","))):
        key, equals, value = (part.strip() for part in setting.partition("="))
        if not equals:
            raise ValueError(f"method: ({setting}) is no setting; write name=value.")
        if key in given:
            raise ValueError(f"method: {key} is given twice; leave one of them out.")
        given[key] = _read_number(value)
    return given


def _read_number(text: str) -> Any:
    """Read a truth value, a whole number or a number, in ASCII digits; what is none of them stays text."""
    if text in ("True", "False"):
        return text == "True"
    if "_" in text or not text.isascii():  # Python takes 1_0 for ten, and the digits of every script
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
