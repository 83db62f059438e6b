"""Extended Kalman filter on a network with one hidden layer and one output, float32, dense covariance."""

import numpy as np

from benchmarks import bound
from benchmarks.harness import Bar, Result, Row, alternate, progress, spread

# parameters: (inputs, hidden units, steps in one run, runs of the D^3 peer, limit on ours / bound)
SIZES = {141: (5, 20, 1000, 5), 1021: (10, 85, 200, 5), 4093: (10, 341, 32, 1)}
QUICK = {141: (5, 20, 20, 5)}
NOISE, INFLATION, SPREAD = 0.1, 1e-4, 1.0


def data(inputs: int, hidden: int, steps: int):
    """Flat initial weights, inputs and targets of a smooth function."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(steps, inputs)).astype(np.float32)
    Y = np.sin(X.sum(1)).astype(np.float32) + 0.1 * rng.normal(size=steps).astype(np.float32)
    weights = rng.normal(size=hidden * (inputs + 2) + 1).astype(np.float32) / np.sqrt(np.float32(hidden))
    return weights, X, Y


def network(inputs: int, hidden: int):
    """h(theta, x) of a flat theta: one tanh layer and a linear output."""
    import jax.numpy as jnp

    split = hidden * inputs

    def h(theta, x):
        first, bias, last = (
            theta[:split].reshape(hidden, inputs),
            theta[split : split + hidden],
            theta[split + hidden :],
        )
        return last[:-1] @ jnp.tanh(first @ x + bias) + last[-1]

    return h


def ours(name: str, h, weights, X, Y):
    """A run of `scan` whose state is given up to it, as in a stream of chunks: the covariance is updated in place."""
    import jax
    import jax.numpy as jnp

    import filtax as fx

    method = fx.method(name, model=fx.models.nonlinear(h, noise=NOISE))
    run = jax.jit(lambda method, state, X, Y: method.scan(state, X, Y, keep=("mean",), complete=True), donate_argnums=1)
    X, Y = jnp.asarray(X), jnp.asarray(Y)
    held = [fresh_state(method, weights)]

    def call():
        held[0], info = run(method, held[0], X, Y)
        return jax.block_until_ready((held[0], info))[1].mean

    return call


def fresh_state(method, weights):
    """A state that shares no buffer with itself or with anything else, so that it may be donated."""
    import jax
    import jax.numpy as jnp

    return jax.tree.map(jnp.copy, method.init(mean=jnp.asarray(weights), cov=SPREAD))


def jax_traffic(size: int, steps: int):
    """The same traffic as XLA does it: a product that reads P, then a change of P in place; no network, no guards."""
    import jax
    import jax.numpy as jnp

    def body(P, _):
        u = P @ jnp.ones(size, P.dtype)
        return P - 1e-9 * u[:, None] * u[None, :], None

    run = jax.jit(lambda P: jax.lax.scan(body, P, length=steps)[0], donate_argnums=0)
    held = [jnp.eye(size, dtype=jnp.float32)]

    def call():
        held[0] = jax.block_until_ready(run(held[0]))

    return call


def dynamax(package, h, weights, X, Y):
    """Its extended filter with means only, so that no array of covariances is written."""
    import jax
    import jax.numpy as jnp

    D = weights.size
    parameters = package.ParamsNLGSSM(
        initial_mean=jnp.asarray(weights),
        initial_covariance=(SPREAD + INFLATION) * jnp.eye(D),
        dynamics_function=lambda theta, u: theta,
        dynamics_covariance=INFLATION * jnp.eye(D),
        emission_function=lambda theta, x: jnp.atleast_1d(h(theta, x)),
        emission_covariance=NOISE * jnp.eye(1),
    )
    run = jax.jit(
        lambda X, Y: (
            package.extended_kalman_filter(parameters, Y, inputs=X, output_fields=["filtered_means"]).filtered_means
        )
    )
    X, Y = jnp.asarray(X), jnp.asarray(Y)[:, None]
    return lambda: jax.block_until_ready(run(X, Y))


def agree(h, weights, X, Y, peer) -> float:
    """Greatest gap between the final weights of our covariance form and those of the peer."""
    import jax.numpy as jnp

    import filtax as fx

    method = fx.method(f"LG(form=covariance)+C-ACI(q={INFLATION})", model=fx.models.nonlinear(h, noise=NOISE))
    state, _ = method.scan(method.init(mean=jnp.asarray(weights), cov=SPREAD), jnp.asarray(X), jnp.asarray(Y), keep=())
    gap = float(np.abs(np.asarray(method.belief(state).mean) - np.asarray(peer()[-1])).max())
    if not gap <= 5e-2:
        raise AssertionError(f"Our weights end {gap:.2g} from the peer's; expected at most 0.05.")
    return gap


def size(result: Result, D: int, inputs: int, hidden: int, steps: int, peer_runs: int) -> None:
    """Rows and bars of one network size."""
    h, (weights, X, Y) = network(inputs, hidden), data(inputs, hidden, steps)
    group, unit = f"D = {D}", "us" if D < 4000 else "ms"
    found = [
        ("filtax, ACI", "ours", "covariance", ours(f"LG(form=covariance)+C-ACI(q={INFLATION})", h, weights, X, Y)),
        ("filtax, static", "ours", "root", ours("LG(form=root)+C-Static", h, weights, X, Y)),
        ("jitted read and update", "note", "-", jax_traffic(D, steps)),
    ]
    kind, call = bound.traffic(D * D, steps)
    if call:
        found.append((f"{kind} traffic, 2 threads", "bound", "-", call))
    times = alternate({name: call for name, _, _, call in found}, 7, f"ekf_mlp, {group}:")
    for name, role, form, _ in found:
        result.rows.append(Row(group, name, role, form, "float32", **spread(times[name], steps), unit=unit))
    if (package := result.peer("dynamax.nonlinear_gaussian_ssm")) is not None:
        few = min(steps, 2 if D > 4000 else 20)
        progress(f"ekf_mlp, {group}: dynamax, {few} steps")
        peer = dynamax(package, h, weights, X[:few], Y[:few])
        gap = agree(h, weights, X[:few], Y[:few], peer)
        times = alternate({"dynamax": peer}, peer_runs, f"ekf_mlp, {group}:")["dynamax"]
        result.rows.append(Row(group, "dynamax", "peer", "covariance", "float32", **spread(times, few), unit=unit))
        result.notes.append(f"{group}: weights of filtax and dynamax agree to {gap:.1e} after {few} steps")


def bars(result: Result) -> None:
    """Ours against the traffic bound, or against so many microseconds; the root form has twice that."""
    for group in dict.fromkeys(row.group for row in result.rows):
        times = {"covariance": result.seconds("filtax, ACI", group), "root": result.seconds("filtax, static", group)}
        result.notes.append(f"{group}: the root form takes {times['root'] / times['covariance']:.2f} of the other")
        for form, share in (("covariance", 1.0), ("root", 2.0)):
            if group == "D = 141":
                result.bars.append(Bar(f"filtax {form}, {group}, us", 1e6 * times[form], 10.0 * share))
            for row in result.rows:
                if row.group == group and row.role == "bound" and group != "D = 141":
                    found = Bar(f"filtax {form} / {row.name}, {group}", times[form] / row.seconds, 1.5 * share)
                    result.bars.append(found)


def run(process: str, quick: bool) -> Result:
    result = Result()
    for D, setting in (QUICK if quick else SIZES).items():
        size(result, D, *setting)
    result.skipped = list(dict.fromkeys(result.skipped))
    bars(result)
    return result
