"""(M.1) Measurement models: a predictor h(theta, x) of a natural parameter, and the likelihood of y given it.

linear(noise=...), nonlinear(h, noise=...)           ready models
gaussian(noise), bernoulli(), categorical(), poisson()   likelihoods, for `likelihood=`
loss(function)                                       any loss of your own in the place of a likelihood
mlp(sizes), lenet5()                                 networks in plain JAX
robust(model, trust=...)                             any of these, with outliers trusted less (WoLF)
imq(c), mahalanobis(c), threshold(c), huber(c), tempered(w)   trusts; check_trust(W) judges one
"""

from filtax.models.bounds import TrustCheck, check_trust
from filtax.models.exponential_family import bernoulli, categorical, poisson
from filtax.models.gaussian import gaussian
from filtax.models.linear import linear
from filtax.models.loss import loss
from filtax.models.model import Direct, Likelihood, Linearised, Model, Predicted, Predictor, Whitened
from filtax.models.networks import Network, lenet5, mlp
from filtax.models.nonlinear import nonlinear
from filtax.models.robust import robust
from filtax.models.since_change import since_change
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
    "gaussian",
    "huber",
    "imq",
    "lenet5",
    "linear",
    "loss",
    "mahalanobis",
    "mlp",
    "nonlinear",
    "poisson",
    "robust",
    "since_change",
    "tempered",
    "threshold",
]
