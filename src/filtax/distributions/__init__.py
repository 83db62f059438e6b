"""Predictive distributions, which forecasts return.

Every distribution has `mean`, `var`, `cov`, `interval(level)`, `cdf(y)`, `sample(key)` and `log_prob(y, mask)`. A
leading axis (the horizon of `forecast`, the hypotheses of a mixture) is allowed in every array.
"""

from typing import TYPE_CHECKING

from filtax import _lazy

if TYPE_CHECKING:
    from filtax.distributions._discrete import Bernoulli, Categorical, NegativeBinomial, Poisson
    from filtax.distributions._mixture import Mixture
    from filtax.distributions._normal import Normal, StudentT

__all__ = ["Bernoulli", "Categorical", "Mixture", "NegativeBinomial", "Normal", "Poisson", "StudentT"]

__getattr__, __dir__ = _lazy(
    __name__,
    __all__,
    _discrete="Bernoulli Categorical NegativeBinomial Poisson",
    _mixture="Mixture",
    _normal="Normal StudentT",
)
