"""(M.3) Conditional priors pi(theta; psi): what happens to the parameters between two data."""

from filtax.priors.continuing import Continue
from filtax.priors.inflation import additive_inflation, shrink_perturb, static
from filtax.priors.linear_dynamics import linear_dynamics
from filtax.priors.nonlinear_dynamics import nonlinear_dynamics
from filtax.priors.ornstein_uhlenbeck import ornstein_uhlenbeck

__all__ = [
    "Continue",
    "additive_inflation",
    "linear_dynamics",
    "nonlinear_dynamics",
    "ornstein_uhlenbeck",
    "shrink_perturb",
    "static",
]
