"""Random loops of what XLA's CPU compiler writes out itself, each as one kernel and as `jax.lax.scan`.

    python tests/loops.py FIRST LAST

A loop that XLA's compiler cannot take ends the process, so this is a program of its own: `test_lanes.py` runs it.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special

from filtax import lanes

ONE = [
    *(
        jnp.abs,
        jnp.cbrt,
        jnp.ceil,
        jnp.cos,
        jnp.floor,
        jnp.negative,
        jnp.round,
        jnp.sign,
        jnp.sin,
        jnp.square,
        jnp.tanh,
    ),
    *(special.erf, special.erfc, jax.nn.sigmoid, jax.nn.softplus, jax.nn.relu),
    *(lambda a: special.digamma(jnp.abs(a) + 3.0), lambda a: special.gammaln(jnp.abs(a) + 1.0)),
    *(lambda a: special.erfinv(0.9 * jnp.tanh(a)), lambda a: jnp.exp(jnp.minimum(a, 5.0)), lambda a: a**3),
    *(lambda a: jnp.log1p(jnp.abs(a)), lambda a: jax.lax.rsqrt(jnp.abs(a) + 0.1), lambda a: jnp.clip(a, -1.0, 1.0)),
    *(lambda a: jnp.where(jnp.isfinite(a), a, 0.0), lambda a: a.astype(jnp.int32).astype(a.dtype)),
    *(lambda a: jax.nn.logsumexp(a) + a, lambda a: a.T, lambda a: jnp.pad(jnp.ravel(a), 1)),
    *(lambda a: jnp.stack([jnp.ravel(a), -jnp.ravel(a)]), lambda a: jnp.broadcast_to(jnp.ravel(a)[:1], (4,))),
    *(lambda a: jnp.concatenate([jnp.ravel(a), jnp.arange(2.0, dtype=a.dtype)]), lambda a: jnp.ravel(a)[::-1][-1]),
    lambda a: jax.lax.dynamic_index_in_dim(jnp.ravel(a), jnp.sum(a > 0.0) % a.size, keepdims=False),
]
TWO = [
    *(jnp.add, jnp.subtract, jnp.multiply, jnp.maximum, jnp.minimum, jnp.arctan2, jnp.logaddexp),
    *(lambda a, b: a / (1.0 + jnp.abs(b)), lambda a, b: jnp.where((a > b) & (b < 1.0) | ~(a < b), a, 2.0 * b)),
    *(
        lambda a, b: jnp.power(jnp.abs(a) + 0.1, jnp.clip(b, -2.0, 2.0)),
        lambda a, b: jnp.remainder(a, 1.0 + jnp.abs(b)),
    ),
]
ALL = [jnp.sum, jnp.max, jnp.min, jnp.prod, lambda a, axis: jnp.all(a > 0.0, axis=axis).astype(a.dtype)]


def drawn(seed: int):
    """A body, what is carried, and rows; some rows and some of what is carried are not read."""
    rng = np.random.default_rng(seed)
    sides = (1, 2, 3, 8) if rng.random() < 0.7 else (3, 17, 90)
    shapes = [[int(rng.choice(sides)) for _ in range(rng.integers(3))] for _ in range(rng.integers(1, 4))]
    carry = [jnp.asarray(rng.normal(size=shape)) for shape in shapes]
    rows = [jnp.asarray(rng.normal(size=(4, int(rng.choice(sides))))) for _ in range(2)]
    unread, length = int(rng.integers(3)), int(rng.integers(5, 30))

    def body(carry, rows):
        draw = np.random.default_rng(seed)
        pool = [*carry, *rows[unread:]]
        for _ in range(length):
            a, b = (pool[draw.integers(len(pool))] for _ in range(2))
            kind = draw.integers(3)
            if kind == 0:
                pool.append(ONE[draw.integers(len(ONE))](a))
            elif kind == 1:
                alike = a.shape == b.shape or not (a.ndim and b.ndim)
                pool.append(TWO[draw.integers(len(TWO))](a, b if alike else jnp.max(b)))
            else:
                axis = int(draw.integers(a.ndim)) if a.ndim and draw.random() < 0.6 else None
                pool.append(ALL[draw.integers(len(ALL))](a, axis=axis))
        moved = sum(jnp.tanh(jnp.nan_to_num(jnp.sum(one))) for one in pool[-3:])
        new = [jnp.nan_to_num(jnp.tanh(one)) * 0.9 + 0.01 * moved if draw.random() < 0.8 else one for one in carry]
        return new, pool[-2:]

    return body, carry, rows


def main(first: int, last: int) -> int:
    """Compare them, and say how many were one kernel."""
    found = 0
    for seed in range(first, last):
        body, carry, rows = drawn(seed)
        program = jax.jit(lambda *given, body=body: lanes.scan(body, *given)).lower(carry, rows)
        found += "xla_cpu_small_call" in program.as_text()
        made = program.compile()(carry, rows)
        wanted = jax.jit(lambda *given, body=body: jax.lax.scan(body, *given))(carry, rows)
        for one, other in zip(jax.tree.leaves(made), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=f"loop {seed}")
    print(f"{found} of {last - first} loops were one kernel")
    return 0


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    sys.exit(main(*map(int, sys.argv[1:3])))
