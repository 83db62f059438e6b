"""Contextual bandits in the protocol of the Deep Bayesian Bandits Showdown, and the MNIST bandit.

    python -m benchmarks.bandits [NAME ...] [--steps 2000] [--seeds 10] [--json out/bandits.json]
    python -m benchmarks.bandits --mnist [--steps 40000] [--seeds 10] [--policy ts-linearised] [--method METHOD]
    python -m benchmarks.bandits --bernoulli [--steps 10000] [--seeds 100]
    python -m benchmarks.bandits --speed

A table is read from the folder named in FILTAX_DATA. Regret is told as a percentage of that of arms chosen blindly,
against the rewards as they fell and against the true means; beside it stand those of Wen, Tran and Ba (2020), table 3.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

# relative regret in per cent, 30 trials: LinFullPost, MultitaskGP, NaiveEnsemble4, greedy network
PUBLISHED = {
    "mushroom": (97.42, 12.87, 13.44, 16.31),
    "statlog": (19.00, 8.04, 7.10, 10.44),
    "stock": (10.24, 8.50, 11.31, 11.75),
    "jester": (78.40, 74.03, 72.73, 73.38),
    "wheel": (42.94, 69.52, 68.63, 84.02),
}
LINEAR = {  # variance of the rewards, of a weight
    "mushroom": (25.0, 25.0),
    "statlog": (0.05, 1.0),
    "stock": (0.01, 1.0),
    "jester": (16.0, 0.03),
    "wheel": (100.0, 500.0),
    "adult": (0.15, 1.0),
    "covertype": (0.15, 1.0),
}
HIDDEN = 50
BEST_PUBLISHED_MNIST = 31_168  # mean cumulative reward of 40,000 steps


def world_of(name, folder, steps, seeds, key):
    from filtax.bandits import load_table, table, wheel

    if name == "wheel":
        return wheel(key=key, steps=steps, simulations=seeds, delta=0.95)
    held = load_table(name, folder)
    return table(held.contexts, held.rewards, means=held.means, key=key, steps=steps, simulations=seeds)


def linear_of(name, width, arms):
    """Disjoint linear arms, one exact belief each."""
    import filtax as fx
    from filtax.bandits import stack

    noise, variance = LINEAR[name]
    method = fx.method("LG+C-Static", model=fx.models.linear(noise=noise))
    return method, stack([method.init(mean=np.zeros(width), cov=variance)] * arms), False


def network_of(name, width, arms, key):
    """One network with an output for each arm, a diagonal belief over its weights."""
    import filtax as fx

    net = fx.models.mlp((width, HIDDEN, arms))
    method = fx.method("LG(form=diagonal)+C-Static", model=fx.models.nonlinear(net.apply, noise=LINEAR[name][0]))
    return method, method.init(params=net.init(key), cov=0.05), True


def relative(world, played):
    """Per cent of the regret of blind choice, for both definitions; mean and standard error over seeds."""
    from filtax.bandits import regret_of_means, regret_of_rewards

    told = {}
    for title, regret, values in (
        ("rewards", regret_of_rewards, world.rewards),
        ("means", regret_of_means, world.means),
    ):
        paid = np.asarray(world.of_rounds(values), float)
        blind = (paid.max(axis=-1) - paid.mean(axis=-1)).sum(axis=0)
        share = 100.0 * np.asarray(regret(world, played)[-1], float) / blind
        told[title] = (float(share.mean()), float(share.std(ddof=1) / np.sqrt(len(share))) if len(share) > 1 else 0.0)
    return told


def contest(name, folder, steps, seeds, networks):
    import jax

    from filtax.bandits import play, thompson

    world = world_of(name, folder, steps, seeds, jax.random.key(0))
    width = world.contexts.shape[-1]
    entries = {"linear": (linear_of(name, width, world.arms), thompson())}
    if networks:
        entries["network"] = (network_of(name, width, world.arms, jax.random.key(2)), thompson("linearised"))
    rows = {}
    for title, ((method, state, shared), policy) in entries.items():
        began = time.perf_counter()
        played = jax.block_until_ready(play(method, policy, world, state, key=jax.random.key(1), shared=shared))
        rows[title] = relative(world, played) | {"seconds": time.perf_counter() - began}
        fell, true = rows[title]["rewards"], rows[title]["means"]
        print(
            f"{name:10} {title:8} {fell[0]:6.2f} ± {fell[1]:5.2f}  of means {true[0]:6.2f} ± {true[1]:5.2f}  "
            f"published {PUBLISHED.get(name, '')}  {rows[title]['seconds']:.1f} s",
            flush=True,
        )
    return rows


def mnist(folder, steps, seeds, policy, method_name, first=1):
    """LeNet-5 with an output for each digit; the reward is 1 for the right one.

    Rank, noise and prior variance were chosen among twelve settings by 4000 rounds of seed 0, which is not played here.
    """
    import jax
    import jax.numpy as jnp

    import filtax as fx
    from filtax.bandits import load_table, play, policy_named, table

    held = load_table("mnist", folder)
    net = fx.models.lenet5(activation="elu")
    method = fx.method(method_name, model=fx.models.nonlinear(net.apply, noise=0.1))
    totals = []
    for seed in range(first, first + seeds):  # one after the other: side by side the factor would be cut at every round
        of_order, of_net, of_play = jax.random.split(jax.random.key(seed), 3)
        world = table(held.contexts, held.rewards, key=of_order, steps=steps)
        state = method.init(params=net.init(of_net, jnp.float32), cov=1e-3)
        began = time.perf_counter()
        played = play(method, policy_named(policy), world, state, key=of_play, shared=True)
        totals.append(float(played.total[0]))
        print(f"seed {seed}: {totals[-1]:.0f} of {steps}, {time.perf_counter() - began:.0f} s", flush=True)
    mean = float(np.mean(totals))
    print(f"{method.name}, {policy}: mean {mean:.1f}; best published for 40,000 steps {BEST_PUBLISHED_MNIST}")
    return {"method": method.name, "policy": policy, "steps": steps, "totals": totals, "mean": mean}


def speed(steps=10_000, simulations=100, repeats=5):
    """Seconds for 10^6 arm-steps of Gaussian arms: C-ACI, ten Bernoulli arms; median of warm runs, noise included."""
    import jax

    from filtax.bandits import drifting_bernoulli, play, stack, thompson
    from filtax.bandits.bernoulli import contenders

    build, _, start = contenders()["C-ACI"]
    method, world = build(0.01), drifting_bernoulli(key=jax.random.key(0), steps=steps, simulations=simulations)
    state = stack([method.init(**start)] * world.arms)
    run = lambda key: jax.block_until_ready(play(method, thompson(), world, state, key=jax.random.key(key)))
    run(0)
    took = []
    for i in range(repeats):
        began = time.perf_counter()
        run(i)
        took.append(time.perf_counter() - began)
    seconds, millions = float(np.median(took)), steps * simulations * world.arms / 1e6
    print(f"{seconds:.3f} s for {millions:g} million arm-steps: {seconds / millions:.4f} s a million, at most 0.15")
    return {"seconds": seconds, "a million": seconds / millions, "each": took}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bandits", description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", help=f"tables: {', '.join(LINEAR)}; those with published numbers by default"
    )
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--first", type=int, default=1, help="for --mnist: the first seed")
    parser.add_argument("--networks", action="store_true", help="a network beside the linear arms")
    parser.add_argument("--mnist", action="store_true", help="the MNIST bandit; meant for a GPU")
    parser.add_argument("--bernoulli", action="store_true", help="the thesis' bandit and its claims")
    parser.add_argument("--speed", action="store_true", help="the time of Gaussian arms")
    parser.add_argument("--policy", default="ts-linearised")
    parser.add_argument("--method", default="LoFi(rank=20)+C-Static", help="for --mnist")
    parser.add_argument("--only", help="for --bernoulli: names of methods, separated by commas")
    parser.add_argument("--sd", type=float, help="for --bernoulli: one step size instead of both")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    given = parser.parse_args(arguments)
    folder = os.environ.get("FILTAX_DATA")
    if folder is None and not (given.bernoulli or given.speed):
        print("bandits: no data; name the folder that holds bandits/ and mnist/ in FILTAX_DATA.", file=sys.stderr)
        return 1
    if given.speed:
        out = speed()
    elif given.bernoulli:
        import jax

        from filtax.bandits import bernoulli_experiment

        options = {} if given.only is None else {"names": tuple(given.only.split(","))}
        options |= {} if given.sd is None else {"sd": (given.sd,)}
        size = {"steps": given.steps or 10_000, "simulations": given.seeds or 100}
        size["warm_up"] = (min(2000, size["steps"]), 10)
        out = bernoulli_experiment(key=jax.random.key(314), say=lambda s: print(s, flush=True), **size, **options)
        for part in out["runs"]:
            for claim in part["claims"]:
                print(f"sd {part['sd']:.4f}  {claim['by']:18} {claim['claim']:24} {claim['verdict']}")
    elif given.mnist:
        out = mnist(folder, given.steps or 40_000, given.seeds or 10, given.policy, given.method, given.first)
    else:
        names = given.names or list(PUBLISHED)
        out = {n: contest(n, folder, given.steps or 2000, given.seeds or 10, given.networks) for n in names}
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(out, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
