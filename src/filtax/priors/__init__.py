"""(M.3) Conditional priors pi(theta; psi): what happens to the parameters between two data."""

from typing import TYPE_CHECKING

from filtax.gathering import on_demand

if TYPE_CHECKING:
    from filtax.priors.by_block import by_block
    from filtax.priors.by_expert import by_expert
    from filtax.priors.continuing import Continue
    from filtax.priors.covariance_inflation import covariance_inflation
    from filtax.priors.empirical_ou import empirical_ou
    from filtax.priors.frames import polynomial_shift
    from filtax.priors.inflation import additive_inflation, shrink_perturb, static
    from filtax.priors.linear_dynamics import linear_dynamics
    from filtax.priors.nonlinear_dynamics import nonlinear_dynamics
    from filtax.priors.ornstein_uhlenbeck import ornstein_uhlenbeck
    from filtax.priors.ou_reset import ou_reset
    from filtax.priors.reset import moment_matched_reset, reset
    from filtax.priors.subset import subset

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

on_demand(
    __name__,
    by_block="by_block",
    by_expert="by_expert",
    continuing="Continue",
    covariance_inflation="covariance_inflation",
    empirical_ou="empirical_ou",
    frames="polynomial_shift",
    inflation="additive_inflation shrink_perturb static",
    linear_dynamics="linear_dynamics",
    nonlinear_dynamics="nonlinear_dynamics",
    ornstein_uhlenbeck="ornstein_uhlenbeck",
    ou_reset="ou_reset",
    reset="moment_matched_reset reset",
    subset="subset",
)
