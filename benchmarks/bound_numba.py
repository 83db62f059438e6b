"""The two bounds of `bound.c` for machines without a C compiler: the same loops, sixteen trials side by side."""

import math

import numpy as np
from numba import njit, prange

W = 16  # the loops over W are the innermost ones, so that they become vector instructions


@njit(fastmath=True)
def _move(F, Q, m, P, old, T):
    """m = F m,  P = F P F' + Q, in place; `old` and `T` are scratch."""
    old[:] = m
    for r in range(4):
        for i in range(W):
            m[r, i] = F[r, 0] * old[0, i] + F[r, 1] * old[1, i] + F[r, 2] * old[2, i] + F[r, 3] * old[3, i]
        for c in range(4):
            for i in range(W):
                T[r, c, i] = (F[r, 0] * P[0, c, i] + F[r, 1] * P[1, c, i]) + (
                    F[r, 2] * P[2, c, i] + F[r, 3] * P[3, c, i]
                )
    for r in range(4):
        for c in range(4):
            for i in range(W):
                left, right = T[r, 0, i] * F[c, 0] + T[r, 1, i] * F[c, 1], T[r, 2, i] * F[c, 2] + T[r, 3, i] * F[c, 3]
                P[r, c, i] = Q[r, c] + left + right


@njit(fastmath=True)
def _condition(H, R, m, P, e, U, S):
    """Condition on the measurements in `e`, in place; leaves the innovation in `e`, inverse and determinant in `S`."""
    for o in range(2):
        for i in range(W):
            e[o, i] -= H[o, 0] * m[0, i] + H[o, 1] * m[1, i] + H[o, 2] * m[2, i] + H[o, 3] * m[3, i]
        for c in range(4):
            for i in range(W):
                U[o, c, i] = (H[o, 0] * P[0, c, i] + H[o, 1] * P[1, c, i]) + (
                    H[o, 2] * P[2, c, i] + H[o, 3] * P[3, c, i]
                )
    for i in range(W):
        a, b, d = R[0, 0], R[0, 1], R[1, 1]
        for k in range(4):
            a += U[0, k, i] * H[0, k]
            b += U[0, k, i] * H[1, k]
            d += U[1, k, i] * H[1, k]
        det = a * d - b * b
        S[0, i], S[1, i], S[2, i], S[3, i] = d / det, -b / det, a / det, det
    for r in range(4):
        for i in range(W):
            v0, v1 = S[0, i] * U[0, r, i] + S[1, i] * U[1, r, i], S[1, i] * U[0, r, i] + S[2, i] * U[1, r, i]
            m[r, i] += v0 * e[0, i] + v1 * e[1, i]
            for c in range(4):
                P[r, c, i] -= v0 * U[0, c, i] + v1 * U[1, c, i]


@njit(fastmath=True)
def _block(F, Q, H, R, m0, P0, Y, means, covs, loglik):
    """Filter up to W trials; the unused lanes repeat the last trial and are not stored."""
    live, f32 = Y.shape[0], np.float32
    m, P = np.empty((4, W), f32), np.empty((4, 4, W), f32)
    for r in range(4):
        m[r] = m0[r]
        for c in range(4):
            P[r, c] = P0[r, c]
    old, T, U, S, e = m.copy(), P.copy(), np.empty((2, 4, W), f32), np.empty((4, W), f32), np.empty((2, W), f32)
    for t in range(Y.shape[1]):
        for i in range(W):
            e[0, i], e[1, i] = Y[min(i, live - 1), t, 0], Y[min(i, live - 1), t, 1]
        _move(F, Q, m, P, old, T)
        _condition(H, R, m, P, e, U, S)
        for i in range(live):
            means[i, t] = m[:, i]
        if covs is not None:
            for i in range(live):
                covs[i, t] = P[:, :, i]
                square = S[0, i] * e[0, i] ** 2 + 2 * S[1, i] * e[0, i] * e[1, i] + S[2, i] * e[1, i] ** 2
                loglik[i] += f32(-0.5) * (square + np.log(S[3, i])) - f32(math.log(2 * math.pi))


@njit(parallel=True, fastmath=True)
def kf(F, Q, H, R, m0, P0, Y, means, covs, loglik):
    """Filter every trial of `Y`; `covs` and `loglik` are filled unless they are None."""
    for block in prange((Y.shape[0] + W - 1) // W):
        i, j = block * W, min(block * W + W, Y.shape[0])
        if covs is None:
            _block(F, Q, H, R, m0, P0, Y[i:j], means[i:j], None, None)
        else:
            loglik[i:j] = 0.0
            _block(F, Q, H, R, m0, P0, Y[i:j], means[i:j], covs[i:j], loglik[i:j])


@njit(parallel=True, fastmath=True)
def traffic(P, steps):
    """Read `P`, then read and write it, `steps` times over."""
    seen = np.float32(0.0)
    for _ in range(steps):
        total = np.float32(0.0)
        for i in prange(P.size):
            total += P[i]
        shift = np.float32(1e-9) * total
        for i in prange(P.size):
            P[i] = np.float32(0.999) * P[i] + shift
        seen += total
    return seen
