"""The kernels of a low-rank belief on this machine's CUDA device, against float64: largest error, and microseconds.

    python -m benchmarks.device_check

Errors are relative to the largest number of the result. Nothing here runs without such a device.
"""

import time

import numpy as np

LIMIT = 2e-5  # of a solve with a root of condition up to a hundred


def lower(rng, N: int, scale: float = 1.0) -> np.ndarray:
    """Cholesky factor of I + A Aᵀ."""
    A = scale * rng.normal(size=(N, N)) / np.sqrt(N)
    return np.linalg.cholesky(np.eye(N) + A @ A.T)


def off(found, true) -> float:
    found, true = np.asarray(found, np.float64), np.asarray(true, np.float64)
    return float(np.abs(found - true).max() / max(np.abs(true).max(), 1e-30))


def clock(call, *given, repeats: int = 100) -> float:
    """Microseconds of one launch, in a loop of them on the device."""
    import jax

    def body(_, held):
        first = jax.tree.leaves(call(*held))[0]
        nudge = 0.0 * first.reshape(-1)[0]
        return (held[0] + jax.numpy.where(jax.numpy.isfinite(nudge), nudge, 0.0), *held[1:])

    run = jax.jit(lambda *held: jax.lax.fori_loop(0, repeats, body, held))
    jax.block_until_ready(run(*given))
    times = []
    for _ in range(5):
        start = time.perf_counter()
        jax.block_until_ready(run(*given))
        times.append(time.perf_counter() - start)
    return 1e6 * min(times) / repeats


def explained_variance(rng, K: int, O: int, used: int):
    import jax.numpy as jnp

    from filtax._kernels import cuda_algebra

    s, R, L = rng.normal(size=(K, O)), np.eye(K), np.eye(K)
    s[used:] = 0.0
    R[:used, :used], L[:used, :used] = rng.normal(size=(used, used)), lower(rng, used, 3.0)
    given = [jnp.asarray(a, jnp.float32) for a in (s, R, L)] + [jnp.asarray(used, jnp.int32)]
    s, R, L = (np.asarray(a, np.float64) for a in given[:3])
    half = R.T @ s
    fit = np.linalg.solve(L.T, half)
    return cuda_algebra.explained_variance, given, (half, half.T @ R.T, fit.T @ fit)


def innovation(rng, O: int):
    import jax.numpy as jnp

    from filtax._kernels import cuda_algebra

    A = rng.normal(size=(O, O)) / O
    given = [jnp.asarray(a, jnp.float32) for a in (A @ A.T, rng.normal(size=(O, O)), rng.normal(size=O))]
    spread, B, r = (np.asarray(a, np.float64) for a in given)
    S = np.eye(O) + B @ spread @ B.T
    L = np.linalg.cholesky(S)
    return cuda_algebra.innovation, given, (L, np.linalg.solve(L, r), np.linalg.solve(S, r) @ B, True)


def psd_cholesky(rng, O: int, many: int):
    import jax
    import jax.numpy as jnp

    from filtax._kernels import cuda_algebra

    A = rng.normal(size=(many, O, O)) * np.exp(2.0 * rng.normal(size=(many, O, 1)))
    A = jnp.asarray(A @ A.transpose(0, 2, 1) + 1e-3 * np.eye(O), jnp.float32)
    return (
        (cuda_algebra.psd_cholesky, [A[0]], (np.linalg.cholesky(np.asarray(A[0], np.float64)),))
        if many == 1
        else (jax.vmap(cuda_algebra.psd_cholesky), [A], (np.linalg.cholesky(np.asarray(A, np.float64)),))
    )


def eigenvectors(rng, K: int, rank: int) -> tuple[float, float, float]:
    """How far Q is from orthogonal, its eigenvalues from their order and values, and microseconds."""
    import jax
    import jax.numpy as jnp

    from filtax._kernels import cuda_algebra

    W = rng.normal(size=(500, K)) * np.exp(2.0 * rng.normal(size=K))
    W[:, :rank] = np.linalg.svd(W[:, :rank], full_matrices=False)[0] * np.exp(rng.normal(size=rank))
    G = jnp.asarray(W.T @ W, jnp.float32)
    Q = np.asarray(jax.jit(cuda_algebra.eigenvectors)(G), np.float64)
    T = Q.T @ np.asarray(G, np.float64) @ Q
    values = np.linalg.eigvalsh(np.asarray(G, np.float64))[::-1]
    return (
        np.abs(Q.T @ Q - np.eye(K)).max(),
        np.abs(T - np.diag(values)).max() / values[0],
        clock(cuda_algebra.eigenvectors, G),
    )


CASES = [
    *(
        (explained_variance, sizes)
        for sizes in ((30, 10, 20), (100, 10, 90), (100, 10, 0), (128, 1, 128), (64, 32, 40), (33, 3, 32))
    ),
    *((innovation, (O,)) for O in (1, 2, 10, 32)),
    *((psd_cholesky, sizes) for sizes in ((5, 1), (10, 1), (10, 200), (32, 1))),
]


def main() -> int:
    import jax

    from filtax._kernels import cuda

    if not cuda.usable():
        print("there is no CUDA device here that these kernels run on.")
        return 0
    rng, wrong = np.random.default_rng(0), 0.0
    for case, sizes in CASES:
        call, given, true = case(rng, *sizes)
        found = jax.jit(call)(*given)
        found = found if isinstance(found, tuple | list) else (found,)
        errors = [off(a, b) for a, b in zip(found, true, strict=True)]
        wrong = max(wrong, *errors)
        shown = " ".join(f"{error:.1e}" for error in errors)
        print(f"{case.__name__:18} {sizes!s:22} {clock(call, *given):7.2f} us {shown}", flush=True)
    for K, rank in ((2, 1), (30, 10), (31, 10), (100, 50), (128, 64)):
        orthogonal, values, microseconds = eigenvectors(rng, K, rank)
        wrong = max(wrong, orthogonal, values)
        print(f"eigenvectors       {K!s:22} {microseconds:7.2f} us {orthogonal:.1e} {values:.1e}", flush=True)
    print("largest error", wrong, "right" if wrong < LIMIT else "WRONG")
    return int(not wrong < LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
