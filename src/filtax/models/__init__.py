"""(M.1) Measurement models: a predictor h(theta, x) of a natural parameter, and the likelihood of y given it.

linear(noise=...), nonlinear(h, noise=...)           ready models
gaussian(noise), bernoulli(), categorical(), poisson()   likelihoods, for `likelihood=`
loss(function)                                       any loss in the place of a likelihood
mlp(sizes), lenet5()                                 networks in plain JAX
subspace(model, A, params)                           any of these, along a few directions of its parameters
robust(model, trust=...)                             any of these, with less trust in outliers (WoLF)
imq(c), mahalanobis(c), threshold(c), huber(c), density_power(beta), tempered(w)   trusts; check_trust(W) checks one
"""

from typing import TYPE_CHECKING

from filtax import _lazy

if TYPE_CHECKING:
    from filtax.models._exponential_family import bernoulli, categorical, poisson
    from filtax.models._gaussian import gaussian
    from filtax.models._generalised_bayes import density_power, loss
    from filtax.models._linear import linear, since_change
    from filtax.models._model import Direct, Likelihood, Linearised, Model, Predicted, Predictor, Whitened
    from filtax.models._networks import Network, last_layer_range, lenet5, mlp
    from filtax.models._nonlinear import nonlinear
    from filtax.models._robust import expected_log_likelihood, robust, temper
    from filtax.models._subspace import directions, last_layer, random_directions, subspace
    from filtax.models._trust import TrustCheck, check_trust, huber, imq, mahalanobis, tempered, threshold

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

__getattr__, __dir__ = _lazy(
    __name__,
    __all__,
    _exponential_family="bernoulli categorical poisson",
    _gaussian="gaussian",
    _generalised_bayes="density_power loss",
    _linear="linear since_change",
    _model="Direct Likelihood Linearised Model Predicted Predictor Whitened",
    _networks="Network last_layer_range lenet5 mlp",
    _nonlinear="nonlinear",
    _robust="expected_log_likelihood robust temper",
    _subspace="directions last_layer random_directions subspace",
    _trust="TrustCheck check_trust huber imq mahalanobis tempered threshold",
)
