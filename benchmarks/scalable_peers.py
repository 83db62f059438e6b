"""LoFi as it is written down: a dense Jacobian, and a cut with every datum. What the bars of `scalable` are a ratio of.

On the machine of the bars such a program took 10.7 ms at rank 10 and 85 at rank 50 (diagonal), 10.0 and 21.5
(spherical), where at most 8 and 20 are asked for.
"""

import numpy as np

TOOK = {("diagonal", 10): 10.7, ("diagonal", 50): 85.0, ("spherical", 10): 10.0, ("spherical", 50): 21.5}


def each_datum(net, rank: int, form: str):
    """A step of (mean, upsilon, W) and (x, label) under a softmax, for `scan`: algo:lofi-update with its errata."""
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    _, unravel = ravel_pytree(net.init(jax.random.key(0), "float32"))
    logits = lambda mean, x: net.apply(unravel(mean), x)
    many = lambda A, B: jnp.matmul(A, B, precision="highest")

    def step(held, datum):
        (mean, upsilon, W), (x, label) = held, datum
        eta, J = logits(mean, x), jax.jacrev(logits)(mean, x)
        p = jax.nn.softmax(eta)
        root = jnp.sqrt(p)[:, None] * (jnp.eye(p.size, dtype=p.dtype) - jnp.sqrt(p)[:, None] * jnp.sqrt(p)[None, :])
        tall = jnp.concatenate([W, many(J.T, root)], axis=1)
        inner = many(tall.T, tall)
        eye = jnp.eye(len(inner), dtype=p.dtype)
        if form == "diagonal":
            scaled = tall / upsilon[:, None]
            M = eye + many(tall.T, scaled)
        else:
            scaled, M = tall / upsilon, eye + inner / upsilon
        g = many(J.T, jax.nn.one_hot(label, p.size, dtype=p.dtype) - p)
        mean = mean + g / upsilon - many(scaled, jnp.linalg.solve(M, many(scaled.T, g)))
        _, Q = jnp.linalg.eigh(inner)
        if form == "diagonal":
            turned = many(tall, Q)
            W, dropped = turned[:, -rank:], jnp.sum(turned[:, :-rank] ** 2, axis=1)
        else:
            W, dropped = many(tall, Q[:, -rank:]), jnp.trace(inner) / len(mean)
            dropped = dropped - jnp.sum(W * W) / len(mean)
        return (mean, upsilon + dropped, W), p[0]

    return step


def published(sizes, steps: int, rank: int, form: str, spread: float):
    """A run over labels like that of `ours`; the belief is updated in place from run to run."""
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    from filtax.models import mlp

    net = mlp(sizes)
    rng = np.random.default_rng(0)
    X = jnp.asarray(rng.normal(size=(steps, sizes[0])), "float32")
    Y = jnp.asarray(rng.integers(0, sizes[-1], size=steps))
    mean, _ = ravel_pytree(net.init(jax.random.key(0), "float32"))
    upsilon = jnp.full(mean.shape if form == "diagonal" else (), 1.0 / spread, "float32")
    held = [(mean, upsilon, jnp.zeros((mean.size, rank), "float32"))]
    run = jax.jit(lambda held, X, Y: jax.lax.scan(each_datum(net, rank, form), held, (X, Y)), donate_argnums=0)

    def call():
        held[0], found = run(held[0], X, Y)
        return jax.block_until_ready(found)

    return call
