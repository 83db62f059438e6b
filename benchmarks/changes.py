"""Run lengths: RL[K] on a regression with two features, and all of them, RL[inf], on a mean; a fleet of streams."""

import numpy as np

from benchmarks.harness import Bar, Result, Row, alternate, progress, spread

LIMITS = {"plain": {1: 1.0, 10: 4.0, 100: 10.0}, "tuned": {1: 0.1, 10: 0.8, 100: 2.5}}
FORMS = ("root", "covariance")  # the first is what `LG` alone means here
BOUNDED, ALL = "RL[K], d=2, one step of a complete stream", "RL[inf], a mean, whole complete stream"
LOOKED_AT, FLEET = "RL[K], d=2, one step, each row looked at", "complete streams of RL[10], d=2, one update"


def stream(steps: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Levels that jump every hundred data."""
    rng = np.random.default_rng(4)
    X = np.concatenate([np.ones((steps, 1)), rng.normal(size=(steps, features - 1))], axis=1)
    theta = np.repeat(3.0 * rng.normal(size=(steps // 100 + 1, features)), 100, axis=0)[:steps]
    return X.astype(np.float32), (np.sum(X * theta, axis=1) + rng.normal(size=steps)).astype(np.float32)


def scan(name: str, X, Y, streams: int = 0, complete: bool = True):
    """The most probable run length at each step, of one stream or of many; rows may be promised to be complete."""
    import jax
    import jax.numpy as jnp

    import filtax as fx

    method = fx.method(name, model=fx.models.linear(noise=1.0))
    state = method.init(mean=jnp.zeros(X.shape[1]), cov=9.0)
    one = lambda Y: method.scan(state, X, Y, keep=("runlength",), complete=complete)[1].runlength
    if not streams:
        return lambda: jax.block_until_ready(one(Y))
    many, run = jnp.tile(jnp.asarray(Y), (streams, 1)), jax.jit(jax.vmap(one))
    return lambda: jax.block_until_ready(run(many))


def run(process: str, quick: bool) -> Result:
    result = Result()
    steps = 500 if quick else 10_000
    X, Y = stream(steps, 2)
    progress(f"changes, {process}: compiling")
    kinds = {(form, K): f"LG(form={form})+RL[{K}]-PR(hazard=0.01)" for form in FORMS for K in LIMITS[process]}
    calls = {kind: scan(name, X, Y) for kind, name in kinds.items()}
    times = alternate({str(kind): call for kind, call in calls.items()}, 7, f"changes, {process}:")
    for form, K in kinds:
        timed = spread(times[str((form, K))], steps)
        result.rows.append(Row(BOUNDED, f"K={K}, {process}", "ours", form, "float32", **timed, unit="us"))
        title = f"RL[{K}], {form}, {process}, us per step"
        result.bars.append(Bar(title, 1e6 * result.rows[-1].seconds, LIMITS[process][K]))
    calls = {f"{K}": scan(kinds[FORMS[0], K], X, Y, complete=False) for K in LIMITS[process]}
    for K, taken in alternate(calls, 7, f"changes, {process}:").items():
        timed = spread(taken, steps)
        result.rows.append(Row(LOOKED_AT, f"K={K}, {process}", "note", FORMS[0], "float32", **timed, unit="us"))
    if process == "plain":
        X1, Y1 = stream(steps, 1)
        count, short = (20, 50) if quick else (10_000, 100)
        calls = {
            ALL: scan("LG(form=covariance)+RL[inf]-PR(hazard=0.01)", X1, Y1),
            FLEET: scan("LG(form=covariance)+RL[10]-PR(hazard=0.01)", X[:short], Y[:short], count),
        }
        times = alternate(calls, 3, f"changes, {process}:")
        result.rows.append(Row(ALL, f"T={steps}", "ours", "covariance", "float32", **spread(times[ALL]), unit="s"))
        result.bars.append(Bar(f"RL[inf], T={steps}, s", result.rows[-1].seconds, 0.7))
        fleet = spread(times[FLEET], count * short)
        result.rows.append(Row(FLEET, f"{count} streams", "ours", "covariance", "float32", **fleet, unit="us"))
        result.notes.append(f"fleet: {1e-6 / fleet['seconds']:.2f} million updates of RL[10] a second")
    return result
