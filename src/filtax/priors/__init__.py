"""(M.3) Conditional priors pi(theta; psi): what happens to the parameters between two data."""

from typing import TYPE_CHECKING

from filtax import _lazy

if TYPE_CHECKING:
    from filtax.priors._by_part import by_block, by_expert
    from filtax.priors._covariance_inflation import covariance_inflation
    from filtax.priors._dynamics import (
        Continue,
        additive_inflation,
        linear_dynamics,
        nonlinear_dynamics,
        ornstein_uhlenbeck,
        shrink_perturb,
        static,
    )
    from filtax.priors._empirical_ou import empirical_ou
    from filtax.priors._ou_reset import ou_reset
    from filtax.priors._reset import moment_matched_reset, polynomial_shift, reset
    from filtax.priors._subset import subset

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
    _by_part="by_block by_expert",
    _covariance_inflation="covariance_inflation",
    _dynamics="Continue additive_inflation linear_dynamics nonlinear_dynamics ornstein_uhlenbeck shrink_perturb static",
    _empirical_ou="empirical_ou",
    _ou_reset="ou_reset",
    _reset="moment_matched_reset polynomial_shift reset",
    _subset="subset",
)
