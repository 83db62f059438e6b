"""Predictive distributions: what a forecast is made of.

Every distribution has `mean`, `var`, `cov`, `interval(level)`, `cdf(y)`, `sample(key)` and `log_prob(y, mask)`. A
leading axis (the horizon of `forecast`, the hypotheses of a mixture) is allowed in every array.
"""

from typing import TYPE_CHECKING

from filtax.gathering import on_demand

if TYPE_CHECKING:
    from filtax.distributions.counts import NegativeBinomial, Poisson
    from filtax.distributions.discrete import Bernoulli, Categorical
    from filtax.distributions.mixture import Mixture
    from filtax.distributions.normal import Normal
    from filtax.distributions.student import StudentT

__all__ = ["Bernoulli", "Categorical", "Mixture", "NegativeBinomial", "Normal", "Poisson", "StudentT"]

on_demand(
    __name__,
    counts="NegativeBinomial Poisson",
    discrete="Bernoulli Categorical",
    mixture="Mixture",
    normal="Normal",
    student="StudentT",
)
