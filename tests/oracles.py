"""What the right answer is: slow, plain numpy in float64 that shares no code with the library.

Nothing here imports jax or filtax. Every function does the textbook thing in the most direct way (one big joint
Gaussian, a sum over all segmentations, exact fractions), so that an error in a recursion cannot hide in both places.
Time runs as in the library: the belief at t=0 is the prior, the transition acts before each datum, the first included.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.special

Array = np.ndarray


class Moments(NamedTuple):
    """A Gaussian belief and the log evidence of the data that led to it."""

    mean: Array
    cov: Array
    log_evidence: float


def log_normal(residual: Array, cov: Array) -> float:
    """Log density of N(0, cov) at the residual, by an explicit Cholesky."""
    if residual.size == 0:
        return 0.0
    L = np.linalg.cholesky(cov)
    z = scipy.linalg.solve_triangular(L, residual, lower=True)
    return float(-0.5 * z @ z - np.log(np.diag(L)).sum() - 0.5 * len(z) * np.log(2 * np.pi))


def batch_regression(X: Array, y: Array, mean: Array, cov: Array, noise: float) -> Moments:
    """Posterior of y = X theta + N(0, noise), theta ~ N(mean, cov), from the stacked least-squares problem.

    The rows of prior and data are whitened, stacked and reduced by one QR: errors grow with the condition number of
    the design and not with its square, so this stays a reference for nearly collinear features.
    """
    X, y, mean = (np.asarray(a, np.float64) for a in (X, y, mean))
    whitener = np.linalg.inv(np.linalg.cholesky(np.asarray(cov, np.float64)))
    rows = np.vstack([whitener, X / np.sqrt(noise)])
    right = np.concatenate([whitener @ mean, y / np.sqrt(noise)])
    R = np.linalg.qr(np.column_stack([rows, right]), mode="r")
    D = len(mean)
    inverse = scipy.linalg.solve_triangular(R[:D, :D], np.eye(D))
    misfit = float(R[D, D] ** 2)
    log_det = 2 * np.log(np.abs(np.diag(R[:D, :D]))).sum() - 2 * np.log(np.diag(whitener)).sum()
    log_evidence = -0.5 * (misfit + log_det + len(y) * np.log(2 * np.pi * noise))
    return Moments(inverse @ R[:D, D], inverse @ inverse.T, float(log_evidence))


def ridge(X: Array, y: Array, penalty: float) -> Array:
    """The normal equations of ridge regression, as printed in any book."""
    return np.linalg.solve(X.T @ X + penalty * np.eye(X.shape[1]), X.T @ y)


def weighted_least_squares(X: Array, y: Array, weights: Array, mean: Array, cov: Array, prior_weight: float) -> Moments:
    """Unit-noise least squares with a weight for each row and one for the prior; the evidence is not defined."""
    precision = prior_weight * np.linalg.inv(cov)
    total = precision + (X.T * weights) @ X
    return Moments(np.linalg.solve(total, precision @ mean + X.T @ (weights * y)), np.linalg.inv(total), np.nan)


def joint_conditioning(m0, P0, F, b, Q, H, R, y) -> Moments:
    """Condition the joint Gaussian of all states and all data on the data that were seen.

    theta_t = F_t theta_{t-1} + b_t + N(0, Q_t), y_t = H_t theta_t + N(0, R_t), t = 1..T. The state of every step is
    written as a linear map of the independent sources (theta_0, w_1, ..., w_T), so no recursion over beliefs is used.

    Args:
        m0: mean at t=0, (D,).
        P0: covariance at t=0, (D, D).
        F: transitions, (T, D, D).
        b: offsets, (T, D).
        Q: process noise, (T, D, D).
        H: observation matrices, (T, O, D).
        R: observation noise, (T, O, O).
        y: data, (T, O); NaN marks an element that was not seen.

    Returns:
        mean and covariance of the last state, and the log density of everything that was seen.
    """
    T, D = len(y), len(m0)
    sources = scipy.linalg.block_diag(P0, *Q)
    maps, centre = np.eye(D, D * (T + 1)), np.array(m0, float)
    rows, centres = [], []
    for t in range(T):
        maps = F[t] @ maps
        maps[:, D * (t + 1) : D * (t + 2)] += np.eye(D)
        centre = F[t] @ centre + b[t]
        rows.append(H[t] @ maps)
        centres.append(H[t] @ centre)
    stacked = np.concatenate(rows)
    seen = ~np.isnan(y.ravel())
    joint = (stacked @ sources @ stacked.T + scipy.linalg.block_diag(*R))[np.ix_(seen, seen)]
    cross = (maps @ sources @ stacked.T)[:, seen]
    residual = (y.ravel() - np.concatenate(centres))[seen]
    gain = np.linalg.solve(joint, cross.T).T if seen.any() else np.zeros((D, 0))
    return Moments(
        centre + gain @ residual, maps @ sources @ maps.T - gain @ joint @ gain.T, log_normal(residual, joint)
    )


class Filtered(NamedTuple):
    """What a filter says after each step, (T, ...), and the forecast it made before."""

    mean: Array
    cov: Array
    forecast_mean: Array
    forecast_cov: Array
    log_evidence: Array


def kalman_filter(m0, P0, F, b, Q, H, R, y) -> Filtered:
    """The textbook recursion with Joseph's covariance; arguments as in `joint_conditioning`."""
    m, P, out = np.array(m0, float), np.array(P0, float), []
    for Ft, bt, Qt, Ht, Rt, yt in zip(F, b, Q, H, R, y, strict=True):
        m, P = Ft @ m + bt, Ft @ P @ Ft.T + Qt
        forecast, S_full = Ht @ m, Ht @ P @ Ht.T + Rt
        seen = ~np.isnan(yt)
        h, r, e = Ht[seen], Rt[np.ix_(seen, seen)], (yt - forecast)[seen]
        S = S_full[np.ix_(seen, seen)]
        K = np.linalg.solve(S, h @ P).T if seen.any() else np.zeros((len(m), 0))
        m = m + K @ e
        left = np.eye(len(m)) - K @ h
        P = left @ P @ left.T + K @ r @ K.T
        out.append((m, P, forecast, S_full, log_normal(e, S)))
    return Filtered(*(np.array(column) for column in zip(*out, strict=True)))


