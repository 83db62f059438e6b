"""The catalogue, and the grammar of names: `POSTERIOR+AUXILIARY-PRIOR`, each with optional `(setting=value, ...)`.

LG+C-Static                     recursive Bayesian regression, or the extended filter of a fixed network
LG+C-ACI(q=0.01)                the same for parameters that walk at random
LG(form=covariance)+C-LSSM      the Kalman filter of a state-space model given as prior=
NIG+C-OU(rate=0.99)             unknown noise variance, slow forgetting
RVGA(iterations=4)+C-Static     variational Gaussian filter for labels and counts
"""

import inspect
import re
from collections.abc import Callable
from typing import Any

from filtax import checks
from filtax.auxiliary import Constant
from filtax.bone import Bone
from filtax.models import Direct, Model
from filtax.posteriors import Extended, UnknownNoise, Variational
from filtax.posteriors.conjugate import conjugate_to
from filtax.priors import Continue, additive_inflation, ornstein_uhlenbeck, shrink_perturb, static
from filtax.weighting import Exact

__all__ = ["AUXILIARIES", "POSTERIORS", "PRIORS", "method"]

POSTERIORS: dict[str, Callable[..., Any]] = {
    "LG": lambda form="auto", iterations=1: Extended(form, iterations),
    "IEKF": lambda iterations=5, form="auto": Extended(form, iterations),
    "NIG": lambda shape=1.0, rate=1.0, form="auto": UnknownNoise(shape, rate, form),
    "Cj": lambda: None,  # chosen by the likelihood
    "RVGA": lambda iterations=4, samples=None, expectation="quadrature", form="auto": Variational(
        "implicit", iterations, 1.0, samples, expectation, form
    ),
    "BONG": lambda samples=None, expectation="quadrature", form="auto": Variational(
        "explicit", 1, 1.0, samples, expectation, form
    ),
    "BLR": lambda iterations=10, step=0.5, samples=None, expectation="quadrature", form="auto": Variational(
        "natural", iterations, step, samples, expectation, form
    ),
}
POSTERIORS["VB"] = POSTERIORS["RVGA"]
AUXILIARIES: dict[str, Callable[..., Any]] = {"C": Constant}
PRIORS: dict[str, Callable[..., Any]] = {
    "Static": static,
    "ACI": additive_inflation,
    "OU": ornstein_uhlenbeck,
    "SP": shrink_perturb,
    "LSSM": lambda: None,  # F, b and Q are matrices: given as prior=
}

_PART = r"(?P<{0}>[A-Za-z]+)(?:\((?P<{0}_settings>[^()]*)\))?"
_NAME = re.compile(rf"(?:{_PART.format('posterior')}\+)?{_PART.format('auxiliary')}-{_PART.format('prior')}\*?")


def method(
    name: str,
    *,
    model: Any,
    auxiliary: Any = None,
    prior: Any = None,
    posterior: Any = None,
    weighting: Any = None,
) -> Bone:
    """Build a method from its name; parts given explicitly take the place of what the name says.

    Args:
        name: `[POSTERIOR+]AUXILIARY-PRIOR`, such as "LG+C-ACI(q=0.01)"; LG is the default posterior.
        model: (M.1) from `filtax.models`; a bare likelihood is a model of theta itself.
        auxiliary: (M.2) instead of the named one.
        prior: (M.3) from `filtax.priors`, instead of the named one.
        posterior: (A.1) instead of the named one.
        weighting: (A.2) exact weights if left out.

    Returns:
        The method: a value with `init`, `step`, `scan`, `predict`, `forecast` and `belief`.

    >>> import jax.numpy as jnp, filtax as fx
    >>> coin = method("Cj+C-Static", model=fx.models.bernoulli())
    >>> state = coin.init(mean=0.5, cov=1 / 12)
    >>> state, info = coin.step(state, None, 1.0)
    >>> round(coin.belief(state).mean.item(), 4)
    0.6667
    """
    parts = _NAME.fullmatch(name.strip()) if isinstance(name, str) else None
    if parts is None:
        raise ValueError(f'method({name!r}): a name reads POSTERIOR+AUXILIARY-PRIOR, such as "LG+C-ACI(q=0.01)".')
    model = model if hasattr(model, "predictor") else Model(Direct(), _likelihood(model))
    named = parts["posterior"] or "LG"
    if posterior is None:
        posterior = _build("posterior", POSTERIORS, named, parts["posterior_settings"])
        posterior = _conjugate(model) if posterior is None else posterior
    if auxiliary is None:
        auxiliary = _build("auxiliary", AUXILIARIES, parts["auxiliary"], parts["auxiliary_settings"])
    if prior is None:
        prior = _build("prior", PRIORS, parts["prior"], parts["prior_settings"])
        if prior is None:
            raise ValueError(
                f"method({name!r}): LSSM needs its matrices; give prior=filtax.priors.linear_dynamics(F, b, Q)."
            )
    prior = prior if hasattr(prior, "drift") else Continue(prior)
    return Bone(model, auxiliary, prior, posterior, Exact() if weighting is None else weighting)


def _conjugate(model: Any) -> Any:
    if not isinstance(model.predictor, Direct):
        raise ValueError(
            "Cj counts one rate and takes no x; give the bare likelihood, model=bernoulli() or model=poisson()."
        )
    return conjugate_to(model.likelihood)


def _likelihood(model: Any) -> Any:
    if not hasattr(model, "whiten"):
        raise ValueError(
            f"method(model=...) must come from filtax.models, such as linear(noise=0.1); got {type(model).__name__}."
        )
    return model


def _build(role: str, known: dict[str, Callable[..., Any]], name: str, settings: str | None) -> Any:
    """Look a part up and call it with the settings of the name; nothing is ever evaluated."""
    if name not in known:
        raise ValueError(f"method: no {role} {name!r}. {checks.nearest(name, known)}")
    wanted = inspect.signature(known[name]).parameters
    given: dict[str, Any] = {}
    for setting in filter(None, (part.strip() for part in (settings or "").split(","))):
        key, equals, value = (part.strip() for part in setting.partition("="))
        if not equals or key not in wanted:
            hint = checks.nearest(key, wanted) if wanted else "It has none."
            raise ValueError(f"method: {name}({setting}) is not a setting of {name}. {hint}")
        if key in given:
            raise ValueError(f"method: {name} is given {key} twice; leave one of them out.")
        given[key] = _number(value)
    missing = [
        key for key, parameter in wanted.items() if parameter.default is inspect.Parameter.empty and key not in given
    ]
    if missing:
        raise ValueError(f"method: {name} needs {', '.join(missing)}; write {name}({missing[0]}=...) or give {role}=.")
    return known[name](**given)


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
