"""(M.1) Measurement models: a predictor h(theta, x) of a natural parameter, and the likelihood of y given it.

linear(noise=...), nonlinear(h, noise=...)           ready models
gaussian(noise), bernoulli(), categorical(), poisson()   likelihoods, for `likelihood=`
loss(function)                                       any loss of your own in the place of a likelihood
mlp(sizes), lenet5()                                 networks in plain JAX
subspace(model, A, params)                           any of these, moved along a few directions
robust(model, trust=...)                             any of these, with outliers trusted less (WoLF)
imq(c), mahalanobis(c), threshold(c), huber(c), density_power(beta), tempered(w)   trusts; check_trust(W) judges one
"""

from typing import TYPE_CHECKING

from filtax.gathering import on_demand

if TYPE_CHECKING:
    from filtax.models.bounds import TrustCheck, check_trust
    from filtax.models.directions import directions, random_directions
    from filtax.models.exponential_family import bernoulli, categorical, poisson
    from filtax.models.gaussian import gaussian
    from filtax.models.last_layer import last_layer_range
    from filtax.models.linear import linear
    from filtax.models.loss import loss
    from filtax.models.model import Direct, Likelihood, Linearised, Model, Predicted, Predictor, Whitened
    from filtax.models.networks import Network, lenet5, mlp
    from filtax.models.nonlinear import nonlinear
    from filtax.models.power import density_power
    from filtax.models.robust import robust
    from filtax.models.share import expected_log_likelihood, temper
    from filtax.models.since_change import since_change
    from filtax.models.subspace import last_layer, subspace
    from filtax.models.trust import huber, imq, mahalanobis, tempered, threshold

__all__ = [
    "Direct",
    "Likelihood",
    "Linearised",
    "Model",
    "Network",
    "Predicted",
    "Predictor",
    "TrustCheck",
    "Whitened",
    "bernoulli",
    "categorical",
    "check_trust",
    "density_power",
    "directions",
    "expected_log_likelihood",
    "gaussian",
    "huber",
    "imq",
    "last_layer",
    "last_layer_range",
    "lenet5",
    "linear",
    "loss",
    "mahalanobis",
    "mlp",
    "nonlinear",
    "poisson",
    "random_directions",
    "robust",
    "since_change",
    "subspace",
    "temper",
    "tempered",
    "threshold",
]

on_demand(
    __name__,
    bounds="TrustCheck check_trust",
    directions="directions random_directions",
    exponential_family="bernoulli categorical poisson",
    gaussian="gaussian",
    last_layer="last_layer_range",
    linear="linear",
    loss="loss",
    model="Direct Likelihood Linearised Model Predicted Predictor Whitened",
    networks="Network lenet5 mlp",
    nonlinear="nonlinear",
    power="density_power",
    robust="robust",
    share="expected_log_likelihood temper",
    since_change="since_change",
    subspace="last_layer subspace",
    trust="huber imq mahalanobis tempered threshold",
)
