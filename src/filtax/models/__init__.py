"""(M.1) Measurement models: a predictor h(theta, x) of a natural parameter, and the likelihood of y given it.

linear(noise=...), nonlinear(h, noise=...)           ready models
gaussian(noise), bernoulli(), categorical(), poisson()   likelihoods, for `likelihood=`
mlp(sizes), lenet5()                                 networks in plain JAX
"""

from filtax.models.exponential_family import bernoulli, categorical, poisson
from filtax.models.gaussian import gaussian
from filtax.models.linear import linear
from filtax.models.model import Direct, Likelihood, Linearised, Model, Predicted, Predictor, Whitened
from filtax.models.networks import Network, lenet5, mlp
from filtax.models.nonlinear import nonlinear

__all__ = [
    "Direct",
    "Likelihood",
    "Linearised",
    "Model",
    "Network",
    "Predicted",
    "Predictor",
    "Whitened",
    "bernoulli",
    "categorical",
    "gaussian",
    "lenet5",
    "linear",
    "mlp",
    "nonlinear",
    "poisson",
]