def newton_step(mean: Array, cov: Array, score: Array, information: Array) -> Moments:
    """One Newton step on log prior + log likelihood from the prior mean, and the inverse Hessian there."""
    posterior = np.linalg.inv(np.linalg.inv(cov) + information)
    return Moments(mean + posterior @ score, posterior, np.nan)


def logistic_newton(mean: Array, cov: Array, x: Array, y: float) -> Moments:
    """y ~ Bernoulli(sigmoid(x theta)): score x (y - p), information p (1 - p) x xT."""
    p = scipy.special.expit(x @ mean)
    return newton_step(mean, cov, x * (y - p), p * scipy.special.expit(-x @ mean) * np.outer(x, x))


def poisson_newton(mean: Array, cov: Array, x: Array, y: float) -> Moments:
    """y ~ Poisson(exp(x theta)): score x (y - rate), information rate x xT."""
    rate = np.exp(x @ mean)
    return newton_step(mean, cov, x * (y - rate), rate * np.outer(x, x))


def softmax_newton(mean: Array, cov: Array, J: Array, label: int) -> Moments:
    """y ~ Categorical(softmax(J theta)): score JT (onehot - p), information JT (diag p - p pT) J."""
    p = scipy.special.softmax(J @ mean)
    return newton_step(mean, cov, J.T @ (np.eye(len(p))[label] - p), J.T @ (np.diag(p) - np.outer(p, p)) @ J)


class Segmented(NamedTuple):
    """Log evidence of the stream, and p(run length = r | all data) for r = 0..T."""

    log_evidence: float
    runlength: Array


def enumerate_segmentations(
    segment_log_evidence: Callable[[int, int], float], hazard: float | Callable[[int], float], T: int
) -> Segmented:
    """Sum over all 2^T histories of "a change arrives with datum t" for t = 1..T.

    A change at t starts a segment whose first datum is t and sets the run length to 0; without one the run length
    grows by one. It is 0 before the first datum, so a stream without changes ends with run length T.

    Args:
        segment_log_evidence: (start, stop) to the log evidence of data start..stop, both included and counted from
            1, given a fresh prior at `start`; start 0 means the initial belief, whose data begin at 1.
        hazard: probability of a change, or a function of the run length before the step.
        T: number of data.
    """
    rate = hazard if callable(hazard) else lambda runlength: hazard
    log_joint, last = [], []
    for changes in product((False, True), repeat=T):
        start, total = 0, 0.0
        for t, change in enumerate(changes, start=1):
            probability = rate(t - 1 - start)
            with np.errstate(divide="ignore"):
                total += float(np.log(probability if change else 1.0 - probability))
            if change:
                total += segment_log_evidence(start, t - 1) if t > 1 else 0.0
                start = t
        log_joint.append(total + (segment_log_evidence(start, T) if T else 0.0))
        last.append(T - start)
    evidence = scipy.special.logsumexp(log_joint)
    return Segmented(float(evidence), np.bincount(last, np.exp(np.array(log_joint) - evidence), minlength=T + 1))


def solve_exactly(A: Sequence[Sequence[Fraction]], B: Sequence[Sequence[Fraction]]) -> list[list[Fraction]]:
    """A^-1 B in rational arithmetic (Gauss-Jordan with row exchange)."""
    rows = [[*a, *b] for a, b in zip(A, B, strict=True)]
    n = len(rows)
    for i in range(n):
        pivot = next(k for k in range(i, n) if rows[k][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(n):
            if k != i and rows[k][i] != 0:
                rows[k] = [a - rows[k][i] * c for a, c in zip(rows[k], rows[i], strict=True)]
    return [row[n:] for row in rows]


def exact_update(mean: Array, cov: Array, H: Array, R: Array, y: Array) -> Moments:
    """The Kalman update of one datum in rational arithmetic; the floats given are taken as exact numbers.

    Only the results are rounded. This is the reference for updates whose condition number leaves no correct digit to
    any formula in floating point.
    """
    fractions = lambda a: [[Fraction(float(v)) for v in row] for row in np.atleast_2d(a)]
    times = lambda A, B: [[sum(a * b for a, b in zip(r, c, strict=True)) for c in zip(*B, strict=True)] for r in A]
    plus = lambda A, B, sign=1: [[a + sign * b for a, b in zip(r, s, strict=True)] for r, s in zip(A, B, strict=True)]
    flip = lambda A: [list(c) for c in zip(*A, strict=True)]
    m, P, H_, R_, y_ = flip(fractions(mean)), fractions(cov), fractions(H), fractions(R), flip(fractions(y))
    HP = times(H_, P)
    S = plus(times(HP, flip(H_)), R_)
    gain = flip(solve_exactly(S, HP))
    new_mean = plus(m, times(gain, plus(y_, times(H_, m), -1)))
    new_cov = plus(P, times(gain, HP), -1)
    rounded = lambda A: np.array([[float(v) for v in row] for row in A])
    return Moments(rounded(new_mean)[:, 0], rounded(new_cov), np.nan)
