"""Public tables as bandits in the protocol of the Deep Bayesian Bandits Showdown: 2000 rounds, blind choice is 100.

    python -m benchmarks.bandits [NAME ...] [--steps 2000] [--seeds 10] [--networks] [--json out/bandits.json]

Every trial has rows in an order of its own, and draws again what the protocol draws: the harm of mushrooms, portfolios,
jokes. Regret is measured against the true means, as there. `LinFullPost` is the published method with its published
prior, and tells whether the protocol is the same; settings of the others were chosen, among one to nine each, on five
or ten other trials than those that are played here.
"""

import time

import numpy as np

# relative regret in per cent, mean of 30 trials; Wen, Tran and Ba (2020), table 3
PUBLISHED = {
    "mushroom": {"LinFullPost": 97.42, "MultitaskGP": 12.87, "NaiveEnsemble4": 13.44, "greedy network": 16.31},
    "statlog": {"LinFullPost": 19.00, "MultitaskGP": 8.04, "NaiveEnsemble4": 7.10, "greedy network": 10.44},
    "stock": {"LinFullPost": 10.24, "MultitaskGP": 8.50, "NaiveEnsemble4": 11.31, "greedy network": 11.75},
    "jester": {"LinFullPost": 78.40, "MultitaskGP": 74.03, "BatchEnsemble8": 71.84, "greedy network": 73.38},
    "wheel": {"LinFullPost": 42.94, "MultitaskGP": 69.52, "NaiveEnsemble4": 68.63, "greedy network": 84.02},
}
LINEAR = {  # variance of the rewards, of a weight, of the constant
    "mushroom": (10.0, 5.0, 5.0),
    "statlog": (0.02, 0.1, 0.1),
    "stock": (0.002, 0.05, 0.0001),
    "jester": (16.0, 0.001, 4.0),
    "wheel": (100.0, 500.0, 500.0),
    "adult": (0.15, 1.0, 1.0),
    "covertype": (0.15, 1.0, 1.0),
}
NETWORK = {  # variance of the rewards and of a weight: of a belief over all of the network, and over its last layer
    "mushroom": ((25.0, 0.05), (10.0, 20.0)),
    "statlog": ((0.05, 0.05), (0.05, 0.05)),
    "stock": ((0.002, 0.01), (0.002, 0.05)),
    "jester": ((1.0, 0.001), (16.0, 0.01)),
    "wheel": ((100.0, 0.05), (100.0, 50.0)),
    "adult": ((0.15, 0.05), (0.15, 0.05)),
    "covertype": ((0.15, 0.05), (0.15, 0.05)),
}
HIDDEN = 50
DRAWN = ("mushroom", "stock", "jester")  # tables of which a trial draws a part
BELIEFS = ("diagonal", "LoFi", "last layer")


def world_of(name, steps, seeds, first=0):
    """Trials side by side."""
    import jax
    import jax.numpy as jnp

    from filtax.bandits import World, wheel
    from thesis.tables import load_table

    if name == "wheel":
        return wheel(key=jax.random.key(first), steps=steps, simulations=seeds, delta=0.95)
    drawn = []
    for seed in range(first, first + seeds):
        held = load_table(name, seed=seed) if name in DRAWN or not drawn else held
        rng = np.random.default_rng(1000 + seed)
        order = np.concatenate([rng.permutation(len(held.rewards)) for _ in range(-(-steps // len(held.rewards)))])
        drawn.append([part[order[:steps]] for part in held])
    contexts, rewards, means = (jnp.asarray(np.stack(parts, axis=1)) for parts in zip(*drawn, strict=True))
    return World(rewards, means, contexts)


def published_linear(width, arms):
    """The published LinFullPost: noise variance ~ IG(6, 6), precision of a weight 0.25 in its units."""
    import filtax as fx
    from filtax.bandits import stack

    method = fx.method("NIG(shape=6, rate=6)+C-Static", model=fx.models.linear(likelihood=fx.models.gaussian(1.0)))
    return method, stack([method.init(mean=np.zeros(width), cov=4.0)] * arms), False


def linear_of(name, width, arms):
    """Disjoint linear arms, one exact belief each; the constant, the last feature, has a variance of its own."""
    import filtax as fx
    from filtax.bandits import stack

    noise, weight, constant = LINEAR[name]
    method = fx.method("LG+C-Static", model=fx.models.linear(noise=noise))
    cov = np.append(np.full(width - 1, weight), constant)
    return method, stack([method.init(mean=np.zeros(width), cov=cov)] * arms), False


def network_of(name, belief, width, arms, key):
    """One network with an output for each arm, and one belief over its weights, or over those of its last layer."""
    import filtax as fx

    noise, variance = NETWORK[name][belief == "last layer"]
    net = fx.models.mlp((width, HIDDEN, arms))
    model, params = fx.models.nonlinear(net.apply, noise=noise), net.init(key)
    if belief == "last layer":
        model = fx.models.last_layer(model, params)
        method = fx.method("LG+C-Static", model=model)
        return method, method.init(cov=variance), True
    posterior = {"diagonal": "LG(form=diagonal)", "LoFi": "LoFi(rank=20)"}[belief]
    method = fx.method(f"{posterior}+C-Static", model=model)
    return method, method.init(params=params, cov=variance), True


def relative(world, played):
    """Per cent of the regret of blind choice, against the true means; mean and standard deviation over trials."""
    from filtax.bandits import regret_of_means

    means = np.asarray(world.of_rounds(world.means), float)
    blind = (means.max(axis=-1) - means.mean(axis=-1)).sum(axis=0)
    share = 100.0 * np.asarray(regret_of_means(world, played)[-1], float) / blind
    return float(share.mean()), float(share.std(ddof=1)) if len(share) > 1 else 0.0


def contest(name, steps, seeds, networks, first=0, only=None):
    """Play all entries through the same trials; print a line for each."""
    import jax

    from filtax.bandits import play, thompson

    world = world_of(name, steps, seeds, first)
    width, linearised = world.contexts.shape[-1], thompson("linearised")
    entries = {
        "LinFullPost": (lambda: published_linear(width, world.arms), thompson()),
        "linear": (lambda: linear_of(name, width, world.arms), thompson()),
    }
    for belief in BELIEFS if networks else ():
        build = lambda belief=belief: network_of(name, belief, width, world.arms, jax.random.key(2))
        entries[f"network, {belief}"] = (build, linearised)
    rows = {}
    for title, (build, policy) in entries.items():
        if only is not None and title not in only:
            continue
        method, state, shared = build()
        began = time.perf_counter()
        played = jax.block_until_ready(play(method, policy, world, state, key=jax.random.key(1), shared=shared))
        mean, sd = relative(world, played)
        rows[title] = {"regret": mean, "sd": sd, "seconds": time.perf_counter() - began, "method": method.name}
        print(f"{name:10} {title:20} {mean:6.2f}  sd {sd:5.2f}  {rows[title]['seconds']:5.1f} s", flush=True)
    best = always_best(world)
    print(f"{name:10} {'best arm, if known':20} {best:6.2f}  published {PUBLISHED.get(name, '')}", flush=True)
    return rows | {"best arm, if known": best}


def always_best(world):
    """Relative regret of the one arm that is best, looking back: what contexts must beat."""
    means = np.asarray(world.of_rounds(world.means), float)
    lost = (means.max(axis=-1, keepdims=True) - means).sum(axis=0)
    return float((100.0 * lost.min(axis=-1) / lost.mean(axis=-1)).mean())
