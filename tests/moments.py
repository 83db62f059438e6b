"""What the operations on a Gaussian belief mean for its two moments: dense numpy that shares no code with the library.

Used by the tests beside the beliefs, priors and posteriors. Random problems here are small and of order one; units far
from one are drawn in `generators.py`.
"""

import numpy as np
import scipy.stats

from oracles import Moments, joint_conditioning


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def spd(seed, size):
    """A covariance with correlations, far from singular."""
    A = normal(seed, size, size + 2)
    return A @ A.T / size + 0.2 * np.eye(size)


def conditioned(mean, cov, J, B, r) -> Moments:
    """The belief after r = B J (theta - mean) + e with e ~ N(0, I), and the log density that it gave to r."""
    H, still = B @ J, np.zeros((1, *cov.shape))
    steps = (np.eye(len(mean))[None], np.zeros((1, len(mean))), still, H[None], np.eye(len(r))[None])
    return joint_conditioning(mean, cov, *steps, (r + H @ mean)[None])


def drifted(mean, cov, F=None, b=None, Q=None) -> Moments:
    """Moments of F theta + b + e, e ~ N(0, Q); a number or a vector stands for a diagonal matrix."""
    D = len(mean)
    dense = lambda value, empty: np.diag(np.full(D, empty) * value) if np.ndim(value) < 2 else np.asarray(value)
    F, Q = dense(1.0 if F is None else F, 1.0), dense(0.0 if Q is None else Q, 1.0)
    return Moments(F @ mean + (0.0 if b is None else b), F @ cov @ F.T + Q, np.nan)


def mixed(mean, cov, mean0, cov0, keep) -> Moments:
    """Share `keep` of one belief and the rest of another, so that equal beliefs stay as they are."""
    K, rest = np.diag(np.full(len(mean), keep)), np.diag(np.sqrt(1.0 - np.full(len(mean), keep) ** 2))
    return Moments(K @ mean + mean0 - K @ mean0, K @ cov @ K + rest @ cov0 @ rest, np.nan)


def same(belief, want, rtol=1e-10):
    """Mean, covariance and variances, to ten digits of the largest."""
    np.testing.assert_allclose(belief.mean, want.mean, rtol=rtol, atol=rtol * np.abs(want.mean).max(initial=1e-30))
    np.testing.assert_allclose(belief.cov, want.cov, rtol=rtol, atol=rtol * np.abs(want.cov).max(initial=1e-30))
    np.testing.assert_allclose(belief.var, np.diag(want.cov), rtol=rtol, atol=rtol * np.abs(want.cov).max())


def problem(D, O=1, seed=0):
    """Mean, covariance, Jacobian, whitener and residual, from nowhere in particular."""
    return normal(seed, D), spd(seed + 1, D), normal(seed + 2, O, D), normal(seed + 3, O, O), normal(seed + 4, O)


def sampled(draws, mean, cov, errors=5.0):
    """Draws (N, D) have the moments of N(mean, cov), within so many standard errors."""
    N, sd = len(draws), np.sqrt(np.diag(cov))
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - mean), errors * sd / np.sqrt(N) + 1e-12)
    error = np.abs(np.cov(draws.T).reshape(cov.shape) - cov)
    np.testing.assert_array_less(error, errors * np.sqrt(2.0 / N) * np.outer(sd, sd) + 1e-12)


def noise_rule(shape, rate, points=4001):
    """Nodes and weights of averages over an inverse-gamma(shape, rate) variance: a trapezium rule in its log."""
    middle, wide = np.log(rate / shape), 30.0 / np.sqrt(shape)
    nodes = np.linspace(middle - wide, middle + 2.0 * wide, points)
    weights = scipy.stats.invgamma(shape, scale=rate).pdf(np.exp(nodes)) * np.exp(nodes) * (nodes[1] - nodes[0])
    return np.exp(nodes), weights
