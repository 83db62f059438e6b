"""(M.3) Conditional priors pi(theta; psi): what happens to the parameters between two data."""

from typing import TYPE_CHECKING

from filtax import _lazy

if TYPE_CHECKING:
    from filtax.priors._adaptive_forgetting import empirical_ou, ou_reset
    from filtax.priors._dynamics import (
        Continue,
        additive_inflation,
        by_block,
        by_expert,
        linear_dynamics,
        nonlinear_dynamics,
        ornstein_uhlenbeck,
        shrink_perturb,
        static,
    )
    from filtax.priors._reset import covariance_inflation, moment_matched_reset, polynomial_shift, reset, subset

__all__ = [
    "Continue",
    "additive_inflation",
    "by_block",
    "by_expert",
    "covariance_inflation",
    "empirical_ou",
    "linear_dynamics",
    "moment_matched_reset",
    "nonlinear_dynamics",
    "ornstein_uhlenbeck",
    "ou_reset",
    "polynomial_shift",
    "reset",
    "shrink_perturb",
    "static",
    "subset",
]

__getattr__, __dir__ = _lazy(
    __name__,
    __all__,
    _dynamics="Continue additive_inflation by_block by_expert linear_dynamics nonlinear_dynamics ornstein_uhlenbeck "
    "shrink_perturb static",
    _adaptive_forgetting="empirical_ou ou_reset",
    _reset="covariance_inflation moment_matched_reset polynomial_shift reset subset",
)
