"""The passes of a low-rank belief as kernels on this machine's CUDA device, against float64: error, time and bandwidth.

    python -m benchmarks.passes                         D = 9e4, 1e6 and 1e7
    python -m benchmarks.passes --largest 2e6           without the last

The error is that of the whole result, ||found - true|| / ||true||; `limit` is what float32 may cost. Rows of U that are
not used hold what must not be read. Nothing here runs without such a device.
"""

import argparse
import sys
import time

import numpy as np

CASES = ((89845, 30, 10, 20, 10), (990243, 100, 50, 75, 10), (10002950, 100, 50, 75, 10))  # D, K, rank, used, O
ODD = ((16411, 37, 13, 21, 3), (20011, 64, 20, 64, 12), (16400, 128, 64, 65, 1), (17001, 150, 75, 149, 32))
LIMIT = 1e-6


def numbers(D: int, K: int, O: int):
    """U with rows of different size, J, V with some parameters certain, and the factors of a sweep."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def drawn(key):
        keys = jax.random.split(key, 5)
        size = 10.0 ** -jnp.linspace(0.0, 2.0, K)[:, None]
        U = size * (0.1 + jax.random.normal(keys[0], (K, D), "float32"))
        V = jnp.where(jax.random.uniform(keys[1], (D,)) < 0.01, 0.0, 0.5 + jax.random.uniform(keys[2], (D,), "float32"))
        J = 0.1 + jax.random.normal(keys[3], (O, D), "float32")
        return [a.astype("float32") for a in (U, J, V, jax.random.normal(keys[4], (O, K)))]

    return drawn(jax.random.key(0))


def parts(D: int, K: int, rank: int, used: int, O: int):
    """What is done, by the kernel and as it is meant; the numbers that it reads and writes, if it does so once."""
    import jax.numpy as jnp

    from filtax._kernels import cuda_kernels as kernels

    U, J, V, c = numbers(D, K, O)
    held, n = U.at[used:].set(jnp.nan), jnp.asarray(used, jnp.int32)
    live = lambda U: U.at[used:].set(0.0)
    yield "project", lambda U, J: kernels.project(U, J, n, None), lambda U, J: live(U) @ J.T, (held, J), used + O
    yield (
        "weighted",
        lambda U, J, V: kernels.project(U, J, n, V),
        lambda U, J, V: (live(U) * V) @ J.T,
        (held, J, V),
        used + O,
    )
    yield (
        "subtract_rows",
        lambda P, U, c: kernels.subtract_rows(P, U, c, n),
        lambda P, U, c: P - c @ live(U),
        (J, held, c),
        used + 2 * O,
    )
    if kernels.fits_gram(U):
        yield (
            "gram",
            lambda U, V: kernels.gram(U, V, jnp.asarray(K, jnp.int32), n),
            lambda U, V: (U * V) @ U.T,
            (U, V),
            K,
        )
        yield (
            "of the first",
            lambda U: kernels.gram(U, None, jnp.asarray(rank, jnp.int32), n, first=rank),
            lambda U: U[:rank] @ U[:rank].T,
            (U,),
            rank,
        )


def off(found, true) -> float:
    import jax
    import jax.numpy as jnp

    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(true), strict=True)
    gap = [(jnp.linalg.norm(a.ravel() - b.ravel()), jnp.linalg.norm(b.ravel())) for a, b in pairs]
    return max(float(x / y) if y > 0 else float(x) for x, y in gap)


def clock(call, given, repeats: int = 10) -> float:
    """Milliseconds, the median of a few runs one after the other."""
    import jax

    jax.block_until_ready(call(*given))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(call(*given))
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The passes of a low-rank belief on a CUDA device, against float64.")
    parser.add_argument("--largest", type=float, default=2e7, help="leave out more parameters than these")
    options = parser.parse_args(arguments)
    import jax

    from filtax._kernels import cuda_kernels

    jax.config.update("jax_enable_x64", True)  # for what they are compared with
    if not cuda_kernels.usable():
        print("there is no CUDA device here on which these kernels run; nothing is checked.")
        return 1
    worst = 0.0
    for D, K, rank, used, O in (*ODD, *CASES):
        if D > options.largest:
            continue
        for name, kernel, plain, given, rows in parts(D, K, rank, used, O):
            call = jax.jit(kernel)
            exact = jax.jit(lambda *a, plain=plain: plain(*(jax.numpy.asarray(x, "float64") for x in a)))
            error = off(call(*given), exact(*given))
            worst = max(worst, error) if error == error else np.inf
            taken = clock(call, given)
            speed = f"{4e-9 * rows * D / taken:6.2f} TB/s"
            print(f"D = {D:9d}  K = {K:3d}  O = {O:2d}  {name:20s} {error:8.1e}  {taken:8.3f} ms  {speed}", flush=True)
    print(f"largest error {worst:.1e}, limit {LIMIT:.0e}")
    return int(not worst < LIMIT)


if __name__ == "__main__":
    sys.exit(main())
